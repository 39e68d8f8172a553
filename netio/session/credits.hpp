// SPDX-License-Identifier: Apache-2.0
#pragma once

// Flow control by credits: permissions to send, so that every message finds a posted receive.
//
// Every message on a connection, of either direction and of every kind, uses one receive that the
// peer has posted. One receive is reserved, so that credits can be returned when everything else
// must wait. One object per endpoint, a plain value; not thread-safe. Messages are:
//   frame   returns the credits that are owed
//   write   a remote write with notification by the fabric: it has no space for credits
//   own     a frame of the session itself, with nothing but credits for example. Only it may use
//           the reserve. A peer whose user has paused keeps the receive of a frame, and this side
//           could return nothing more
// The rules, R13 and R14 of docs/stream-protocol.md, are explored exhaustively in
// tests/model/credits_model_test.cpp: no receive queue is overrun, no endpoint waits forever, and
// idle endpoints become silent.
//
//     if (credits.can_send_frame()) { frame.credits = credits.on_frame_sent(); post(frame); }
//     else if (credits.must_return()) { ...the same, with nothing but the credits in it... }

#include "netio/base/check.hpp"

#include <algorithm>
#include <cstdint>
#include <stdexcept>
#include <string>

namespace netio::inline v0_3 {

// One receive for a message, one in reserve for credits, and one more, so that the threshold at
// which credits are returned can be reached.
inline constexpr std::uint32_t least_receive_count = 3;
inline constexpr std::uint32_t most_receive_count = 32'767; // the wire carries 15 bits

struct CreditOptions {
    std::uint32_t receive_count = 0;      // posted here, see least_receive_count
    std::uint32_t peer_receive_count = 0; // posted by the peer, as it announced when connecting
    // Credits are returned without waiting for another frame when this many are owed; from 2 to
    // receive_count - 1. With 1, two idle endpoints would return each other's credits forever. 0:
    // half of receive_count.
    std::uint32_t return_threshold_count = 0;
};

// A violation of the credit rules by the peer; the connection cannot be used any more.
enum class [[nodiscard]] CreditError : std::uint8_t{
    none,
    overrun,     // more credits returned than were used
    unpermitted, // a message for which the peer had no credit
};

class Credits {
  public:
    // Throws std::invalid_argument naming the value that is out of range.
    explicit Credits(const CreditOptions& options)
        : options_{options}, available_{options.peer_receive_count}, granted_{
                                                                         options.receive_count} {
        const std::uint32_t most = options_.receive_count - 1;
        require(options_.receive_count >= least_receive_count &&
                    options_.receive_count <= most_receive_count,
                "receive_count", options_.receive_count);
        require(options_.peer_receive_count >= least_receive_count &&
                    options_.peer_receive_count <= most_receive_count,
                "peer_receive_count", options_.peer_receive_count);
        std::uint32_t& threshold = options_.return_threshold_count;
        if (threshold == 0) threshold = half_of(options_.receive_count);
        require(threshold >= 2 && threshold <= most, "return_threshold_count", threshold);
        threshold_ = threshold;
    }

    bool can_send_frame() const noexcept { return available_ > reserve(); }
    bool can_send_own_frame() const noexcept {
        return available_ > reserve() ||
               (available_ == 1 && owed_ > 0); // the peer gets a credit by it
    }
    bool can_write() const noexcept { return available_ > reserve(); }
    // A credit frame is to be sent now; it may use the reserve.
    bool must_return() const noexcept { return available_ > 0 && owed_ >= threshold_; }

    // The next frame is the last one: it may use the reserve, which is not needed afterwards.
    void give_up_reserve() noexcept { last_ = true; }

    // Returns the credits to put into the frame.
    std::uint32_t on_frame_sent() {
        NETIO_CHECK_MSG(can_send_own_frame() || must_return(), "a frame sent without a credit");
        use_one();
        const std::uint32_t returned = owed_;
        granted_ += returned;
        owed_ = 0;
        return returned;
    }
    void on_write_sent() {
        NETIO_CHECK_MSG(can_write(), "a write sent without a credit");
        use_one();
    }

    // A message arrived, with this number of credits (a write: 0).
    CreditError on_received(std::uint32_t returned) {
        if (returned > options_.peer_receive_count - available_) return CreditError::overrun;
        if (owed_ == options_.receive_count) return CreditError::unpermitted;
        available_ += returned;
        ++received_;
        return CreditError::none;
    }
    // The receive of a message is posted again. To be done soon, whatever the user does, because
    // the peer's progress depends on it.
    void on_reposted() {
        NETIO_CHECK_MSG(owed_ < options_.receive_count, "more receives posted than there are");
        ++owed_;
    }

    // --- windows that change ---

    // More receives were posted; the peer is notified at once.
    void grow(std::uint32_t more) {
        NETIO_CHECK_MSG(more <= most_receive_count - options_.receive_count, "too many receives");
        options_.receive_count += more;
        granted_ += more;
        pace_returns();
    }
    // A message arrived, and its receive is not posted again. The peer assumes that it is still in
    // use until it is notified.
    void on_retired() {
        NETIO_CHECK_MSG(options_.receive_count > least_receive_count, "no receive to spare");
        --options_.receive_count;
        pace_returns();
    }
    // The peer announces its number of receives. The credits of removed receives are used, and will
    // not be returned.
    CreditError on_window(std::uint32_t count) {
        if (count < least_receive_count || count > most_receive_count || available_ > count) {
            return CreditError::overrun;
        }
        if (count > options_.peer_receive_count) available_ += count - options_.peer_receive_count;
        options_.peer_receive_count = count;
        pace_returns();
        return CreditError::none;
    }
    // The user keeps the memory of `count` receives, which therefore are not posted. Credits of the
    // others are returned earlier, since fewer can be owed.
    void on_missing(std::uint32_t count) noexcept {
        if (missing_ == count) return;
        missing_ = count;
        pace_returns();
    }
    std::uint32_t receive_count() const noexcept { return options_.receive_count; }
    std::uint32_t peer_receive_count() const noexcept { return options_.peer_receive_count; }
    // Number of messages that the peer may have sent since the beginning.
    std::uint64_t granted() const noexcept { return granted_; }
    // Whether the peer, once it has what was returned to it, has more than its reserve. If not, it
    // may be silent because it has to be: this side keeps what arrived, or cannot return credits
    // because it has none itself.
    bool can_peer_send() const noexcept { return granted_ - received_ > 1; }

    std::uint32_t available() const noexcept { return available_; }
    std::uint32_t owed() const noexcept { return owed_; }

  private:
    // For returning credits only.
    std::uint32_t reserve() const noexcept { return last_ ? 0 : 1; }
    static void require(bool condition, const char* option, std::uint32_t value) {
        if (condition) return;
        throw std::invalid_argument{std::string{"credit option "} + option + " is " +
                                    std::to_string(value) +
                                    ", but receive counts go from 3 to 32767 and the threshold "
                                    "from 2 to receive_count - 1"};
    }
    static constexpr std::uint32_t most_parts = 8;
    static std::uint32_t half_of(std::uint32_t count) noexcept { return count < 4 ? 2 : count / 2; }
    // A window grows over long round trips. If credits were returned in halves, the peer would have
    // none for half of each round trip. So they are returned in eight parts, or fewer if the peer
    // has fewer receives, and not more often than before the window grew.
    void pace_returns() noexcept {
        const std::uint32_t parts = std::min(most_parts, options_.peer_receive_count - 1);
        threshold_ =
            std::min(std::max(options_.return_threshold_count, options_.receive_count / parts),
                     half_of(options_.receive_count - std::min(missing_, options_.receive_count)));
    }
    void use_one() noexcept {
        if (available_ > 0) --available_;
    }

    CreditOptions options_;
    std::uint32_t threshold_ = 0; // of owed credits
    std::uint32_t missing_ = 0;   // receives
    std::uint32_t available_;
    std::uint32_t owed_ = 0;
    std::uint64_t granted_;
    std::uint64_t received_ = 0; // messages
    bool last_ = false;
};

} // namespace netio::inline v0_3
