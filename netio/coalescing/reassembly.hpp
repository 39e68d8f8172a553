// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reassembles a message from its fragments. One message at a time: its fragments follow one another
// on the session. No I/O.

#include "netio/base/kept_bytes.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace netio::inline v0_3 {

// The position of a fragment in its message.
struct FragmentPlace {
    std::uint32_t offset = 0;
    std::uint32_t total = 0; // bytes of the whole message
};

class Reassembly {
  public:
    // `largest_bytes`: limit of a message. Memory grows with the bytes that arrive, not with the
    // announced size, and is kept for the next message.
    explicit Reassembly(std::size_t largest_bytes) noexcept : largest_bytes_{largest_bytes} {}

    enum class Outcome : std::uint8_t {
        incomplete,
        complete,     // message() is complete, until the next take() or abandon()
        too_large,    // larger than largest_bytes
        out_of_order, // not the next fragment of the message
        no_memory,    // not enough memory for the message, which is abandoned
    };
    Outcome take(const FragmentPlace& place, std::span<const std::byte> bytes);

    // Discards what was collected: an incomplete message is never delivered.
    void abandon() noexcept { in_progress_ = false; }
    bool in_progress() const noexcept { return in_progress_; }
    // For a message that came in one fragment, refers to those bytes without a copy.
    std::span<const std::byte> message() const noexcept { return message_; }
    // While message() is handed over: keeps it, or a part of it, if it came in several fragments.
    // Its memory goes to lend(std::vector<std::byte>), which returns KeptBytes. Returns nothing if
    // `part` is not in memory of this object.
    template <typename Lend>
    std::optional<KeptBytes> keep(std::span<const std::byte> part, Lend lend) {
        if (!in_progress_ && is_within(part, buffer_)) kept_ = lend(std::exchange(buffer_, {}));
        return is_within(part, kept_.bytes()) ? std::optional{kept_.part(part)} : std::nullopt;
    }
    // Call it when message() was delivered.
    void end_of_message() noexcept {
        kept_ = {};
        message_ = {};
    }

  private:
    static bool is_within(std::span<const std::byte> part,
                          std::span<const std::byte> whole) noexcept {
        const std::less_equal<const std::byte*> before;
        return !part.empty() && !whole.empty() && before(whole.data(), part.data()) &&
               before(part.data() + part.size(), whole.data() + whole.size());
    }
    bool reserve(std::size_t needed, std::size_t total) noexcept;
    void append(std::span<const std::byte> bytes);

    std::size_t largest_bytes_;
    std::vector<std::byte> buffer_;
    std::span<const std::byte> message_;
    KeptBytes kept_; // the memory of message(), which the user keeps
    std::uint32_t total_ = 0;
    bool in_progress_ = false;
};

std::string_view to_string(Reassembly::Outcome outcome) noexcept;

} // namespace netio::inline v0_3
