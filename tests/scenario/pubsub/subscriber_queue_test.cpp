// SPDX-License-Identifier: Apache-2.0

// The queue of a netio::Subscriber on a loop in virtual time: how long it blocks its publishers,
// and what it reports at its end.

#include "pubsub/client/subscriber.hpp"
#include "tests/scenario/pubsub/fixture.hpp"
#include "tests/support/log_lines.hpp"

#include <gmock/gmock.h>

#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>

namespace netio::pubsub::test::subscriber_queue_test {
namespace {

using namespace std::chrono_literals;
using netio::Status;
using netio::Subscriber;
using netio::TimePoint;
using testing::HasSubstr;

class QueuingSubscriber : public PubSubScenario {
  protected:
    // Four messages fill the subscriber's queue, and a few more fill the publisher.
    void serve(SlowPolicy when_full = SlowPolicy::block) {
        publisher = buffered({.page_size_bytes = 1024, .page_count = 8});
        options.socket.retry_interval = 1ms;
        options.socket.session.receive_count = 4;
        options.queue_limit_messages = 4;
        options.when_full = when_full;
        options.reconnect = Reconnect::always;
        make(address);
        subscriber->subscribe(range(1, 2));
        ASSERT_TRUE(run_until([&] { return subscriber->wait_until_subscribed(0ms); }));
    }
    void make(const AddressList& publishers) {
        options.context.emplace(transport());
        subscriber = std::make_unique<Subscriber>(publishers, options);
    }
    // Publishes messages of one page each until the publisher has no memory for more.
    void fill() {
        while (publish(*publisher, Fid{1}, published, 900) == Status::ok) {
            ++published;
            publisher->flush();
            ASSERT_LT(published, 10'000U) << "the subscriber does not block the publisher";
        }
    }
    void take(std::uint64_t at_most = UINT64_MAX) {
        try {
            for (; at_most > 0; --at_most) {
                const auto message = subscriber->receive(0ms);
                if (!message) return;
                std::uint64_t number = 0;
                std::memcpy(&number, message->bytes().data(), sizeof number);
                EXPECT_EQ(number, taken++) << "in order";
            }
        } catch (const Error& error) {
            failure = error.what();
        }
    }
    bool has_left() const { return lines.count("queue was full for 10000 ms") > 0; }
    std::string refusal_of_options() {
        try {
            make(Address{.host = "127.0.0.1", .port = 9});
        } catch (const std::invalid_argument& error) {
            return error.what();
        }
        return "it is made";
    }

    netio::test::LogLines lines;
    std::unique_ptr<BufferedPublishSocket> publisher;
    std::uint64_t published = 0;
    std::uint64_t taken = 0;
    std::string failure; // that receive() has thrown
    Subscriber::Options options;
    std::unique_ptr<Subscriber> subscriber;
};

INSTANTIATE_TEST_SUITE_P(Beds, QueuingSubscriber, netio::test::simulated_beds(), bed_name);

TEST_P(QueuingSubscriber, WithAFullQueueBlocksThePublisherUntilItIsRead) {
    serve();
    const auto fill_for_a_minute = [this] {
        for (int i = 0; i < 3; ++i) {
            fill();
            bed.let_pass(20s);
        }
    };
    fill_for_a_minute();
    const std::uint64_t before = published;
    fill_for_a_minute();
    EXPECT_EQ(published, before) << "all buffers are full";
    EXPECT_LT(subscriber->stats().messages, published);
    EXPECT_FALSE(subscriber->is_closed());
    ASSERT_TRUE(run_until([&] {
        take();
        return taken == before;
    }));
    ASSERT_TRUE(run_until([&] { // publishing continues
        fill();
        return published > before;
    }));
}

TEST_P(QueuingSubscriber, WithPolicyDisconnectBlocksThePublisherForExactlyThatTime) {
    serve(SlowPolicy::disconnect);
    fill();
    ASSERT_TRUE(run_until([&] { return subscriber->stats().messages >= 4; }));
    const TimePoint full = loop().now();
    bed.let_pass(5s);
    fill();
    bed.let_pass(4s);
    EXPECT_FALSE(has_left());
    ASSERT_TRUE(run_until([&] { return has_left(); }));
    EXPECT_GE(loop().now() - full, 9s + 900ms);
    EXPECT_LE(loop().now() - full, 10s + 100ms) << "since it was full, despite later arrivals";
    const TimePoint left = loop().now();
    ASSERT_TRUE(run_until([&] { return subscriber->is_closed(); }));
    EXPECT_LE(loop().now() - left, 1s) << "the messages left in the publisher wait for no reader";
    ASSERT_TRUE(run_until([&] { return publisher_actor.closed.size() == 1; }));
    take();
    EXPECT_GE(taken, 4U) << "what had arrived is there";
    EXPECT_THAT(failure, HasSubstr("queue was full for 10000 ms"));
}

TEST_P(QueuingSubscriber, WithPolicyDisconnectEndsAlsoIfItsPublisherHasEnded) {
    serve(SlowPolicy::disconnect);
    fill();
    ASSERT_TRUE(run_until([&] { return subscriber->stats().messages >= 4; }));
    publisher.reset();
    ASSERT_TRUE(run_until([&] { return has_left(); }));
    const TimePoint left = loop().now();
    ASSERT_TRUE(run_until([&] { return subscriber->is_closed(); }));
    EXPECT_LE(loop().now() - left, 1s) << "the messages left in the publisher wait for no reader";
    take();
    EXPECT_GE(taken, 4U) << "what had arrived is there";
}

TEST_P(QueuingSubscriber, WithPolicyDisconnectHasItsWholeTimeAgainAfterItWasReadInTime) {
    serve(SlowPolicy::disconnect);
    for (int round = 0; round < 3; ++round) {
        fill();
        bed.let_pass(9s);
        ASSERT_TRUE(run_until([&] {
            take();
            return taken == published;
        }));
    }
    bed.let_pass(30s);
    EXPECT_FALSE(has_left());
    EXPECT_FALSE(subscriber->is_closed());
}

TEST_P(QueuingSubscriber, WithAFullQueueEndsInOrderOnRequest) {
    serve();
    fill();
    ASSERT_TRUE(run_until([&] { return subscriber->stats().messages >= 4; }));
    const TimePoint begin = loop().now();
    subscriber->close();
    EXPECT_FALSE(subscriber->is_closed());
    ASSERT_TRUE(run_until([&] { return subscriber->is_closed(); }));
    EXPECT_LT(loop().now() - begin, 1s);
    ASSERT_TRUE(run_until([&] { return publisher_actor.closed.size() == 1; }));
    take();
    EXPECT_GE(taken, 4U);
    EXPECT_EQ(failure, "");
}

TEST_P(QueuingSubscriber, UnsubscribedFidsDoNotArriveAnyMore) {
    serve();
    subscriber->unsubscribe(range(1, 1));
    subscriber->subscribe(range(3, 3));
    ASSERT_TRUE(run_until([&] { return subscriber->wait_until_subscribed(0ms); }));
    EXPECT_EQ(publish(*publisher, Fid{1}, 0, 40), Status::no_subscribers);
    EXPECT_EQ(publish(*publisher, Fid{2}, 0, 40), Status::ok);
    publisher->flush();
    ASSERT_TRUE(run_until([&] { return subscriber->stats().messages == 1; }));
}

TEST_P(QueuingSubscriber, HasOptionsWithinBounds) {
    options.queue_limit_messages = options.queue_limit_bytes = 1;
    options.disconnect_after = 1ms;
    EXPECT_EQ(refusal_of_options(), "it is made");
    options.queue_limit_messages = 0;
    EXPECT_THAT(refusal_of_options(), HasSubstr("queue_limit_messages is 0"));
    options.queue_limit_messages = 1;
    options.queue_limit_bytes = 0;
    EXPECT_THAT(refusal_of_options(), HasSubstr("queue_limit_bytes is 0"));
    options.queue_limit_bytes = 1;
    for (const auto time : {std::chrono::milliseconds{0}, std::chrono::milliseconds::max()}) {
        options.disconnect_after = time;
        EXPECT_THAT(refusal_of_options(), HasSubstr("disconnect_after is"));
    }
    options.disconnect_after = 1ms;
    EXPECT_THROW(make({}), std::invalid_argument) << "no publisher";
}

} // namespace
} // namespace netio::pubsub::test::subscriber_queue_test
