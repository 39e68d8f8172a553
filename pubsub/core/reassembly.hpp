// SPDX-License-Identifier: Apache-2.0
#pragma once

// Puts a message together that was sent in fragments (netio/coalescing/reassembly.hpp), and sees to
// it that all of them are of the same message. No I/O.

#include "netio/coalescing/reassembly.hpp"
#include "pubsub/core/frames.hpp"

#include <cstddef>
#include <span>

namespace netio::pubsub::inline v0_2 {

class Reassembly {
  public:
    using Outcome = netio::Reassembly::Outcome;

    // `largest_bytes`: of a message; no more memory than that is ever used.
    explicit Reassembly(std::size_t largest_bytes) noexcept : bytes_{largest_bytes} {}

    Outcome take(const FragmentExtension& fragment, std::span<const std::byte> bytes);

    // Half a message is never delivered: what was collected is forgotten.
    void abandon() noexcept { bytes_.abandon(); }
    bool in_progress() const noexcept { return bytes_.in_progress(); }
    std::span<const std::byte> message() const noexcept { return bytes_.message(); }

  private:
    netio::Reassembly bytes_;
    FragmentExtension current_;
};

} // namespace netio::pubsub::inline v0_2
