// SPDX-License-Identifier: Apache-2.0
#include "pubsub/client/wanted_fids.hpp"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <set>

namespace netio::pubsub {
namespace {

using std::chrono::milliseconds;

TEST(WantedFids, KnowsEachFidThatAnySubscriberHas) {
    constexpr std::uint64_t fids = 12;
    std::mt19937 random{1};
    WantedFids wanted;
    std::map<std::uint64_t, std::set<std::uint64_t>> model; // by subscriber
    for (int step = 0; step < 5000; ++step) {
        const std::uint64_t subscriber = random() % 4;
        const std::uint64_t first = random() % fids;
        const std::uint64_t last = first + random() % (fids - first);
        const FidRange range{.first = Fid{first}, .last = Fid{last}};
        const bool adds = random() % 2 == 0;
        adds ? wanted.subscribe(SubscriberId{subscriber}, range)
             : wanted.unsubscribe(SubscriberId{subscriber}, range);
        for (std::uint64_t fid = first; fid <= last; ++fid)
            adds ? void(model[subscriber].insert(fid)) : void(model[subscriber].erase(fid));
        std::size_t subscribers = 0;
        std::set<std::uint64_t> all;
        for (const auto& [id, own] : model) {
            subscribers += own.empty() ? 0U : 1U;
            all.insert(own.begin(), own.end());
        }
        for (std::uint64_t fid = 0; fid < fids; ++fid)
            ASSERT_EQ(wanted.has(Fid{fid}), all.contains(fid)) << "step " << step;
        ASSERT_TRUE(wanted.wait_for_subscribers(subscribers, milliseconds{0}));
        ASSERT_FALSE(wanted.wait_for_subscribers(subscribers + 1, milliseconds{0}));
    }
    wanted.end();
    EXPECT_FALSE(wanted.wait_for_subscribers(0, milliseconds{0}));
}

} // namespace
} // namespace netio::pubsub
