// SPDX-License-Identifier: Apache-2.0
#pragma once

// A publication that was sent to some subscribers and not yet to others: try_publish returns it
// with Status::partial, and resume() of the same socket continues it. It replaces NetIO's re-entry
// flag and in/out cookie. When a ticket is destroyed, the library finishes the publication. The
// socket's close() or destructor closes open tickets.

#include "netio/base/export.hpp"

#include <cstdint>

namespace netio::pubsub::inline v0_3 {

class PartialDeliveries;
enum class PublicationId : std::uint64_t; // pubsub/publisher/delivery_tracker.hpp

class NETIO_EXPORT PublishTicket {
  public:
    PublishTicket() = default; // not open
    PublishTicket(PublishTicket&& other) noexcept { take(other); }
    PublishTicket& operator=(PublishTicket&& other) noexcept {
        if (this != &other) {
            abandon();
            take(other);
        }
        return *this;
    }
    ~PublishTicket() { abandon(); }

    // Whether the publication waits for resume().
    bool is_open() const noexcept { return issuer_ != nullptr; }
    // Closes the ticket: the library finishes the publication, which completes like any other.
    void abandon() noexcept;

  private:
    friend class PartialDeliveries;
    void take(PublishTicket& other) noexcept;

    PartialDeliveries* issuer_ = nullptr;
    PublicationId id_{};
};

} // namespace netio::pubsub::inline v0_3
