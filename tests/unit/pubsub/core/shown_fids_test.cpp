// SPDX-License-Identifier: Apache-2.0
#include "pubsub/core/fid_ranges.hpp"

#include "pubsub/core/arrival_counter.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <set>

namespace netio::pubsub::shown_fids_test {
namespace {

struct Row {
    Fid fid{};
    std::uint64_t messages = 0;
};
using Shown = ShownFids<Row>;

void look(Shown& shown, std::size_t limit, const ArrivalCounter& arrivals) {
    shown.begin_listing(limit);
    shown.add(arrivals.fids(),
              [](Row& sum, Fid, const Arrivals& arrived) { sum.messages += arrived.messages; });
}

ArrivalCounter arrivals_of(std::uint64_t first, std::uint64_t last) {
    ArrivalCounter arrivals;
    for (std::uint64_t fid = first; fid <= last; ++fid)
        arrivals.add(Fid{fid}, 10);
    return arrivals;
}

std::set<Fid> fids_of(const Shown& shown) {
    std::set<Fid> all;
    for (const Row& each : shown.rows())
        all.insert(each.fid);
    return all;
}

TEST(ShownFids, SumUpWhatAFidHasBroughtAnywhere) {
    Shown shown;
    for (int again = 0; again < 2; ++again) { // each look starts from 0
        FidMap<int> past;
        past[Fid{7}] = 1;
        past[Fid{9}] = 4;
        look(shown, 3, arrivals_of(7, 7));
        shown.add(past, [](Row& sum, Fid fid, int count) {
            EXPECT_EQ(count, fid == Fid{7} ? 1 : 4);
            sum.messages += static_cast<std::uint64_t>(count);
        });
        EXPECT_FALSE(shown.is_full());
        const auto all = shown.rows();
        ASSERT_EQ(all.size(), 2U);
        EXPECT_EQ(all[0].fid, Fid{7});
        EXPECT_EQ(all[0].messages, 2U);
        EXPECT_EQ(all[1].fid, Fid{9});
        EXPECT_EQ(all[1].messages, 4U);
    }
}

// Also if other fids arrive, and the map grows or has another order.
TEST(ShownFids, AreLimitedAndStayTheSame) {
    Shown shown;
    ArrivalCounter arrivals = arrivals_of(100, 149);
    look(shown, 80, arrivals);
    EXPECT_FALSE(shown.is_full());
    EXPECT_EQ(fids_of(shown).size(), 50U);
    for (std::uint64_t fid = 0; fid < 1000; ++fid)
        arrivals.add(Fid{fid}, 1);
    look(shown, 80, arrivals);
    EXPECT_TRUE(shown.is_full());
    const std::set<Fid> first = fids_of(shown);
    EXPECT_EQ(first.size(), 80U);
    for (std::uint64_t fid = 100; fid < 150; ++fid)
        EXPECT_TRUE(first.contains(Fid{fid})) << fid;
    for (std::uint64_t fid = 1000; fid < 10000; ++fid)
        arrivals.add(Fid{fid}, 1);
    look(shown, 80, arrivals);
    EXPECT_EQ(fids_of(shown), first);
    // Few arrivals, of which few are shown: the result does not depend on the direction of the
    // search.
    ArrivalCounter few = arrivals_of(120, 129);
    few.add(Fid{5000}, 1);
    look(shown, 80, few);
    EXPECT_EQ(fids_of(shown), first);
    std::uint64_t messages = 0;
    for (const Row& each : shown.rows()) {
        messages += each.messages;
        EXPECT_EQ(each.messages, each.fid >= Fid{120} && each.fid <= Fid{129} ? 1U : 0U);
    }
    EXPECT_EQ(messages, 10U);
}

TEST(ShownFids, AreNoneAndAsManyAsIsWantedThisTime) {
    Shown shown;
    const ArrivalCounter arrivals = arrivals_of(1, 9);
    for (const std::size_t limit : {0U, 5U, 2U, 9U}) {
        look(shown, limit, arrivals);
        EXPECT_EQ(fids_of(shown).size(), limit);
        EXPECT_TRUE(shown.is_full());
    }
}

} // namespace
} // namespace netio::pubsub::shown_fids_test
