// SPDX-License-Identifier: Apache-2.0

// Messages for many groups of subscribers in turn, so that the flush time finds hundreds of open
// pages with hardly a message in each.

#include "tests/scenario/pubsub/fixture.hpp"

#include <chrono>

namespace netio::pubsub::test::groups_test {
namespace {

using netio::Status;
using namespace std::chrono_literals;

// The bits of a group's number select its subscribers; each group has its own fid.
constexpr unsigned subscriber_count = 8;
constexpr std::uint64_t group_count = (1U << subscriber_count) - 1;
constexpr std::size_t message_bytes = 40;
// The fids are not consecutive, because consecutive fids would be subscribed as one range.
constexpr Fid fid_of(std::uint64_t group) {
    return Fid{2 * group};
}

class Groups : public PubSubScenario {
  protected:
    // Publishes this many messages every 50 us, to one group after another, until each group has
    // had `rounds`.
    void publish_in_turn(BufferedPublishSocket& publisher, std::uint64_t per_tick,
                         std::uint64_t rounds) {
        std::uint64_t next = 0;
        netio::Timer tick{loop(), [&] {
                              for (std::uint64_t i = 0; i < per_tick; ++i) {
                                  const Fid fid = fid_of(1 + next % group_count);
                                  if (next == rounds * group_count ||
                                      publish(publisher, fid, next / group_count, message_bytes) !=
                                          Status::ok) {
                                      break;
                                  }
                                  ++next;
                                  if (each_alone) publisher.flush(fid);
                              }
                              tick.start(50us);
                          }};
        tick.start(50us);
        const auto has_all = [&](const auto& each) {
            return each->actor.messages == rounds * (group_count + 1) / 2;
        };
        ASSERT_TRUE(run_until([&] { return std::ranges::all_of(subscribers, has_all); }));
        for (unsigned i = 0; i < subscriber_count; ++i) {
            for (std::uint64_t group = 1; group <= group_count; ++group) {
                if ((group >> i) % 2 == 1)
                    subscribers[i]->actor.expect_contiguous(fid_of(group), 0, rounds);
            }
        }
    }
    bool each_alone = false; // one page per message

    void subscribe_all(const netio::SessionOptions& session) {
        for (unsigned i = 0; i < subscriber_count; ++i) {
            std::vector<FidRange> ranges;
            for (std::uint64_t group = 1; group <= group_count; ++group)
                if ((group >> i) % 2 == 1) ranges.push_back({fid_of(group), fid_of(group)});
            const auto& made = subscribe(ranges, {.session = session});
            ASSERT_TRUE(run_until([&] { return made.actor.subscribed.size() == ranges.size(); }));
        }
    }
};

// No page waits for a receive.
const netio::SessionOptions quick{.receive_buffer_bytes = 8192, .receive_count = 2048};
const netio::SessionOptions slow{.receive_buffer_bytes = 8192, .receive_count = 4};

TEST_P(Groups, OfBusySubscribersFillTheirPagesFurther) {
    const auto publisher = buffered({.page_size_bytes = 4096, .page_count = 4096});
    subscribe_all(slow);
    constexpr std::uint64_t rounds = 60;
    publish_in_turn(*publisher, 20, rounds);
    EXPECT_LT(publisher->counters().pages, rounds * group_count * 2 / 3);
}

// More pages than receives: a subscriber with few receives gets several pages in each.
TEST_P(Groups, WithQueuedPagesShareFrames) {
    const auto publisher = buffered({.page_size_bytes = 4096, .page_count = 64});
    subscribe_all(slow);
    constexpr std::uint64_t rounds = 40;
    each_alone = true;
    publish_in_turn(*publisher, 20, rounds);
    EXPECT_EQ(publisher->counters().pages, rounds * group_count);
    std::uint64_t pages = 0; // sum over the subscribers of each
    for (const auto& each : subscribers)
        pages += each->actor.messages;
    std::uint64_t frames = 0;
    for (const SubscriberSnapshot& each : publisher->snapshot().subscribers)
        frames += each.frames_sent;
    EXPECT_LT(frames, pages * 2 / 3);
    publisher->close();
    ASSERT_TRUE(run_until([&] { return publisher_actor.ended == 1; }));
    EXPECT_EQ(publisher_actor.end.reason, netio::CloseReason::orderly);
}

TEST_P(Groups, WithPausedPublishingGetTheirPagesAsQuicklyAsEver) {
    const auto publisher = buffered({.page_size_bytes = 4096, .page_count = 4096});
    subscribe_all(quick);
    constexpr std::uint64_t rounds = 8;
    publish_in_turn(*publisher, 64, rounds); // a pause every 50 us
    EXPECT_EQ(publisher->counters().pages, rounds * group_count);
}

INSTANTIATE_TEST_SUITE_P(Beds, Groups, netio::test::simulated_beds(), bed_name);

} // namespace
} // namespace netio::pubsub::test::groups_test
