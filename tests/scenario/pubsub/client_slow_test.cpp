// SPDX-License-Identifier: Apache-2.0

// A client whose queue is not read, with each policy that blocks publishers for a while or not at
// all.

#include "tests/scenario/pubsub/clients.hpp"

#include <gmock/gmock.h>

#include <atomic>
#include <map>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace netio::pubsub::test::client_slow_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Client::Options with_small_queue(const Client& publisher, const Client::WhenFull& when_full) {
    Client::Options options = subscribing(publisher);
    options.queue_messages = 4;
    options.when_full = when_full;
    return options;
}

TEST(SlowClient, ThatWantsTheNewestHasTheLastOfEachFidWhenItReadsAgain) {
    constexpr std::uint64_t count = 100;
    Client publisher{publishing()};
    Client client{with_small_queue(publisher, SlowPolicy::newest)};
    ASSERT_EQ(client.subscribe({range(1, 2)}, {}, deadline), Answer::accepted);
    for (std::uint64_t n = 0; n < count; ++n)
        for (const Fid fid : {Fid{1}, Fid{2}})
            publish(publisher, fid, n);
    wait_until([&] { return client.counters().messages == 2 * count; });
    // No message follows: conflated messages are delivered nevertheless.
    std::map<Fid, std::uint64_t> next;
    for (std::size_t taken = 0; next[Fid{1}] < count || next[Fid{2}] < count;) {
        std::vector<Message> one;
        ASSERT_EQ(client.poll(one, 1, deadline), 1U);
        next[one[0].fid] += one[0].missed;
        ASSERT_EQ(number_of(one[0].bytes), next[one[0].fid]++);
        ASSERT_LE(++taken, 6U) << "as many as fitted, and the last of each fid";
    }
    EXPECT_EQ(client.counters().dropped, 2 * count - 6);
    publish(publisher, Fid{1}, count);
    const std::vector<Message> one = take(client, 1);
    ASSERT_EQ(one.size(), 1U);
    EXPECT_EQ(one[0].missed, 0U);
}

TEST(SlowClient, ThatIsToDisconnectBlocksItsPublishersForThatTime) {
    Client publisher{publishing()};
    Client client{with_small_queue(publisher, {SlowPolicy::disconnect, 1ms})};
    ASSERT_EQ(client.subscribe({range(1, 1)}, {}, deadline), Answer::accepted);
    std::future<Answer> open = client.subscribe({range(1, 1)});
    for (std::uint64_t n = 0; client.counters().disconnected == 0; ++n)
        publish(publisher, Fid{1}, n);
    EXPECT_EQ(open.wait_for(deadline), std::future_status::ready) << "in any case";
    EXPECT_EQ(client.subscribe({range(2, 2)}, {}, deadline), Answer::closed);
    EXPECT_GE(take(client, 4).size(), 4U) << "what had arrived is there";
    for (std::uint64_t n = 0; n < 100; ++n)
        publish(publisher, Fid{1}, n);
    publisher.close();
    client.close();
    EXPECT_EQ(client.counters().disconnected, 1U);
}

TEST(SlowClient, ThatIsToDisconnectAndReadsLosesNothing) {
    Client publisher{publishing()};
    Client client{with_small_queue(publisher, {SlowPolicy::disconnect, deadline})};
    ASSERT_EQ(client.subscribe({range(1, 1)}, {}, deadline), Answer::accepted);
    std::thread source{[&] {
        for (std::uint64_t n = 0; n < 1000; ++n)
            publish(publisher, Fid{1}, n);
    }};
    const std::vector<Message> messages = take(client, 1000);
    source.join();
    ASSERT_EQ(messages.size(), 1000U);
    for (std::uint64_t n = 0; n < 1000; ++n)
        ASSERT_EQ(number_of(messages[n].bytes), n);
    EXPECT_EQ(client.counters().disconnected, 0U);
}

// Fid 1 is not read, and is published as fast as accepted.
TEST(SlowClient, ThatBlocksAFidBlocksNoOther) {
    constexpr std::uint64_t count = 1000;
    Client publisher{publishing()};
    Client stopped{with_small_queue(publisher, SlowPolicy::block)};
    Client reader{subscribing(publisher)};
    ASSERT_EQ(stopped.subscribe({range(1, 1)}, {}, deadline), Answer::accepted);
    ASSERT_EQ(reader.subscribe({range(2, 2)}, {}, deadline), Answer::accepted);
    std::atomic<bool> done{false};
    std::thread flood{[&] {
        const std::vector<std::byte> message(std::size_t{64} << 10);
        while (!done)
            if (publisher.publish(Fid{1}, message) != Status::ok) std::this_thread::yield();
    }};
    wait_until([&] { return publisher.publish(Fid{1}, {}) == Status::again; });
    for (std::uint64_t n = 0; n < count; ++n)
        publish(publisher, Fid{2}, n);
    const std::vector<Message> messages = take(reader, count);
    done = true;
    flood.join();
    ASSERT_EQ(messages.size(), count);
    for (std::uint64_t n = 0; n < count; ++n)
        ASSERT_EQ(number_of(messages[n].bytes), n);
}

// Nothing is read, and more is published than all buffers on the path hold.
TEST(SlowClient, ThatBlocksItsPublisherForeverDoesNotDelayItsOwnEnd) {
    constexpr std::uint64_t count = 768;
    std::vector<std::string> events;
    Client::Options options = publishing();
    options.publish->publisher.close_timeout = 50ms;
    options.publish_queue_bytes = std::size_t{128} << 20;
    options.on_event = [&](const std::string& event) { events.push_back(event); };
    Client publisher{options};
    Client::Options small = with_small_queue(publisher, SlowPolicy::block);
    small.socket.session.window_limit = 0;
    Client client{small};
    ASSERT_EQ(client.subscribe({range(1, 1)}, {}, deadline), Answer::accepted);
    const std::vector<std::byte> message(std::size_t{64} << 10);
    for (std::uint64_t n = 0; n < count; ++n)
        ASSERT_EQ(publisher.publish(Fid{1}, message), Status::ok);
    publisher.close();
    const Client::Counters counters = publisher.counters();
    EXPECT_GT(counters.unpublished, 0U);
    EXPECT_EQ(counters.published + counters.unpublished, count);
    EXPECT_THAT(events, ElementsAre(HasSubstr("not published: ")));
}

} // namespace
} // namespace netio::pubsub::test::client_slow_test
