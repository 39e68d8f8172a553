// SPDX-License-Identifier: Apache-2.0
#include "pubsub/core/fid_ranges.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <random>
#include <vector>

namespace netio::pubsub::fid_count_store_test {
namespace {

std::vector<FidCount> list(const std::map<Fid, std::uint64_t>& counts) {
    std::vector<FidCount> all;
    for (const auto& [fid, count] : counts)
        all.push_back({.fid = fid, .count = count});
    return all;
}

TEST(FidCountStore, AgreesWithAPlainMap) {
    for (unsigned seed = 0; seed < 200; ++seed) {
        std::mt19937_64 random{seed};
        const std::uint64_t fids = seed % 2 == 0 ? 50 : 3000;
        const std::uint64_t step = seed % 3 == 0 ? UINT64_MAX / fids : 1 + random() % 300;
        FidCountStore store;
        std::map<Fid, std::uint64_t> model;
        for (int request = 0; request < 40; ++request) {
            std::map<Fid, std::uint64_t> added;
            for (std::uint64_t i = random() % (request % 8 == 0 ? fids : 8); i > 0; --i)
                added[Fid{random() % fids * step}] = random() >> random() % 64;
            store.add(list(added));
            for (const auto& [fid, count] : added)
                model[fid] = count;
        }
        for (std::uint64_t i = 0; i <= fids; ++i) {
            for (const Fid fid : {Fid{i * step}, Fid{i * step + 1}}) {
                const auto found = model.find(fid);
                ASSERT_EQ(store.find(fid), found == model.end() ? 0 : found->second)
                    << "seed " << seed << " fid " << to_string(fid);
            }
        }
    }
}

TEST(FidCountStore, KeepsTheOutermostNumbers) {
    FidCountStore store;
    EXPECT_EQ(store.find(Fid{0}), 0U);
    store.add(std::vector<FidCount>{{Fid{0}, UINT64_MAX}, {Fid{UINT64_MAX}, 1}});
    EXPECT_EQ(store.find(Fid{0}), UINT64_MAX);
    EXPECT_EQ(store.find(Fid{UINT64_MAX}), 1U);
    EXPECT_EQ(store.find(Fid{UINT64_MAX - 1}), 0U);
}

// One request for all fids, or one for each of them.
TEST(FidCountStore, NeedsAFewBytesForEachFid) {
    constexpr std::uint64_t fids = 100'000;
    FidCountStore at_once;
    FidCountStore one_by_one;
    std::vector<FidCount> all;
    for (std::uint64_t i = 0; i < fids; ++i) {
        all.push_back({.fid = Fid{i << 16}, .count = 1'000'000});
        one_by_one.add({&all.back(), 1});
    }
    at_once.add(all);
    EXPECT_LT(at_once.bytes(), 7 * fids);
    EXPECT_LT(one_by_one.bytes(), 8 * fids);
}

} // namespace
} // namespace netio::pubsub::fid_count_store_test
