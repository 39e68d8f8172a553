// SPDX-License-Identifier: Apache-2.0
#pragma once

// The three ways in which this library reports that something did not work:
//   Status      the everyday outcome of one message; the caller must check it
//   Closed      why a connection ended; passed once, to the handler, as the last event
//   FabricError a set-up step failed; thrown by constructors and factories, reported to the
//               loop's observer if it concerns a peer
// Bugs of the program itself abort (netio/base/check.hpp).

#include "netio/base/export.hpp"

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

namespace netio::inline v0_3 {

// The outcome of passing a message to the library. The meanings are those of NetIO-next. All
// sockets share this one list, so that a program that sends over several kinds handles one type.
// The comment of each call lists the values that it can return.
enum class [[nodiscard]] Status : std::uint8_t{
    ok,                // accepted; a completion follows if one was requested
    no_subscribers,    // accepted without subscribers; nothing was sent, no completion follows
    again,             // nothing was sent to any peer: no space now, try again after on_writable
    partial,           // some targets took it; complete it with the ticket (explicit publishing)
    too_many_segments, // more slices than slice_limit; nothing was sent
    too_large,         // larger than the peer or the configuration allows; nothing was sent
    closed,            // the connection is not open; nothing was sent
    stale_ticket,      // the ticket has no unfinished publication; nothing was done
    not_owned,         // the fid belongs to another loop's socket; nothing was sent
};

NETIO_EXPORT std::string_view to_string(Status status) noexcept;

// Why a connection ended. Every connection that was opened gets exactly one reason.
enum class CloseReason : std::uint8_t {
    local,           // abort() was called here, this side was destroyed, or it was closed before it
                     // was connected
    orderly,         // both sides have shut down, and the peer has reported that its user received
                     // all that was sent; also on the side that called close()
    unconfirmed,     // close() was called on either side, and the peer did not confirm all that was
                     // sent: it was too slow, died before the end, or left messages unread
    lost,            // the connection broke: the peer died, was killed, or the network reset it
    refused,         // no socket listens at the address
    unreachable,     // no route to the address, or it cannot be resolved
    rejected,        // the listener rejected the connection; detail says what it requires
    connect_timeout, // no answer within the connect time-out
    handshake_timeout, // the peer connected and never finished the handshake
    silent,            // no sign of life within the dead-peer time
    too_slow,          // one side received nothing for too long, and the policy of the other ended
                       // the connection; detail says which side
    protocol_error,    // the peer sent something that its protocol does not allow
    not_admitted,      // the peer has not proved its key, or its key was removed
    failed,            // the provider reported an error that fits none of the above
};

NETIO_EXPORT std::string_view to_string(CloseReason reason) noexcept;

// How a connection ended. Part of its last event.
struct Closed {
    CloseReason reason = CloseReason::local;
    std::string detail; // one line for people: address, error, remedy
    std::uint32_t
        required_receive_bytes{}; // rejected: the receive size that the listener requires, or 0
    // While connecting: the other side ended the connection before it answered. A listener does so
    // if this machine has too many unfinished connections to it; another attempt may succeed.
    bool ended_unanswered{};
    // Frames that were sent here, without confirmation that the user of the peer has received them.
    // A frame carries one message, a page of messages, or a fragment.
    std::uint64_t unconfirmed_frames{};
    // rejected: the listener is full, or lacks memory or descriptors, and may accept a later
    // attempt.
    bool may_pass = false;
};

// One line for people: the detail, or the meaning of the reason if there is no detail.
NETIO_EXPORT std::string to_string(const Closed& closed);
// One line with both: "REASON: DETAIL", or "REASON" if there is no detail.
NETIO_EXPORT std::string explain(const Closed& closed);

// "HOST:PORT", with an IPv6 address in brackets. Port 0 asks for any free port when listening.
struct Address {
    std::string host;
    std::uint16_t port = 0;

    friend bool operator==(const Address&, const Address&) = default;
};

// Throws std::invalid_argument, which names the text and the expected form.
NETIO_EXPORT Address parse_address(std::string_view text);
NETIO_EXPORT std::string to_string(const Address& address);

// A set-up step failed. what() names the step, the object (an address, a size) and the reason.
// code() is the error number of the system, the resolver or the provider (its category).
class NETIO_EXPORT FabricError : public std::system_error {
  public:
    FabricError(std::error_code code, const std::string& what) : std::system_error{code, what} {}
};

// A call of netio::Publisher, netio::Subscriber or netio::Sender failed. status() is the reason in
// one word; what() names the object, the reason and the remedy.
class NETIO_EXPORT Error : public std::runtime_error {
  public:
    Error(Status status, const std::string& what) : std::runtime_error{what}, status_{status} {}
    Status status() const noexcept { return status_; }

  private:
    Status status_;
};

} // namespace netio::inline v0_3
