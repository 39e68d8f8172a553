// SPDX-License-Identifier: Apache-2.0

// netio::Publisher and netio::Subscriber over tcp; the thread sanitizer runs it as well.

#include "tests/scenario/pubsub/front_door.hpp"
#include "tests/support/temporary_folder.hpp"

#include <poll.h>

#include <array>
#include <atomic>
#include <future>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace netio::front_door_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

// Collects what a subscriber receives until the end, on its own thread.
struct Reader {
    explicit Reader(Subscriber& its_subscriber) : subscriber{its_subscriber} {}
    ~Reader() {
        if (thread.joinable()) thread.join();
    }
    void read() {
        for (const Message& message : subscriber) {
            numbers.push_back(message.value<std::uint64_t>());
            lost += message.lost_before();
            ++count;
        }
    }
    void join() { thread.join(); }
    Subscriber& subscriber;
    std::vector<std::uint64_t> numbers;
    std::uint64_t lost = 0;
    std::atomic<std::uint64_t> count{0};
    std::thread thread{[this] { read(); }};
};

TEST_F(FrontDoor, APublisherThatEndsInOrderEndsTheIteration) {
    constexpr std::uint64_t count = 20000;
    auto publisher = std::make_unique<Publisher>(any_port);
    Subscriber subscriber{to_string(publisher->address())};
    subscriber.subscribe({0, 63});
    Reader reader{subscriber};
    ASSERT_TRUE(publisher->wait_for_subscribers(1, deadline));
    for (std::uint64_t number = 0; number < count; ++number)
        EXPECT_TRUE(publisher->publish_value(1, number));
    EXPECT_EQ(publisher->stats().subscribers, 1U);
    publisher.reset();
    reader.join();
    ASSERT_EQ(reader.numbers.size(), count);
    for (std::uint64_t number = 0; number < count; ++number)
        ASSERT_EQ(reader.numbers[number], number);
    EXPECT_EQ(reader.lost, 0U);
    EXPECT_EQ(subscriber.stats().lost, 0U);
    EXPECT_TRUE(subscriber.is_closed());
    EXPECT_EQ(subscriber.receive(deadline), std::nullopt) << "it does not wait";
    EXPECT_THAT(lines.all(), IsEmpty());
}

TEST_F(FrontDoor, AFullSpeedStreamPassesBothSmallQueues) {
    Publisher publisher{any_port, {.queue_limit_bytes = 4096}};
    Subscriber::Options options = quick();
    options.queue_limit_messages = 16;
    Subscriber subscriber{publisher.address(), options};
    subscriber.subscribe(1);
    Reader reader{subscriber};
    ASSERT_TRUE(publisher.wait_for_subscribers(1, deadline));
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
        threads.emplace_back([&] {
            for (std::uint64_t number = 0; number < 2000; ++number)
                publisher.publish_value(1, number);
        });
    }
    for (std::thread& thread : threads)
        thread.join();
    publisher.close();
    reader.join();
    EXPECT_EQ(reader.numbers.size(), 8000U);
    EXPECT_EQ(reader.lost, 0U);
}

TEST_F(FrontDoor, WithoutASubscriberBothCallsReportIt) {
    Publisher publisher{any_port};
    EXPECT_FALSE(publisher.publish(1, "a text"));
    EXPECT_EQ(publisher.try_publish(1, "a text"), Status::no_subscribers);
    EXPECT_FALSE(publisher.wait_for_subscribers(1, 1ms));
    publisher.close();
    EXPECT_EQ(publisher.stats().published, 2U);
    EXPECT_EQ(publisher.stats().without_subscribers, 2U);
    EXPECT_THAT(lines.all(), ElementsAre(HasSubstr("had no subscriber")));
    EXPECT_EQ(publisher.try_publish(1, "a text"), Status::closed);
    try {
        publisher.publish(1, "a text");
        ADD_FAILURE() << "it is closed";
    } catch (const Error& error) {
        EXPECT_EQ(error.status(), Status::closed);
    }
}

TEST_F(FrontDoor, PublishWaitsForMemoryAndThenThrows) {
    Publisher::Options options;
    options.publish_timeout = 50ms;
    options.queue_limit_bytes = 4096;
    options.close_timeout = 50ms;
    options.socket.page_size_bytes = 1024;
    options.socket.page_count = 4;
    Publisher publisher{any_port, options};
    Subscriber::Options small = quick();
    small.queue_limit_messages = 1;
    small.socket.session.receive_buffer_bytes = 2048;
    small.socket.session.receive_count = 4;
    Subscriber subscriber{publisher.address(), small};
    subscriber.subscribe(1);
    ASSERT_TRUE(publisher.wait_for_subscribers(1, deadline));
    const std::string message(900, 'a');
    const auto publish_until_full = [&] {
        for (;;)
            publisher.publish(1, message);
    };
    const auto begin = Clock::now();
    EXPECT_THROW(publish_until_full(), Error);
    EXPECT_GE(Clock::now() - begin, 50ms);
    EXPECT_EQ(publisher.try_publish(1, message), Status::again);
    const std::vector<Publisher::Outgoing> batch(
        100, {.fid = Fid{1}, .bytes = std::as_bytes(std::span{message})});
    EXPECT_LT(publisher.publish_batch(batch, 10ms), batch.size());
    EXPECT_EQ(publisher.try_publish(1, std::string(std::size_t{17} << 20, 'a')), Status::too_large);
}

TEST_F(FrontDoor, OnlyItsOwnFidsArePublished) {
    Publisher publisher{any_port, {.fids = FidSet{{1, 9}}}};
    EXPECT_EQ(publisher.try_publish(9, "a text"), Status::no_subscribers);
    EXPECT_EQ(publisher.try_publish(10, "a text"), Status::not_owned);
    EXPECT_THROW(publisher.publish(10, "a text"), Error);
}

TEST_F(FrontDoor, WhatIsLostBetweenTwoConnectionsIsCountedExactly) {
    Publisher publisher{any_port};
    Subscriber subscriber{publisher.address(), quick()};
    subscriber.subscribe(1);
    ASSERT_TRUE(publisher.wait_for_subscribers(1, deadline));
    publisher.publish_value(1, std::uint64_t{0});
    ASSERT_TRUE(subscriber.receive(deadline));
    subscriber.unsubscribe(1);
    wait_until([&] { return publisher.stats().subscribers == 0; });
    publisher.publish_value(1, std::uint64_t{1}); // not subscribed, so not lost
    subscriber.subscribe(1);
    ASSERT_TRUE(publisher.wait_for_subscribers(1, deadline));
    publisher.publish_value(1, std::uint64_t{2});
    const auto next = subscriber.receive(deadline);
    ASSERT_TRUE(next);
    EXPECT_EQ(next->value<std::uint64_t>(), 2U);
    EXPECT_EQ(next->lost_before(), 0U);
}

TEST_F(FrontDoor, WhatTheQueueDropsIsCountedExactly) {
    Publisher publisher{any_port};
    Subscriber::Options options = quick();
    options.queue_limit_messages = 10;
    options.when_full = SlowPolicy::drop;
    Subscriber subscriber{publisher.address(), options};
    subscriber.subscribe(1);
    ASSERT_TRUE(publisher.wait_for_subscribers(1, deadline));
    for (std::uint64_t number = 0; number < 100; ++number)
        publisher.publish_value(1, number);
    publisher.close();
    Reader reader{subscriber};
    reader.join();
    EXPECT_EQ(reader.count + reader.lost + subscriber.stats().lost_at_end, 100U);
    EXPECT_EQ(subscriber.stats().lost, 100U - reader.count);
    EXPECT_EQ(subscriber.stats().dropped, 100U - reader.count);
}

TEST_F(FrontDoor, ItWaitsForAPublisherThatIsNotRunningYet) {
    std::string address;
    {
        Publisher publisher{any_port};
        address = to_string(publisher.address());
    }
    Subscriber subscriber{address, quick()};
    subscriber.subscribe(1);
    EXPECT_FALSE(subscriber.wait_until_subscribed(1ms));
    lines.wait_for("trying again");
    Publisher publisher{address};
    EXPECT_TRUE(subscriber.wait_until_subscribed(deadline));
    EXPECT_TRUE(publisher.publish(1, "a text"));
    EXPECT_EQ(subscriber.receive(deadline)->text(), "a text");
    EXPECT_THAT(lines.all(), ElementsAre(HasSubstr("trying again"), HasSubstr("connected to")));
}

TEST_F(FrontDoor, WithoutReconnectTheLogReportsThatItWaitsForTheStart) {
    const std::string address = [] { return to_string(Publisher{any_port}.address()); }();
    Subscriber::Options options = quick();
    options.reconnect = Reconnect::never;
    Subscriber subscriber{address, options};
    subscriber.subscribe(1);
    lines.wait_for("waiting until it can be connected");
    {
        Publisher publisher{address};
        ASSERT_TRUE(publisher.wait_for_subscribers(1, deadline));
        EXPECT_TRUE(publisher.publish(1, "a text"));
    }
    EXPECT_EQ(subscriber.receive(deadline)->text(), "a text");
    EXPECT_FALSE(subscriber.receive(deadline));
    EXPECT_EQ(lines.count("trying again"), 0U);
}

TEST_F(FrontDoor, TheLogReportsThatNoFidIsSubscribed) {
    const Publisher publisher{any_port};
    Context context;
    Subscriber::Options options = quick();
    options.context = context;
    options.silence_hint = 1ms;
    std::optional<Subscriber> subscribed;
    context.run([&] { // whose timer cannot expire before it has subscribed
        subscribed.emplace(to_string(publisher.address()), options);
        subscribed->subscribe(1);
    });
    const Subscriber idle{to_string(publisher.address()), options}; // its timer expires later
    lines.wait_for("no fid for 1 ms (silence_hint), so it gets no messages: call subscribe(fids)");
    EXPECT_EQ(lines.count("call subscribe(fids)"), 1U);
}

TEST_F(FrontDoor, ReconnectsAlsoAfterAnOrderlyEnd) {
    auto publisher = std::make_unique<Publisher>(any_port);
    const Address address = publisher->address();
    Subscriber::Options options = quick();
    options.reconnect = Reconnect::always;
    Subscriber subscriber{address, options};
    subscriber.subscribe(1);
    ASSERT_TRUE(publisher->wait_for_subscribers(1, deadline));
    publisher->publish(1, "the first");
    publisher = nullptr;
    publisher = std::make_unique<Publisher>(address);
    ASSERT_TRUE(publisher->wait_for_subscribers(1, deadline));
    publisher->publish(1, "the second");
    EXPECT_EQ(subscriber.receive(deadline)->text(), "the first");
    EXPECT_EQ(subscriber.receive(deadline)->text(), "the second");
    std::thread closing{[&] { subscriber.close(); }};
    EXPECT_EQ(subscriber.receive(deadline), std::nullopt);
    closing.join();
    EXPECT_EQ(subscriber.stats().restarts, 1U);
    EXPECT_EQ(subscriber.stats().unknown_tails, 0U);
}

TEST_F(FrontDoor, APermanentRefusalByThePublisherIsAnError) {
    Publisher::Options options;
    options.socket.publisher.largest_message_bytes = std::size_t{64} << 20;
    Publisher publisher{any_port, options};
    Subscriber::Options small = quick();
    small.socket.largest_message_bytes = 1000;
    Subscriber subscriber{publisher.address(), small};
    subscriber.subscribe(1);
    try {
        for (const Message& message : subscriber)
            ADD_FAILURE() << message.size();
        ADD_FAILURE() << "it has ended in order";
    } catch (const Error& error) {
        EXPECT_THAT(error.what(), HasSubstr("rejected"));
    }
    EXPECT_THROW(subscriber.receive(deadline), Error) << "and again";
}

TEST_F(FrontDoor, ARefusedSubscriptionIsAnErrorAndTheOthersContinue) {
    Publisher::Options options;
    options.socket.publisher.ranges_per_subscriber_limit = 1;
    Publisher publisher{any_port, options};
    Subscriber subscriber{publisher.address(), quick()};
    subscriber.subscribe(1);
    ASSERT_TRUE(subscriber.wait_until_subscribed(deadline));
    subscriber.subscribe(5);
    EXPECT_THROW(subscriber.receive(deadline), Error);
    publisher.publish(1, "a text");
    EXPECT_EQ(subscriber.receive(deadline)->text(), "a text");
}

TEST_F(FrontDoor, PublishersAreFoundOnABus) {
    const test::TemporaryFolder folder;
    const Bus bus{folder.path().string()};
    Subscriber subscriber{bus, quick()};
    subscriber.subscribe({0, 99});
    Publisher one{any_port, {.bus = bus, .name = "one", .fids = FidSet{{0, 49}}}};
    Publisher two{any_port, {.bus = bus, .fids = FidSet{{50, 99}}}};
    ASSERT_TRUE(one.wait_for_subscribers(1, deadline));
    ASSERT_TRUE(two.wait_for_subscribers(1, deadline));
    one.publish(0, "of one");
    EXPECT_EQ(subscriber.receive(deadline)->text(), "of one");
    two.publish(99, "of two");
    EXPECT_EQ(subscriber.receive(deadline)->text(), "of two");
    one.close();
    two.close();
    EXPECT_EQ(subscriber.receive(50ms), std::nullopt);
    EXPECT_FALSE(subscriber.is_closed()) << "others may be announced";
    subscriber.close();
    EXPECT_THROW((Publisher{any_port, {.bus = bus}}), std::invalid_argument);
}

// Each of the answers is looked at when it has arrived, on the thread where they arrive.
TEST_F(FrontDoor, TheAnswerToAnEarlierSubscriptionIsNotThatToALaterOne) {
    Context context;
    Publisher publisher{any_port};
    std::vector<bool> subscribed;
    std::promise<void> answered;
    Subscriber* waiting = nullptr;
    Subscriber::Options options = quick();
    options.context = context;
    options.on_subscribed = [&](const Subscriber::Source&, const FidRange& fids) {
        if (fids.first != Fid{1}) return;
        subscribed.push_back(waiting->wait_until_subscribed(0ms));
        if (subscribed.size() == 2) answered.set_value();
    };
    Subscriber subscriber{publisher.address(), options};
    waiting = &subscriber;
    subscribe(subscriber, FidSet{{0, 0}}); // it is connected: each call is a request
    context.run([&] {
        subscriber.subscribe(1);
        subscriber.unsubscribe(1);
        subscriber.subscribe(1);
    });
    answered.get_future().get();
    EXPECT_THAT(subscribed, testing::ElementsAre(false, true));
}

TEST_F(FrontDoor, SeveralShareAContextAndItsThread) {
    Context context;
    Publisher publisher{any_port, {.context = context}};
    std::promise<std::string> received;
    Subscriber::Options options = quick();
    options.context = context;
    options.on_message = [&](const Message& message) {
        EXPECT_TRUE(context.is_own_thread());
        EXPECT_FALSE(publisher.publish(2, "an answer")) << "it may publish";
        received.set_value(std::string{message.text()});
    };
    Subscriber subscriber{publisher.address(), options};
    subscriber.subscribe(1);
    ASSERT_TRUE(publisher.wait_for_subscribers(1, deadline));
    publisher.publish(1, "a text");
    EXPECT_EQ(received.get_future().get(), "a text");
    EXPECT_THROW(context.run([] { throw std::runtime_error{"a task's"}; }), std::runtime_error);
    std::promise<bool> waited;
    ASSERT_TRUE(
        context.post([&] { waited.set_value(publisher.wait_for_subscribers(9, deadline)); }));
    EXPECT_FALSE(waited.get_future().get()) << "its own thread does not wait";
}

TEST_F(FrontDoor, AMessageIsValidUntilTheNextOneAlsoForTwoReaders) {
    constexpr std::uint64_t count = 4000;
    Publisher publisher{any_port};
    Subscriber subscriber{publisher.address(), quick()};
    subscriber.subscribe(1);
    ASSERT_TRUE(publisher.wait_for_subscribers(1, deadline));
    std::atomic<std::uint64_t> sum{0};
    const auto read = [&] {
        for (const Message& message : subscriber) {
            const auto first = message.value<std::uint64_t>();
            std::this_thread::yield();
            EXPECT_EQ(message.value<std::uint64_t>(), first);
            sum += first;
        }
    };
    std::thread one{read};
    std::thread other{read};
    for (std::uint64_t number = 1; number <= count; ++number)
        publisher.publish_value(1, number);
    publisher.close();
    one.join();
    other.join();
    EXPECT_EQ(sum, count * (count + 1) / 2);
}

TEST_F(FrontDoor, AnInterruptedIterationContinuesWithTheNextMessage) {
    Publisher publisher{any_port};
    Subscriber subscriber{publisher.address(), quick()};
    subscriber.subscribe(1);
    ASSERT_TRUE(publisher.wait_for_subscribers(1, deadline));
    for (std::uint64_t number = 0; number < 10; ++number)
        publisher.publish_value(1, number);
    publisher.close();
    std::uint64_t next = 0;
    for (const Message& message : subscriber) {
        EXPECT_EQ(message.value<std::uint64_t>(), next++);
        if (next == 4) break;
    }
    EXPECT_EQ(subscriber.receive(deadline)->value<std::uint64_t>(), next++);
    for (const Message& message : subscriber)
        EXPECT_EQ(message.value<std::uint64_t>(), next++);
    EXPECT_EQ(next, 10U);
}

TEST_F(FrontDoor, ABatchIsPublishedInOrderAndWaitsForSpace) {
    Publisher publisher{any_port, {.queue_limit_bytes = 4096, .fids = FidSet{{1, 3}}}};
    Subscriber subscriber{publisher.address(), quick()};
    subscriber.subscribe({1, 3});
    ASSERT_TRUE(publisher.wait_for_subscribers(1, deadline));
    constexpr std::uint64_t count = 5000;
    std::vector<std::uint64_t> numbers(count);
    std::vector<Publisher::Outgoing> batch;
    for (std::uint64_t i = 0; i < count; ++i) {
        numbers[i] = i;
        batch.push_back({.fid = Fid{1 + i % 3},
                         .status = static_cast<std::uint8_t>(i % 7),
                         .bytes = std::as_bytes(std::span{&numbers[i], 1})});
    }
    EXPECT_EQ(publisher.publish_batch(batch, deadline), count);
    std::array<std::uint64_t, 3> next{0, 1, 2};
    for (std::uint64_t i = 0; i < count; ++i) {
        const auto message = subscriber.receive(deadline);
        ASSERT_TRUE(message);
        std::uint64_t& expected = next.at(to_integer(message->fid()) - 1);
        ASSERT_EQ(message->value<std::uint64_t>(), expected);
        EXPECT_EQ(message->status(), expected % 7);
        expected += 3;
    }
    batch[1].fid = Fid{4};
    EXPECT_THROW(static_cast<void>(publisher.publish_batch(batch, deadline)), Error);
    EXPECT_EQ(publisher.stats().published, count) << "none of the refused batch";
    publisher.close();
    batch[1].fid = Fid{1};
    EXPECT_THROW(static_cast<void>(publisher.publish_batch(batch, deadline)), Error);
}

TEST_F(FrontDoor, ItsDescriptorIsReadableOnceAtTheEnd) {
    Publisher publisher{any_port};
    Subscriber subscriber{publisher.address(), quick()};
    subscriber.subscribe(1);
    ASSERT_TRUE(publisher.wait_for_subscribers(1, deadline));
    pollfd readable{.fd = subscriber.pollable_fd(), .events = POLLIN, .revents = 0};
    EXPECT_EQ(::poll(&readable, 1, 0), 0);
    publisher.close();
    EXPECT_EQ(::poll(&readable, 1, 60'000), 1);
    EXPECT_TRUE(subscriber.is_closed());
    EXPECT_EQ(subscriber.receive(deadline), std::nullopt);
    EXPECT_EQ(::poll(&readable, 1, 0), 0);
}

TEST_F(FrontDoor, ItsDescriptorIsReadableWhileMessagesWait) {
    Publisher publisher{any_port};
    Subscriber subscriber{publisher.address(), quick()};
    subscriber.subscribe(1);
    ASSERT_TRUE(publisher.wait_for_subscribers(1, deadline));
    pollfd watched{.fd = subscriber.pollable_fd(), .events = POLLIN, .revents = 0};
    EXPECT_EQ(::poll(&watched, 1, 0), 0);
    publisher.publish(1, "a text");
    EXPECT_EQ(::poll(&watched, 1, 60'000), 1);
    EXPECT_TRUE(subscriber.receive(0ms));
    EXPECT_FALSE(subscriber.receive(0ms));
    EXPECT_EQ(::poll(&watched, 1, 0), 0);
}

} // namespace
} // namespace netio::front_door_test
