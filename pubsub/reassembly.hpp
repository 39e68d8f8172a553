// SPDX-License-Identifier: Apache-2.0
#pragma once

// Puts a message together that was sent in fragments. One message at a time: its fragments follow
// one another on the link. No I/O.

#include "pubsub/frames.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

namespace pubsub {

class Reassembly {
  public:
    // `largest_bytes`: of a message; no more memory than that is ever used.
    explicit Reassembly(std::size_t largest_bytes) noexcept : largest_bytes_{largest_bytes} {}

    enum class Outcome : std::uint8_t {
        incomplete,
        complete,     // message() is whole, until the next take() or abandon()
        too_large,    // larger than largest_bytes
        out_of_order, // not the fragment that must follow
    };
    Outcome take(const FragmentExtension& fragment, std::span<const std::byte> bytes);

    // Half a message is never delivered: what was collected is forgotten.
    void abandon() noexcept { filled_ = 0; }
    bool in_progress() const noexcept { return filled_ > 0; }
    std::span<const std::byte> message() const noexcept { return buffer_; }

  private:
    std::size_t largest_bytes_;
    std::vector<std::byte> buffer_;
    std::size_t filled_ = 0; // 0: none in progress, since no fragment is empty
    FragmentExtension current_;
};

std::string_view to_string(Reassembly::Outcome outcome) noexcept;

} // namespace pubsub
