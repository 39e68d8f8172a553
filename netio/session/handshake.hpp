// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the two sides of a session have said of themselves before it opened, and whether that will
// do. No I/O.

#include "netio/base/status.hpp"
#include "netio/session/gate_passage.hpp"
#include "netio/session/hello.hpp"
#include "netio/session/key_exchange.hpp"
#include "netio/session/open_options.hpp"
#include "netio/session/session_options.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace netio::inline v0_2 {

class Handshake {
  public:
    // `hello`: the service's part; the rest follows from the options.
    Handshake(const Hello& hello, const SessionOptions& options) noexcept;

    // This side connects, and needs so much of the peer's receive buffers, and offers so much.
    void connects(std::size_t required_receive_bytes, const OpenOptions& offered) noexcept;
    // This side accepts a peer that has been judged.
    void accepts(const Hello& peer) noexcept;
    // What both have to prove, and have proved.
    GatePassage& gate() noexcept { return gate_; }
    const GatePassage& gate() const noexcept { return gate_; }
    // What to connect or to accept with; the number of bytes.
    std::size_t put_hello(ConnectionData& data);
    bool is_accepting() const noexcept { return accepting_; }
    void complete() noexcept { complete_ = true; }
    bool is_complete() const noexcept { return complete_; }

    // The accepting side's answer. `detail`: what is wrong with it; empty: nothing.
    Closed take_answer(std::span<const std::byte> data);
    // Null: the level of protection has none. Otherwise once both sides have passed the gate; keys
    // are changed after so many bytes.
    KeyExchange* exchange(std::uint64_t key_bytes);
    // It is over: what the keys were made of is not kept.
    void forget_exchange() noexcept { exchange_.reset(); }
    // The connecting side's open frame. False: it cannot be, or asks for what is not served.
    [[nodiscard]] bool take_open(std::span<const std::byte> body) noexcept;
    void take_rejection(std::span<const std::byte> data) {
        rejection_ = decode_rejection(data);
        gate_.take_rejection(rejection_.code, data);
    }
    // Adds what the listener said to the reason.
    void explain(Closed& closed) const;

    const Hello& peer() const noexcept { return peer_; }
    // Of the connecting side.
    const OpenOptions& offered() const noexcept { return offered_; }
    RejectCode rejection() const noexcept { return rejection_.code; }

  private:
    Hello hello_;
    Hello peer_;
    OpenOptions offered_;
    Rejection rejection_{.code = RejectCode::none};
    std::size_t required_receive_bytes_ = least_receive_bytes;
    bool accepting_ = false;
    bool complete_ = false;
    GatePassage gate_;
    std::optional<KeyExchange> exchange_;
};

} // namespace netio::inline v0_2
