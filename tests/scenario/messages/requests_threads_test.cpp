// SPDX-License-Identifier: Apache-2.0

// Requests from many threads, and responders on many threads, over tcp.

#include "netio/messages/requester.hpp"
#include "netio/messages/responder.hpp"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <string>
#include <thread>
#include <vector>

namespace netio::test::requests_threads_test {
namespace {

using namespace std::chrono_literals;

AddressList address_of(const Responder& responder) {
    return AddressList{responder.endpoints().front().address};
}

TEST(RequestThreads, ManyRequestersAndManyRepliers) {
    Responder responder{"127.0.0.1:0"};
    Requester requester{address_of(responder)};
    std::vector<std::thread> repliers;
    for (int i = 0; i < 3; ++i) {
        repliers.emplace_back([&] {
            for (Request& request : responder)
                request.reply("re: " + std::string{request.text()});
        });
    }
    std::atomic<int> right{0};
    std::vector<std::thread> requesters;
    for (int thread = 0; thread < 4; ++thread) {
        requesters.emplace_back([&, thread] {
            for (int i = 0; i < 200; ++i) {
                const std::string question = std::to_string(thread) + "/" + std::to_string(i);
                if (requester.request(question).text() == "re: " + question) ++right;
            }
        });
    }
    for (std::thread& thread : requesters)
        thread.join();
    responder.close();
    for (std::thread& thread : repliers)
        thread.join();
    EXPECT_EQ(right, 800);
    EXPECT_EQ(requester.stats().replied, 800U);
}

TEST(RequestThreads, ReplyWaitsForASlowRequesterAndEndsWithIt) {
    Responder responder{"127.0.0.1:0", {.reply_queue_limit_bytes = 100'000, .send_timeout = 1h}};
    Requester requester{address_of(responder), {.reply_limit_bytes = 20'000'000}};
    Reply reply = requester.send("everything");
    std::atomic<std::uint64_t> parts{0};
    std::thread replier{[&] {
        auto request = responder.receive(1h);
        const std::vector<std::byte> part(1'000'000);
        // Far more than the limit of the replies that are not taken: it ends as too_large.
        while (request->reply_part(part))
            ++parts;
    }};
    ASSERT_TRUE(reply.wait_for(60s));
    while (reply.end() == RequestEnd::open)
        std::this_thread::yield();
    replier.join();
    EXPECT_EQ(reply.end(), RequestEnd::too_large);
    EXPECT_GE(parts, 20U);
    EXPECT_LE(requester.stats().reply_bytes, 20'000'000U);
}

TEST(RequestThreads, AHundredThousandAreOutstandingInBoundedMemory) {
    constexpr std::size_t count = 100'000;
    auto responder =
        std::make_unique<Responder>("127.0.0.1:0", Responder::Options{.request_limit = 3 * count});
    Requester requester{address_of(*responder)};
    std::vector<Reply> replies;
    replies.reserve(count);
    for (std::size_t i = 0; i < count; ++i)
        replies.push_back(requester.send("16 bytes of text"));
    while (responder->stats().requests < count)
        std::this_thread::yield();
    EXPECT_EQ(requester.stats().outstanding, count);
    EXPECT_EQ(requester.stats().queued_bytes, 0U);
    responder.reset();
    std::size_t ended = 0;
    for (const Reply& reply : replies)
        if (reply.wait_for(60s) && reply.end() != RequestEnd::open) ++ended;
    EXPECT_EQ(ended, count);
    const Requester::Stats stats = requester.stats();
    EXPECT_EQ(stats.failed + stats.disconnected, count);
    EXPECT_EQ(stats.outstanding, 0U);
}

TEST(RequestThreads, AWaitingCallEndsWhenItsObjectIsClosed) {
    Responder responder{"127.0.0.1:0"};
    Requester requester{address_of(responder)};
    std::atomic<bool> has_begun{false};
    std::thread asking{[&] {
        has_begun = true;
        EXPECT_THROW(static_cast<void>(requester.request("a", 1h)), Error);
    }};
    std::thread answering{[&] { EXPECT_FALSE(responder.receive(1h) && responder.receive(1h)); }};
    while (!has_begun || responder.stats().requests == 0)
        std::this_thread::yield();
    requester.close();
    responder.close();
    asking.join();
    answering.join();
}

} // namespace
} // namespace netio::test::requests_threads_test
