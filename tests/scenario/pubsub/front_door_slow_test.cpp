// SPDX-License-Identifier: Apache-2.0

// A subscriber whose queue is not read, with each policy that blocks publishers for a while or not
// at all.

#include "tests/scenario/pubsub/front_door.hpp"

#include <atomic>
#include <cstring>
#include <map>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace netio::front_door_slow_test {
namespace {

using namespace front_door_test;
using testing::ElementsAre;
using testing::HasSubstr;

class SlowReader : public FrontDoor {
  protected:
    static std::uint64_t first_word(const OwnedMessage& message) {
        std::uint64_t word = 0;
        std::memcpy(&word, message.bytes().data(), sizeof word);
        return word;
    }
    static Subscriber::Options with_small_queue(SlowPolicy when_full) {
        Subscriber::Options options = quick();
        options.queue_limit_messages = 4;
        options.when_full = when_full;
        return options;
    }
};

TEST_F(SlowReader, ThatWantsTheNewestHasTheLastOfEachFidWhenItReadsAgain) {
    constexpr std::uint64_t count = 100;
    Publisher publisher{any_port};
    Subscriber subscriber{publisher.address(), with_small_queue(SlowPolicy::newest)};
    subscribe(subscriber, FidSet{{1, 2}});
    for (std::uint64_t n = 0; n < count; ++n)
        for (const Fid fid : {Fid{1}, Fid{2}})
            publisher.publish_value(fid, n);
    wait_until([&] { return subscriber.stats().messages == 2 * count; });
    // No message follows: conflated messages are delivered nevertheless.
    std::map<Fid, std::uint64_t> next;
    for (std::size_t taken = 0; next[Fid{1}] < count || next[Fid{2}] < count;) {
        const auto one = subscriber.receive(deadline);
        ASSERT_TRUE(one);
        next[one->fid()] += one->lost_before();
        ASSERT_EQ(one->value<std::uint64_t>(), next[one->fid()]++);
        ASSERT_LE(++taken, 6U) << "as many as fitted, and the last of each fid";
    }
    EXPECT_EQ(subscriber.stats().dropped, 2 * count - 6);
    publisher.publish_value(1, count);
    const std::vector<OwnedMessage> one = take(subscriber, 1);
    ASSERT_EQ(one.size(), 1U);
    EXPECT_EQ(one[0].lost_before(), 0U);
}

// Large messages wait in the receive buffers of the connection; the queue is what is limited, and
// not the connection: its publisher never waits.
TEST_F(SlowReader, ThatDropsLargeMessagesDoesNotBlockItsPublisher) {
    constexpr std::uint64_t count = 1500; // more than keep_limit_bytes
    Publisher publisher{any_port};
    Subscriber subscriber{publisher.address(), with_small_queue(SlowPolicy::drop)};
    subscribe(subscriber, FidSet{{1, 1}});
    std::vector<std::uint64_t> message(8192);
    for (message[0] = 0; message[0] < count; ++message[0])
        ASSERT_TRUE(publisher.publish(1, std::as_bytes(std::span{message})));
    wait_until([&] { return subscriber.stats().messages == count; });
    std::uint64_t taken = 0;
    while (const auto one = subscriber.receive(0ms)) {
        EXPECT_EQ(first_word(*one), taken++);
        EXPECT_EQ(one->lost_before(), 0U);
    }
    EXPECT_GE(taken, 4U);
    EXPECT_EQ(subscriber.stats().dropped, count - taken);
    publisher.publish(1, std::as_bytes(std::span{message}));
    const auto last = subscriber.receive(deadline);
    ASSERT_TRUE(last);
    EXPECT_EQ(first_word(*last), count);
    EXPECT_EQ(last->lost_before(), count - taken);
}

// In the queue, conflated beside it, lent, and copied or kept by the reader.
TEST_F(SlowReader, HasTheTimeOfEachMessage) {
    for (const SlowPolicy policy : {SlowPolicy::block, SlowPolicy::newest}) {
        Publisher publisher{any_port, {.time_stamps = StampClock::own}};
        Subscriber::Options options = with_small_queue(policy);
        options.queue_limit_messages = policy == SlowPolicy::block ? 100 : 4;
        Subscriber subscriber{publisher.address(), options};
        subscribe(subscriber, FidSet{{1, 3}});
        for (std::uint64_t i = 0; i < 30; ++i) {
            std::vector<std::uint64_t> message(i % 2 == 0 ? 5 : 2048); // 40 bytes, 16 KiB
            message[0] = i;
            publisher.publish_at(-1 - static_cast<std::int64_t>(i), 1 + i % 3,
                                 std::as_bytes(std::span{message}));
        }
        wait_until([&] { return subscriber.stats().messages == 30; });
        publisher.close();
        std::vector<KeptMessage> kept;
        std::size_t read = 0;
        while (const auto one = subscriber.receive(deadline)) {
            ++read;
            EXPECT_EQ(one->time()->time, -1 - static_cast<std::int64_t>(first_word(*one)));
            EXPECT_EQ(one->size(), first_word(*one) % 2 == 0 ? 40U : 16384U);
            kept.push_back(one->view().keep());
        }
        EXPECT_EQ(read + subscriber.stats().dropped, 30U);
        EXPECT_GE(read, 3U);
        for (const KeptMessage& each : kept)
            EXPECT_EQ(each.time()->time, -1 - static_cast<std::int64_t>(number_of(each.bytes())));
    }
}

TEST_F(SlowReader, ThatIsToDisconnectBlocksItsPublishersForThatTime) {
    Publisher publisher{any_port};
    Subscriber::Options options = with_small_queue(SlowPolicy::disconnect);
    options.disconnect_after = 1ms;
    Subscriber subscriber{publisher.address(), options};
    subscribe(subscriber, FidSet{{1, 1}});
    for (std::uint64_t n = 0; !subscriber.is_closed(); ++n)
        static_cast<void>(publisher.try_publish_value(1, n));
    subscriber.subscribe(2);
    EXPECT_FALSE(subscriber.wait_until_subscribed(deadline)) << "it does not wait";
    std::size_t taken = 0;
    try {
        for (const Message& message : subscriber)
            EXPECT_EQ(message.value<std::uint64_t>(), taken++);
        ADD_FAILURE() << "it has ended in order";
    } catch (const Error& error) {
        EXPECT_THAT(error.what(), HasSubstr("queue was full for 1 ms"));
    }
    EXPECT_GE(taken, 4U) << "what had arrived is there";
    for (std::uint64_t n = 0; n < 100; ++n)
        publisher.publish_value(1, n);
}

TEST_F(SlowReader, ThatIsToDisconnectAndReadsLosesNothing) {
    Publisher publisher{any_port};
    Subscriber::Options options = with_small_queue(SlowPolicy::disconnect);
    options.disconnect_after = deadline;
    Subscriber subscriber{publisher.address(), options};
    subscribe(subscriber, FidSet{{1, 1}});
    std::thread source{[&] {
        for (std::uint64_t n = 0; n < 1000; ++n)
            publisher.publish_value(1, n);
    }};
    const std::vector<OwnedMessage> messages = take(subscriber, 1000);
    source.join();
    ASSERT_EQ(messages.size(), 1000U);
    for (std::uint64_t n = 0; n < 1000; ++n)
        ASSERT_EQ(messages[n].value<std::uint64_t>(), n);
    EXPECT_FALSE(subscriber.is_closed());
}

// Fid 1 is not read, and is published as fast as accepted.
TEST_F(SlowReader, ThatBlocksAFidBlocksNoOther) {
    constexpr std::uint64_t count = 1000;
    Publisher publisher{any_port, {.close_timeout = 50ms}};
    Subscriber stopped{publisher.address(), with_small_queue(SlowPolicy::block)};
    Subscriber reader{publisher.address(), quick()};
    subscribe(stopped, FidSet{{1, 1}});
    subscribe(reader, FidSet{{2, 2}});
    std::atomic<bool> done{false};
    std::thread flood{[&] {
        const std::vector<std::byte> message(std::size_t{64} << 10);
        while (!done)
            if (publisher.try_publish(1, message) != Status::ok) std::this_thread::yield();
    }};
    wait_until([&] { return publisher.try_publish(1, "") == Status::again; });
    for (std::uint64_t n = 0; n < count; ++n)
        publisher.publish_value(2, n);
    const std::vector<OwnedMessage> messages = take(reader, count);
    done = true;
    flood.join();
    ASSERT_EQ(messages.size(), count);
    for (std::uint64_t n = 0; n < count; ++n)
        ASSERT_EQ(messages[n].value<std::uint64_t>(), n);
}

// Nothing is read, and more is published than all buffers on the path hold.
TEST_F(SlowReader, ThatBlocksItsPublisherForeverDoesNotDelayItsOwnEnd) {
    constexpr std::uint64_t enough = 512;
    Publisher publisher{any_port,
                        {.queue_limit_bytes = std::size_t{128} << 20, .close_timeout = 50ms}};
    Subscriber::Options small = with_small_queue(SlowPolicy::block);
    small.socket.session.window_limit = 0;
    Subscriber subscriber{publisher.address(), small};
    subscribe(subscriber, FidSet{{1, 1}});
    const std::vector<std::byte> message(std::size_t{64} << 10);
    std::uint64_t count = 0;
    while (count < 768 && publisher.try_publish(1, message) == Status::ok)
        ++count;
    ASSERT_GE(count, enough) << "more than all buffers on the path hold";
    publisher.close();
    const Publisher::Stats stats = publisher.stats();
    EXPECT_GT(stats.unpublished, 0U);
    EXPECT_EQ(stats.published + stats.unpublished, count);
    EXPECT_EQ(lines.count("messages were not published"), 1U);
}

} // namespace
} // namespace netio::front_door_slow_test
