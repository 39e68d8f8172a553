// SPDX-License-Identifier: Apache-2.0
#include "pubsub/core/fid_listing.hpp"

#include "pubsub/core/fid_ranges.hpp"

#include <gtest/gtest.h>

#include <array>
#include <random>
#include <set>

namespace netio::pubsub {
namespace {

constexpr std::array everything{FidRange{.first = Fid{0}, .last = Fid{UINT64_MAX}}};

FidListing listing_of(const std::set<std::uint64_t>& fids) {
    FidMap<int> map;
    for (const std::uint64_t fid : fids)
        map[Fid{fid}] = 1;
    FidListing listing;
    EXPECT_EQ(listing.is_outdated(map.size()), !map.empty());
    listing.make(map);
    EXPECT_FALSE(listing.is_outdated(map.size()));
    return listing;
}

TEST(FidListing, HasTheNearestFidsOnBothSides) {
    const FidListing listing = listing_of({1, 2, 3, 10, 20, UINT64_MAX});
    const auto page = [&](std::uint64_t from, std::size_t limit) {
        return listing.page(Fid{from}, limit, everything).ranges;
    };
    using Ranges = std::vector<FidRange>;
    EXPECT_EQ(page(5, 2), (Ranges{{Fid{1}, Fid{3}}, {Fid{10}, Fid{10}}}));
    EXPECT_EQ(page(0, 1), (Ranges{{Fid{1}, Fid{3}}}));
    EXPECT_EQ(page(2, 2), (Ranges{{Fid{1}, Fid{3}}, {Fid{10}, Fid{10}}})) << "begins below";
    EXPECT_EQ(page(30, 9), (Ranges{{Fid{20}, Fid{20}}, {Fid{UINT64_MAX}, Fid{UINT64_MAX}}}));
    EXPECT_EQ(page(UINT64_MAX, 9),
              (Ranges{{Fid{20}, Fid{20}}, {Fid{UINT64_MAX}, Fid{UINT64_MAX}}}));
    EXPECT_TRUE(FidListing{}.page(Fid{7}, 9, everything).ranges.empty());
}

// Page by page it is the whole list, of the permitted fids and of no others.
TEST(FidListing, IsReadInPagesAndOnlyWhereItIsPermitted) {
    std::mt19937_64 random{1};
    for (int run = 0; run < 500; ++run) {
        std::set<std::uint64_t> fids;
        for (auto left = random() % 30; left > 0; --left)
            fids.insert(random() % 60);
        std::vector<FidRange> rights;
        for (auto left = random() % 4; left > 0; --left) {
            const std::uint64_t first = random() % 60;
            rights.push_back({.first = Fid{first}, .last = Fid{first + random() % 20}});
        }
        const std::vector<FidRange> permitted =
            run % 4 == 0 ? std::vector<FidRange>(everything.begin(), everything.end())
                         : normalised(rights);
        const FidListing listing = listing_of(fids);
        std::set<std::uint64_t> read;
        for (Fid from{0};;) {
            const FidPage page = listing.page(from, 1 + random() % 4, permitted);
            for (const FidRange& range : page.ranges)
                for (auto fid = to_integer(range.first); fid <= to_integer(range.last); ++fid)
                    read.insert(fid);
            if (!page.more) break;
            ASSERT_GE(page.ranges.size(), 1U);
            from = Fid{to_integer(page.ranges.back().last) + 1};
        }
        std::erase_if(fids, [&](std::uint64_t fid) { return !contains(permitted, Fid{fid}); });
        ASSERT_EQ(read, fids) << "run " << run;
    }
}

} // namespace
} // namespace netio::pubsub
