// SPDX-License-Identifier: Apache-2.0
#pragma once

// When netio cat ends although its standard input is still open. No I/O.
//
// Each side passes on both ends: the end of standard input becomes the end of what it sends, and
// the end of what the peer sends closes standard output. A conversation is over when both
// directions have ended. But a terminal has no end before Ctrl-D, and some pipes are never written
// to, so after the peer's end this side does not wait for the end of an input that nothing suggests
// is in use.

#include <cstdint>

namespace apps::cat {

enum class Until : std::uint8_t {
    automatic,
    peer, // ends with the peer's direction, whatever standard input is
    both, // ends when both directions have ended
};

enum class Input : std::uint8_t {
    terminal,
    endless_pipe, // a pipe or a socket: perhaps nothing will ever be written to it
    file,         // its end comes by itself
};

struct Situation {
    Until until = Until::automatic;
    bool listens = false; // --listen
    Input input = Input::file;
    bool output_has_reader = false;   // a pipe or a socket: a program that may answer the end
    std::uint64_t received_bytes = 0; // from the peer
    std::uint64_t input_bytes = 0;    // from standard input
};

enum class AfterPeersEnd : std::uint8_t {
    wait_for_input,      // until standard input ends
    wait_for_first_byte, // end if standard input stays silent for a moment
    end,
};

constexpr AfterPeersEnd after_peers_end(const Situation& now) noexcept {
    if (now.until == Until::peer) return AfterPeersEnd::end;
    if (now.until == Until::both || now.input == Input::file) return AfterPeersEnd::wait_for_input;
    // A peer that has ended without a byte only receives: it waits for what comes from here.
    const bool has_received = now.received_bytes > 0;
    if (now.input == Input::terminal)
        return now.listens || has_received ? AfterPeersEnd::end : AfterPeersEnd::wait_for_input;
    const bool is_in_use = now.input_bytes > 0 || now.output_has_reader || !has_received;
    return is_in_use ? AfterPeersEnd::wait_for_input : AfterPeersEnd::wait_for_first_byte;
}

} // namespace apps::cat
