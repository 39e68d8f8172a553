// SPDX-License-Identifier: Apache-2.0

// A client that many threads use, over tcp; the thread sanitizer runs it as well.

#include "tests/scenario/pubsub/clients.hpp"

#include <gtest/gtest.h>
#include <poll.h>

#include <array>
#include <atomic>
#include <future>
#include <memory>
#include <thread>

namespace netio::pubsub::test::client_test {
namespace {

TEST(Client, TenThreadsSubscribeUnsubscribeAndPublishThroughOneClient) {
    constexpr std::uint64_t threads = 10;
    constexpr std::uint64_t rounds = 4;
    constexpr std::uint64_t messages = 50;
    Client publisher{publishing()};
    std::array<std::atomic<std::uint64_t>, threads> arrived{};
    Client::Options options = subscribing(publisher);
    options.publish = publishing().publish;
    options.on_message = [&](Fid fid, std::span<const std::byte>, std::uint8_t) {
        ++arrived.at(to_integer(fid));
    };
    // It publishes and subscribes, and all threads use it for both.
    Client client{std::move(options)};
    Client other{subscribing(client)};
    ASSERT_EQ(other.subscribe({range(0, threads - 1)}, {}, deadline), Answer::accepted);
    std::vector<std::thread> users;
    for (std::uint64_t fid = 0; fid < threads; ++fid) {
        users.emplace_back([&, fid] {
            for (std::uint64_t round = 1; round <= rounds; ++round) {
                EXPECT_EQ(client.subscribe({range(fid, fid)}, {}, deadline), Answer::accepted);
                for (std::uint64_t n = 0; n < messages; ++n) {
                    publish(publisher, Fid{fid}, n);
                    publish(client, Fid{fid}, (round - 1) * messages + n);
                }
                while (arrived[fid] < round * messages)
                    std::this_thread::yield();
                EXPECT_TRUE(client.unsubscribe(range(fid, fid)));
            }
        });
    }
    std::array<std::uint64_t, threads> next{};
    for (const Message& message : take(other, threads * rounds * messages))
        EXPECT_EQ(number_of(message.bytes), next.at(to_integer(message.fid))++) << "in order";
    for (std::thread& user : users)
        user.join();
    client.close();
    publisher.close();
    for (std::uint64_t fid = 0; fid < threads; ++fid) {
        EXPECT_EQ(arrived[fid], rounds * messages);
        EXPECT_EQ(next[fid], rounds * messages) << "messages that it publishes itself";
    }
    EXPECT_EQ(client.counters().messages, threads * rounds * messages);
    EXPECT_EQ(client.counters().published, threads * rounds * messages);
    EXPECT_EQ(publisher.counters().published, threads * rounds * messages);
}

TEST(Client, AFullQueueBlocksThePublisherAndNothingIsLost) {
    Client publisher{publishing()};
    Client::Options options = subscribing(publisher);
    options.queue_messages = 16;
    Client client{std::move(options)};
    ASSERT_EQ(client.subscribe({range(1, 1)}, {}, deadline), Answer::accepted);
    std::thread source{[&] {
        for (std::uint64_t n = 0; n < 2000; ++n)
            publish(publisher, Fid{1}, n);
    }};
    const std::vector<Message> messages = take(client, 2000);
    source.join();
    ASSERT_EQ(messages.size(), 2000U);
    for (std::uint64_t n = 0; n < 2000; ++n)
        ASSERT_EQ(number_of(messages[n].bytes), n);
    EXPECT_EQ(client.counters().dropped, 0U);
}

TEST(Client, DroppedMessagesAreReportedWithTheNextMessageOfTheirFid) {
    Client publisher{publishing()};
    Client::Options options = subscribing(publisher);
    options.queue_messages = 10;
    options.when_full = SlowPolicy::drop;
    Client client{std::move(options)};
    ASSERT_EQ(client.subscribe({range(1, 1)}, {}, deadline), Answer::accepted);
    for (std::uint64_t n = 0; n < 100; ++n)
        publish(publisher, Fid{1}, n);
    while (client.counters().messages < 100)
        std::this_thread::yield();
    EXPECT_EQ(take(client, 10).back().missed, 0U);
    EXPECT_EQ(client.counters().dropped, 90U);
    publish(publisher, Fid{1}, 100);
    const std::vector<Message> next = take(client, 1);
    ASSERT_EQ(next.size(), 1U);
    EXPECT_EQ(next[0].missed, 90U);
    EXPECT_EQ(number_of(next[0].bytes), 100U);
}

TEST(Client, TenReadersOfOneQueueGetEachMessageOnce) {
    Client publisher{publishing()};
    Client client{subscribing(publisher)};
    ASSERT_EQ(client.subscribe({range(1, 1)}, {}, deadline), Answer::accepted);
    std::atomic<std::uint64_t> count{0};
    std::atomic<std::uint64_t> sum{0};
    std::vector<std::thread> readers;
    for (int i = 0; i < 10; ++i) {
        readers.emplace_back([&] {
            std::vector<Message> messages;
            while (count < 1000) {
                messages.clear();
                client.poll(messages, 7, 10ms);
                for (const Message& message : messages)
                    sum += number_of(message.bytes);
                count += messages.size();
            }
        });
    }
    for (std::uint64_t n = 0; n < 1000; ++n)
        publish(publisher, Fid{1}, n);
    for (std::thread& reader : readers)
        reader.join();
    EXPECT_EQ(count, 1000U);
    EXPECT_EQ(sum, 999U * 1000U / 2);
}

TEST(Client, BatchesReachTenReadersWholeAndTheirMemoryIsReused) {
    Client publisher{publishing()};
    Client client{subscribing(publisher)};
    ASSERT_EQ(client.subscribe({range(1, 2)}, {}, deadline), Answer::accepted);
    std::atomic<std::uint64_t> count{0};
    std::atomic<std::uint64_t> sum{0};
    std::vector<std::thread> readers;
    for (int i = 0; i < 10; ++i) {
        readers.emplace_back([&] {
            MessageBatch batch;
            while (count < 20000) {
                client.poll(batch, 10ms);
                std::uint64_t last = 0;
                for (const MessageBatch::Item message : batch) {
                    const std::uint64_t number = number_of(message.bytes);
                    EXPECT_LE(last, number) << "in order";
                    last = number;
                    sum += number;
                }
                count += batch.size();
            }
        });
    }
    for (std::uint64_t n = 0; n < 20000; ++n)
        publish(publisher, Fid{1 + n % 2}, n);
    for (std::thread& reader : readers)
        reader.join();
    EXPECT_EQ(count, 20000U);
    EXPECT_EQ(sum, 19999U * 20000U / 2);
}

TEST(Client, ItsDescriptorIsReadableWhileSomethingWaits) {
    Client publisher{publishing()};
    Client client{subscribing(publisher)};
    ASSERT_EQ(client.subscribe({range(1, 1)}, {}, deadline), Answer::accepted);
    pollfd watched{.fd = client.pollable_fd(), .events = POLLIN, .revents = 0};
    EXPECT_EQ(::poll(&watched, 1, 0), 0);
    publish(publisher, Fid{1}, 7);
    EXPECT_EQ(::poll(&watched, 1, 60'000), 1);
    EXPECT_EQ(take(client, 1).size(), 1U);
    EXPECT_EQ(::poll(&watched, 1, 0), 0);
}

TEST(Client, AnUnlimitedWaitWaits) {
    constexpr auto for_ever = std::chrono::milliseconds::max();
    Client publisher{publishing()};
    Client client{subscribing(publisher)};
    ASSERT_EQ(client.subscribe({range(1, 1)}, {}, for_ever), Answer::accepted);
    MessageBatch batch;
    for (std::uint64_t n = 0; n < 10; ++n) {
        publish(publisher, Fid{1}, n);
        ASSERT_EQ(client.poll(batch, for_ever), 1U);
    }
}

TEST(Client, ALateAnswerIsPendingAndTheEndAnswersIt) {
    Client::Options nowhere;
    nowhere.publishers = {{.host = "127.0.0.1", .port = 1}};
    std::future<Answer> later;
    {
        Client client{std::move(nowhere)};
        EXPECT_EQ(client.subscribe({range(1, 1)}, {}, 1ms), Answer::pending);
        later = client.subscribe({range(2, 2)});
        std::vector<Message> none;
        EXPECT_EQ(client.poll(none, 1, 1ms), 0U);
    }
    EXPECT_EQ(later.get(), Answer::closed);
}

TEST(Client, AWithdrawnOrEmptySubscriptionIsAnswered) {
    Client::Options nowhere;
    nowhere.publishers = {{.host = "127.0.0.1", .port = 1}};
    Client client{std::move(nowhere)};
    std::future<Answer> taken_back = client.subscribe({range(1, 9)});
    std::future<Answer> open = client.subscribe({range(10, 19)});
    EXPECT_TRUE(client.unsubscribe(range(9, 9)));
    ASSERT_EQ(taken_back.wait_for(deadline), std::future_status::ready);
    EXPECT_EQ(taken_back.get(), Answer::canceled);
    std::future<Answer> nothing = client.subscribe(std::vector<FidRange>{});
    ASSERT_EQ(nothing.wait_for(deadline), std::future_status::ready);
    EXPECT_EQ(nothing.get(), Answer::accepted);
    EXPECT_EQ(client.subscribe({}, {}, deadline), Answer::accepted);
    EXPECT_NE(open.wait_for(0s), std::future_status::ready) << "the other call keeps waiting";
}

TEST(Client, AnExpiredWaitDoesNotCountAmongTheWaitingCalls) {
    Client::Options nowhere;
    nowhere.publishers = {{.host = "127.0.0.1", .port = 1}};
    nowhere.pending_reply_limit = 2;
    Client client{std::move(nowhere)};
    std::future<Answer> open = client.subscribe({range(1, 1)});
    for (const auto timeout : {0ms, 1ms}) {
        for (int i = 0; i < 5; ++i)
            EXPECT_EQ(client.subscribe({range(2, 2)}, {}, timeout), Answer::pending);
    }
    std::future<Answer> last = client.subscribe({range(3, 3)});
    std::future<Answer> beyond = client.subscribe({range(4, 4)});
    ASSERT_EQ(beyond.wait_for(deadline), std::future_status::ready);
    EXPECT_EQ(beyond.get(), Answer::closed);
    EXPECT_TRUE(client.unsubscribe(range(1, 1)));
    EXPECT_EQ(open.get(), Answer::canceled);
    EXPECT_NE(last.wait_for(0s), std::future_status::ready);
}

TEST(Client, SubscribingInAPublishOnlyClientFails) {
    Client client{publishing()};
    EXPECT_EQ(client.subscribe({range(1, 1)}).get(), Answer::closed);
    EXPECT_TRUE(client.unsubscribe(range(1, 1)));
}

TEST(Client, WaitsForANumberOfSubscribers) {
    Client publisher{publishing()};
    EXPECT_FALSE(publisher.wait_for_subscribers(1, 1ms));
    std::future<bool> two =
        std::async(std::launch::async, [&] { return publisher.wait_for_subscribers(2, deadline); });
    Client one{subscribing(publisher)};
    ASSERT_EQ(one.subscribe({range(1, 1)}, {}, deadline), Answer::accepted);
    EXPECT_NE(two.wait_for(0s), std::future_status::ready);
    Client other{subscribing(publisher)};
    ASSERT_EQ(other.subscribe({range(1, 2)}, {}, deadline), Answer::accepted);
    EXPECT_TRUE(two.get());
    EXPECT_EQ(publisher.publish(Fid{1}, {}), Status::ok);
    EXPECT_EQ(publisher.publish(Fid{3}, {}), Status::no_subscribers);
    EXPECT_FALSE(one.wait_for_subscribers(0, deadline)) << "it does not publish";
    std::promise<bool> within;
    ASSERT_TRUE(
        publisher.post([&] { within.set_value(publisher.wait_for_subscribers(3, deadline)); }));
    EXPECT_FALSE(within.get_future().get()) << "its own thread does not wait";
    std::future<bool> three =
        std::async(std::launch::async, [&] { return publisher.wait_for_subscribers(3, deadline); });
    publisher.close();
    EXPECT_FALSE(three.get()) << "the call does not wait for the end";
}

TEST(Client, AfterItsEndEveryCallReportsIt) {
    Client client{publishing()};
    client.close();
    client.close();
    EXPECT_EQ(client.publish(Fid{1}, {}), Status::closed);
    EXPECT_FALSE(client.post([] {}));
    EXPECT_FALSE(client.unsubscribe(range(1, 1)));
    EXPECT_EQ(client.subscribe({range(1, 1)}).get(), Answer::closed);
    EXPECT_FALSE(client.subscribe({range(1, 1)}, {}, [](Answer) { ADD_FAILURE() << "in a call"; }));
    std::vector<Message> none;
    EXPECT_EQ(client.poll(none, 1, deadline), 0U) << "it does not wait";
}

TEST(Client, ItMayBeDestroyedWhileMessagesFlow) {
    for (int i = 0; i < 5; ++i) {
        Client publisher{publishing()};
        auto client = std::make_unique<Client>(subscribing(publisher));
        ASSERT_EQ(client->subscribe({range(1, 1)}, {}, deadline), Answer::accepted);
        for (std::uint64_t n = 0; n < 100; ++n)
            publish(publisher, Fid{1}, n);
        client.reset();
    }
}

TEST(Client, AFunctionOnItsThreadMayUseIt) {
    Client publisher{publishing()};
    Client::Options options = subscribing(publisher);
    Client* self = nullptr;
    std::promise<Answer> asked;
    options.on_message = [&](Fid, std::span<const std::byte>, std::uint8_t) {
        asked.set_value(self->subscribe({range(2, 2)}, {}, deadline));
    };
    Client client{std::move(options)};
    self = &client;
    ASSERT_EQ(client.subscribe({range(1, 1)}, {}, deadline), Answer::accepted);
    publish(publisher, Fid{1}, 0);
    EXPECT_EQ(asked.get_future().get(), Answer::pending) << "it cannot wait for itself";
    std::promise<void> ran;
    EXPECT_TRUE(client.post([&] { ran.set_value(); }));
    ran.get_future().get();
}

TEST(Client, ItReconnectsToARestartedPublisher) {
    auto publisher = std::make_unique<Client>(publishing());
    const Address address = publisher->endpoints().front().address;
    Client client{subscribing(*publisher)};
    ASSERT_EQ(client.subscribe({range(1, 1)}, {}, deadline), Answer::accepted);
    publish(*publisher, Fid{1}, 0);
    ASSERT_EQ(take(client, 1).size(), 1U);
    publisher.reset();
    publisher = std::make_unique<Client>(publishing(address));
    while (client.counters().restarts == 0)
        std::this_thread::yield();
    std::vector<Message> messages;
    for (std::uint64_t n = 0; messages.empty(); ++n) {
        publish(*publisher, Fid{1}, n);
        client.poll(messages, 1, 1ms);
    }
    EXPECT_EQ(client.counters().restarts, 1U);
}

} // namespace
} // namespace netio::pubsub::test::client_test
