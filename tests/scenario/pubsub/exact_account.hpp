// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/scenario/pubsub/actors.hpp"

#include <gtest/gtest.h>

namespace netio::pubsub::test {

// Arrived messages and messages reported lost together are all messages of a fid, in order.
inline void expect_exact_account(const SubscriberActor& actor, Fid fid, std::uint64_t published) {
    const auto found = actor.by_fid.find(fid);
    ASSERT_NE(found, actor.by_fid.end());
    std::map<std::uint64_t, std::uint64_t> missing; // first lost number: count
    const auto gaps = actor.gap_after.find(fid);
    if (gaps != actor.gap_after.end()) {
        for (std::size_t i = 0; i < gaps->second.size(); ++i)
            missing[gaps->second[i]] += actor.gap_counts.at(fid)[i];
    }
    std::uint64_t expected = 0;
    for (const Arrived& arrived : found->second) {
        if (const auto gap = missing.find(expected); gap != missing.end()) {
            expected += gap->second;
            missing.erase(gap);
        }
        ASSERT_EQ(arrived.number, expected) << "out of order, or a loss not reported";
        ASSERT_TRUE(arrived.intact);
        ++expected;
    }
    if (const auto gap = missing.find(expected); gap != missing.end()) expected += gap->second;
    EXPECT_EQ(expected, published);
}

} // namespace netio::pubsub::test
