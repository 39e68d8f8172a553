// SPDX-License-Identifier: Apache-2.0
#pragma once

// Carries to the publisher what a SubscriptionBook asks for, and the answer to its totals. A short
// request is copied by the session; long ones are lent from a few places, so that however many wait
// there are never more of them in memory. Belongs to the loop's thread.

#include "netio/session/session.hpp"
#include "pubsub/core/subscription_book.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace netio::pubsub::inline v0_2 {

class RequestQueue {
  public:
    // `positions`: how far the publisher is, is to be told in front of each answer.
    RequestQueue(SubscriptionBook& book, bool positions) noexcept
        : book_{book}, positions_{positions} {}

    // The connection is open: all that is wanted is asked for.
    void begin(Session& session);
    // It is gone, and has released what was lent.
    void end();
    // The totals have come.
    void answer_totals(Session& session);
    // As far as the session takes it; when it is writable again, there may be more.
    void send(Session& session);
    void on_sent(Cookie cookie) { free_places_.push_back(static_cast<std::uint32_t>(cookie)); }

  private:
    bool send_request(Session& session, const SubscriptionBook::Request& request);

    SubscriptionBook& book_;
    bool positions_;
    std::unique_ptr<RegisteredBuffer> memory_; // made at the first long request
    std::vector<std::uint32_t> free_places_;
    bool totals_answer_due_ = false;
};

} // namespace netio::pubsub::inline v0_2
