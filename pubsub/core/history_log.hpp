// SPDX-License-Identifier: Apache-2.0
#pragma once

// The messages that a publisher keeps for late subscribers: of all fids, in the order of their
// publication, in one ring of memory. The oldest are discarded first, so what is kept is always the
// end of the stream. No I/O, no clock.
//
//     while (!log.has_room(size)) log.drop_front(); // for each: who has not been sent it?
//     log.append({.fid = fid, .status = status, .number = number, .time = now}, parts);

#include "netio/base/time.hpp"
#include "netio/coalescing/page.hpp"
#include "pubsub/core/fid_map.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

namespace netio::pubsub::inline v0_3 {

class HistoryLog {
  public:
    struct Limits {
        std::size_t bytes = 0; // of the memory
        Duration time{};       // of the age of a message; 0: none
    };
    explicit HistoryLog(const Limits& limits);

    // The memory that a message needs.
    static constexpr std::size_t overhead_bytes = 32;
    static constexpr std::size_t bytes_for(std::size_t message_bytes) noexcept {
        return overhead_bytes + (message_bytes + 7) / 8 * 8;
    }

    // The place of a message in the log: the sum of the memory of all earlier ones. Places ascend
    // for ever, and each is valid from begin() to end().
    using Place = std::uint64_t;
    Place begin() const noexcept { return begin_; }
    Place end() const noexcept { return end_; }

    struct Head {
        Fid fid{};
        std::uint8_t status = 0;
        std::uint64_t number = 0; // the messages of the fid before it
        TimePoint time{};         // of its publication
    };
    struct Message : Head {
        // The bytes, in two parts if they cross the end of the memory.
        std::array<std::span<const std::byte>, 2> parts;
        std::size_t bytes = 0;
        Place next = 0;
    };
    // Valid until the message is discarded.
    Message at(Place place) const noexcept;

    // Whether there is free memory for a message of this size.
    bool has_room(std::size_t message_bytes) const noexcept {
        return bytes() + bytes_for(message_bytes) <= limits_.bytes;
    }
    // False: the message is larger than the limit.
    bool can_keep(std::size_t message_bytes) const noexcept {
        return bytes_for(message_bytes) <= limits_.bytes;
    }
    // The oldest message is discarded.
    void drop_front();
    // Whether the oldest message is older than the limit of time.
    bool is_front_expired(TimePoint now) const noexcept {
        return limits_.time > Duration::zero() && begin_ < end_ &&
               at(begin_).time < now - limits_.time;
    }
    // There is room for it.
    void append(const Head& head, MessageParts parts);
    // This message is not kept, and no earlier one is.
    void skip(const Head& head) { first_[head.fid] = head.number + 1; }

    // The number of the oldest message of a fid that is kept, or of the next one if none is.
    std::uint64_t first_of(Fid fid) const noexcept {
        const std::uint64_t* const first = first_.find(fid);
        return first != nullptr ? *first : 0;
    }
    // In use.
    std::size_t bytes() const noexcept { return static_cast<std::size_t>(end_ - begin_); }
    std::size_t messages() const noexcept { return messages_; }
    const Limits& limits() const noexcept { return limits_; }

  private:
    void write(Place place, std::span<const std::byte> bytes) noexcept;
    void read(Place place, std::span<std::byte> out) const noexcept;
    std::size_t offset(Place place) const noexcept {
        return static_cast<std::size_t>(place % limits_.bytes);
    }

    Limits limits_;
    std::unique_ptr<std::byte[]> memory_; // pages of it that were never used cost nothing
    Place begin_ = 0;
    Place end_ = 0;
    std::size_t messages_ = 0;
    FidMap<std::uint64_t> first_; // of fids of which messages were discarded
};

} // namespace netio::pubsub::inline v0_3
