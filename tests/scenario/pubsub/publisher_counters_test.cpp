// SPDX-License-Identifier: Apache-2.0

// Counters of a publisher and a subscriber: each message counts once, in the right counter.

#include "tests/scenario/pubsub/fixture.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <numeric>

namespace netio::pubsub::test::publisher_counters_test {
namespace {

using netio::Cookie;
using netio::Service;
using netio::Status;
using testing::IsEmpty;
using namespace std::chrono_literals;

class PublisherCounters : public PubSubScenario {
  protected:
    static std::uint64_t sum_of(const std::vector<PublishedFidSnapshot>& fids,
                                std::uint64_t PublishedFidSnapshot::*figure) {
        return std::accumulate(fids.begin(), fids.end(), std::uint64_t{0},
                               [&](std::uint64_t sum, const PublishedFidSnapshot& each) {
                                   return sum + each.*figure;
                               });
    }
    static std::uint64_t dropped_for_all(const PublisherSnapshot& snapshot) {
        std::uint64_t sum = 0;
        for (const SubscriberSnapshot& each : snapshot.subscribers)
            sum += each.dropped;
        return sum;
    }
    // Compares all counters of lost messages.
    static void expect_the_same_of_all(Publisher& publisher) {
        const PublisherSnapshot snapshot = publisher.snapshot();
        EXPECT_EQ(sum_of(snapshot.fids, &PublishedFidSnapshot::dropped),
                  publisher.counters().dropped);
        EXPECT_EQ(dropped_for_all(snapshot), publisher.counters().dropped);
    }

    // Waits until all that can leave has left.
    void settle(Publisher& publisher) {
        ASSERT_TRUE(run_until([&] {
            return std::ranges::all_of(
                publisher.snapshot().subscribers,
                [](const SubscriberSnapshot& each) { return each.posted == 0; });
        }));
    }

    netio::RegisteredBuffer memory{20'000};
};

TEST_P(PublisherCounters, AddUpTheBytesOfMessagesHoweverTheyLeave) {
    auto publisher = buffered({.page_size_bytes = 1024, .page_count = 16});
    auto& subscriber = subscribe({range(1, 1)});
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 1; }));
    ASSERT_EQ(publish(*publisher, Fid{1}, 0, 100), Status::ok); // opens a page
    ASSERT_EQ(publish(*publisher, Fid{1}, 1, 30), Status::ok);  // is written to it
    ASSERT_EQ(publish(*publisher, Fid{1}, 2, 5000), Status::ok);
    ASSERT_EQ(publish(*publisher, Fid{2}, 0, 77), Status::no_subscribers);
    EXPECT_EQ(publisher->counters().messages, 3U);
    EXPECT_EQ(publisher->counters().bytes, 5130U);
    ASSERT_TRUE(run_until([&] { return subscriber.actor.messages == 3; }));
    EXPECT_EQ(subscriber.socket->counters().messages, 3U);
    EXPECT_EQ(subscriber.socket->counters().bytes, 5130U);
}

TEST_P(PublisherCounters, AddUpTheBytesOfZeroCopyMessagesWithTheirHeaders) {
    auto publisher = unbuffered({});
    auto& subscriber = subscribe({range(1, 1)});
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 1; }));
    const std::array<std::byte, 5> header{};
    const netio::Slice slice = memory.slice(0, 100);
    ASSERT_EQ(publisher->publishv(Fid{1}, {&slice, 1}, Cookie{1}, {.header = header}), Status::ok);
    ASSERT_TRUE(run_until([&] { return publisher->outstanding() == 0; }));
    ASSERT_EQ(publisher->try_publish(Fid{1}, memory.slice(0, 30), Cookie{2}).status, Status::ok);
    EXPECT_EQ(publisher->publish(Fid{2}, memory.slice(0, 9), Cookie{3}), Status::no_subscribers);
    EXPECT_EQ(publisher->counters().messages, 2U);
    EXPECT_EQ(publisher->counters().bytes, 135U);
    ASSERT_TRUE(run_until([&] { return subscriber.actor.messages == 2; }));
    EXPECT_EQ(subscriber.socket->counters().bytes, 135U);
}

TEST_P(PublisherCounters, CountMessagesWithoutSubscribersPerFid) {
    auto pages = buffered({});
    auto lent = unbuffered({});
    EXPECT_EQ(publish(*pages, Fid{1}, 0, 40), Status::no_subscribers);
    EXPECT_EQ(publish(*pages, Fid{1}, 1, 40), Status::no_subscribers);
    EXPECT_EQ(lent->publish(Fid{1}, memory.slice(0, 40), Cookie{1}), Status::no_subscribers);
    EXPECT_EQ(lent->try_publish(Fid{1}, memory.slice(0, 40), Cookie{2}).status,
              Status::no_subscribers);
    for (Publisher* const publisher :
         {static_cast<Publisher*>(pages.get()), static_cast<Publisher*>(lent.get())}) {
        EXPECT_EQ(publisher->counters().without_subscribers, 2U);
        EXPECT_EQ(publisher->counters().messages, 0U);
        EXPECT_EQ(publisher->counters().bytes, 0U);
        EXPECT_EQ(sum_of(publisher->snapshot().fids, &PublishedFidSnapshot::messages), 2U);
    }
}

TEST_P(PublisherCounters, AFidThatIsOnlyFlushedIsNotInTheSnapshot) {
    auto publisher = buffered({});
    publisher->flush(Fid{7});
    EXPECT_EQ(publisher->snapshot().fid_count, 0U);
}

// Losses with default publishing, with explicit publishing, and when others need the memory.
TEST_P(PublisherCounters, CountLostZeroCopyMessagesPerFidAndPerSubscriber) {
    constexpr std::uint64_t guests = 6;
    auto publisher = unbuffered({.publisher = {.slow_policy = SlowPolicy::drop},
                                 .outstanding_limit = 16,
                                 .queue_limit_messages = 8});
    std::vector<std::unique_ptr<Impostor>> stopped;
    for (std::uint64_t fid = 1; fid <= guests; ++fid)
        stopped.push_back(stuck(range(fid, fid)));
    std::uint64_t cookie = 0;
    const auto publish_for = [&](std::uint64_t fid, bool is_explicit) {
        // Too large for a batch: each takes a receive.
        const netio::Slice slice = memory.slice(0, 10'000);
        const Status status = is_explicit
                                  ? publisher->try_publish(Fid{fid}, slice, Cookie{cookie}).status
                                  : publisher->publish(Fid{fid}, slice, Cookie{cookie});
        ++cookie;
        return status;
    };
    std::size_t most_waiting = 0;
    for (std::uint64_t fid = 1; fid <= guests; ++fid) {
        for (int i = 0; i < 12; ++i) {
            ASSERT_TRUE(run_until([&] { return publish_for(fid, false) == Status::ok; }));
            settle(*publisher);
            const PublisherSnapshot now = publisher->snapshot();
            most_waiting = std::max(most_waiting, now.subscribers.front().waiting);
        }
    }
    EXPECT_LT(publisher->snapshot().subscribers.front().waiting, most_waiting)
        << "some messages must have been removed";
    expect_the_same_of_all(*publisher);
    const std::uint64_t before = publisher->counters().dropped;
    for (std::uint64_t fid = 1; fid <= guests; ++fid)
        ASSERT_TRUE(run_until([&] { return publish_for(fid, true) == Status::ok; }));
    EXPECT_GE(publisher->counters().dropped, before + guests);
    expect_the_same_of_all(*publisher);
}

// Of each fid the last message is stored. The earlier ones, and those that do not fit, count as
// dropped.
TEST_P(PublisherCounters, CountTheLossesAndThePagesOfConflation) {
    auto publisher = buffered({.page_size_bytes = 1024,
                               .page_count = 64,
                               .queue_limit_bytes = 4 * 1024,
                               .newest_bytes = 1000}); // of about five fids
    auto& subscriber =
        subscribe({range(1, 9)}, {.session = {.receive_buffer_bytes = 4096, .receive_count = 4}},
                  SlowPolicy::newest);
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 1; }));
    subscriber.socket->pause();
    std::uint64_t number = 0;
    const auto publish_all = [&](std::uint64_t count) {
        for (; count > 0; --count, ++number) {
            for (std::uint64_t fid = 1; fid <= 9; ++fid)
                ASSERT_EQ(publish(*publisher, Fid{fid}, number, 40), Status::ok);
            publisher->flush();
            loop().run_once();
        }
    };
    publish_all(60);
    ASSERT_GT(publisher->counters().dropped, 0U);
    expect_the_same_of_all(*publisher);
    // The messages stored for these are lost, because their policy has changed.
    const std::uint64_t before = publisher->counters().dropped;
    subscriber.socket->subscribe(range(5, 9), SlowPolicy::drop);
    ASSERT_TRUE(run_until([&] { return publisher_actor.subscribed.size() == 2; }));
    EXPECT_GT(publisher->counters().dropped, before);
    expect_the_same_of_all(*publisher);
    publish_all(1);
    const std::uint64_t pages = publisher->counters().pages;
    subscriber.socket->resume();
    ASSERT_TRUE(run_until([&] {
        const auto& arrived = subscriber.actor.by_fid[Fid{4}];
        return !arrived.empty() && arrived.back().number == number - 1;
    }));
    EXPECT_GT(publisher->counters().pages, pages) << "sent without another publication";
    expect_the_same_of_all(*publisher);
}

TEST_P(PublisherCounters, CountRejectedPeersAndShowOnlyAdmittedOnes) {
    auto publisher = unbuffered({});
    const Impostor other_service{transport(), address, Service::messages};
    const Impostor too_small{transport(), address, Service::publish_subscribe, 1000};
    ASSERT_TRUE(run_until([&] { return bed.seen().rejected.size() == 2; }));
    EXPECT_EQ(publisher->counters().rejected, 2U);
    Impostor silent{transport(), address, Service::publish_subscribe};
    ASSERT_TRUE(run_until([&] { return silent.connected; }));
    EXPECT_EQ(publisher->counters().subscribers, 0U) << "it has sent nothing yet";
    EXPECT_THAT(publisher->snapshot().subscribers, IsEmpty());
    EXPECT_EQ(publisher->snapshot().subscriber_count, 0U);
    silent.send(std::vector<std::byte>(3)); // not a frame
    ASSERT_TRUE(run_until([&] { return silent.closed; }));
    ASSERT_TRUE(run_until([&] { return publisher->counters().rejected == 3; }));
    EXPECT_THAT(publisher_actor.closed, IsEmpty()) << "it was never reported";
    auto& subscriber = subscribe({range(1, 1)});
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 1; }));
    EXPECT_EQ(publisher->counters().subscribers, 1U);
    subscriber.socket->close();
    ASSERT_TRUE(run_until([&] { return publisher_actor.closed.size() == 1; }));
    EXPECT_EQ(publisher->counters().subscribers, 0U);
    EXPECT_EQ(publisher->counters().rejected, 3U);
    EXPECT_EQ(publisher->counters().accept_failed, 0U);
}

INSTANTIATE_TEST_SUITE_P(Beds, PublisherCounters, all_beds(), bed_name);

// --- in virtual time ------------------------------------------------------------------------

class PublisherCountersInVirtualTime : public PublisherCounters {};

TEST_P(PublisherCountersInVirtualTime, CountPeersRejectedForLackOfResources) {
    auto publisher = buffered({});
    bed.sim()->refuse_endpoints(true);
    auto& subscriber = subscribe({range(1, 1)}, {.wait_for_publisher = false});
    ASSERT_TRUE(run_until([&] { return subscriber.actor.closed.size() == 1; }));
    bed.sim()->refuse_endpoints(false);
    EXPECT_EQ(publisher->counters().accept_failed, 1U);
    EXPECT_EQ(publisher->counters().rejected, 0U);
}

TEST_P(PublisherCountersInVirtualTime, ReportConnectionTimesAndFrameLatencies) {
    auto publisher = buffered({.page_size_bytes = 1024, .page_count = 64});
    auto& subscriber = subscribe({range(1, 1)}, {.session = {.receive_count = 4}});
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == 1; }));
    ASSERT_EQ(publish(*publisher, Fid{1}, 0, 40), Status::ok);
    publisher->flush();
    ASSERT_TRUE(run_until([&] { return subscriber.actor.messages == 1; }));
    EXPECT_LT(publisher->snapshot().latency.longest(), 100ms);
    subscriber.socket->pause();
    for (std::uint64_t number = 1; number < 20; ++number) {
        ASSERT_EQ(publish(*publisher, Fid{1}, number, 900), Status::ok);
        publisher->flush();
    }
    bed.let_pass(3s);
    subscriber.socket->resume();
    ASSERT_TRUE(run_until([&] { return subscriber.actor.messages == 20; }));
    ASSERT_TRUE(run_until([&] { return publisher->snapshot().free == 64U * 1024; }));
    const PublisherSnapshot snapshot = publisher->snapshot();
    ASSERT_EQ(snapshot.subscribers.size(), 1U);
    const SubscriberSnapshot& row = snapshot.subscribers.front();
    EXPECT_GE(row.connected_for, 3s);
    EXPECT_LT(row.connected_for, 4s);
    EXPECT_GE(row.latency.longest, 3s) << "of those that waited until it resumed";
    EXPECT_LT(row.latency.longest, 4s);
    EXPECT_GE(row.latency.p99, row.latency.median);
    EXPECT_EQ(snapshot.latency.longest(), row.latency.longest);
}

INSTANTIATE_TEST_SUITE_P(Beds, PublisherCountersInVirtualTime, netio::test::simulated_beds(),
                         bed_name);

} // namespace
} // namespace netio::pubsub::test::publisher_counters_test
