// SPDX-License-Identifier: Apache-2.0
#pragma once

// Clients over tcp that publish to others and subscribe to them.

#include "pubsub/client/client.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <span>
#include <thread>
#include <utility>
#include <vector>

namespace netio::pubsub::test {

using namespace std::chrono_literals;
using Answer = Client::Answer;

inline constexpr auto deadline = 60s; // far longer than any operation here takes

inline FidRange range(std::uint64_t first, std::uint64_t last) {
    return {.first = Fid{first}, .last = Fid{last}};
}

inline Client::Options publishing(Address at = {.host = "127.0.0.1", .port = 0}) {
    Client::Options options;
    options.publish.emplace();
    options.publish->publisher.listen = {std::move(at)};
    return options;
}

inline Client::Options subscribing(const Client& publisher) {
    Client::Options options;
    options.publishers = {publisher.endpoints().front().address};
    options.socket.retry_interval = 1ms;
    return options;
}

inline void publish(Client& client, Fid fid, std::uint64_t number) {
    const std::span<const std::byte> message{reinterpret_cast<const std::byte*>(&number), 8};
    Status status = Status::again;
    while ((status = client.publish(fid, message)) == Status::again)
        std::this_thread::yield();
    // no_subscribers: the subscription was accepted just now or has not arrived yet.
    ASSERT_THAT(status, testing::AnyOf(Status::ok, Status::no_subscribers));
}

inline std::uint64_t number_of(std::span<const std::byte> message) {
    std::uint64_t number = 0;
    std::memcpy(&number, message.data(), sizeof number);
    return number;
}

// Waits until this many have arrived, or no more arrive.
inline std::vector<Message> take(Client& client, std::size_t count) {
    std::vector<Message> messages;
    while (messages.size() < count && client.poll(messages, 100, deadline) > 0) {
    }
    return messages;
}

// Waits until the condition holds; the deadline is long enough for every machine.
template <typename Has>
void wait_until(Has has) {
    while (!has())
        std::this_thread::yield();
}

} // namespace netio::pubsub::test
