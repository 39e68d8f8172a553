// SPDX-License-Identifier: Apache-2.0
// When publishers that have refused for good are asked again, in virtual time.

#include "pubsub/client/refused_sources.hpp"

#include "tests/support/sim_world.hpp"

#include <gmock/gmock.h>

#include <string>
#include <vector>

namespace netio::pubsub {
namespace {

using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;

constexpr SourceId a{1};
constexpr SourceId b{2};

std::vector<FidRange> only(std::uint64_t fid) {
    return {{.first = Fid{fid}, .last = Fid{fid}}};
}

class Refusals : public testing::Test {
  protected:
    void run_for(seconds time) {
        bool is_over = false;
        Timer end{loop, [&] { is_over = true; }};
        end.start(time);
        while (!is_over)
            loop.run_once(TimePoint::max());
    }

    netio::test::SimWorld world;
    EventLoop loop{{}, world};
    TimePoint begin{world.now()};
    std::vector<std::string> asked; // after so many seconds: who, for which fid
    RefusedSources refused{loop, [this](SourceId id, const std::vector<FidRange>& fids) {
                               asked.push_back(std::to_string((world.now() - begin) / seconds{1}) +
                                               ": " +
                                               std::to_string(static_cast<std::uint64_t>(id)) +
                                               " " + to_string(fids.at(0)));
                           }};
};

TEST_F(Refusals, AreOverForEachInItsTimeWhoeverCameFirst) {
    refused.put(a, only(7), seconds{10});
    refused.put(b, only(8), seconds{5});
    run_for(seconds{20});
    EXPECT_THAT(asked, ElementsAre("5: 2 0x8", "10: 1 0x7"));
    run_for(seconds{20});
    EXPECT_EQ(asked.size(), 2U) << "once";
}

TEST_F(Refusals, OfOneThatIsGoneMatterToNobody) {
    refused.put(a, only(7), seconds{10});
    refused.put(b, only(8), seconds{5});
    refused.forget(b);
    run_for(seconds{9});
    EXPECT_THAT(asked, IsEmpty());
    run_for(seconds{9});
    EXPECT_THAT(asked, ElementsAre("10: 1 0x7"));
    refused.put(b, only(8), seconds{5});
    refused.forget(b);
    run_for(seconds{20});
    EXPECT_EQ(asked.size(), 1U);
}

TEST_F(Refusals, ThatAreNewerTakeThePlaceOfFormerOnes) {
    refused.put(a, only(7), seconds{5});
    run_for(seconds{3});
    refused.put(a, only(8), seconds{5});
    run_for(seconds{20});
    EXPECT_THAT(asked, ElementsAre("8: 1 0x8"));
}

} // namespace
} // namespace netio::pubsub
