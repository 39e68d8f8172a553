// SPDX-License-Identifier: Apache-2.0
#pragma once

// A message as a subscriber receives it, and the types that a publisher accepts as a message.

#include "netio/base/export.hpp"
#include "netio/base/kept_bytes.hpp"
#include "netio/base/status.hpp"
#include "pubsub/core/fid.hpp"
#include "pubsub/core/time_stamp.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <optional>
#include <ranges>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace netio::inline v0_3 {

namespace message_detail {

template <typename Type>
inline constexpr bool is_byte_like =
    std::is_same_v<Type, std::byte> || std::is_same_v<Type, char> ||
    std::is_same_v<Type, signed char> || std::is_same_v<Type, unsigned char> ||
    std::is_same_v<Type, char8_t>;

// A type that refers to memory elsewhere, which would not be sent.
template <typename Type>
inline constexpr bool refers = std::is_pointer_v<Type> || std::is_member_pointer_v<Type> ||
                               std::is_null_pointer_v<Type> || std::ranges::view<Type>;
template <typename Element>
inline constexpr bool refers<std::initializer_list<Element>> = true;
template <typename Object>
inline constexpr bool refers<std::reference_wrapper<Object>> = true;
template <typename Element, std::size_t Size>
inline constexpr bool refers<std::span<Element, Size>> = true;
template <typename Character, typename Traits>
inline constexpr bool refers<std::basic_string_view<Character, Traits>> = true;
template <typename Element, std::size_t Size>
inline constexpr bool refers<std::array<Element, Size>> = refers<Element>;

} // namespace message_detail

// Bytes or characters that are contiguous in memory.
template <typename Range>
concept MessageBytes =
    std::ranges::contiguous_range<const Range> && std::ranges::sized_range<const Range> &&
    message_detail::is_byte_like<std::ranges::range_value_t<const Range>>;

// A type whose memory may be sent as a message.
template <typename Value>
concept MessageValue =
    std::is_object_v<Value> && std::is_trivially_copyable_v<Value> && !std::is_array_v<Value> &&
    !message_detail::refers<Value>;

template <MessageBytes Range>
std::span<const std::byte> as_message_bytes(const Range& range) noexcept {
    return std::as_bytes(std::span{std::ranges::data(range), std::ranges::size(range)});
}
// A string literal, without its terminating null character.
template <std::size_t Size>
std::span<const std::byte> as_message_bytes(const char (&text)[Size]) noexcept {
    const std::size_t size = text[Size - 1] == '\0' ? Size - 1 : Size;
    return std::as_bytes(std::span{static_cast<const char*>(text), size});
}

// The interface through which Message::keep() keeps the bytes of a message; implemented by the
// object that delivers the message.
class MessageKeeper {
  public:
    virtual KeptBytes keep(std::span<const std::byte> message) const = 0;

  protected:
    ~MessageKeeper() = default;
};

class KeptMessage;

// A received message. It refers to memory of the subscriber, and is valid until the next message is
// taken from the subscriber. keep() makes it valid for longer, usually without a copy;
// OwnedMessage is an independent copy.
class Message {
  public:
    Message() = default;
    Message(Fid fid, std::span<const std::byte> bytes, std::uint8_t status,
            std::uint64_t lost_before, const MessageKeeper* keeper = nullptr,
            StampFormat stamps = {}) noexcept
        : fid_{fid}, lost_before_{lost_before}, bytes_{bytes}, keeper_{keeper}, status_{status},
          stamps_{stamps} {}

    Fid fid() const noexcept { return fid_; }
    std::span<const std::byte> bytes() const noexcept { return bytes_; }
    std::size_t size() const noexcept { return bytes_.size(); }
    bool empty() const noexcept { return bytes_.empty(); }
    std::string_view text() const noexcept {
        return {reinterpret_cast<const char*>(bytes_.data()), bytes_.size()};
    }
    // The value that was passed to publish_value(). Throws Error if the message has another size.
    template <MessageValue Value>
    Value value() const {
        if (size() != sizeof(Value)) {
            throw Error{Status::too_large, "a message of fid " + to_string(fid_) + " has " +
                                               std::to_string(size()) + " bytes; the value has " +
                                               std::to_string(sizeof(Value))};
        }
        Value value;
        std::memcpy(&value, bytes_.data(), sizeof value);
        return value;
    }
    // The byte that the publisher has set for the message.
    std::uint8_t status() const noexcept { return status_; }
    // The number of messages of this fid that were published after the previous one and did not
    // arrive: a policy dropped them because the subscriber was too slow, or it was not connected.
    std::uint64_t lost_before() const noexcept { return lost_before_; }
    // The time of publication; nullopt if the publisher sent none (option time_stamps).
    std::optional<TimeStamp> time() const noexcept { return time_stamp::of(bytes_, stamps_); }
    // The format of all time stamps of its connection. If the connection has time stamps, the 8
    // bytes of memory before bytes() are the time stamp of this message.
    StampFormat stamps() const noexcept { return stamps_; }
    // Returns the message with memory that stays valid after this object. Call it on the thread
    // that may use this message.
    KeptMessage keep() const;

  private:
    Fid fid_{};
    std::uint64_t lost_before_ = 0;
    std::span<const std::byte> bytes_;
    const MessageKeeper* keeper_ = nullptr; // null: keep() makes a copy
    std::uint8_t status_ = 0;
    StampFormat stamps_;
};

// A message that is valid as long as this object or a copy of it exists, on any thread, also after
// the subscriber, its loop and its connection are gone. Its memory counts against the
// keep_limit_bytes of the connection until then.
class KeptMessage {
  public:
    KeptMessage() = default;
    // `bytes`: those of the message, after its time stamp if it has one.
    KeptMessage(const Message& message, KeptBytes bytes) noexcept
        : bytes_{std::move(bytes)},
          message_{message.fid(),    bytes_.bytes().subspan(time_stamp::bytes_of(message.stamps())),
                   message.status(), message.lost_before(),
                   nullptr,          message.stamps()} {}

    const Message& view() const noexcept { return message_; }
    Fid fid() const noexcept { return message_.fid(); }
    std::span<const std::byte> bytes() const noexcept { return message_.bytes(); }
    std::size_t size() const noexcept { return message_.size(); }
    bool empty() const noexcept { return message_.empty(); }
    std::string_view text() const noexcept { return message_.text(); }
    template <MessageValue Value>
    Value value() const {
        return message_.value<Value>();
    }
    std::uint8_t status() const noexcept { return message_.status(); }
    std::uint64_t lost_before() const noexcept { return message_.lost_before(); }
    std::optional<TimeStamp> time() const noexcept { return message_.time(); }

  private:
    KeptBytes bytes_; // with the time stamp
    Message message_;
};

inline KeptMessage Message::keep() const {
    const std::span<const std::byte> all = time_stamp::with_stamp(bytes_, stamps_);
    return {*this, keeper_ != nullptr ? keeper_->keep(all) : KeptBytes::copy_of(all)};
}

// A message that is passed to the handler of a socket: valid during the call.
using MessageView = Message;

// A copy of a message.
class OwnedMessage {
  public:
    OwnedMessage() = default;
    OwnedMessage(const Message& message) // NOLINT: converts
        : fid_{message.fid()}, lost_before_{message.lost_before()}, status_{message.status()},
          stamps_{message.stamps()} {
        const auto all = time_stamp::with_stamp(message.bytes(), stamps_);
        bytes_.assign(all.begin(), all.end());
    }

    // Valid while this copy exists and is unchanged.
    Message view() const noexcept {
        return {fid_, bytes(), status_, lost_before_, nullptr, stamps_};
    }
    Fid fid() const noexcept { return fid_; }
    std::span<const std::byte> bytes() const noexcept {
        return std::span{bytes_}.subspan(time_stamp::bytes_of(stamps_));
    }
    std::size_t size() const noexcept { return bytes().size(); }
    bool empty() const noexcept { return bytes().empty(); }
    std::string_view text() const noexcept { return view().text(); }
    template <MessageValue Value>
    Value value() const {
        return view().value<Value>();
    }
    std::uint8_t status() const noexcept { return status_; }
    std::uint64_t lost_before() const noexcept { return lost_before_; }
    std::optional<TimeStamp> time() const noexcept { return view().time(); }

  private:
    Fid fid_{};
    std::uint64_t lost_before_ = 0;
    std::vector<std::byte> bytes_; // with the time stamp
    std::uint8_t status_ = 0;
    StampFormat stamps_;
};

} // namespace netio::inline v0_3
