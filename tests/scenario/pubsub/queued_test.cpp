// SPDX-License-Identifier: Apache-2.0
// Publishers and subscribers that deliver into a completion queue.

#include "pubsub/queued.hpp"

#include "tests/scenario/pubsub/fixture.hpp"

#include <gmock/gmock.h>

#include <atomic>
#include <cstring>
#include <map>
#include <memory>
#include <thread>
#include <vector>

namespace netio::pubsub::test::queued_test {
namespace {

using namespace std::chrono_literals;
using Kind = netio::QueueEvent::Kind;

class QueuedPubSub : public PubSubScenario {
  protected:
    SubscribeSocket::Options subscribing() const {
        SubscribeSocket::Options options;
        options.publisher = address;
        options.session.receive_buffer_bytes = 64 * 1024;
        options.session.window_limit = 0;
        return options;
    }
    static std::vector<netio::QueueEvent> take(netio::CompletionQueue& queue) {
        std::vector<netio::QueueEvent> events(8);
        events.resize(queue.dequeue(events, 0ms));
        return events;
    }
};

// The policy of a slow subscriber decides: a full queue blocks the publisher or loses messages,
// which are reported in the queue.
TEST_P(QueuedPubSub, AFullQueueMakesASlowSubscriberThatLosesNothingUnreported) {
    for (const SlowPolicy policy : {SlowPolicy::block, SlowPolicy::drop}) {
        SCOPED_TRACE(static_cast<int>(policy));
        constexpr std::uint64_t total = 1500;
        BufferedPublishSocket::Options options{.page_size_bytes = 4096, .page_count = 16};
        options.publisher.time_stamps = StampClock::own;
        auto publisher = buffered(options);
        netio::CompletionQueue queue{{.queue_limit_events = 16}};
        netio::Queued<SubscribeSocket> subscriber{queue, 3, transport(), subscribing()};
        subscriber->subscribe(range(1, 2), policy);
        bool subscribed = false;
        bool closed = false;
        std::map<std::uint64_t, std::uint64_t> next; // by fid
        std::uint64_t lost = 0;
        std::uint64_t messages = 0;
        const auto look = [&] {
            for (const netio::QueueEvent& event : take(queue)) {
                EXPECT_EQ(event.tag, 3U);
                subscribed = subscribed || event.kind == Kind::subscribed;
                closed = closed || event.kind == Kind::closed;
                if (event.kind == Kind::lost) {
                    next[event.fid] += event.count;
                    lost += event.count;
                }
                if (event.kind != Kind::message) continue;
                const auto number = next[event.fid]++;
                const auto expected = make_message(Fid{event.fid}, number, event.bytes.size());
                EXPECT_TRUE(std::ranges::equal(event.bytes.bytes(), expected)) << number;
                EXPECT_EQ(event.time, static_cast<std::int64_t>(number));
                ++messages;
            }
        };
        ASSERT_TRUE(run_until([&] { return look(), subscribed; }));
        std::uint64_t published = 0;
        const auto publish_next = [&] {
            const Fid fid{1 + published % 2};
            const std::uint64_t number = published / 2;
            return publisher->publish_at(static_cast<std::int64_t>(number), fid,
                                         make_message(fid, number, 900));
        };
        ASSERT_TRUE(run_until([&] {
            while (published < total && publish_next() == netio::Status::ok)
                ++published;
            publisher->flush();
            EXPECT_LE(queue.size(), 17U);
            // A subscriber that loses messages takes nothing until all are published.
            if (policy == SlowPolicy::block && queue.size() >= 16) look();
            return published == total;
        })) << published;
        publisher->close();
        ASSERT_TRUE(run_until([&] { return look(), closed; }));
        EXPECT_EQ(messages + lost, total);
        EXPECT_EQ(lost > 0, policy == SlowPolicy::drop);
    }
}

// Its messages are copies: only what a user waits for is an event, once per wait.
TEST_P(QueuedPubSub, ABufferedPublisherReportsItsSpaceAndItsEnd) {
    netio::CompletionQueue queue;
    BufferedPublishSocket::Options options{.page_size_bytes = 4096, .page_count = 4};
    options.publisher.listen = {bed.address()};
    options.publisher.allow_remote_anonymous = true;
    netio::Queued<BufferedPublishSocket> publisher{queue, 4, transport(), options};
    address = publisher->endpoints().front().address;
    Subscription& subscription = subscribe({range(1, 1)});
    ASSERT_TRUE(run_until([&] { return subscription.actor.subscribed.size() == 1; }));
    std::uint64_t published = 0;
    std::size_t refusals = 0;
    std::size_t writables = 0;
    ASSERT_TRUE(run_until([&] {
        while (refusals == writables && published < 200) {
            const auto message = make_message(Fid{1}, published, 1000);
            publisher->publish(Fid{1}, message) == netio::Status::ok ? ++published : ++refusals;
        }
        publisher->flush();
        for (const netio::QueueEvent& event : take(queue)) {
            EXPECT_EQ(event.kind, Kind::writable);
            EXPECT_EQ(event.tag, 4U);
            ++writables;
        }
        return subscription.actor.messages == 200;
    })) << published;
    EXPECT_GT(refusals, 5U);
    publisher->close();
    ASSERT_TRUE(run_until([&] { return queue.size() > 0; }));
    EXPECT_EQ(take(queue).at(0).closed->reason, netio::CloseReason::orderly);
}

TEST_P(QueuedPubSub, EachPublicationHasOneEventAndRoomForIt) {
    netio::CompletionQueue queue{{.queue_limit_events = 8}};
    PublishSocket::Options options;
    options.publisher.listen = {bed.address()};
    options.publisher.allow_remote_anonymous = true;
    auto publisher = std::make_unique<netio::Queued<PublishSocket>>(queue, 4, transport(), options);
    address = (*publisher)->endpoints().front().address;
    RegisteredBuffer memory{100'000};
    EXPECT_EQ(publisher->publish(Fid{1}, memory.slice(), netio::Cookie{0}),
              netio::Status::no_subscribers);
    EXPECT_EQ(queue.size(), 0U);
    Subscription& subscription = subscribe({range(1, 1)});
    ASSERT_TRUE(run_until([&] { return subscription.actor.subscribed.size() == 1; }));
    std::uint64_t published = 0;
    std::uint64_t completed = 0;
    std::size_t refusals = 0;
    const auto message = make_message(Fid{1}, 0, 20'000);
    std::ranges::copy(message, memory.data());
    ASSERT_TRUE(run_until([&] {
        netio::Status status = netio::Status::ok;
        while (published < 100 && status == netio::Status::ok) {
            status = publisher->publish(Fid{1}, memory.slice(0, message.size()),
                                        netio::Cookie{published});
            if (status == netio::Status::ok) ++published;
        }
        EXPECT_LE(queue.size(), 9U) << "and an event that it is writable";
        refusals += status == netio::Status::again ? 1 : 0;
        if (published < 100 && queue.size() < 8) return false;
        for (const netio::QueueEvent& event : take(queue)) {
            if (event.kind != Kind::published) continue; // writable
            EXPECT_EQ(event.cookie, netio::Cookie{completed++});
            EXPECT_EQ(event.count, 1U);
        }
        return completed == 100;
    })) << completed;
    EXPECT_GT(refusals, 5U);
    ASSERT_TRUE(run_until([&] { return subscription.actor.messages == 100; }));
    (*publisher)->close();
    bool closed = false;
    ASSERT_TRUE(run_until([&] {
        for (const netio::QueueEvent& event : take(queue)) {
            if (event.kind != Kind::closed) continue;
            closed = true;
            EXPECT_EQ(event.closed->reason, netio::CloseReason::orderly);
        }
        return closed;
    }));
}

// Threads take messages, look at them and destroy them while the connection ends. In real time.
class QueuedPubSubThreads : public QueuedPubSub {};
TEST_P(QueuedPubSubThreads, MessagesAreReadByThreadsWhileTheirConnectionEnds) {
    auto publisher = buffered({.page_size_bytes = 60 * 1024, .page_count = 64});
    netio::CompletionQueue queue{{.queue_limit_events = 32}};
    auto subscriber =
        std::make_unique<netio::Queued<SubscribeSocket>>(queue, 0, transport(), subscribing());
    (*subscriber)->subscribe(range(1, 1), SlowPolicy::drop);
    std::atomic<std::size_t> read{0};
    std::atomic<std::size_t> wrong{0};
    std::atomic<bool> subscribed{false};
    std::vector<std::jthread> threads;
    for (int i = 0; i < 3; ++i) {
        threads.emplace_back([&] {
            std::vector<netio::QueueEvent> events(5);
            while (const std::size_t count = queue.dequeue(events, 1h)) {
                for (const netio::QueueEvent& event : std::span{events}.first(count)) {
                    if (event.kind == Kind::subscribed) subscribed = true;
                    if (event.kind != Kind::message) continue;
                    std::uint64_t number = 0;
                    std::memcpy(&number, event.bytes.bytes().data(), sizeof number);
                    const auto expected = make_message(Fid{1}, number, event.bytes.size());
                    wrong += std::ranges::equal(event.bytes.bytes(), expected) ? 0U : 1U;
                    ++read;
                }
            }
        });
    }
    std::uint64_t sent = 0;
    EXPECT_TRUE(run_until([&] {
        if (subscribed &&
            publish(*publisher, Fid{1}, sent, sent % 2 == 0 ? 40 : 30'000) == netio::Status::ok)
            ++sent;
        publisher->flush();
        return read > 500;
    })) << read;
    subscriber.reset();
    queue.close();
    threads.clear();
    EXPECT_EQ(wrong, 0U);
    EXPECT_EQ(queue.size(), 0U);
}

INSTANTIATE_TEST_SUITE_P(Beds, QueuedPubSub, all_beds(), bed_name);
INSTANTIATE_TEST_SUITE_P(Beds, QueuedPubSubThreads, netio::test::fabric_beds(), bed_name);

} // namespace
} // namespace netio::pubsub::test::queued_test
