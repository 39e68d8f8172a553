// SPDX-License-Identifier: Apache-2.0
// Subscribers that ask for messages of before their subscription.

#include "pubsub/publisher/history.hpp"
#include "pubsub/pubsub.hpp"
#include "tests/scenario/pubsub/fixture.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <vector>

namespace netio::pubsub::test::late_subscriber_test {
namespace {

using std::chrono::milliseconds;

class LateSubscriber : public PubSubScenario {
  protected:
    static BufferedPublishSocket::Options keeping(std::size_t bytes) {
        return {.page_size_bytes = 8192, .page_count = 64, .history_limit_bytes = bytes};
    }
    static SubscribeSocket::Options asking() {
        SubscribeSocket::Options options;
        options.session.receive_buffer_bytes = 16384;
        options.session.receive_count = 4;
        options.session.window_limit = 0;
        options.history = true;
        return options;
    }
    // Publishes the next message of each of these fids; false: some was refused.
    bool publish_next(BufferedPublishSocket& publisher, std::uint64_t fids, std::size_t size) {
        for (std::uint64_t fid = 0; fid < fids; ++fid) {
            const auto status = publish(publisher, Fid{fid}, next[fid], size);
            if (status == netio::Status::again) return false;
            ++next[fid];
        }
        return true;
    }

    std::map<std::uint64_t, std::uint64_t> next;
};

TEST_P(LateSubscriber, KeptMessagesComeFirstAndNewOnesFollow) {
    auto publisher = buffered(keeping(std::size_t{1} << 20));
    for (int i = 0; i < 500; ++i)
        publish_next(*publisher, 4, 300);
    EXPECT_EQ(publish(*publisher, Fid{1}, next[1]++, 50000), netio::Status::no_subscribers);
    Subscription& late = subscribe({range(1, 2)}, asking());
    ASSERT_TRUE(run_until([&] {
        if (next[3] < 700) publish_next(*publisher, 4, 300);
        publisher->flush();
        return next[3] == 700 && late.actor.messages == 1401;
    }));
    late.actor.expect_contiguous(Fid{1}, 0, 701);
    late.actor.expect_contiguous(Fid{2}, 0, 700);
    EXPECT_EQ(publisher->snapshot().history.late, 0U);
    EXPECT_EQ(publisher->snapshot().history.messages, 4 * 700U + 1);
    publisher->close();
    ASSERT_TRUE(run_until([&] { return late.actor.totals == 1; }));
    EXPECT_EQ(late.actor.lost, 0U);
}

TEST_P(LateSubscriber, OnlyWhatIsKeptArrivesAndTheRestIsNoLoss) {
    auto publisher = buffered(keeping(100 * HistoryLog::bytes_for(64)));
    for (int i = 0; i < 1000; ++i)
        publish_next(*publisher, 1, 64);
    Subscription& late = subscribe({range(0, 0)}, asking());
    Subscription& plain = subscribe({range(0, 0)});
    ASSERT_TRUE(run_until(
        [&] { return late.actor.messages == 100 && plain.actor.subscribed.size() == 1; }));
    publish_next(*publisher, 1, 64);
    publisher->close();
    ASSERT_TRUE(run_until([&] { return late.actor.totals == 1 && plain.actor.totals == 1; }));
    late.actor.expect_contiguous(Fid{0}, 900, 101);
    plain.actor.expect_contiguous(Fid{0}, 1000, 1);
    EXPECT_EQ(late.actor.lost + plain.actor.lost, 0U);
    EXPECT_TRUE(bed.seen().no_history.empty());
}

// One that stopped does not slow the others, and what it misses is counted.
TEST_P(LateSubscriber, AStoppedLateSubscriberMissesExactlyWhatIsOverwritten) {
    auto options = keeping(std::size_t{512} << 10);
    options.publisher.slow_policy = SlowPolicy::drop;
    auto publisher = buffered(options);
    for (int i = 0; i < 400; ++i)
        publish_next(*publisher, 1, 1000);
    Subscription& other = subscribe({range(0, 0)});
    ASSERT_TRUE(run_until([&] { return other.actor.subscribed.size() == 1; }));
    Subscription& late = subscribe({range(0, 0)}, asking());
    late.actor.at_subscribed = [](SubscribeSocket& socket) { socket.pause(); };
    ASSERT_TRUE(run_until([&] { return late.actor.subscribed.size() == 1; }));
    int refused = 0;
    ASSERT_TRUE(run_until([&] {
        if (next[0] < 6000) refused += publish_next(*publisher, 1, 1000) ? 0 : 1;
        return next[0] == 6000 && other.actor.messages == 5600;
    }));
    EXPECT_EQ(refused, 0);
    late.socket->resume();
    publisher->close();
    ASSERT_TRUE(run_until([&] { return late.actor.totals == 1; }));
    EXPECT_GT(late.actor.gaps[Fid{0}], 0U);
    EXPECT_EQ(late.actor.messages + late.actor.gaps[Fid{0}], 6000U);
    EXPECT_EQ(late.actor.lost, late.actor.gaps[Fid{0}]);
    EXPECT_EQ(other.actor.gaps[Fid{0}], 0U);
}

// Publishing of its fids waits before a message since the subscription would be overwritten.
TEST_P(LateSubscriber, ABlockingLateSubscriberLosesNoNewMessage) {
    auto publisher = buffered(keeping(std::size_t{256} << 10));
    for (int i = 0; i < 400; ++i)
        publish_next(*publisher, 1, 1000);
    const std::uint64_t before = next[0];
    Subscription& late = subscribe({range(0, 0)}, asking());
    late.actor.at_subscribed = [](SubscribeSocket& socket) { socket.pause(); };
    ASSERT_TRUE(run_until([&] { return late.actor.subscribed.size() == 1; }));
    ASSERT_TRUE(run_until([&] { return !publish_next(*publisher, 1, 1000); }));
    const int room = publisher_actor.room;
    EXPECT_EQ(publish(*publisher, Fid{9}, 0, 1000), netio::Status::no_subscribers);
    late.socket->resume();
    ASSERT_TRUE(run_until([&] {
        if (next[0] < before + 2000) publish_next(*publisher, 1, 1000);
        publisher->flush();
        return next[0] == before + 2000 && late.actor.by_fid[Fid{0}].back().number + 1 == next[0];
    }));
    EXPECT_GT(publisher_actor.room, room);
    for (const std::uint64_t after : late.actor.gap_after[Fid{0}])
        EXPECT_LE(after, before);
    const std::uint64_t first = late.actor.by_fid[Fid{0}].front().number;
    EXPECT_EQ(first + late.actor.messages + late.actor.gaps[Fid{0}], next[0]);
}

// Messages of other fids overwrite them: then its session ends, since it must not lose any.
TEST_P(LateSubscriber, ABlockingLateSubscriberEndsWhenItIsOverrun) {
    auto publisher = buffered(keeping(std::size_t{128} << 10));
    for (int i = 0; i < 100; ++i)
        publish_next(*publisher, 1, 4000);
    Subscription& late = subscribe({range(0, 0)}, asking());
    late.actor.at_subscribed = [](SubscribeSocket& socket) { socket.pause(); };
    ASSERT_TRUE(run_until([&] { return late.actor.subscribed.size() == 1; }));
    while (publish_next(*publisher, 1, 4000)) {
    }
    for (std::uint64_t i = 0; i < 100; ++i)
        EXPECT_EQ(publish(*publisher, Fid{9}, i, 4000), netio::Status::no_subscribers);
    ASSERT_TRUE(run_until([&] { return !publisher_actor.closed.empty(); }));
    EXPECT_EQ(publisher_actor.closed.front().reason, netio::CloseReason::too_slow);
    EXPECT_NE(publisher_actor.closed.front().detail.find("overwritten"), std::string::npos);
    EXPECT_EQ(publish(*publisher, Fid{0}, next[0], 4000), netio::Status::no_subscribers);
}

TEST_P(LateSubscriber, UnsubscribedFidsEndAtOnceAndTheOthersGoOn) {
    auto publisher = buffered(keeping(std::size_t{4} << 20));
    for (int i = 0; i < 1000; ++i)
        publish_next(*publisher, 2, 1000);
    Subscription& late = subscribe({range(0, 0)}, asking());
    late.actor.at_subscribed = [&](SubscribeSocket& socket) {
        if (late.actor.subscribed.size() == 1) socket.subscribe(range(1, 1));
        if (late.actor.subscribed.size() == 2) socket.unsubscribe(range(0, 0));
    };
    std::size_t of_first = 0;
    late.actor.at_unsubscribed = [&](SubscribeSocket&) {
        of_first = late.actor.by_fid[Fid{0}].size();
    };
    ASSERT_TRUE(run_until([&] {
        return late.actor.by_fid[Fid{1}].size() == 1000 && !late.actor.unsubscribed.empty();
    }));
    late.actor.expect_contiguous(Fid{0}, 0, of_first);
    // A new subscription gets all of it again.
    late.actor.by_fid.clear();
    late.actor.at_subscribed = {};
    late.socket->subscribe(range(0, 0));
    ASSERT_TRUE(run_until([&] { return late.actor.by_fid[Fid{0}].size() == 1000; }));
    publish_next(*publisher, 2, 1000);
    publisher->flush();
    ASSERT_TRUE(run_until([&] {
        return late.actor.by_fid[Fid{0}].size() == 1001 && late.actor.by_fid[Fid{1}].size() == 1;
    }));
    late.actor.expect_contiguous(Fid{0}, 0, 1001);
}

// Each policy, and a change of it while the history is sent.
TEST_P(LateSubscriber, IsServedWithEveryPolicy) {
    for (const SlowPolicy policy : slow_policies) {
        SCOPED_TRACE(static_cast<int>(policy));
        subscribers.clear();
        next.clear();
        auto publisher = buffered(keeping(std::size_t{2} << 20));
        for (int i = 0; i < 700; ++i)
            publish_next(*publisher, 2, 1000);
        Subscription& late = subscribe({range(0, 1)}, asking(), policy);
        bool is_changed = false;
        late.actor.at_message = [&](SubscribeSocket& socket) {
            if (!std::exchange(is_changed, true)) socket.subscribe(range(1, 1), SlowPolicy::drop);
        };
        ASSERT_TRUE(run_until(
            [&] { return late.actor.messages == 1400 && late.actor.subscribed.size() == 2; }));
        publish_next(*publisher, 2, 1000);
        publisher->close();
        ASSERT_TRUE(run_until([&] { return late.actor.totals == 1; }));
        late.actor.expect_contiguous(Fid{0}, 0, 701);
        late.actor.expect_contiguous(Fid{1}, 0, 701);
        EXPECT_EQ(late.actor.lost, 0U);
    }
}

TEST_P(LateSubscriber, APublisherThatClosesSendsItFirst) {
    auto publisher = buffered(keeping(std::size_t{4} << 20));
    for (int i = 0; i < 3000; ++i)
        publish_next(*publisher, 1, 1000);
    Subscription& late = subscribe({range(0, 0)}, asking());
    late.actor.at_subscribed = [](SubscribeSocket& socket) { socket.pause(); };
    ASSERT_TRUE(run_until([&] { return late.actor.subscribed.size() == 1; }));
    EXPECT_EQ(publisher->snapshot().history.late, 1U);
    publisher->close();
    late.socket->resume();
    ASSERT_TRUE(run_until([&] { return late.actor.totals == 1; }));
    late.actor.expect_contiguous(Fid{0}, 0, 3000);
    EXPECT_EQ(late.actor.lost, 0U);
    ASSERT_TRUE(run_until([&] { return publisher_actor.ended == 1; }));
    EXPECT_EQ(publisher_actor.end.reason, netio::CloseReason::orderly);
}

// After a lost connection nothing is sent twice; a new publisher sends all that it keeps.
TEST_P(LateSubscriber, AReconnectionAsksOnlyAnotherPublisherAgain) {
    auto publisher = buffered(keeping(std::size_t{1} << 20));
    for (int i = 0; i < 100; ++i)
        publish_next(*publisher, 1, 100);
    auto options = asking();
    options.reconnect = true;
    options.retry_interval = options.retry_limit = milliseconds{1};
    Subscription& late = subscribe({range(0, 0)}, options);
    ASSERT_TRUE(run_until([&] { return late.actor.messages == 100; }));
    publisher->abort();
    ASSERT_TRUE(run_until([&] { return !late.actor.closed.empty(); }));
    publisher.reset();
    auto again = keeping(std::size_t{1} << 20);
    again.publisher.listen = {address};
    again.publisher.allow_remote_anonymous = true;
    publisher = std::make_unique<BufferedPublishSocket>(transport(), again, publisher_actor);
    for (int i = 0; i < 50; ++i)
        publish_next(*publisher, 1, 100);
    ASSERT_TRUE(run_until([&] { return late.actor.messages == 150; }));
    late.actor.expect_contiguous(Fid{0}, 0, 150);
    EXPECT_EQ(late.actor.changes.size(), 1U);
}

TEST_P(LateSubscriber, AReconnectionToTheSamePublisherBringsNoMessageAgain) {
    auto publisher = buffered(keeping(std::size_t{1} << 20));
    for (int i = 0; i < 100; ++i)
        publish_next(*publisher, 1, 100);
    auto options = asking();
    Subscription& first = subscribe({range(0, 0)}, options);
    ASSERT_TRUE(run_until([&] { return first.actor.messages == 100; }));
    // Another socket resumes after the end of the first, as after a change of the address.
    options.resume_state = first.socket->resume_state();
    first.socket->abort();
    ASSERT_TRUE(run_until([&] { return !first.actor.closed.empty(); }));
    for (int i = 0; i < 7; ++i)
        publish_next(*publisher, 2, 100);
    Subscription& second = subscribe({range(0, 1)}, options);
    ASSERT_TRUE(run_until([&] { return second.actor.subscribed.size() == 2; }));
    publish_next(*publisher, 2, 100);
    publisher->flush();
    ASSERT_TRUE(run_until([&] { return second.actor.messages == 9; }));
    second.actor.expect_contiguous(Fid{0}, 107, 1);
    second.actor.expect_contiguous(Fid{1}, 0, 8);
    EXPECT_EQ(second.actor.lost_while_disconnected[Fid{0}], 7U);
}

TEST_P(LateSubscriber, APublisherWithoutItIsReportedOnce) {
    auto with_copies = buffered({});
    Subscription& first = subscribe({range(0, 0)}, asking());
    first.socket->subscribe(range(2, 2));
    ASSERT_TRUE(run_until([&] { return first.actor.subscribed.size() == 2; }));
    EXPECT_EQ(bed.seen().no_history.size(), 1U);
    publish_next(*with_copies, 1, 100);
    with_copies->flush();
    ASSERT_TRUE(run_until([&] { return first.actor.messages == 1; }));
    auto without_copies = unbuffered({});
    Subscription& second = subscribe({range(0, 0)}, asking());
    ASSERT_TRUE(run_until([&] { return second.actor.subscribed.size() == 1; }));
    EXPECT_EQ(bed.seen().no_history.size(), 2U);
}

// On a real machine the time between two calls is not known.
class LateSubscriberInVirtualTime : public LateSubscriber {};
INSTANTIATE_TEST_SUITE_P(Beds, LateSubscriberInVirtualTime, netio::test::simulated_beds(),
                         bed_name);

TEST_P(LateSubscriberInVirtualTime, OldMessagesAreNotKept) {
    auto options = keeping(0);
    options.history_time = milliseconds{500};
    auto publisher = buffered(options);
    publish_next(*publisher, 1, 100);
    bed.let_pass(milliseconds{600});
    publish_next(*publisher, 1, 100);
    Subscription& late = subscribe({range(0, 0)}, asking());
    ASSERT_TRUE(run_until([&] { return late.actor.messages == 1; }));
    late.actor.expect_contiguous(Fid{0}, 1, 1);
}

// Each request has a place of its own in the history, so there is a limit.
TEST_P(LateSubscriber, ManyRequestsWaitForTheirTurn) {
    auto publisher = buffered(keeping(std::size_t{4} << 20));
    for (int i = 0; i < 40; ++i)
        publish_next(*publisher, 40, 2000);
    Subscription& late = subscribe({range(0, 0)}, asking());
    late.actor.at_subscribed = [](SubscribeSocket& socket) {
        if (socket.wanted().front().last == Fid{39}) return;
        for (std::uint64_t fid = 1; fid < 40; ++fid)
            socket.subscribe(range(fid, fid));
    };
    std::size_t most = 0;
    ASSERT_TRUE(run_until([&] {
        most = std::max(most, publisher->snapshot().history.late);
        return late.actor.messages == 1600;
    }));
    EXPECT_EQ(most, 16U);
    for (std::uint64_t fid = 0; fid < 40; ++fid)
        late.actor.expect_contiguous(Fid{fid}, 0, 40);
}

TEST(LateSubscriberOfAPublisher, IsServedByTheFrontDoor) {
    netio::Publisher publisher{"127.0.0.1:0", {.socket = {.history_limit_bytes = 1 << 20}}};
    for (std::uint64_t number = 0; number < 100; ++number)
        EXPECT_FALSE(publisher.publish_value(7, number));
    netio::Subscriber subscriber{publisher.address(), {.socket = {.history = true}}};
    subscriber.subscribe(7);
    for (std::uint64_t number = 0; number < 200; ++number) {
        const auto message = subscriber.receive(std::chrono::seconds{60});
        ASSERT_TRUE(message);
        ASSERT_EQ(message->value<std::uint64_t>(), number);
        if (number == 50) {
            for (std::uint64_t later = 100; later < 200; ++later)
                EXPECT_TRUE(publisher.publish_value(7, later));
        }
    }
    EXPECT_EQ(subscriber.stats().lost, 0U);
}

INSTANTIATE_TEST_SUITE_P(Beds, LateSubscriber, all_beds(), bed_name);

} // namespace
} // namespace netio::pubsub::test::late_subscriber_test
