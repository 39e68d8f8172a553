// SPDX-License-Identifier: Apache-2.0
#include "pubsub/client/discovered_publishers.hpp"

#include "tests/support/sim_world.hpp"

#include <gmock/gmock.h>

#include <string>
#include <vector>

namespace netio::pubsub::discovered_publishers_test {
namespace {

constexpr PublisherId a{1};
constexpr PublisherId b{2};
constexpr PublisherId c{3};
constexpr PublisherId d{4};

TEST(ConnectionSlots, AreHeldOnceByEachAndNotByMoreThanTheLimit) {
    ConnectionSlots slots{2};
    EXPECT_TRUE(slots.take(a));
    EXPECT_TRUE(slots.take(a)) << "it has one already";
    EXPECT_TRUE(slots.has_free());
    EXPECT_TRUE(slots.take(b));
    EXPECT_FALSE(slots.has_free());
    EXPECT_FALSE(slots.take(c));
    EXPECT_TRUE(slots.take(b));
    EXPECT_TRUE(slots.is_waiting(c));
    EXPECT_FALSE(slots.is_waiting(a));
    EXPECT_EQ(slots.next(), std::nullopt) << "no free slot";
}

TEST(ConnectionSlots, FreeSlotsGoToWaitingPublishersInTurn) {
    ConnectionSlots slots{1};
    ASSERT_TRUE(slots.take(c));
    ASSERT_FALSE(slots.take(b));
    ASSERT_FALSE(slots.take(d));
    slots.release(c);
    EXPECT_EQ(slots.next(), b);
    ASSERT_TRUE(slots.take(b));
    EXPECT_FALSE(slots.take(a));
    slots.release(b);
    EXPECT_EQ(slots.next(), d) << "the next after the last one";
    EXPECT_EQ(slots.next(), a) << "until all slots are used";
    EXPECT_EQ(slots.next(), std::nullopt);
}

TEST(ConnectionSlots, AForgottenPublisherIsNotOfferedASlot) {
    ConnectionSlots slots{1};
    ASSERT_TRUE(slots.take(a));
    ASSERT_FALSE(slots.take(b));
    slots.forget(b);
    EXPECT_FALSE(slots.is_waiting(b));
    slots.forget(a);
    EXPECT_EQ(slots.next(), std::nullopt);
    EXPECT_TRUE(slots.take(c));
}

TEST(ConnectionSlots, WaitingPublishersAreReportedOnceUntilNoneWaits) {
    ConnectionSlots slots{1};
    EXPECT_EQ(slots.unreported(), std::nullopt);
    ASSERT_TRUE(slots.take(a));
    ASSERT_FALSE(slots.take(b));
    EXPECT_EQ(slots.unreported(), b);
    ASSERT_FALSE(slots.take(c));
    EXPECT_EQ(slots.unreported(), std::nullopt);
    slots.forget(b);
    EXPECT_EQ(slots.unreported(), std::nullopt);
    slots.forget(c);
    ASSERT_FALSE(slots.take(d));
    EXPECT_EQ(slots.unreported(), d);
}

TEST(ConnectionSlots, APublisherThatGetsASlotEarlyNoLongerWaits) {
    ConnectionSlots slots{1};
    ASSERT_TRUE(slots.take(a));
    ASSERT_FALSE(slots.take(b));
    slots.release(a);
    EXPECT_TRUE(slots.take(b));
    EXPECT_FALSE(slots.is_waiting(b));
    slots.release(b);
    EXPECT_EQ(slots.next(), std::nullopt);
}

using std::chrono::seconds;
using testing::ElementsAre;
using testing::IsEmpty;

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
    std::vector<std::string> asked; // seconds: publisher fid
    RejectedPublishers refused{loop, [this](PublisherId id, const std::vector<FidRange>& fids) {
                                   asked.push_back(
                                       std::to_string((world.now() - begin) / seconds{1}) + ": " +
                                       std::to_string(static_cast<std::uint64_t>(id)) + " " +
                                       to_string(fids.at(0)));
                               }};
};

TEST_F(Refusals, EndForEachPublisherAfterItsOwnTime) {
    refused.put(a, only(7), seconds{10});
    refused.put(b, only(8), seconds{5});
    run_for(seconds{20});
    EXPECT_THAT(asked, ElementsAre("5: 2 0x8", "10: 1 0x7"));
    run_for(seconds{20});
    EXPECT_EQ(asked.size(), 2U) << "once";
}

TEST_F(Refusals, OfAForgottenPublisherAreRemoved) {
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

TEST_F(Refusals, ANewOneReplacesAnOlderOne) {
    refused.put(a, only(7), seconds{5});
    run_for(seconds{3});
    refused.put(a, only(8), seconds{5});
    run_for(seconds{20});
    EXPECT_THAT(asked, ElementsAre("8: 1 0x8"));
}

Announcement saying(const std::string& name, const std::string& mode) {
    return {.name = name, .mode = mode};
}

TEST(PendingAnnouncements, KeepTheLatestOfEachPublisher) {
    PendingAnnouncements news;
    EXPECT_TRUE(news.empty());
    news.put("a", saying("a", "first"));
    news.put("b", saying("b", "only"));
    news.put("a", saying("a", "last"));
    news.put("b", {});
    const PendingAnnouncements::News first = news.take();
    EXPECT_EQ(first.first, "a");
    EXPECT_EQ(first.second->mode, "last");
    const PendingAnnouncements::News next = news.take();
    EXPECT_EQ(next.first, "b");
    EXPECT_EQ(next.second, std::nullopt);
    EXPECT_TRUE(news.empty());
}

// One publisher changes its announcement all the time.
TEST(PendingAnnouncements, AreTakenInTurnSoThatNoPublisherDelaysOthers) {
    PendingAnnouncements news;
    for (const char* const name : {"a", "b", "c"})
        news.put(name, {});
    std::vector<std::string> taken;
    while (!news.empty()) {
        taken.push_back(news.take().first);
        if (taken.size() < 4) news.put("a", {});
    }
    EXPECT_EQ(taken, (std::vector<std::string>{"a", "b", "c", "a"}));
}

} // namespace
} // namespace netio::pubsub::discovered_publishers_test
