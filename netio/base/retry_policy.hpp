// SPDX-License-Identifier: Apache-2.0
#pragma once

// Whether the next attempt to connect may fare better than one that ended before the connection was
// open. Values in, decisions out: no I/O, no clock.
//
// With a key only an open connection has proved who is at the other end. A refusal proves nothing,
// nor does an answer that is not the protocol's: whoever got hold of the port may have sent it. So
// once the peer has let us in, and has proved itself by that, nothing that comes before the next
// proof is a last word.

#include "netio/base/status.hpp"

namespace netio::inline v0_3 {

class RetryPolicy {
  public:
    enum class Refusal : unsigned char {
        lasting,      // until something is changed here
        passing,      // we may be let in later
        not_admitted, // our key is not known there, or not with what we ask for
    };
    enum class Proof : unsigned char { none, by_key }; // of who lets us in

    explicit RetryPolicy(Proof proof) noexcept : proof_{proof} {}

    // One route after the other is tried.
    void begin_attempt() noexcept { may_be_let_in_later_ = false; }
    // A route was refused.
    void on_refused(Refusal refusal) noexcept {
        // Who has let us in before may have lost its key file for a while, or we may get another
        // key.
        const bool may_pass =
            refusal == Refusal::passing || (refusal == Refusal::not_admitted && was_let_in_);
        may_be_let_in_later_ = may_be_let_in_later_ || may_pass;
    }
    // The connection is open.
    void on_let_in() noexcept { was_let_in_ = true; }

    // After all routes of an attempt have failed, with this as the reason that says most.
    bool may_change(const Closed& closed) const noexcept {
        if (was_let_in_ && proof_ == Proof::by_key) return true;
        // What stays wrong until somebody changes the configuration is not tried again.
        return closed.reason != CloseReason::protocol_error &&
               closed.reason != CloseReason::not_admitted &&
               (closed.reason != CloseReason::rejected || may_be_let_in_later_);
    }

  private:
    Proof proof_;
    bool was_let_in_ = false;
    bool may_be_let_in_later_ = false; // on a route of this attempt
};

} // namespace netio::inline v0_3
