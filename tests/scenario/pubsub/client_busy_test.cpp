// SPDX-License-Identifier: Apache-2.0

// A client that other threads keep busy, over tcp; the thread sanitizer runs it as well.

#include "tests/scenario/pubsub/clients.hpp"

#include <gtest/gtest.h>
#include <poll.h>

#include <atomic>
#include <future>
#include <thread>
#include <utility>
#include <vector>

namespace netio::pubsub::test::client_busy_test {
namespace {

// A publisher never gets `again` for messages without subscribers.
TEST(BusyClient, PublishingAtFullSpeedWithoutSubscribersBlocksNoSubscriber) {
    Client publisher{publishing()};
    std::atomic<bool> over{false};
    std::vector<std::thread> flat_out;
    for (std::uint64_t fid = 1; fid <= 3; ++fid) {
        flat_out.emplace_back([&, fid] {
            const std::vector<std::byte> message(8);
            while (!over)
                static_cast<void>(publisher.publish(Fid{fid}, message));
        });
    }
    wait_until([&] { return publisher.counters().published > 10000; });
    Client::Options options = subscribing(publisher);
    options.on_message = [](Fid, std::span<const std::byte>, std::uint8_t) {};
    Client client{std::move(options)};
    EXPECT_EQ(client.subscribe({range(9, 9)}, {}, deadline), Answer::accepted);
    std::promise<void> ran;
    ASSERT_TRUE(publisher.post([&] { ran.set_value(); }));
    ran.get_future().get();
    publisher.close();
    over = true;
    for (std::thread& each : flat_out)
        each.join();
    EXPECT_EQ(publisher.publish(Fid{1}, {}), Status::closed);
}

TEST(BusyClient, AFidOfAnotherLoopIsRefusedInTheCallAndNotCounted) {
    Client::Options options = publishing();
    options.publish->publisher.fids = {range(20, 29), range(0, 9)};
    Client publisher{std::move(options)};
    Client client{subscribing(publisher)};
    ASSERT_EQ(client.subscribe({range(0, 99)}, {}, deadline), Answer::accepted);
    EXPECT_EQ(publisher.publish(Fid{10}, {}), Status::not_owned);
    EXPECT_EQ(publisher.publish(Fid{30}, std::vector<std::byte>(100)), Status::not_owned);
    publish(publisher, Fid{9}, 1);
    publish(publisher, Fid{20}, 2);
    const std::vector<Message> messages = take(client, 2);
    ASSERT_EQ(messages.size(), 2U);
    EXPECT_EQ(number_of(messages[1].bytes), 2U);
    publisher.close();
    EXPECT_EQ(publisher.counters().published, 2U);
}

// No call fits into the queue, and a user with an own loop calls again only when the descriptor is
// readable.
TEST(BusyClient, AReaderOfTheQueueContinuesByTheDescriptorWhileCallsAreFull) {
    constexpr std::size_t count = 200;
    Client publisher{publishing()};
    Client::Options options = subscribing(publisher);
    options.queue_messages = 4;
    options.loop.post_limit = 2;
    Client client{std::move(options)};
    ASSERT_EQ(client.subscribe({range(1, 1)}, {}, deadline), Answer::accepted);
    for (std::uint64_t n = 0; n < count; ++n) {
        publish(publisher, Fid{1}, n);
        if (n == 4) wait_until([&] { return client.counters().messages >= 4; });
    }
    std::promise<void> stands;
    std::promise<void> go_on;
    ASSERT_TRUE(client.post([&, may_go = go_on.get_future().share()] {
        stands.set_value();
        may_go.get();
    }));
    stands.get_future().get(); // now the queue is full
    while (client.post([] {})) {
    }
    std::vector<Message> messages;
    while (client.poll(messages, 100) > 0) {
    }
    EXPECT_LT(messages.size(), count);
    go_on.set_value();
    pollfd watched{.fd = client.pollable_fd(), .events = POLLIN, .revents = 0};
    while (messages.size() < count && ::poll(&watched, 1, 60'000) == 1)
        client.poll(messages, 100);
    EXPECT_EQ(messages.size(), count);
}

TEST(BusyClient, ClosesOnItsOwnThreadAlthoughTheCallQueueIsFull) {
    Client::Options options = publishing();
    options.loop.post_limit = 2;
    Client client{std::move(options)};
    ASSERT_TRUE(client.post([&client] {
        while (client.post([] {})) {
        }
        client.close();
    }));
    client.close();
    EXPECT_FALSE(client.post([] {}));
}

} // namespace
} // namespace netio::pubsub::test::client_busy_test
