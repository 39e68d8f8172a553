// SPDX-License-Identifier: Apache-2.0

// A publisher and a subscriber that many threads use, over tcp; the thread sanitizer runs it as
// well.

#include "netio/session/client_key.hpp"
#include "netio/session/server_keys.hpp"
#include "tests/scenario/pubsub/front_door.hpp"
#include "tests/support/key_files.hpp"

#include <array>
#include <atomic>
#include <future>
#include <memory>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace netio::front_door_test {
namespace {

class FrontDoorThreads : public FrontDoor {};

TEST_F(FrontDoorThreads, TenSubscribeUnsubscribeAndPublishOverOneContext) {
    constexpr std::uint64_t threads = 10;
    constexpr std::uint64_t rounds = 4;
    constexpr std::uint64_t messages = 50;
    Publisher publisher{any_port};
    // One that publishes and subscribes; all threads use it for both.
    Context context;
    Publisher own{any_port, {.context = context}};
    std::array<std::atomic<std::uint64_t>, threads> arrived{};
    Subscriber::Options options = quick();
    options.context = context;
    options.on_message = [&](const Message& message) { ++arrived.at(to_integer(message.fid())); };
    Subscriber subscriber{publisher.address(), options};
    Subscriber other{own.address(), quick()};
    subscribe(other, FidSet{{0, threads - 1}});
    std::vector<std::thread> users;
    for (std::uint64_t fid = 0; fid < threads; ++fid) {
        users.emplace_back([&, fid] {
            for (std::uint64_t round = 1; round <= rounds; ++round) {
                subscribe(subscriber, FidSet{{fid, fid}});
                for (std::uint64_t n = 0; n < messages; ++n) {
                    publisher.publish_value(fid, n);
                    own.publish_value(fid, (round - 1) * messages + n);
                }
                wait_until([&] { return arrived[fid] >= round * messages; });
                subscriber.unsubscribe(fid);
            }
        });
    }
    std::array<std::uint64_t, threads> next{};
    for (const OwnedMessage& message : take(other, threads * rounds * messages))
        EXPECT_EQ(message.value<std::uint64_t>(), next.at(to_integer(message.fid()))++)
            << "in order";
    for (std::thread& user : users)
        user.join();
    subscriber.close();
    own.close();
    publisher.close();
    for (std::uint64_t fid = 0; fid < threads; ++fid) {
        EXPECT_EQ(arrived[fid], rounds * messages);
        EXPECT_EQ(next[fid], rounds * messages) << "messages that it publishes itself";
    }
    EXPECT_EQ(subscriber.stats().messages, threads * rounds * messages);
    EXPECT_EQ(own.stats().published, threads * rounds * messages);
    EXPECT_EQ(publisher.stats().published, threads * rounds * messages);
    EXPECT_TRUE(subscriber.is_closed());
    EXPECT_TRUE(own.is_closed());
}

TEST_F(FrontDoorThreads, TenReadersOfOneQueueGetEachMessageOnce) {
    Publisher publisher{any_port};
    Subscriber subscriber{publisher.address(), quick()};
    subscribe(subscriber, FidSet{{1, 1}});
    std::atomic<std::uint64_t> count{0};
    std::atomic<std::uint64_t> sum{0};
    std::vector<std::thread> readers;
    for (int i = 0; i < 10; ++i) {
        readers.emplace_back([&] {
            while (count < 1000) {
                const auto message = subscriber.receive(10ms);
                if (!message) continue;
                sum += message->value<std::uint64_t>();
                ++count;
            }
        });
    }
    for (std::uint64_t n = 0; n < 1000; ++n)
        publisher.publish_value(1, n);
    for (std::thread& reader : readers)
        reader.join();
    EXPECT_EQ(count, 1000U);
    EXPECT_EQ(sum, 999U * 1000U / 2);
}

// The reader that waited for the batch goes on, and must not leave the others asleep.
TEST_F(FrontDoorThreads, EachOfTenReadersTakesOneMessageOfABatch) {
    Publisher publisher{any_port};
    Subscriber subscriber{publisher.address(), quick()};
    subscribe(subscriber, FidSet{{1, 1}});
    std::atomic<std::uint64_t> sum{0};
    std::vector<std::thread> readers;
    for (int i = 0; i < 10; ++i) {
        readers.emplace_back([&] {
            const auto message = subscriber.receive(60s);
            if (message) sum += message->value<std::uint64_t>();
        });
    }
    for (std::uint64_t n = 1; n <= 10; ++n)
        publisher.publish_value(1, n);
    for (std::thread& reader : readers)
        reader.join();
    EXPECT_EQ(sum, 55U);
}

TEST_F(FrontDoorThreads, BatchesReachTenReadersWholeAndTheirMemoryIsReused) {
    Publisher publisher{any_port};
    Subscriber subscriber{publisher.address(), quick()};
    subscribe(subscriber, FidSet{{1, 2}});
    std::atomic<std::uint64_t> count{0};
    std::atomic<std::uint64_t> sum{0};
    std::vector<std::thread> readers;
    for (int i = 0; i < 10; ++i) {
        readers.emplace_back([&] {
            pubsub::MessageBatch batch;
            while (count < 20000) {
                if (subscriber.receive(batch, 10ms) == 0) continue;
                std::uint64_t last = 0;
                for (const pubsub::MessageBatch::Item message : batch) {
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
        publisher.publish_value(1 + n % 2, n);
    for (std::thread& reader : readers)
        reader.join();
    EXPECT_EQ(count, 20000U);
    EXPECT_EQ(sum, 19999U * 20000U / 2);
}

TEST_F(FrontDoorThreads, ABatchContinuesWhereAnIterationWasLeft) {
    Publisher publisher{any_port};
    Subscriber subscriber{publisher.address(), quick()};
    subscribe(subscriber, FidSet{{1, 1}});
    for (std::uint64_t n = 0; n < 10; ++n)
        publisher.publish_value(1, n);
    std::uint64_t next = 0;
    for (const Message& message : subscriber) {
        EXPECT_EQ(message.value<std::uint64_t>(), next++);
        if (next == 4) break;
    }
    pubsub::MessageBatch batch;
    while (next < 10) {
        ASSERT_GT(subscriber.receive(batch, deadline), 0U);
        for (const pubsub::MessageBatch::Item message : batch)
            EXPECT_EQ(number_of(message.bytes), next++);
    }
    EXPECT_EQ(subscriber.receive(batch, 0ms), 0U);
    EXPECT_EQ(subscriber.receive(0ms), std::nullopt);
}

TEST_F(FrontDoorThreads, AnUnlimitedWaitWaits) {
    constexpr auto for_ever = std::chrono::milliseconds::max();
    Publisher publisher{any_port};
    Subscriber subscriber{publisher.address(), quick()};
    subscriber.subscribe(1);
    ASSERT_TRUE(subscriber.wait_until_subscribed(for_ever));
    pubsub::MessageBatch batch;
    for (std::uint64_t n = 0; n < 10; ++n) {
        publisher.publish_value(1, n);
        ASSERT_EQ(subscriber.receive(batch, for_ever), 1U);
    }
}

TEST_F(FrontDoorThreads, AWaitEndsWithTheFidsOrWithTheSubscriber) {
    Subscriber subscriber{"127.0.0.1:1", quick()}; // nobody listens
    subscriber.subscribe({1, 9});
    subscriber.subscribe({10, 19});
    EXPECT_FALSE(subscriber.wait_until_subscribed(FidSet{{1, 1}}, 1ms));
    EXPECT_TRUE(subscriber.wait_until_subscribed(FidSet{{20, 29}}, 0ms)) << "not subscribed";
    const auto wait_for = [&](const FidSet& fids) {
        return std::async(std::launch::async, [&subscriber, fids] {
            return subscriber.wait_until_subscribed(fids, deadline);
        });
    };
    std::future<bool> taken_back = wait_for(FidSet{{1, 9}});
    std::future<bool> open = wait_for(FidSet{{10, 19}});
    subscriber.unsubscribe({1, 9});
    EXPECT_TRUE(taken_back.get()) << "nothing is left to wait for";
    EXPECT_NE(open.wait_for(0s), std::future_status::ready);
    EXPECT_EQ(subscriber.receive(1ms), std::nullopt);
    subscriber.close();
    EXPECT_FALSE(open.get());
}

TEST_F(FrontDoorThreads, EachWaitsForItsOwnFids) {
    Publisher publisher{any_port, {.socket = {.publisher = {.ranges_per_subscriber_limit = 2}}}};
    Subscriber::Options options = quick();
    std::atomic<int> refusals{0};
    options.on_refused = [&](const Subscriber::Source& by, const FidRange& fids,
                             Subscriber::Refusal why) {
        EXPECT_EQ(by.address, to_string(publisher.address()));
        EXPECT_EQ(fids, (FidRange{5, 5}));
        EXPECT_EQ(why, Subscriber::Refusal::too_many_ranges);
        ++refusals;
    };
    Subscriber subscriber{publisher.address(), options};
    subscribe(subscriber, FidSet{{1, 1}, {3, 3}});
    subscriber.subscribe(5);
    EXPECT_FALSE(subscriber.wait_until_subscribed(FidSet{{5, 5}}, deadline)) << "at once";
    EXPECT_FALSE(subscriber.wait_until_subscribed(deadline));
    EXPECT_TRUE(subscriber.wait_until_subscribed(FidSet{{1, 3}}, deadline));
    EXPECT_EQ(refusals, 1);
    publisher.publish_value(1, std::uint64_t{7});
    EXPECT_EQ(take(subscriber, 1).size(), 1U) << "no Error";
    subscriber.unsubscribe(5);
    EXPECT_TRUE(subscriber.wait_until_subscribed(deadline));
}

TEST_F(FrontDoorThreads, APublisherWaitsForANumberOfSubscribers) {
    Context context;
    Publisher publisher{any_port, {.context = context}};
    EXPECT_FALSE(publisher.wait_for_subscribers(1, 1ms));
    std::future<bool> two =
        std::async(std::launch::async, [&] { return publisher.wait_for_subscribers(2, deadline); });
    Subscriber one{publisher.address(), quick()};
    subscribe(one, FidSet{{1, 1}});
    EXPECT_NE(two.wait_for(0s), std::future_status::ready);
    Subscriber other{publisher.address(), quick()};
    subscribe(other, FidSet{{1, 2}});
    EXPECT_TRUE(two.get());
    EXPECT_EQ(publisher.try_publish(1, ""), Status::ok);
    EXPECT_EQ(publisher.try_publish(3, ""), Status::no_subscribers);
    std::future<bool> three =
        std::async(std::launch::async, [&] { return publisher.wait_for_subscribers(3, deadline); });
    publisher.close();
    EXPECT_FALSE(three.get()) << "the call does not wait for the end";
}

TEST_F(FrontDoorThreads, AfterItsEndEveryCallReportsIt) {
    Publisher publisher{any_port};
    Subscriber subscriber{publisher.address(), quick()};
    subscriber.close();
    subscriber.close();
    EXPECT_TRUE(subscriber.is_closed());
    subscriber.subscribe(1);
    EXPECT_FALSE(subscriber.wait_until_subscribed(deadline)) << "it does not wait";
    pubsub::MessageBatch none;
    EXPECT_EQ(subscriber.receive(none, deadline), 0U);
    EXPECT_EQ(subscriber.receive(deadline), std::nullopt);
}

TEST_F(FrontDoorThreads, ItMayBeDestroyedWhileMessagesFlow) {
    for (int i = 0; i < 5; ++i) {
        Publisher publisher{any_port};
        auto subscriber = std::make_unique<Subscriber>(publisher.address(), quick());
        subscribe(*subscriber, FidSet{{1, 1}});
        for (std::uint64_t n = 0; n < 100; ++n)
            publisher.publish_value(1, n);
        subscriber.reset();
    }
}

// The thread of the context runs, or is about to end, when another thread releases the keys.
TEST_F(FrontDoorThreads, APublisherWithKeysEndsInOrderOnAnyThread) {
    netio::test::KeyFiles files;
    files.permit(1, "services=pubsub fids=0-9:block");
    for (const bool context_goes_on : {true, false}) {
        auto context = std::make_unique<Context>();
        std::shared_ptr<ServerKeys> keys;
        context->run([&] {
            keys = std::make_shared<ServerKeys>(context->loop(),
                                                ServerKeys::Options{.file = files.site()});
        });
        auto publisher = std::make_unique<Publisher>(
            any_port, Publisher::Options{.context = *context, .keys = keys});
        Subscriber::Options options = quick();
        options.key = std::make_shared<ClientKey>(
            ClientKey::Options{.file = files.client(1), .protection = {}});
        Subscriber subscriber{publisher->address(), options};
        subscribe(subscriber, FidSet{{1, 1}});
        publisher->publish_value(1, std::uint64_t{5});
        const std::weak_ptr<ServerKeys> released = keys;
        keys.reset();
        if (!context_goes_on) context.reset();
        std::thread{[last = std::move(publisher)]() mutable { last.reset(); }}.join();
        EXPECT_TRUE(released.expired());
        EXPECT_EQ(take(subscriber, 2).size(), 1U);
        EXPECT_TRUE(subscriber.is_closed());
    }
}

TEST_F(FrontDoorThreads, AFunctionOnItsThreadMayUseIt) {
    Publisher publisher{any_port};
    Subscriber::Options options = quick();
    Subscriber* self = nullptr;
    std::promise<bool> asked;
    options.on_message = [&](const Message&) {
        self->subscribe(2);
        asked.set_value(self->wait_until_subscribed(deadline));
    };
    Subscriber subscriber{publisher.address(), options};
    self = &subscriber;
    subscribe(subscriber, FidSet{{1, 1}});
    publisher.publish_value(1, std::uint64_t{0});
    EXPECT_FALSE(asked.get_future().get()) << "it cannot wait for itself";
    EXPECT_TRUE(subscriber.wait_until_subscribed(deadline));
}

TEST_F(FrontDoorThreads, AFunctionLearnsOfARestartedPublisher) {
    auto publisher = std::make_unique<Publisher>(any_port);
    const Address address = publisher->address();
    Subscriber::Options options = quick();
    options.reconnect = Reconnect::always;
    std::promise<pubsub::PublisherChange> changed;
    std::atomic<int> subscribed{0};
    options.on_publisher_changed = [&](const Subscriber::Source& source,
                                       const pubsub::PublisherChange& change) {
        EXPECT_EQ(source.address, to_string(address));
        changed.set_value(change);
    };
    options.on_subscribed = [&](const Subscriber::Source&, const FidRange& fids) {
        EXPECT_EQ(fids, (FidRange{1, 1}));
        ++subscribed;
    };
    Subscriber subscriber{address, options};
    subscribe(subscriber, FidSet{{1, 1}});
    publisher->publish_value(1, std::uint64_t{0});
    ASSERT_EQ(take(subscriber, 1).size(), 1U);
    publisher.reset();
    publisher = std::make_unique<Publisher>(address);
    const pubsub::PublisherChange change = changed.get_future().get();
    EXPECT_NE(change.former, change.now);
    EXPECT_TRUE(change.tail_known) << "it had closed in order";
    ASSERT_TRUE(publisher->wait_for_subscribers(1, deadline));
    publisher->publish_value(1, std::uint64_t{1});
    ASSERT_EQ(take(subscriber, 1).size(), 1U);
    EXPECT_EQ(subscriber.stats().restarts, 1U);
    EXPECT_EQ(subscribed, 2);
}

// A user with a loop needs no further thread.
TEST_F(FrontDoorThreads, TheyWorkOnALoopOfTheUser) {
    EventLoop loop;
    const auto transport = open_fabric(loop);
    const Context context{*transport};
    Publisher publisher{any_port, {.context = context}};
    Subscriber::Options options = quick();
    options.context = context;
    Subscriber subscriber{publisher.address(), options};
    subscriber.subscribe(1);
    EXPECT_FALSE(publisher.wait_for_subscribers(1, deadline)) << "it does not wait";
    const auto run_until = [&](auto done) {
        while (!done())
            loop.run_once(loop.now() + 10ms);
    };
    run_until([&] { return publisher.wait_for_subscribers(1, 0ms); });
    EXPECT_EQ(publisher.try_publish(1, "a text"), Status::ok);
    std::optional<OwnedMessage> message;
    run_until([&] { return (message = subscriber.receive(0ms)).has_value(); });
    EXPECT_EQ(message->text(), "a text");
    publisher.close();
    run_until([&] { return publisher.is_closed() && subscriber.is_closed(); });
}

} // namespace
} // namespace netio::front_door_test
