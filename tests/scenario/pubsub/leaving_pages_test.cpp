// SPDX-License-Identifier: Apache-2.0

// When a buffered publisher's pages leave, and when they stay.

#include "tests/scenario/pubsub/fixture.hpp"

namespace netio::pubsub::test::leaving_pages_test {
namespace {

using netio::Status;

class LeavingPages : public PubSubScenario {
  protected:
    bool subscribed_all() {
        return run_until([&] {
            return std::ranges::all_of(
                subscribers, [](const auto& each) { return each->actor.subscribed.size() == 1; });
        });
    }
};

// Pages leave only because memory is short.
TEST_P(LeavingPages, LeaveWhenMemoryIsShortWithoutAnotherReason) {
    constexpr std::uint64_t groups = 20;
    auto publisher = buffered({.page_size_bytes = 1024, .page_count = 8, .flush_time = {}});
    for (std::uint64_t fid = 0; fid < groups; ++fid)
        subscribe({range(fid, fid)},
                  {.session = {.receive_buffer_bytes = 2048, .receive_count = 8}});
    ASSERT_TRUE(subscribed_all());
    std::uint64_t next = 0;
    bool refused = false;
    publisher_actor.at_room = [&] {
        for (; next < groups; ++next) {
            const Status status = publish(*publisher, Fid{next}, 0, 900);
            refused = refused || status == Status::again;
            if (status == Status::again) return;
            ASSERT_EQ(status, Status::ok);
        }
    };
    publisher_actor.at_room();
    EXPECT_TRUE(run_until([&] { return next == groups; })) << next;
    EXPECT_TRUE(refused) << "the test must reach this case";
}

using LeavingPagesInVirtualTime = LeavingPages;

TEST_P(LeavingPagesInVirtualTime, WaitUntilAllOfTheirGroupAreIdle) {
    auto publisher = buffered(
        {.page_size_bytes = 4096, .page_count = 64, .flush_time = {}, .flush_when_idle = true});
    auto& honest = subscribe({range(1, 1)});
    ASSERT_TRUE(subscribed_all());
    auto slow = stuck(range(1, 1));
    for (std::uint64_t number = 0; number < 40; ++number) {
        ASSERT_EQ(publish(*publisher, Fid{1}, number, 100), Status::ok);
        bed.let_pass(std::chrono::milliseconds{10});
    }
    EXPECT_GE(publisher->counters().pages, 2U) << "while both were idle";
    EXPECT_LE(publisher->counters().pages, 20U) << "and no more while one was busy";
    EXPECT_LT(honest.actor.messages, 40U);
    publisher->flush();
    ASSERT_TRUE(run_until([&] { return honest.actor.messages == 40; }));
}

// Also by a message on the fast path, which looks only at the page.
TEST_P(LeavingPages, LeaveAtTheWatermarkWhicheverMessageReachesIt) {
    auto publisher = buffered({.watermark_bytes = 400, .flush_time = {}});
    auto& subscriber = subscribe({range(1, 1)});
    ASSERT_TRUE(subscribed_all());
    for (std::uint64_t number = 0; number < 40; ++number)
        ASSERT_EQ(publish(*publisher, Fid{1}, number, 40), Status::ok);
    EXPECT_EQ(publisher->counters().pages, 4U); // nine messages in each
    ASSERT_TRUE(run_until([&] { return subscriber.actor.messages == 36; }));
}

INSTANTIATE_TEST_SUITE_P(Beds, LeavingPages, all_beds(), bed_name);
INSTANTIATE_TEST_SUITE_P(Beds, LeavingPagesInVirtualTime, netio::test::simulated_beds(), bed_name);

} // namespace
} // namespace netio::pubsub::test::leaving_pages_test
