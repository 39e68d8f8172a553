// SPDX-License-Identifier: Apache-2.0
#pragma once

// Carrier: how the bytes of one direction travel once the state machine has said which: written
// into memory that the peer lends (write_carrier.hpp), or in frames (frame_carrier.hpp). The peer's
// hello says which of the two it is, for the whole of a conversation.

#include "stream/core/protocol.hpp"
#include "stream/core/wire.hpp"

#include "netio/session/session.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace netio::stream::inline v0_2 {

class Carrier {
  public:
    // More pieces than this in one transfer are not worth their handling.
    static constexpr std::size_t piece_limit = 16;

    virtual ~Carrier() = default;

    // What the peer says of its memory: a ring that the next transfers may go to (R15), or a
    // receive.
    virtual ProtocolError on_ring(const RemoteRing& ring) = 0;
    virtual ProtocolError on_advert(const Advert& advert) = 0;

    // Memory that is going to be sent. May throw FabricError if it cannot be registered.
    virtual void prepare(const Slice& slice, MemoryDomain& domain) = 0;
    // Of a transfer, at most; up to piece_limit.
    virtual std::size_t piece_count(const Session& session) const = 0;
    // Of those so many leave from where they lie, however long (Sender::next_transfer).
    virtual std::size_t joined_count(const Session& session) const = 0;
    // Another transfer may be begun now. False: on_writable follows.
    virtual bool is_ready(Session& session) = 0;
    // Takes a transfer with the memory of its pieces; only when it is ready. False: the connection
    // has broken, and says so by on_closed.
    virtual bool take(const Transfer& transfer, std::span<const Slice> pieces,
                      Session& session) = 0;
    // Of what was taken, and has not been handed to the session yet.
    virtual std::uint64_t waiting_bytes() const = 0;
    // The session reports a part of this transfer to have left. True: that was all of it.
    virtual bool on_sent(std::uint64_t transfer) = 0;
};

} // namespace netio::stream::inline v0_2
