// SPDX-License-Identifier: Apache-2.0
#pragma once

// Requests and replies as messages (docs/wire-formats.md, "Requests"), and the table that matches
// them. No I/O, no clock, no lock.

#include "netio/base/check.hpp"
#include "netio/base/time.hpp"
#include "netio/base/wire.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace netio::inline v0_3 {

namespace requests {

// At the beginning of each message.
struct Header {
    enum class Kind : std::uint8_t {
        request = 1,
        reply = 2,
        cancel = 3,   // the requester does not want the reply any more
        no_reply = 4, // the request was given up without a reply
        failed = 5,   // a text follows: why there is no reply
    };
    std::uint64_t number = 0; // chosen by the requester, unique on its connection
    Kind kind = Kind::request;
    bool more = false; // reply: another message of this reply follows
};
inline constexpr std::size_t header_bytes = 16;
using HeaderBytes = std::array<std::byte, header_bytes>;

inline HeaderBytes encode(const Header& header) noexcept {
    HeaderBytes out{};
    wire::store(out.data(), header.number);
    wire::store(out.data() + 8, header.kind);
    out[9] = std::byte{header.more};
    return out;
}
// Returns nullopt if the message has no valid header.
inline std::optional<Header> decode(std::span<const std::byte> in) noexcept {
    if (in.size() < header_bytes || in[8] < std::byte{1} || in[8] > std::byte{5} ||
        in[9] > std::byte{1})
        return std::nullopt;
    for (std::size_t at = 10; at < header_bytes; ++at)
        if (in[at] != std::byte{0}) return std::nullopt;
    const Header header{.number = wire::load<std::uint64_t>(in.data()),
                        .kind = wire::load<Header::Kind>(in.data() + 8),
                        .more = in[9] != std::byte{0}};
    if (header.more && header.kind != Header::Kind::reply) return std::nullopt;
    return header;
}

} // namespace requests

// The open requests of a requester, each with a Value. A request is open from add() until it is
// removed, which happens once: end() and the take_ functions never return the same request twice.
// A number is not used again before 2^32 further requests have used its slot.
template <typename Value>
class RequestTable {
  public:
    // Memory grows with the largest number of open requests, up to `limit`.
    explicit RequestTable(std::size_t limit) : limit_{limit} {}

    // Returns the number of the request; nullopt if the limit is reached.
    std::optional<std::uint64_t> add(TimePoint deadline, Value value) {
        if (heap_.size() >= limit_) return std::nullopt;
        std::uint32_t slot = 0;
        if (free_.empty()) {
            slot = static_cast<std::uint32_t>(entries_.size());
            entries_.emplace_back();
        } else {
            slot = free_.back();
            free_.pop_back();
        }
        Entry& entry = entries_[slot];
        entry.deadline = deadline;
        entry.value = std::move(value);
        entry.is_sent = false;
        entry.is_open = true;
        entry.place = heap_.size();
        heap_.push_back(slot);
        rise(entry.place);
        return std::uint64_t{entry.round} << 32 | slot;
    }
    // The value of an open request; null if the request has ended.
    Value* find(std::uint64_t number) noexcept {
        Entry* const entry = entry_of(number);
        return entry != nullptr ? &entry->value : nullptr;
    }
    // Notes whether the request was passed to the connection.
    void set_sent(std::uint64_t number, bool is_sent) noexcept {
        if (Entry* const entry = entry_of(number)) entry->is_sent = is_sent;
    }
    bool is_sent(std::uint64_t number) noexcept {
        const Entry* const entry = entry_of(number);
        return entry != nullptr && entry->is_sent;
    }
    // Ends the request. Returns nullopt if it had ended before.
    std::optional<Value> end(std::uint64_t number) {
        if (entry_of(number) == nullptr) return std::nullopt;
        return remove(static_cast<std::uint32_t>(number));
    }
    // When the next request expires; nullopt: no request is open.
    std::optional<TimePoint> next_deadline() const noexcept {
        if (heap_.empty()) return std::nullopt;
        return entries_[heap_.front()].deadline;
    }
    struct Expired {
        std::uint64_t number = 0;
        bool was_sent = false;
        Value value{};
    };
    // Ends one request whose deadline has come, the earliest first.
    std::optional<Expired> take_expired(TimePoint now) {
        if (heap_.empty() || entries_[heap_.front()].deadline > now) return std::nullopt;
        const std::uint32_t slot = heap_.front();
        const Entry& entry = entries_[slot];
        Expired expired{.number = std::uint64_t{entry.round} << 32 | slot,
                        .was_sent = entry.is_sent};
        expired.value = remove(slot);
        return expired;
    }
    // Call it when the connection is gone: ends all requests that were sent on it. With `unsent`,
    // ends all others as well.
    std::vector<Value> take_all(bool unsent) {
        std::vector<Value> taken;
        for (std::uint32_t slot = 0; slot < entries_.size(); ++slot) {
            if (entries_[slot].is_open && (unsent || entries_[slot].is_sent))
                taken.push_back(remove(slot));
        }
        return taken;
    }
    std::size_t size() const noexcept { return heap_.size(); }

  private:
    struct Entry {
        TimePoint deadline{};
        std::size_t place = 0; // in heap_
        std::uint32_t round = 1;
        bool is_open = false;
        bool is_sent = false;
        Value value{};
    };

    Entry* entry_of(std::uint64_t number) noexcept {
        const auto slot = static_cast<std::uint32_t>(number);
        if (slot >= entries_.size()) return nullptr;
        Entry& entry = entries_[slot];
        return entry.is_open && entry.round == number >> 32 ? &entry : nullptr;
    }
    Value remove(std::uint32_t slot) {
        Entry& entry = entries_[slot];
        const std::size_t place = entry.place;
        const std::uint32_t last = heap_.back();
        heap_.pop_back();
        if (last != slot) {
            put(place, last);
            rise(place);
            sink(entries_[last].place);
        }
        entry.is_open = false;
        ++entry.round;
        free_.push_back(slot);
        return std::exchange(entry.value, Value{});
    }
    // A binary heap of slots, the earliest deadline first.
    void put(std::size_t place, std::uint32_t slot) noexcept {
        heap_[place] = slot;
        entries_[slot].place = place;
    }
    bool is_before(std::size_t left, std::size_t right) const noexcept {
        return entries_[heap_[left]].deadline < entries_[heap_[right]].deadline;
    }
    void exchange(std::size_t left, std::size_t right) noexcept {
        const std::uint32_t slot = heap_[left];
        put(left, heap_[right]);
        put(right, slot);
    }
    void rise(std::size_t place) noexcept {
        while (place > 0 && is_before(place, (place - 1) / 2)) {
            exchange(place, (place - 1) / 2);
            place = (place - 1) / 2;
        }
    }
    void sink(std::size_t place) noexcept {
        for (;;) {
            std::size_t first = place;
            for (const std::size_t child : {2 * place + 1, 2 * place + 2})
                if (child < heap_.size() && is_before(child, first)) first = child;
            if (first == place) return;
            exchange(place, first);
            place = first;
        }
    }

    const std::size_t limit_;
    std::vector<Entry> entries_;
    std::vector<std::uint32_t> free_;
    std::vector<std::uint32_t> heap_;
};

} // namespace netio::inline v0_3
