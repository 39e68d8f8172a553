// SPDX-License-Identifier: Apache-2.0

// The types that a publisher accepts as a message, and what a subscriber gets. Uses that must not
// compile are checked here if a concept decides, otherwise by tests/tidy/refused_uses.py.

#include "pubsub/client/publisher.hpp"
#include "pubsub/client/subscriber.hpp"
#include "pubsub/core/message.hpp"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace netio::message_test {
namespace {

struct Reading {
    std::uint32_t channel;
    float value;
};
enum class Color : std::uint8_t { red };

static_assert(MessageValue<int> && MessageValue<double> && MessageValue<Color>);
static_assert(MessageValue<Reading> && MessageValue<std::array<float, 4>> && MessageValue<Fid>);
static_assert(!MessageValue<int*> && !MessageValue<const char*> && !MessageValue<void (*)()>);
static_assert(!MessageValue<std::nullptr_t> && !MessageValue<int Reading::*>);
static_assert(!MessageValue<char[4]> && !MessageValue<int[2]>);
static_assert(!MessageValue<std::span<const std::byte>> && !MessageValue<std::span<int, 3>>);
static_assert(!MessageValue<std::string_view> && !MessageValue<std::ranges::iota_view<int>>);
static_assert(!MessageValue<std::initializer_list<int>>);
static_assert(!MessageValue<std::reference_wrapper<int>>);
static_assert(!MessageValue<std::array<int*, 2>>);
static_assert(!MessageValue<std::string> && !MessageValue<std::vector<int>>);
static_assert(!MessageValue<std::unique_ptr<int>>);

static_assert(MessageBytes<std::string> && MessageBytes<std::vector<std::uint8_t>>);
static_assert(MessageBytes<std::span<const std::byte>> && MessageBytes<std::array<char, 3>>);
static_assert(!MessageBytes<std::vector<int>> && !MessageBytes<std::vector<bool>>);

template <typename Argument>
constexpr bool publishes = requires(Publisher& publisher, Argument&& message) {
    publisher.publish(1, std::forward<Argument>(message));
    { publisher.try_publish(1, std::forward<Argument>(message)) } -> std::same_as<Status>;
};
static_assert(publishes<const std::string&> && publishes<std::string> && publishes<const char*>);
static_assert(publishes<const char (&)[6]> && publishes<char (&)[6]>);
static_assert(publishes<std::vector<std::byte>&> && publishes<std::span<std::byte>>);
static_assert(publishes<std::span<const std::byte>&> && publishes<std::string_view>);
static_assert(!publishes<int> && !publishes<std::vector<float>> && !publishes<Reading>);

template <typename Argument>
constexpr bool subscribes = requires(Subscriber& subscriber, Argument argument) {
    subscriber.subscribe(argument);
    subscriber.unsubscribe(argument);
};
static_assert(subscribes<int> && subscribes<std::uint64_t> && subscribes<Fid>);
static_assert(subscribes<FidRange> && subscribes<FidSet>);
static_assert(!subscribes<std::vector<FidRange>> && !subscribes<std::vector<Fid>>);
static_assert(!subscribes<std::initializer_list<FidRange>> && !subscribes<double>);
static_assert(!std::is_copy_constructible_v<Publisher> &&
              !std::is_copy_constructible_v<Subscriber>);
static_assert(std::is_same_v<std::iter_value_t<Subscriber::Iterator>, Message>);
static_assert(std::ranges::input_range<Subscriber&>);

TEST(MessageBytes, ALiteralGoesWithoutItsEndAndABufferAsAWhole) {
    EXPECT_EQ(as_message_bytes("text").size(), 4U);
    EXPECT_EQ(as_message_bytes(std::string{"a\0b", 3}).size(), 3U);
    const std::vector<std::uint8_t> bytes{1, 2, 3};
    EXPECT_EQ(as_message_bytes(bytes).data(), std::as_bytes(std::span{bytes}).data());
}

TEST(Message, GivesTheValueThatWasPublished) {
    const Reading reading{.channel = 3, .value = 1.5F};
    const Message message{7, std::as_bytes(std::span{&reading, 1}), 9, 2};
    EXPECT_EQ(message.fid(), 7);
    EXPECT_EQ(message.status(), 9);
    EXPECT_EQ(message.lost_before(), 2U);
    EXPECT_EQ(message.value<Reading>().channel, 3U);
    // The sizes differ.
    EXPECT_THROW(static_cast<void>(message.value<std::array<char, 16>>()), Error);
    EXPECT_THROW(static_cast<void>(message.value<char>()), Error);
}

TEST(OwnedMessage, LastsLongerThanTheMessageItCopies) {
    std::optional<std::string> memory{"a text"};
    const Message message{1, std::as_bytes(std::span{*memory}), 5, 4};
    const OwnedMessage copy = message;
    memory->assign("other!");
    EXPECT_EQ(message.text(), "other!");
    memory.reset();
    EXPECT_EQ(copy.text(), "a text");
    const OwnedMessage moved = OwnedMessage{copy};
    EXPECT_EQ(moved.view().text(), "a text");
    EXPECT_EQ(moved.lost_before(), 4U);
    EXPECT_EQ(moved.status(), 5);
    EXPECT_EQ(moved.fid(), 1);
}

} // namespace
} // namespace netio::message_test
