// SPDX-License-Identifier: Apache-2.0
#pragma once

// The three channels through which this library says that something did not work:
//   Status      the everyday outcome of one message; the caller must look at it
//   Closed      why a connection ended; given once, to the handler, as the last event
//   FabricError a set-up step failed; thrown by constructors and factories, told to the
//   loop's observer where it concerns a peer
// Bugs of the program itself abort (netio/base/check.hpp).

#include "netio/base/export.hpp"

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>

namespace netio::inline v0_3 {

// What became of a message handed to the library. The meanings are those of NetIO-next. One list
// for all sockets, so that whoever sends over several kinds looks at one; which of these a call can
// give is said there.
enum class [[nodiscard]] Status : std::uint8_t{
    ok,                // accepted; a completion follows where one was asked for
    no_subscribers,    // accepted, and nobody wants it; nothing was sent, no completion follows
    again,             // nothing was sent to anyone: no room now, try again after on_writable
    partial,           // some targets took it; finish it with the ticket (explicit publishing only)
    too_many_segments, // more slices than slice_limit; nothing was sent
    too_large,         // larger than the peer or the configuration allows; nothing was sent
    closed,            // the connection is not open; nothing was sent
    stale_ticket,      // the ticket stands for no unfinished publication; nothing was done
    not_owned,         // the fid belongs to another loop's socket; nothing was sent
};

NETIO_EXPORT std::string_view to_string(Status status) noexcept;

// Why a connection ended. Every connection that was opened gets exactly one.
enum class CloseReason : std::uint8_t {
    local,           // abort() was called here, this side was destroyed, or it was closed before it
                     // was connected
    orderly,         // both sides have shut down, and all that was sent has been given to the user
                     // of the peer, as it said; also where close() was called
    unconfirmed,     // close() was called, here or there, and that much is not known: the peer was
                     // too slow for it, died in it, or left something unread
    lost,            // the connection broke: the peer died, was killed, or the network reset it
    refused,         // nobody listens at the address
    unreachable,     // no route to the address, or it cannot be resolved
    rejected,        // the listener is there and does not want us; detail says what it requires
    connect_timeout, // no answer within the connect time-out
    handshake_timeout, // the peer connected and never finished the handshake
    silent,            // no sign of life for the dead-peer time
    too_slow,          // one side took nothing for too long, and the other has a policy for that;
                       // detail says which side
    protocol_error,    // the peer sent something that its protocol does not allow
    not_admitted,      // who is at the other end has not proved its key, or has it no more
    failed,            // the provider reported an error that fits none of the above
};

NETIO_EXPORT std::string_view to_string(CloseReason reason) noexcept;

// How a connection ended: its last event.
struct Closed {
    CloseReason reason = CloseReason::local;
    std::string detail; // one line for people: address, error, remedy
    std::uint32_t
        required_receive_bytes{}; // rejected: the receive size the listener asks for, or 0
    // While connecting: the other side ended the connection and had not answered. A listener does
    // so where too many connections of this machine are not set up, and another attempt may
    // succeed.
    bool ended_unanswered{};
    // Frames sent here that the user of the peer is not known to have been given. A frame carries
    // one message, a page of them, or a fragment.
    std::uint64_t unconfirmed_frames{};
    // rejected: the listener is full, or lacks memory or descriptors, and may accept a later
    // attempt.
    bool may_pass = false;
};

// One line for people: the detail, or what the reason means where there is none.
NETIO_EXPORT std::string to_string(const Closed& closed);
// The same with both: "REASON: DETAIL", or "REASON" where there is no detail.
NETIO_EXPORT std::string explain(const Closed& closed);

// "HOST:PORT", with an IPv6 address in brackets. Port 0 asks for any free port when listening.
struct Address {
    std::string host;
    std::uint16_t port = 0;

    friend bool operator==(const Address&, const Address&) = default;
};

// Throws std::invalid_argument naming the text and what is expected.
NETIO_EXPORT Address parse_address(std::string_view text);
NETIO_EXPORT std::string to_string(const Address& address);

// A set-up step failed. what() names the step, the object (an address, a size) and the reason.
// code() carries the error number of the system, the resolver or the provider (its category).
class NETIO_EXPORT FabricError : public std::system_error {
  public:
    FabricError(std::error_code code, const std::string& what) : std::system_error{code, what} {}
};

// What a call of netio::Publisher or netio::Subscriber could not do. status() is the reason in one
// word, what() names the object, the reason and the remedy.
class NETIO_EXPORT Error : public std::runtime_error {
  public:
    Error(Status status, const std::string& what) : std::runtime_error{what}, status_{status} {}
    Status status() const noexcept { return status_; }

  private:
    Status status_;
};

} // namespace netio::inline v0_3
