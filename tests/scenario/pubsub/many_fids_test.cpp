// SPDX-License-Identifier: Apache-2.0

// A thousand fids that one subscriber subscribes to one by one use one connection. (A thousand
// connections: scale_test.cpp.)

#include "tests/scenario/pubsub/fixture.hpp"

#include "pubsub/publisher/send_queue.hpp"

namespace netio::pubsub::test::many_fids_test {
namespace {

using netio::CloseReason;
using netio::Cookie;
using netio::Status;

class ManyFids : public PubSubScenario {
  protected:
    static constexpr std::uint64_t count = 1000;
    static constexpr std::uint64_t messages_each = 3;
    static constexpr std::size_t bytes = 40;
    // The fids are not consecutive, so that no two of them form a range.
    static FidRange wanted(std::uint64_t i) { return range(3 * i, 3 * i); }

    // Subscribes half of them before it is connected, half after. Then one of three consecutive
    // fids is subscribed.
    template <typename Socket, typename Publish>
    void serve(Socket& publisher, Publish publish) {
        auto& subscriber = subscribe({wanted(0)});
        for (std::uint64_t i = 1; i < count / 2; ++i)
            subscriber.socket->subscribe(wanted(i));
        ASSERT_TRUE(run_until([&] { return subscriber.actor.connected == 1; }));
        for (std::uint64_t i = count / 2; i < count; ++i)
            subscriber.socket->subscribe(wanted(i));
        ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == count; }));
        EXPECT_EQ(publisher_actor.subscribed.size(), count);
        EXPECT_EQ(publisher.counters().subscribers, 1U);

        std::uint64_t next = 0; // fid and number alternate
        publisher_actor.at_room = [&] {
            for (; next < 3 * count * messages_each; ++next) {
                const Fid fid{next % (3 * count)};
                const Status status = publish(fid, next / (3 * count));
                if (status == Status::again) return;
                EXPECT_EQ(status, next % 3 == 0 ? Status::ok : Status::no_subscribers);
            }
            publisher.close();
        };
        publisher_actor.at_room();
        ASSERT_TRUE(run_until([&] { return publisher_actor.ended == 1; }));
        EXPECT_EQ(subscriber.actor.messages, count * messages_each);
        EXPECT_EQ(subscriber.actor.lost, 0U);
        for (std::uint64_t i = 0; i < count; ++i)
            subscriber.actor.expect_contiguous(wanted(i).first, 0, messages_each);
    }
};

TEST_P(ManyFids, AThousandFidsOfABufferedPublisherShareAConnection) {
    auto publisher = buffered({});
    serve(*publisher, [&](Fid fid, std::uint64_t number) {
        return PubSubScenario::publish(*publisher, fid, number, bytes);
    });
}

// Its request needs several frames, each of which contains the policy.
TEST_P(ManyFids, AsManyStepsAsAPublisherTakesHaveTheirPolicyEachOfThem) {
    constexpr std::uint64_t steps = 16'000;
    auto publisher = buffered({.page_size_bytes = 1024, .page_count = 64});
    std::vector<FidRange> all;
    for (std::uint64_t i = 0; i < steps; ++i)
        all.push_back(wanted(i));
    auto& subscriber = subscribe(all, {.session = {.receive_count = 4}}, SlowPolicy::drop);
    ASSERT_TRUE(run_until([&] { return subscriber.actor.subscribed.size() == steps; }));
    EXPECT_TRUE(subscriber.actor.policy_refused.empty());
    subscriber.socket->pause();
    std::uint64_t number = 0;
    for (const std::uint64_t step : {std::uint64_t{0}, steps / 2, steps - 1}) {
        for (int i = 0; i < 300; ++i) // with another policy it would have to wait
            ASSERT_EQ(PubSubScenario::publish(*publisher, wanted(step).first, number++, 500),
                      Status::ok)
                << "step " << step;
    }
}

TEST_P(ManyFids, AThousandFidsOfAnUnbufferedPublisherShareAConnection) {
    auto publisher = unbuffered({});
    netio::RegisteredBuffer memory{(count * messages_each + 1) * bytes}; // one is not sent
    std::size_t used = 0;
    serve(*publisher, [&](Fid fid, std::uint64_t number) {
        const netio::Slice slice = memory.slice(used, bytes);
        std::ranges::copy(make_message(fid, number, bytes), slice.data);
        const Status status = publisher->publish(fid, slice, Cookie{used});
        if (status == Status::ok) used += bytes;
        return status;
    });
    EXPECT_EQ(publisher_actor.completions.size(), count * messages_each);
}

class SubscribedAgain : public PubSubScenario {
  protected:
    static constexpr std::uint64_t fids = 20'000;
    static constexpr int times = 30;
    const FidRange all = range(0, fids - 1);

    // A publisher that has published each fid, and a subscriber to all of them.
    void start() {
        publisher = buffered({});
        for (std::uint64_t i = 0; i < fids; ++i)
            ASSERT_EQ(publish(*publisher, Fid{i}, 0, 8), Status::no_subscribers);
        subscriber = &subscribe({all}, {.reconnect = true});
        ASSERT_TRUE(run_until([&] { return subscriber->actor.subscribed.size() == 1; }));
    }
    // Runs until all requests are answered. Returns the maximum number of frames queued for the
    // subscriber.
    std::size_t most_queued(std::size_t subscribed) {
        std::size_t most = 0;
        EXPECT_TRUE(run_until([&] {
            for (const SubscriberSnapshot& each : publisher->snapshot({.fids = 0}).subscribers)
                most = std::max(most, each.queued_counts);
            return subscriber->actor.subscribed.size() == subscribed;
        }));
        return most;
    }
    void expect_everything_from_now_on() {
        ASSERT_EQ(publish(*publisher, Fid{7}, 1, 40), Status::ok);
        publisher->close();
        ASSERT_TRUE(run_until([&] { return publisher_actor.ended == 1; }));
        EXPECT_EQ(publisher_actor.end.reason, CloseReason::orderly);
        subscriber->actor.expect_contiguous(Fid{7}, 1, 1);
        EXPECT_EQ(subscriber->actor.lost, 0U);
        EXPECT_TRUE(subscriber->actor.lost_while_disconnected.empty());
        EXPECT_EQ(subscriber->actor.connected, 1);
    }

    std::unique_ptr<BufferedPublishSocket> publisher;
    Subscription* subscriber = nullptr;
};

TEST_P(SubscribedAgain, ToTheSameFidsCostsNoPositions) {
    start();
    for (int i = 0; i < times; ++i)
        subscriber->socket->subscribe(all);
    EXPECT_EQ(most_queued(1 + times), 0U);
    expect_everything_from_now_on();
}

// Each time it gets the positions of all fids again, and more requests wait until those have left.
TEST_P(SubscribedAgain, AfterUnsubscribingStaysConnected) {
    start();
    for (int i = 0; i < times; ++i) {
        subscriber->socket->unsubscribe(all);
        subscriber->socket->subscribe(all);
    }
    const std::size_t most = most_queued(1 + times);
    EXPECT_GT(most, SendQueue::positions_limit) << "some requests must have waited";
    EXPECT_LE(most, SendQueue::positions_limit + fids);
    expect_everything_from_now_on();
}

INSTANTIATE_TEST_SUITE_P(Beds, SubscribedAgain, all_beds(), bed_name);
INSTANTIATE_TEST_SUITE_P(Beds, ManyFids, all_beds(), bed_name);

} // namespace
} // namespace netio::pubsub::test::many_fids_test
