// SPDX-License-Identifier: Apache-2.0
#pragma once

// netio::Publisher and netio::Subscriber over tcp.

#include "pubsub/pubsub.hpp"
#include "tests/support/log_lines.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <span>
#include <thread>
#include <vector>

namespace netio::front_door_test {

using namespace std::chrono_literals;
using netio::test::LogLines;

inline constexpr auto deadline = 60s; // far longer than any operation here takes
inline constexpr const char* any_port = "127.0.0.1:0";

class FrontDoor : public testing::Test {
  protected:
    LogLines lines;
};

inline Subscriber::Options quick() {
    Subscriber::Options options;
    options.socket.retry_interval = 1ms;
    options.socket.retry_limit = 10ms;
    return options;
}

// Waits until the condition holds.
template <typename Holds>
void wait_until(Holds holds) {
    while (!holds())
        std::this_thread::yield();
}

inline void subscribe(Subscriber& subscriber, const FidSet& fids) {
    subscriber.subscribe(fids);
    ASSERT_TRUE(subscriber.wait_until_subscribed(fids, deadline));
}

inline std::uint64_t number_of(std::span<const std::byte> message) {
    std::uint64_t number = 0;
    std::memcpy(&number, message.data(), sizeof number);
    return number;
}

// Waits until this many have arrived, or no more arrive.
inline std::vector<OwnedMessage> take(Subscriber& subscriber, std::size_t count) {
    std::vector<OwnedMessage> messages;
    while (messages.size() < count) {
        auto next = subscriber.receive(deadline);
        if (!next) break;
        messages.push_back(*std::move(next));
    }
    return messages;
}

} // namespace netio::front_door_test
