// SPDX-License-Identifier: Apache-2.0
#pragma once

// Decides whether a subscriber tries again after a connection or an attempt has ended, and with
// which receive buffers. Pure decisions: no I/O, no clock.

#include "netio/base/back_off.hpp"
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
        std::size_t receive_buffer_bytes = 0;
        std::size_t receive_buffer_limit_bytes = 0;
        BackOff::Options back_off;
    };
    explicit RetryRule(const Options& options) noexcept
        : options_{options}, back_off_{options.back_off}, retry_policy_{options.proof},
          receive_bytes_{options.receive_buffer_bytes} {}

    // Call it when an attempt begins; it tries one route after another.
    void begin_attempt() noexcept { retry_policy_.begin_attempt(); }
    void begin_route() noexcept { receive_bytes_ = options_.receive_buffer_bytes; }
    // The size of a receive buffer on this route.
    std::size_t receive_buffer_bytes() const noexcept { return receive_bytes_; }
    // Call it when a route was refused.
    void on_refused(RetryPolicy::Refusal refusal) noexcept { retry_policy_.on_refused(refusal); }
    void on_open() noexcept {
        was_open_ = true;
        options_.receive_buffer_bytes = receive_bytes_; // the publisher required this size
        if (options_.reconnect) retry_policy_.on_admitted();
    }
    // Call it when the connection has ended. A publisher that accepted and never sent anything was
    // too busy: this counts as not connected.
    void on_closed(bool has_received) noexcept { was_open_ = was_open_ && has_received; }
    // Call it when the publisher has answered a request.
    void on_answered() noexcept { back_off_.reset(); }
    // Call it when the user has been notified of the end.
    void conclude() noexcept { was_open_ = false; }

    // Returns true if the peer has rejected this side because its receive buffers are too small,
    // and the limit permits the size that the peer requires: then the caller tries the same route
    // once more with receive_buffer_bytes(). The larger size stays in use only if that connection
    // opens, because any peer may require it. If the peer then requires even more, returns false,
    // and the subscriber waits as for a publisher that does not listen yet.
    bool may_enlarge(const Closed& closed) noexcept {
        if (receive_bytes_ != options_.receive_buffer_bytes || !wants_larger(closed)) return false;
        receive_bytes_ = closed.required_receive_bytes;
        return true;
    }

    enum class Next : unsigned char { nothing, wait, at_once };
    struct Wishes {
        bool any = false;    // fids are wanted
        bool totals = false; // the publisher has closed, and sent its totals
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
            // The publisher closed because nothing was wanted; fids may be wanted in the meantime.
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
               closed.required_receive_bytes > options_.receive_buffer_bytes &&
               closed.required_receive_bytes <= options_.receive_buffer_limit_bytes;
    }

    Options options_;
    BackOff back_off_;
    RetryPolicy retry_policy_;
    std::size_t receive_bytes_;
    bool was_open_ = false; // this connection has been established
};

} // namespace netio::pubsub::inline v0_3
