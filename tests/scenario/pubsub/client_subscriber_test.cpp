// SPDX-License-Identifier: Apache-2.0

// A client's subscriptions, on a loop in virtual time: how long it blocks its publishers, and what
// it answers and reports at its end.

#include "pubsub/client/client_subscriber.hpp"
#include "tests/scenario/pubsub/fixture.hpp"

#include <gmock/gmock.h>

#include <chrono>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace netio::pubsub::test::client_subscriber_test {
namespace {

using namespace std::chrono_literals;
using netio::Status;
using netio::TimePoint;
using testing::Contains;
using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;
using Answer = Client::Answer;

class SubscribingClient : public PubSubScenario {
  protected:
    // Four messages fill the client's queue, and a few more fill the publisher.
    void serve(const Client::WhenFull& when_full = SlowPolicy::block) {
        publisher = buffered({.page_size_bytes = 1024, .page_count = 8});
        options.publishers = {address};
        options.socket.retry_interval = 1ms;
        options.socket.session.receive_count = 4;
        options.queue_messages = 4;
        options.when_full = when_full;
        make();
        ask(range(1, 2));
        ASSERT_TRUE(run_until([&] { return answers.size() == 1; }));
        EXPECT_THAT(answers, ElementsAre(Answer::accepted));
        answers.clear();
    }
    void make() {
        subscriber = std::make_unique<ClientSubscriber>(
            loop(), options, Client::Events{},
            ClientCalls{.post = [this](auto task) { return loop().post(std::move(task)); },
                        .report = [this](const std::string& line) { events.push_back(line); },
                        .ended = [this] { ++ended; }});
        subscriber->open(transport());
    }
    void ask(const FidRange& fids) {
        subscriber->subscribe(
            {fids}, {}, [this](Answer answer) { answers.push_back(answer); }, TimePoint::max());
    }
    // Publishes messages of one page each until the publisher has no memory for more.
    void fill() {
        while (publish(*publisher, Fid{1}, published, 900) == Status::ok) {
            ++published;
            publisher->flush();
            ASSERT_LT(published, 10'000U) << "the subscriber does not block the publisher";
        }
    }
    void take(std::size_t at_most = SIZE_MAX) {
        std::vector<Message> messages;
        subscriber->queue().poll(messages, at_most, 0ms);
        for (const Message& message : messages) {
            std::uint64_t number = 0;
            std::memcpy(&number, message.bytes.data(), sizeof number);
            EXPECT_EQ(number, taken++) << "in order";
        }
    }
    Client::Counters counters() const {
        Client::Counters counters;
        subscriber->add_to(counters);
        return counters;
    }
    std::string refusal_of_options() {
        try {
            make();
        } catch (const std::invalid_argument& error) {
            return error.what();
        }
        return "it is made";
    }

    std::unique_ptr<BufferedPublishSocket> publisher;
    std::uint64_t published = 0;
    std::uint64_t taken = 0;
    Client::Options options;
    std::vector<Answer> answers;
    std::vector<std::string> events;
    int ended = 0;
    std::unique_ptr<ClientSubscriber> subscriber;
};

INSTANTIATE_TEST_SUITE_P(Beds, SubscribingClient, netio::test::simulated_beds(), bed_name);

TEST_P(SubscribingClient, WithAFullQueueBlocksThePublisherUntilItIsRead) {
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
    EXPECT_LT(counters().messages, published);
    EXPECT_EQ(counters().disconnected, 0U);
    ASSERT_TRUE(run_until([&] {
        take();
        return taken == before;
    }));
    ASSERT_TRUE(run_until([&] { // publishing continues
        fill();
        return published > before;
    }));
}

TEST_P(SubscribingClient, ThatIsToDisconnectBlocksThePublisherForExactlyThatTime) {
    serve({SlowPolicy::disconnect, 10s});
    fill();
    ask(range(1, 1));
    ASSERT_TRUE(run_until([&] { return counters().messages >= 4; }));
    const TimePoint full = loop().now();
    bed.let_pass(5s);
    take(1); // too few to restart the flow
    fill();
    bed.let_pass(4s);
    EXPECT_EQ(counters().disconnected, 0U);
    EXPECT_THAT(events, Each(Not(HasSubstr("its queue was full"))));
    ASSERT_TRUE(run_until([&] { return counters().disconnected == 1; }));
    EXPECT_GE(loop().now() - full, 9s + 900ms);
    EXPECT_LE(loop().now() - full, 10s + 100ms) << "since it was full, despite later arrivals";
    EXPECT_THAT(events, Contains(HasSubstr("its queue was full for 10000 ms")));
    const TimePoint left = loop().now();
    ASSERT_TRUE(run_until([&] { return ended == 1; }));
    EXPECT_LE(loop().now() - left, 1s) << "the messages left in the publisher wait for no reader";
    EXPECT_TRUE(subscriber->is_over());
    ASSERT_TRUE(run_until([&] { return publisher_actor.closed.size() == 1; }));
    answers.clear();
    ask(range(5, 5));
    EXPECT_THAT(answers, ElementsAre(Answer::closed));
    take();
    EXPECT_GE(taken, 4U) << "what had arrived is there";
}

TEST_P(SubscribingClient, ThatIsToDisconnectDoesSoAlsoIfItsPublisherHasEnded) {
    serve({SlowPolicy::disconnect, 10s});
    fill();
    ASSERT_TRUE(run_until([&] { return counters().messages >= 4; }));
    publisher.reset();
    ASSERT_TRUE(run_until([&] { return counters().disconnected == 1; }));
    const TimePoint left = loop().now();
    ASSERT_TRUE(run_until([&] { return ended == 1; }));
    EXPECT_LE(loop().now() - left, 1s) << "the messages left in the publisher wait for no reader";
    take();
    EXPECT_GE(taken, 4U) << "what had arrived is there";
}

TEST_P(SubscribingClient, ThatIsToDisconnectAndIsReadInTimeHasAllOfItsTimeAgain) {
    serve({SlowPolicy::disconnect, 10s});
    for (int round = 0; round < 3; ++round) {
        fill();
        bed.let_pass(9s);
        ASSERT_TRUE(run_until([&] {
            take();
            return taken == published;
        }));
    }
    bed.let_pass(30s);
    EXPECT_EQ(counters().disconnected, 0U);
    EXPECT_EQ(ended, 0);
}

TEST_P(SubscribingClient, AnswersPendingCallsInTheCallThatEndsIt) {
    for (const bool at_once : {true, false}) {
        options.publishers = {{.host = "127.0.0.1", .port = 9}}; // without a listener
        make();
        answers.clear();
        ask(range(1, 1));
        ask(range(2, 2));
        EXPECT_THAT(answers, IsEmpty());
        at_once ? subscriber->end() : subscriber->close();
        EXPECT_THAT(answers, ElementsAre(Answer::closed, Answer::closed));
        ask(range(3, 3));
        EXPECT_THAT(answers, SizeIs(3));
        subscriber.reset();
    }
}

TEST_P(SubscribingClient, WithAFullQueueEndsInOrderOnRequest) {
    serve();
    fill();
    ASSERT_TRUE(run_until([&] { return counters().messages >= 4; }));
    EXPECT_FALSE(subscriber->is_over());
    const TimePoint begin = loop().now();
    subscriber->close();
    EXPECT_FALSE(subscriber->is_over());
    ASSERT_TRUE(run_until([&] { return ended == 1; }));
    EXPECT_LT(loop().now() - begin, 1s);
    EXPECT_TRUE(subscriber->is_over());
    ASSERT_TRUE(run_until([&] { return publisher_actor.closed.size() == 1; }));
    EXPECT_THAT(events, Contains(HasSubstr("connected to " + to_string(address))));
    EXPECT_THAT(events.back(), HasSubstr(to_string(address) + ": ")) << "how it ended";
}

TEST_P(SubscribingClient, UnsubscribedFidsDoNotArriveAnyMore) {
    serve();
    subscriber->unsubscribe(range(1, 1));
    ask(range(3, 3));
    ASSERT_TRUE(run_until([&] { return answers.size() == 1; }));
    EXPECT_EQ(publish(*publisher, Fid{1}, 0, 40), Status::no_subscribers);
    EXPECT_EQ(publish(*publisher, Fid{2}, 0, 40), Status::ok);
    publisher->flush();
    ASSERT_TRUE(run_until([&] { return counters().messages == 1; }));
}

TEST_P(SubscribingClient, WithoutPublishersIsOverFromTheBeginning) {
    make();
    EXPECT_TRUE(subscriber->is_over());
    subscriber->unsubscribe(range(1, 1));
    ask(range(1, 1));
    EXPECT_THAT(answers, ElementsAre(Answer::closed));
    subscriber->close();
    EXPECT_EQ(ended, 0) << "there was nothing to end";
}

TEST_P(SubscribingClient, HasOptionsWithinBounds) {
    options.queue_messages = options.queue_bytes = 1;
    options.when_full = {SlowPolicy::disconnect, 1ms};
    EXPECT_EQ(refusal_of_options(), "it is made");
    options.queue_messages = 0;
    EXPECT_THAT(refusal_of_options(), HasSubstr("queue_messages is 0"));
    options.queue_messages = 1;
    options.queue_bytes = 0;
    EXPECT_THAT(refusal_of_options(), HasSubstr("queue_bytes is 0"));
    options.queue_bytes = 1;
    for (const auto time : {std::chrono::milliseconds{0}, std::chrono::milliseconds::max()}) {
        options.when_full = {SlowPolicy::disconnect, time};
        EXPECT_THAT(refusal_of_options(), HasSubstr("when_full.disconnect_after is"));
    }
}

} // namespace
} // namespace netio::pubsub::test::client_subscriber_test
