// SPDX-License-Identifier: Apache-2.0

// Small unbuffered messages that are published faster than frames leave.

#include "tests/scenario/pubsub/fixture.hpp"

#include <gmock/gmock.h>

#include <array>
#include <cstring>

namespace netio::pubsub::test::gathering_test {
namespace {

using netio::Cookie;
using netio::Status;

// The memory of many small messages, published as fast as the publisher accepts them.
class SmallUnbuffered : public PubSubScenario {
  protected:
    static constexpr std::size_t slots = 256;
    static constexpr std::size_t slot_bytes = 256;

    // Message i has fid i % 3 and 8 to 200 bytes.
    void publish_all(PublishSocket& publisher, std::uint64_t count) {
        publisher_actor.at_room = [this, &publisher, count] {
            for (; next_ < count; ++next_) {
                const std::size_t slot = next_ % slots;
                if (next_ >= slots && publisher_actor.completions[next_ - slots] == 0) return;
                const Fid fid{next_ % 3};
                const auto message = make_message(fid, next_ / 3, 8 + next_ * 7 % 193);
                const Slice slice = memory_.slice(slot * slot_bytes, message.size());
                std::memcpy(slice.data, message.data(), message.size());
                const Status status = publisher.publishv(
                    fid, std::array{slice}, Cookie{next_},
                    {.status = static_cast<std::uint8_t>(next_ % 5), .header = {}});
                if (status == Status::again) return;
                ASSERT_EQ(status, Status::ok);
            }
        };
        publisher_actor.at_room();
        ASSERT_TRUE(run_until([&] {
            publisher_actor.at_room();
            return next_ == count;
        }));
    }

    RegisteredBuffer memory_{slots * slot_bytes};
    std::uint64_t next_ = 0;
};

TEST_P(SmallUnbuffered, ShareFramesAndArriveInOrderAndCompleteOnce) {
    auto publisher = unbuffered({});
    auto& all = subscribe({range(0, 2)});
    auto& one = subscribe({range(1, 1)});
    ASSERT_TRUE(run_until(
        [&] { return all.actor.subscribed.size() == 1 && one.actor.subscribed.size() == 1; }));
    publish_all(*publisher, 3000);
    publisher->close();
    ASSERT_TRUE(run_until([&] { return publisher_actor.ended == 1; }));
    for (std::uint64_t fid = 0; fid < 3; ++fid)
        all.actor.expect_contiguous(Fid{fid}, 0, 1000);
    one.actor.expect_contiguous(Fid{1}, 0, 1000);
    for (std::uint64_t i = 0; i < 1000; ++i)
        ASSERT_EQ(all.actor.by_fid[Fid{1}][i].status, (3 * i + 1) % 5);
    for (std::uint64_t i = 0; i < 3000; ++i)
        ASSERT_EQ(publisher_actor.completions[i], 1) << i;
    EXPECT_TRUE(all.socket->seen().gathered);
    EXPECT_FALSE(all.socket->seen().pages) << "not marked as pages of a buffered publisher";
    EXPECT_EQ(all.actor.lost, 0U);
}

TEST_P(SmallUnbuffered, OneAtATimeLeavesAtOnceAndByItself) {
    auto publisher = unbuffered({});
    auto& subscriber = subscribe({range(0, 2)});
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 1; }));
    for (std::uint64_t i = 0; i < 20; ++i) {
        publish_all(*publisher, i + 1);
        ASSERT_TRUE(run_until([&] { return publisher_actor.completions[i] == 1; }));
    }
    publisher->close();
    ASSERT_TRUE(run_until([&] { return publisher_actor.ended == 1; }));
    subscriber.actor.expect_contiguous(Fid{0}, 0, 7);
    EXPECT_FALSE(subscriber.socket->seen().gathered);
}

// With tcp the kernel copies sent data anyway; a device would read it in place.
TEST_P(SmallUnbuffered, LargerOnesShareFramesUnlessADeviceReadsThem) {
    constexpr std::uint64_t count = 30;
    constexpr std::size_t bytes = 20'000;
    auto publisher = unbuffered({});
    auto& subscriber = subscribe({range(7, 7)});
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 1; }));
    RegisteredBuffer memory{count * bytes};
    for (std::uint64_t i = 0; i < count; ++i) {
        const Slice slice = memory.slice(i * bytes, bytes);
        const auto message = make_message(Fid{7}, i, bytes);
        std::memcpy(slice.data, message.data(), bytes);
        ASSERT_EQ(publisher->publish(Fid{7}, slice, Cookie{i}), Status::ok);
    }
    publisher->close();
    ASSERT_TRUE(run_until([&] { return publisher_actor.ended == 1; }));
    subscriber.actor.expect_contiguous(Fid{7}, 0, count);
    const bool is_device = GetParam() == Bed::sim_verbs || GetParam() == Bed::fabric_verbs;
    EXPECT_EQ(subscriber.socket->seen().gathered, !is_device);
}

// A mixture of sizes: below and above a third of a small receive buffer, and larger than that
// buffer. Another subscriber's buffers are large enough for each of them.
TEST_P(SmallUnbuffered, SharedSingleAndInPiecesTheyArriveInTheirOrder) {
    constexpr std::uint64_t count = 120;
    constexpr std::array<std::size_t, 7> sizes{40, 1300, 1400, 60, 9000, 4000, 80};
    constexpr std::size_t most = 9000;
    auto publisher = unbuffered({.outstanding_limit = 8 * count, .queue_limit_messages = count});
    auto& small =
        subscribe({range(7, 7)}, {.session = {.receive_buffer_bytes = 4096, .receive_count = 8}});
    auto& large = subscribe({range(7, 7)});
    ASSERT_TRUE(run_until(
        [&] { return small.actor.subscribed.size() == 1 && large.actor.subscribed.size() == 1; }));
    RegisteredBuffer memory{count * most};
    for (std::uint64_t i = 0; i < count; ++i) {
        const auto message = make_message(Fid{7}, i, sizes[i % sizes.size()]);
        const Slice slice = memory.slice(i * most, message.size());
        std::memcpy(slice.data, message.data(), message.size());
        ASSERT_EQ(publisher->publish(Fid{7}, slice, Cookie{i}), Status::ok);
    }
    publisher->close();
    ASSERT_TRUE(run_until([&] { return publisher_actor.ended == 1; }));
    for (auto* const each : {&small, &large}) {
        each->actor.expect_contiguous(Fid{7}, 0, count);
        EXPECT_TRUE(each->socket->seen().gathered);
        EXPECT_EQ(each->actor.lost, 0U);
    }
    for (std::uint64_t i = 0; i < count; ++i)
        EXPECT_EQ(publisher_actor.completions[i], 1) << i;
}

INSTANTIATE_TEST_SUITE_P(Beds, SmallUnbuffered, all_beds(), bed_name);

} // namespace
} // namespace netio::pubsub::test::gathering_test
