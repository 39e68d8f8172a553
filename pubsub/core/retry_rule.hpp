// SPDX-License-Identifier: Apache-2.0
#pragma once

// Whether a subscriber tries again after its connection has ended, or an attempt at one, and with
// which receive buffers. Values in, decisions out: no I/O, no clock.

#include "netio/base/back_off.hpp"
#include "netio/base/status.hpp"

#include <cstddef>

namespace netio::pubsub::inline v0_2 {

class RetryRule {
  public:
    struct Options {
        bool wait_for_publisher = true;
        bool reconnect = false;
        std::size_t receive_bytes_limit = 0;
        BackOff::Options back_off;
    };
    explicit RetryRule(const Options& options) noexcept
        : options_{options}, back_off_{options.back_off} {}

    // An attempt begins: one route after the other is tried.
    void begin_attempt() noexcept {
        enlarged_ = false;
        may_be_let_in_later_ = false;
    }
    enum class Refusal : unsigned char {
        lasting, // until something is changed here
        passing, // we may be let in later
        by_gate, // our key is not known there, or not with what we ask for
    };
    // A route was refused.
    void on_refused(Refusal refusal) noexcept {
        // Who has let us in before may have lost its key file for a while, or we may get another
        // key.
        const bool may_pass =
            refusal == Refusal::passing ||
            (refusal == Refusal::by_gate && options_.reconnect && gate_ == Gate::has_let_us_in);
        may_be_let_in_later_ = may_be_let_in_later_ || may_pass;
    }
    void on_open() noexcept {
        was_open_ = true;
        gate_ = Gate::has_let_us_in;
    }
    // One that accepted and never said a word was too busy to hear us: it is not there yet.
    void on_closed(bool has_heard) noexcept { was_open_ = was_open_ && has_heard; }
    // It serves us.
    void on_answered() noexcept { back_off_.reset(); }
    // The user has been told of the end.
    void conclude() noexcept { was_open_ = false; }

    // The publisher refused us and wants larger buffers; it is believed within bounds.
    bool wants_larger(const Closed& closed, std::size_t receive_bytes) const noexcept {
        return !was_open_ && closed.reason == CloseReason::rejected &&
               closed.required_receive_bytes > receive_bytes &&
               closed.required_receive_bytes <= options_.receive_bytes_limit;
    }
    // The same route again with larger ones: once. Whoever then wants still more has to wait as for
    // a publisher that is not there.
    bool may_enlarge(const Closed& closed, std::size_t receive_bytes) noexcept {
        if (enlarged_ || !wants_larger(closed, receive_bytes)) return false;
        return enlarged_ = true;
    }

    enum class Next : unsigned char { nothing, wait, at_once };
    struct Wishes {
        bool any = false;    // something is wanted
        bool totals = false; // the publisher has ended, and told its totals
    };
    // After the end of a connection, or of all routes of an attempt.
    Next next(const Closed& closed, std::size_t receive_bytes,
              const Wishes& wishes) const noexcept {
        if (closed.reason == CloseReason::local) return Next::nothing;
        if (!was_open_) {
            // What stays wrong until somebody changes the configuration is not tried again.
            const bool may_change = closed.reason != CloseReason::rejected ||
                                    may_be_let_in_later_ || wants_larger(closed, receive_bytes);
            const bool again = options_.wait_for_publisher && may_change &&
                               closed.reason != CloseReason::protocol_error &&
                               closed.reason != CloseReason::not_admitted;
            return again ? Next::wait : Next::nothing;
        }
        if (closed.reason == CloseReason::orderly && !wishes.totals) {
            // It let us go because nothing was wanted any more, and meanwhile something may be.
            return wishes.any ? Next::at_once : Next::nothing;
        }
        return options_.reconnect ? Next::wait : Next::nothing;
    }

    // Until the next attempt.
    Duration wait(Next next) noexcept {
        return next == Next::at_once ? back_off_.at_once() : back_off_.next();
    }

  private:
    enum class Gate : unsigned char { unknown, has_let_us_in };

    Options options_;
    BackOff back_off_;
    Gate gate_ = Gate::unknown; // of the publisher
    bool was_open_ = false;     // this connection has been established
    bool enlarged_ = false;     // in this attempt
    bool may_be_let_in_later_ = false;
};

} // namespace netio::pubsub::inline v0_2
