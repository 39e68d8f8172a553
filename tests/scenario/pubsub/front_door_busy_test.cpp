// SPDX-License-Identifier: Apache-2.0

// Publishers, subscribers and contexts that other threads keep busy, over tcp; the thread sanitizer
// runs it as well.

#include "tests/scenario/pubsub/front_door.hpp"

#include <poll.h>

#include <atomic>
#include <future>
#include <optional>
#include <stdexcept>
#include <thread>
#include <vector>

namespace netio::front_door_busy_test {
namespace {

using namespace front_door_test;

class BusyFrontDoor : public FrontDoor {
  protected:
    static Context with_limit(std::size_t posts) {
        return Context{Context::Options{.loop = {.post_limit = posts}}};
    }
    // Blocks the context's thread until it may continue.
    void hold_up(const Context& context) {
        ASSERT_TRUE(context.post([this, may_go = go_on.get_future().share()] {
            stands.set_value();
            may_go.get();
        }));
        stands.get_future().get();
    }

    std::promise<void> stands;
    std::promise<void> go_on;
};

// A publisher never gets `again` for messages without subscribers.
TEST_F(BusyFrontDoor, PublishingAtFullSpeedWithoutSubscribersBlocksNoSubscriber) {
    Context context;
    Publisher publisher{any_port, {.context = context}};
    std::atomic<bool> over{false};
    std::vector<std::thread> flat_out;
    for (std::uint64_t fid = 1; fid <= 3; ++fid) {
        flat_out.emplace_back([&, fid] {
            const std::vector<std::byte> message(8);
            while (!over)
                static_cast<void>(publisher.try_publish(fid, message));
        });
    }
    wait_until([&] { return publisher.stats().published > 10000; });
    Subscriber subscriber{publisher.address(), quick()};
    subscribe(subscriber, FidSet{{9, 9}});
    context.run([] {});
    publisher.close();
    over = true;
    for (std::thread& each : flat_out)
        each.join();
    EXPECT_EQ(publisher.try_publish(1, ""), Status::closed);
}

TEST_F(BusyFrontDoor, AFidOfAnotherPublisherIsRefusedInTheCallAndNotCounted) {
    Publisher publisher{any_port, {.fids = FidSet{{20, 29}, {0, 9}}}};
    Subscriber subscriber{publisher.address(), quick()};
    subscribe(subscriber, FidSet{{0, 99}});
    EXPECT_EQ(publisher.try_publish(10, ""), Status::not_owned);
    EXPECT_EQ(publisher.try_publish(30, std::vector<std::byte>(100)), Status::not_owned);
    publisher.publish_value(9, std::uint64_t{1});
    publisher.publish_value(20, std::uint64_t{2});
    const std::vector<OwnedMessage> messages = take(subscriber, 2);
    ASSERT_EQ(messages.size(), 2U);
    EXPECT_EQ(messages[1].value<std::uint64_t>(), 2U);
    publisher.close();
    EXPECT_EQ(publisher.stats().published, 2U);
}

// No task of the user fits, and a user with an own loop calls again only when the descriptor is
// readable.
TEST_F(BusyFrontDoor, AQueueReaderContinuesByItsDescriptorWhileTheContextIsFull) {
    constexpr std::size_t count = 200;
    Publisher publisher{any_port};
    const Context context = with_limit(2);
    Subscriber::Options options = quick();
    options.context = context;
    options.queue_limit_messages = 4;
    Subscriber subscriber{publisher.address(), options};
    subscribe(subscriber, FidSet{{1, 1}});
    for (std::uint64_t n = 0; n < count; ++n) {
        publisher.publish_value(1, n);
        if (n == 4) wait_until([&] { return subscriber.stats().messages >= 4; });
    }
    hold_up(context); // now the queue is full
    while (context.post([] {})) {
    }
    std::size_t taken = 0;
    const auto take_all = [&] {
        while (subscriber.receive(0ms))
            ++taken;
    };
    take_all();
    EXPECT_LT(taken, count);
    go_on.set_value();
    pollfd watched{.fd = subscriber.pollable_fd(), .events = POLLIN, .revents = 0};
    while (taken < count && ::poll(&watched, 1, 60'000) == 1)
        take_all();
    EXPECT_EQ(taken, count);
}

TEST_F(BusyFrontDoor, ClosesOnItsOwnThreadAlthoughTheContextIsFull) {
    const Context context = with_limit(2);
    Publisher publisher{any_port, {.context = context}};
    ASSERT_TRUE(context.post([&] {
        while (context.post([] {})) {
        }
        publisher.close();
    }));
    publisher.close();
    EXPECT_TRUE(publisher.is_closed());
}

TEST_F(BusyFrontDoor, AContextAcceptsExactlyTheLimitOfTasksRepeatedly) {
    std::atomic<int> ran{0};
    const Context context = with_limit(3);
    Publisher publisher{any_port, {.context = context}};
    hold_up(context);
    for (int i = 0; i < 3; ++i)
        EXPECT_TRUE(context.post([&] { ++ran; }));
    EXPECT_FALSE(context.post([&] { ++ran; }));
    EXPECT_EQ(publisher.try_publish(1, ""), Status::no_subscribers) << "none of these tasks";
    go_on.set_value();
    wait_until([&] { return ran >= 3 && publisher.stats().published == 1; });
    for (int i = 0; i < 10; ++i) {
        ASSERT_TRUE(context.post([&] { ++ran; }));
        wait_until([&] { return ran >= 4 + i; });
    }
    EXPECT_EQ(ran, 13);
    EXPECT_THROW(with_limit(0), std::invalid_argument);
}

TEST_F(BusyFrontDoor, ARangeThatEndsBeforeItBeginsIsRefusedInTheCall) {
    Publisher publisher{any_port};
    Subscriber subscriber{publisher.address(), quick()};
    EXPECT_THROW(subscriber.subscribe({2, 1}), std::invalid_argument);
    subscribe(subscriber, FidSet{{1, 1}});
}

// Its tasks may still wait when it is destroyed.
TEST_F(BusyFrontDoor, MayBeDestroyedOnItsOwnThread) {
    Context context;
    std::optional<Publisher> publisher;
    publisher.emplace(any_port, Publisher::Options{.context = context});
    std::optional<Subscriber> subscriber;
    Subscriber::Options options = quick();
    options.context = context;
    subscriber.emplace(publisher->address(), options);
    subscribe(*subscriber, FidSet{{1, 1}});
    context.run([&] {
        static_cast<void>(publisher->try_publish(1, "a text"));
        subscriber->subscribe(2);
        subscriber.reset();
        publisher.reset();
    });
    context.run([] {});
}

} // namespace
} // namespace netio::front_door_busy_test
