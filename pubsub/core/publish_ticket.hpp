// SPDX-License-Identifier: Apache-2.0
#pragma once

// Stands for a publication that some subscribers have and others do not have yet: what try_publish
// gives with Status::partial, and what only resume() of the same socket accepts. It is NetIO's
// re-entry flag and in/out cookie in one. A ticket that is destroyed lets the library finish the
// publication; one that outlives its socket, or close(), is closed by them.

#include "netio/base/export.hpp"

#include <cstdint>

namespace netio::pubsub::inline v0_2 {

class PartialDeliveries;
enum class PublicationId : std::uint64_t; // pubsub/core/delivery_tracker.hpp

class NETIO_EXPORT PublishTicket {
  public:
    PublishTicket() = default; // stands for nothing
    PublishTicket(PublishTicket&& other) noexcept { take(other); }
    PublishTicket& operator=(PublishTicket&& other) noexcept {
        if (this != &other) {
            abandon();
            take(other);
        }
        return *this;
    }
    ~PublishTicket() { abandon(); }

    // Whether a publication still waits for resume().
    bool is_open() const noexcept { return issuer_ != nullptr; }
    // The library finishes the publication; it completes as any other.
    void abandon() noexcept;

  private:
    friend class PartialDeliveries;
    void take(PublishTicket& other) noexcept;

    PartialDeliveries* issuer_ = nullptr;
    PublicationId id_{};
};

} // namespace netio::pubsub::inline v0_2
