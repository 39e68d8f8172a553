// SPDX-License-Identifier: Apache-2.0
#pragma once

// Credits: permission to send, so that every message finds a posted receive (R13).
//
// Every message on a connection, of either direction and of every kind, uses up one receive that
// the peer has posted; one kept in reserve lets credits flow back when everything else must wait.
// One object per endpoint; not thread-safe. Messages are:
//   data       a transfer; carries no credits (the immediate data has no room for them)
//   control    adverts, acknowledgements, the end of a stream; returns credits as well
//   credit     a control message that has nothing else to say
// The receive that a message used is to be posted again at once, whatever the user does; report the
// arrival after that.
//
//     if (credits.can_send()) { message.credits = credits.on_control_sent(); post(message); }
//     else if (credits.must_return()) { ...the same, with nothing but the credits in it... }

#include "stream/flaws.hpp"
#include "stream/protocol.hpp"

#include "netio/check.hpp"

#include <cstdint>
#include <stdexcept>
#include <string>

namespace stream {

struct CreditOptions {
    std::uint32_t receive_count = 0;      // posted here, see least_receive_count
    std::uint32_t peer_receive_count = 0; // posted by the peer, as it said when connecting
    // Credits are returned without waiting for another message when so many are owed; from 2 to
    // receive_count - 1. 1 would have two idle endpoints thank each other for ever. 0: a quarter.
    std::uint32_t return_threshold_count = 0;
};

template <class Flaws = NoFlaws>
class BasicCredits {
  public:
    // Throws std::invalid_argument naming the value that is out of range.
    explicit BasicCredits(const CreditOptions& options, Flaws flaws = {})
        : options_{options}, flaws_{flaws}, available_{options.peer_receive_count} {
        const std::uint32_t most = options_.receive_count - 1;
        require(options_.receive_count >= least_receive_count &&
                    options_.receive_count <= most_count,
                "receive_count", options_.receive_count);
        require(options_.peer_receive_count >= least_receive_count &&
                    options_.peer_receive_count <= most_count,
                "peer_receive_count", options_.peer_receive_count);
        if (options_.return_threshold_count == 0) {
            options_.return_threshold_count =
                options_.receive_count < 8 ? 2 : options_.receive_count / 4;
        }
        require((options_.return_threshold_count >= 2 && options_.return_threshold_count <= most) ||
                    flaws_.any_credit_threshold,
                "return_threshold_count", options_.return_threshold_count);
    }

    // A data or control message may be sent.
    bool can_send() const noexcept {
        return flaws_.no_credit_check || available_ > (flaws_.no_credit_reserve ? 0U : reserve);
    }
    // A credit message is to be sent now; it may take the reserve.
    bool must_return() const noexcept {
        return available_ > 0 && owed_ >= options_.return_threshold_count;
    }

    void on_data_sent() {
        NETIO_CHECK_MSG(can_send(), "data sent without a credit");
        use_one();
    }
    // For control and credit messages; gives the credits to put into the message.
    std::uint32_t on_control_sent() {
        NETIO_CHECK_MSG(can_send() || must_return(), "control message sent without a credit");
        use_one();
        const std::uint32_t returned = owed_;
        owed_ = 0;
        return returned;
    }

    // A message arrived and its receive is posted again. Data returns 0.
    ProtocolError on_received(std::uint32_t returned) {
        if (returned > options_.peer_receive_count - available_) {
            return ProtocolError::credit_overrun; // R14
        }
        if (owed_ == options_.receive_count) return ProtocolError::unpermitted_message; // R14
        available_ += returned;
        ++owed_;
        return ProtocolError::none;
    }

    std::uint32_t available() const noexcept { return available_; }
    std::uint32_t owed() const noexcept { return owed_; }

  private:
    static constexpr std::uint32_t reserve = 1;
    static constexpr std::uint32_t most_count = 65'535; // the wire carries 16 bits

    static void require(bool condition, const char* option, std::uint32_t value) {
        if (condition) return;
        throw std::invalid_argument{std::string{"credit option "} + option + " is " +
                                    std::to_string(value) +
                                    ", but receive counts go from 3 to 65535 and the threshold "
                                    "from 2 to receive_count - 1"};
    }
    void use_one() noexcept {
        if (available_ > 0) --available_;
    }

    CreditOptions options_;
    [[no_unique_address]] Flaws flaws_;
    std::uint32_t available_;
    std::uint32_t owed_ = 0;
};

using Credits = BasicCredits<>;

} // namespace stream
