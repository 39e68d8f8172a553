// SPDX-License-Identifier: Apache-2.0
#pragma once

// Whether a subscriber tries again after its connection has ended, or an attempt at one, and with
// which receive buffers. Values in, decisions out: no I/O, no clock.

#include "netio/base/back_off.hpp"
#include "netio/base/retry_policy.hpp"
#include "netio/base/status.hpp"

#include <cstddef>

namespace netio::pubsub::inline v0_3 {

class RetryRule {
  public:
    struct Options {
        bool wait_for_publisher = true;
        bool reconnect = false;
        bool reconnect_after_end = true;
        RetryPolicy::Proof proof = RetryPolicy::Proof::none; // of the publisher
        std::size_t receive_bytes = 0;
        std::size_t receive_bytes_limit = 0;
        BackOff::Options back_off;
    };
    explicit RetryRule(const Options& options) noexcept
        : options_{options}, back_off_{options.back_off}, retry_policy_{options.proof},
          receive_bytes_{options.receive_bytes} {}

    // An attempt begins: one route after the other is tried.
    void begin_attempt() noexcept { retry_policy_.begin_attempt(); }
    void begin_route() noexcept { receive_bytes_ = options_.receive_bytes; }
    // Of a buffer on this route.
    std::size_t receive_bytes() const noexcept { return receive_bytes_; }
    // A route was refused.
    void on_refused(RetryPolicy::Refusal refusal) noexcept { retry_policy_.on_refused(refusal); }
    void on_open() noexcept {
        was_open_ = true;
        options_.receive_bytes = receive_bytes_; // who asked for them is the publisher
        if (options_.reconnect) retry_policy_.on_let_in();
    }
    // One that accepted and never said a word was too busy to hear us: it is not there yet.
    void on_closed(bool has_heard) noexcept { was_open_ = was_open_ && has_heard; }
    // It serves us.
    void on_answered() noexcept { back_off_.reset(); }
    // The user has been told of the end.
    void conclude() noexcept { was_open_ = false; }

    // Somebody refused us and wants larger buffers, and is believed within bounds: the same route
    // again with larger ones, once. They are kept if it is open then, since anybody may ask for
    // them. Whoever then wants still more has to wait as for a publisher that is not there.
    bool may_enlarge(const Closed& closed) noexcept {
        if (receive_bytes_ != options_.receive_bytes || !wants_larger(closed)) return false;
        receive_bytes_ = closed.required_receive_bytes;
        return true;
    }

    enum class Next : unsigned char { nothing, wait, at_once };
    struct Wishes {
        bool any = false;    // something is wanted
        bool totals = false; // the publisher has ended, and told its totals
    };
    // After the end of a connection, or of all routes of an attempt.
    Next next(const Closed& closed, const Wishes& wishes) const noexcept {
        if (closed.reason == CloseReason::local) return Next::nothing;
        if (!was_open_) {
            const bool again = options_.wait_for_publisher &&
                               (retry_policy_.may_change(closed) || wants_larger(closed));
            return again ? Next::wait : Next::nothing;
        }
        if (closed.reason == CloseReason::orderly && !wishes.totals) {
            // It let us go because nothing was wanted any more, and meanwhile something may be.
            return wishes.any ? Next::at_once : Next::nothing;
        }
        const bool has_ended = closed.reason == CloseReason::orderly;
        return options_.reconnect && (!has_ended || options_.reconnect_after_end) ? Next::wait
                                                                                  : Next::nothing;
    }

    // Until the next attempt.
    Duration wait(Next next) noexcept {
        return next == Next::at_once ? back_off_.at_once() : back_off_.next();
    }

  private:
    bool wants_larger(const Closed& closed) const noexcept {
        return !was_open_ && closed.reason == CloseReason::rejected &&
               closed.required_receive_bytes > options_.receive_bytes &&
               closed.required_receive_bytes <= options_.receive_bytes_limit;
    }

    Options options_;
    BackOff back_off_;
    RetryPolicy retry_policy_;
    std::size_t receive_bytes_;
    bool was_open_ = false; // this connection has been established
};

} // namespace netio::pubsub::inline v0_3
