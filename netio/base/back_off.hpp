// SPDX-License-Identifier: Apache-2.0
#pragma once

// How long to wait before the next of several attempts: about twice as long each time, up to a
// limit, with a random part, so that programs that began at the same time do not stay in step. The
// waits depend only on the options, including the seed. No I/O, no clock.

#include "netio/base/status.hpp"
#include "netio/base/time.hpp"

#include <algorithm>
#include <cstdint>

namespace netio::inline v0_3 {

class BackOff {
  public:
    struct Options {
        Duration first{};
        Duration limit{}; // at least `first`
        std::uint64_t seed = 0;
    };
    explicit BackOff(const Options& options) noexcept
        : options_{options}, wait_{options.first}, state_{options.seed} {}

    // Call it when the last attempt has succeeded.
    void reset() noexcept {
        wait_ = options_.first;
        once_ = true;
    }
    // Zero the first time after a success; otherwise as next().
    Duration at_once() noexcept { return once_ ? (once_ = false, Duration::zero()) : next(); }
    // Returns a wait between the current interval and half as much again.
    Duration next() noexcept {
        once_ = false;
        const Duration wait = wait_;
        wait_ = wait > options_.limit / 2 ? std::max(options_.limit, options_.first) : wait * 2;
        const auto half = static_cast<std::uint64_t>(wait.count()) / 2;
        return wait + Duration{static_cast<Duration::rep>(half > 0 ? draw() % half : 0)};
    }

  private:
    // SplitMix64: its results differ even for neighbouring seeds.
    std::uint64_t draw() noexcept {
        std::uint64_t number = state_ += 0x9e3779b97f4a7c15;
        number = (number ^ (number >> 30)) * 0xbf58476d1ce4e5b9;
        number = (number ^ (number >> 27)) * 0x94d049bb133111eb;
        return number ^ (number >> 31);
    }

    Options options_;
    Duration wait_;
    bool once_ = false;
    std::uint64_t state_;
};

} // namespace netio::inline v0_3

// Decides whether another attempt to connect may succeed after one that ended before the connection
// was open. Pure decisions: no I/O, no clock.
//
// With a key, only an open connection proves the identity of the peer. Neither a refusal nor an
// answer that violates the protocol proves anything: another process that uses the port may have
// sent it. After the peer has once admitted this side, and so has proved its identity, every later
// failure before the next proof is therefore temporary.

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

    // Call it when an attempt begins; it tries one route after another.
    void begin_attempt() noexcept { may_be_let_in_later_ = false; }
    // A route was refused.
    void on_refused(Refusal refusal) noexcept {
        // A peer that has admitted this side before may lack its key file for a while, or this side
        // may get another key.
        const bool may_pass =
            refusal == Refusal::passing || (refusal == Refusal::not_admitted && was_admitted_);
        may_be_let_in_later_ = may_be_let_in_later_ || may_pass;
    }
    // The connection is open.
    void on_admitted() noexcept { was_admitted_ = true; }

    // Called after all routes of an attempt have failed; `closed` has the most informative reason.
    bool may_change(const Closed& closed) const noexcept {
        if (was_admitted_ && proof_ == Proof::by_key) return true;
        // Failures that only a change of the configuration can remove are not retried.
        return closed.reason != CloseReason::protocol_error &&
               closed.reason != CloseReason::not_admitted &&
               (closed.reason != CloseReason::rejected || may_be_let_in_later_);
    }

  private:
    Proof proof_;
    bool was_admitted_ = false;
    bool may_be_let_in_later_ = false; // on some route of this attempt
};

} // namespace netio::inline v0_3
