// SPDX-License-Identifier: Apache-2.0
#pragma once

// Decides whether another attempt to connect may succeed after one that ended before the connection
// was open. Pure decisions: no I/O, no clock.
//
// With a key, only an open connection proves the identity of the peer. Neither a refusal nor an
// answer that violates the protocol proves anything: another process that uses the port may have
// sent it. After the peer has once admitted this side, and so has proved its identity, every later
// failure before the next proof is therefore temporary.

#include "netio/base/status.hpp"

namespace netio::inline v0_3 {

class RetryPolicy {
  public:
    enum class Refusal : unsigned char {
        lasting,      // until the configuration of this side changes
        passing,      // the peer may admit this side later
        not_admitted, // the peer does not know this side's key, or the key lacks the right
    };
    enum class Proof : unsigned char { none, by_key }; // of the peer's identity

    explicit RetryPolicy(Proof proof) noexcept : proof_{proof} {}

    // An attempt tries one route after another.
    void begin_attempt() noexcept { may_be_let_in_later_ = false; }
    // A route was refused.
    void on_refused(Refusal refusal) noexcept {
        // A peer that has admitted this side before may lack its key file for a while, or this side
        // may get another key.
        const bool may_pass =
            refusal == Refusal::passing || (refusal == Refusal::not_admitted && was_let_in_);
        may_be_let_in_later_ = may_be_let_in_later_ || may_pass;
    }
    // The connection is open.
    void on_let_in() noexcept { was_let_in_ = true; }

    // Called after all routes of an attempt have failed; `closed` has the most informative reason.
    bool may_change(const Closed& closed) const noexcept {
        if (was_let_in_ && proof_ == Proof::by_key) return true;
        // Failures that only a change of the configuration can remove are not retried.
        return closed.reason != CloseReason::protocol_error &&
               closed.reason != CloseReason::not_admitted &&
               (closed.reason != CloseReason::rejected || may_be_let_in_later_);
    }

  private:
    Proof proof_;
    bool was_let_in_ = false;
    bool may_be_let_in_later_ = false; // on some route of this attempt
};

} // namespace netio::inline v0_3
