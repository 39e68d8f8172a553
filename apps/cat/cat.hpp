// SPDX-License-Identifier: Apache-2.0
#pragma once

// Decides when netio cat ends although its standard input is still open. No I/O.
//
// Each side forwards both ends: the end of standard input ends the data it sends, and the end of
// the peer's data closes standard output. A connection is complete when both directions have ended.
// But a terminal has no end before Ctrl-D, and some pipes are never written to. Therefore, after
// the end of the peer's data, this side does not wait for an input that seems to be unused.

#include <cstdint>

namespace apps::cat {

enum class Until : std::uint8_t {
    automatic,
    peer, // ends with the peer's direction, for any standard input
    both, // ends when both directions have ended
};

enum class Input : std::uint8_t {
    terminal,
    endless_pipe, // a pipe or a socket, which may never be written to
    file,         // has an end
};

struct Situation {
    Until until = Until::automatic;
    bool listens = false; // --listen
    Input input = Input::file;
    bool output_has_reader = false;   // a pipe or a socket: a program may respond to the end
    std::uint64_t received_bytes = 0; // from the peer
    std::uint64_t input_bytes = 0;    // from standard input
};

enum class AfterPeersEnd : std::uint8_t {
    wait_for_input,      // until standard input ends
    wait_for_first_byte, // ends if standard input stays silent for a short time
    end,
};

constexpr AfterPeersEnd after_peers_end(const Situation& now) noexcept {
    if (now.until == Until::peer) return AfterPeersEnd::end;
    if (now.until == Until::both || now.input == Input::file) return AfterPeersEnd::wait_for_input;
    // A peer that has ended without sending a byte only receives: it waits for data from this side.
    const bool has_received = now.received_bytes > 0;
    if (now.input == Input::terminal)
        return now.listens || has_received ? AfterPeersEnd::end : AfterPeersEnd::wait_for_input;
    const bool is_in_use = now.input_bytes > 0 || now.output_has_reader || !has_received;
    return is_in_use ? AfterPeersEnd::wait_for_input : AfterPeersEnd::wait_for_first_byte;
}

} // namespace apps::cat
