// SPDX-License-Identifier: Apache-2.0

// Limits of messages, connections and subscriptions. Sizes follow from the tested options.

#include "tests/scenario/pubsub/fixture.hpp"

#include <gmock/gmock.h>

#include <array>

namespace netio::pubsub::test::corners_test {
namespace {

using netio::CloseReason;
using netio::Cookie;
using netio::Status;
using Corners = PubSubScenario;
using CornersInVirtualTime = PubSubScenario; // where turns of the loop can be counted

const std::size_t default_frame = SubscribeSocket::Options{}.session.receive_buffer_bytes;

// --- messages -------------------------------------------------------------------------------

// The user's header, the slices and the fragments are cut at every possible boundary.
TEST_P(Corners, MessagesAroundOneFrameAndSeveralWithAUserHeaderOfEverySize) {
    constexpr std::size_t small_frame = 256;
    auto publisher = unbuffered({.outstanding_limit = 4096, .queue_limit_messages = 1024});
    auto& small = subscribe({range(7, 7)}, {.session = {.receive_buffer_bytes = small_frame}});
    auto& large = subscribe({range(7, 7)});
    ASSERT_TRUE(run_until(
        [&] { return small.actor.subscribed.size() == 1 && large.actor.subscribed.size() == 1; }));
    std::vector<std::unique_ptr<netio::RegisteredBuffer>> memory;
    std::vector<std::size_t> sizes;
    for (std::size_t size = small_frame - 48; size < small_frame + 16; ++size)
        sizes.push_back(size);
    for (std::size_t size = default_frame - 40; size < default_frame + 8; size += 3)
        sizes.push_back(size);
    sizes.push_back(3 * default_frame);
    std::uint64_t next = 0;
    const auto go_on = [&] {
        for (; next < sizes.size(); ++next) {
            const auto message = make_message(Fid{7}, next, sizes[next]);
            memory.push_back(std::make_unique<netio::RegisteredBuffer>(message.size()));
            std::ranges::copy(message, memory.back()->data());
            const std::size_t header = next % (PublishSocket::header_limit + 1);
            const std::array slices{memory.back()->slice(header, 3),
                                    memory.back()->slice(header + 3, sizes[next] - header - 3)};
            const Status status =
                publisher->publishv(Fid{7}, slices, Cookie{next},
                                    {.status = 3, .header = std::span{message}.first(header)});
            if (status == Status::again) return memory.pop_back();
            ASSERT_EQ(status, Status::ok);
        }
        publisher->close();
    };
    publisher_actor.at_room = go_on;
    go_on();
    ASSERT_TRUE(run_until([&] { return publisher_actor.ended == 1; }));
    small.actor.expect_contiguous(Fid{7}, 0, sizes.size());
    large.actor.expect_contiguous(Fid{7}, 0, sizes.size());
    EXPECT_EQ(publisher_actor.completions.size(), sizes.size());
    for (const auto& [cookie, count] : publisher_actor.completions)
        EXPECT_EQ(count, 1) << cookie;
}

TEST_P(Corners, AHeaderAboveItsLimitIsAStatusAndNothingIsSent) {
    auto publisher = unbuffered({});
    auto& subscriber = subscribe({range(7, 7)});
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 1; }));
    netio::RegisteredBuffer memory{64};
    const netio::Slice slice = memory.slice();
    const std::array<std::byte, PublishSocket::header_limit + 1> header{};
    EXPECT_EQ(publisher->publishv(Fid{7}, {&slice, 1}, Cookie{1}, {.header = header}),
              Status::too_large);
    EXPECT_EQ(publisher->counters().messages, 0U);
    publisher->close();
    ASSERT_TRUE(run_until([&] { return publisher_actor.ended == 1; }));
    EXPECT_EQ(subscriber.actor.messages, 0U);
    EXPECT_THAT(publisher_actor.completions, testing::IsEmpty());
}

TEST_P(Corners, APageThatReachesTheWatermarkLeavesAsAFullOne) {
    auto publisher = buffered({.page_size_bytes = 256,
                               .page_count = 64,
                               .watermark_bytes = 100,
                               .flush_time = std::chrono::microseconds{0}});
    auto& one = subscribe({range(1, 1)});
    ASSERT_TRUE(run_until([&] { return one.actor.subscribed.size() == 1; }));
    const auto& left = publisher->counters().pages_left;
    const std::uint64_t asked = left.asked;
    ASSERT_EQ(publish(*publisher, Fid{1}, 0, 100), Status::ok);
    EXPECT_EQ(left.full, 1U);
    EXPECT_EQ(left.asked, asked);
    ASSERT_TRUE(run_until([&] { return one.actor.messages == 1; }));
}

TEST_P(Corners, AFlushOfOneFidLeavesTheOthersPagesOpen) {
    auto publisher = buffered({.flush_time = std::chrono::microseconds{0}});
    auto& one = subscribe({range(1, 1)});
    auto& two = subscribe({range(2, 2)});
    ASSERT_TRUE(run_until(
        [&] { return one.actor.subscribed.size() == 1 && two.actor.subscribed.size() == 1; }));
    publisher->flush(Fid{1}); // nothing was published yet
    ASSERT_EQ(publish(*publisher, Fid{1}, 0, 40), Status::ok);
    ASSERT_EQ(publish(*publisher, Fid{2}, 0, 40), Status::ok);
    EXPECT_EQ(publisher->counters().pages, 0U);
    publisher->flush(Fid{1});
    EXPECT_EQ(publisher->counters().pages, 1U);
    ASSERT_TRUE(run_until([&] { return one.actor.messages == 1; }));
    EXPECT_EQ(two.actor.messages, 0U);
    publisher->flush(Fid{3}); // without a subscriber
    publisher->flush(Fid{2});
    ASSERT_TRUE(run_until([&] { return two.actor.messages == 1; }));
    EXPECT_EQ(publisher->counters().pages, 2U);
    EXPECT_EQ(publisher->counters().pages_left.asked, 2U);
}

TEST_P(Corners, PagesSayWhyTheyHaveLeft) {
    auto publisher = buffered(
        {.page_size_bytes = 256, .page_count = 64, .flush_time = std::chrono::milliseconds{1}});
    auto& one = subscribe({range(1, 1)});
    ASSERT_TRUE(run_until([&] { return one.actor.subscribed.size() == 1; }));
    const auto& left = publisher->counters().pages_left;
    const std::uint64_t asked = left.asked;
    ASSERT_EQ(publish(*publisher, Fid{1}, 0, 40), Status::ok);
    ASSERT_TRUE(run_until([&] { return one.actor.messages == 1; }));
    EXPECT_EQ(left.in_time + left.idle, 1U);
    const std::uint64_t by_itself = left.in_time + left.idle;
    for (std::uint64_t i = 1; i <= 10; ++i)
        ASSERT_EQ(publish(*publisher, Fid{1}, i, 100), Status::ok);
    EXPECT_GE(left.full, 4U);
    publisher->flush();
    EXPECT_EQ(left.asked, asked + 1);
    EXPECT_EQ(left.full + by_itself + 1, publisher->counters().pages);
    ASSERT_TRUE(run_until([&] { return one.actor.messages == 11; }));
}

TEST_P(Corners, BufferedMessagesAroundAPageOfTheFirstAndTheLastFid) {
    constexpr std::size_t page = 256;
    auto publisher = buffered({.page_size_bytes = page, .page_count = 4096});
    auto& all = subscribe({range(0, 0), range(UINT64_MAX, UINT64_MAX)},
                          {.session = {.receive_buffer_bytes = page + 44}});
    ASSERT_TRUE(run_until([&] { return all.actor.subscribed.size() == 2; }));
    std::uint64_t next = 0;
    const auto go_on = [&] {
        for (; next < 320; ++next) {
            const Fid fid{next % 2 == 0 ? 0 : UINT64_MAX};
            const auto message = make_message(fid, next / 2, page - 56 + next / 4);
            const Status status =
                publisher->publish(fid, message, static_cast<std::uint8_t>(next % 3));
            if (status == Status::again) return;
            ASSERT_EQ(status, Status::ok);
        }
        publisher->close();
    };
    publisher_actor.at_room = go_on;
    go_on();
    ASSERT_TRUE(run_until([&] { return publisher_actor.ended == 1; }));
    all.actor.expect_contiguous(Fid{0}, 0, 160);
    all.actor.expect_contiguous(Fid{UINT64_MAX}, 0, 160);
    EXPECT_EQ(all.actor.lost, 0U);
}

TEST_P(Corners, EmptyMessagesArriveFromEitherKindOfPublisher) {
    auto one = buffered({});
    auto& of_one = subscribe({range(0, UINT64_MAX)});
    auto other = unbuffered({});
    auto& of_other = subscribe({range(0, UINT64_MAX)});
    ASSERT_TRUE(run_until([&] {
        return of_one.actor.subscribed.size() == 1 && of_other.actor.subscribed.size() == 1;
    }));
    netio::RegisteredBuffer memory{8};
    for (std::uint64_t i = 0; i < 10; ++i) {
        EXPECT_EQ(one->publish(Fid{UINT64_MAX}, {}, 5), Status::ok);
        EXPECT_EQ(one->publishv(Fid{0}, {}), Status::ok);
        EXPECT_EQ(other->publish(Fid{UINT64_MAX}, memory.slice(0, 0), Cookie{2 * i}), Status::ok);
        EXPECT_EQ(other->publishv(Fid{0}, {}, Cookie{2 * i + 1}), Status::ok);
    }
    one->flush();
    ASSERT_TRUE(
        run_until([&] { return of_one.actor.messages == 20 && of_other.actor.messages == 20; }));
}

// --- connections that end during a message --------------------------------------------------

TEST_P(CornersInVirtualTime, DeathInsideAFragmentedMessageReleasesMemoryAndBlocksNoOne) {
    constexpr std::uint64_t messages = 5;
    for (int when = 1; when < 40; when += 2) {
        subscribers.clear();
        publisher_actor = {};
        netio::RegisteredBuffer memory{2 * default_frame};
        auto publisher = unbuffered({});
        auto& stays = subscribe({range(1, 1)}, {.session = {.receive_buffer_bytes = 4096}});
        auto& dies = subscribe({range(1, 1)},
                               {.session = {.receive_buffer_bytes = 4096, .receive_count = 4}});
        ASSERT_TRUE(run_until([&] {
            return stays.actor.subscribed.size() == 1 && dies.actor.subscribed.size() == 1;
        }));
        for (std::uint64_t k = 0; k < messages; ++k)
            ASSERT_EQ(publisher->publish(Fid{1}, memory.slice(), Cookie{k}), Status::ok);
        int turns = 0;
        run_until([&] { return ++turns > 3 * when; });
        dies.socket.reset();
        ASSERT_TRUE(run_until([&] {
            return stays.actor.messages == messages &&
                   publisher_actor.completions.size() == messages &&
                   publisher_actor.closed.size() == 1;
        }));
        EXPECT_EQ(publisher->outstanding(), 0U);
        for (const auto& [cookie, count] : publisher_actor.completions)
            EXPECT_EQ(count, 1) << cookie;
        publisher->close();
        ASSERT_TRUE(run_until([&] { return publisher_actor.ended == 1; }));
        EXPECT_EQ(stays.actor.lost, 0U);
    }
}

TEST_P(CornersInVirtualTime, APartialMessageAndCountersEndWithTheirConnection) {
    if (GetParam() != Bed::sim_tcp) return; // where it is known when a message is in flight
    auto publisher = unbuffered({});
    auto& subscriber = subscribe({range(1, 1)}, {.reconnect = true});
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 1; }));
    netio::RegisteredBuffer memory{8 << 20};
    for (std::uint64_t n = 0; n < 3; ++n) {
        std::ranges::copy(make_message(Fid{1}, n, 64), memory.data());
        ASSERT_EQ(publisher->publish(Fid{1}, memory.slice(0, 64), Cookie{n}), Status::ok);
        ASSERT_TRUE(run_until([&] { return subscriber.actor.messages == n + 1; }));
    }
    ASSERT_EQ(publisher->publish(Fid{1}, memory.slice(), Cookie{9}), Status::ok);
    int turns = 0;
    run_until([&] { return ++turns > 6; });
    publisher.reset();
    PublishSocket again{transport(),
                        {.publisher = {.listen = {address}, .allow_remote_anonymous = true}},
                        publisher_actor};
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 2; }));
    const std::size_t size = 2 * default_frame;
    std::ranges::copy(make_message(Fid{1}, 3, size), memory.data());
    ASSERT_EQ(again.publish(Fid{1}, memory.slice(0, size), Cookie{10}), Status::ok);
    again.close();
    ASSERT_TRUE(run_until([&] { return subscriber.actor.totals == 1; }));
    subscriber.actor.expect_contiguous(Fid{1}, 0, 4);
    EXPECT_EQ(subscriber.actor.lost, 0U);
    EXPECT_EQ(subscriber.socket->arrivals().fids().find(Fid{1})->messages, 1U);
}

TEST_P(Corners, NoReconnectionToAnEndedPublisherUnlessRequested) {
    for (const bool reconnect : {false, true}) {
        subscribers.clear();
        auto publisher = buffered({});
        auto& subscriber = subscribe({range(1, 1)}, {.reconnect = reconnect});
        ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 1; }));
        publisher->close();
        ASSERT_TRUE(run_until([&] { return subscriber.actor.closed.size() == 1; }));
        EXPECT_EQ(subscriber.actor.totals, 1);
        EXPECT_EQ(subscriber.actor.closed[0].reason, CloseReason::orderly);
        EXPECT_EQ(subscriber.actor.last_retrying, reconnect);
    }
}

// --- subscriptions that end -----------------------------------------------------------------

TEST_P(Corners, UnsubscribingTheLastFidDeliversQueuedMessagesFirst) {
    auto publisher = buffered(
        {.page_size_bytes = 1024, .page_count = 64, .queue_limit_bytes = std::size_t{32} * 1024});
    auto& subscriber = subscribe({range(1, 1)}, {.session = {.receive_count = 4}});
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 1; }));
    std::uint64_t count = 0;
    while (count < 25 && publish(*publisher, Fid{1}, count, 900) == Status::ok)
        ++count;
    EXPECT_GT(count, 10U) << "more than the receives hold";
    subscriber.socket->unsubscribe(range(1, 1));
    ASSERT_TRUE(run_until([&] { return !subscriber.actor.closed.empty(); }));
    subscriber.actor.expect_contiguous(Fid{1}, 0, count);
    EXPECT_EQ(subscriber.actor.unsubscribed.size(), 1U);
}

TEST_P(Corners, TheCountersOfAFidRestartWithItsSubscription) {
    auto publisher = buffered({});
    auto& subscriber = subscribe({range(1, 2)});
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 1; }));
    for (std::uint64_t n = 0; n < 5; ++n) {
        ASSERT_EQ(publish(*publisher, Fid{1}, n, 40), Status::ok);
        ASSERT_EQ(publish(*publisher, Fid{2}, n, 40), Status::ok);
    }
    subscriber.socket->unsubscribe(range(1, 1));
    ASSERT_TRUE(run_until([&] { return subscriber.actor.unsubscribed.size() == 1; }));
    EXPECT_EQ(subscriber.socket->arrivals().fids().find(Fid{1}), nullptr);
    subscriber.socket->subscribe(range(1, 1));
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 2; }));
    ASSERT_EQ(publish(*publisher, Fid{1}, 5, 40), Status::ok);
    publisher->close();
    ASSERT_TRUE(run_until([&] { return subscriber.actor.totals == 1; }));
    EXPECT_EQ(subscriber.socket->arrivals().fids().find(Fid{1})->messages, 1U);
    EXPECT_EQ(subscriber.socket->arrivals().fids().find(Fid{2})->messages, 5U);
    EXPECT_EQ(subscriber.actor.lost, 0U);
}

TEST_P(Corners, APublisherThatOtherMachinesReachHasToBeMeant) {
    Publisher::Options options{.listen = {{.host = "0.0.0.0", .port = 0}}};
    const auto publish = [&] {
        const PublishSocket socket{transport(), {.publisher = options}, publisher_actor};
    };
    const auto publish_buffered = [&] {
        const BufferedPublishSocket socket{transport(), {.publisher = options}, publisher_actor};
    };
    EXPECT_THROW(publish(), std::invalid_argument);
    EXPECT_THROW(publish_buffered(), std::invalid_argument);
    options.allow_remote_anonymous = true;
    EXPECT_NO_THROW(publish());
    EXPECT_NO_THROW(publish_buffered());
}

INSTANTIATE_TEST_SUITE_P(Beds, Corners, all_beds(), bed_name);
INSTANTIATE_TEST_SUITE_P(Beds, CornersInVirtualTime, netio::test::simulated_beds(), bed_name);

} // namespace
} // namespace netio::pubsub::test::corners_test
