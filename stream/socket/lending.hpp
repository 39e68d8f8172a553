// SPDX-License-Identifier: Apache-2.0
#pragma once

// Lending: whether the peer writes into memory of this side, and what it is told of that memory
// then. A side that lends none registers none for writing; bytes come to it in frames
// (docs/stream-protocol.md, R16). Where frames are sealed, neither side lends any: nobody could
// tell who has written.

#include "stream/socket/stream_socket.hpp"

#include "netio/memory/buffer.hpp"
#include "netio/transport.hpp"

namespace netio::stream::inline v0_2 {

class Lending {
  public:
    enum class Seals : bool { nothing, every_frame };

    // `may_write`: a device checks each write of the peer's (Transport::guards_memory), or its key
    // has the right.
    static Lending to_peer(RemoteWrites choice, bool may_write) {
        return Lending{Seals::nothing, choice == RemoteWrites::trusted ||
                                           (choice == RemoteWrites::guarded && may_write)};
    }
    static Lending none_where_sealed() { return Lending{Seals::every_frame, false}; }

    bool lends() const noexcept { return lends_; }
    // The peer may say that it does.
    bool may_be_lent() const noexcept { return seals_ == Seals::nothing; }
    // Before the peer is told of it. Throws FabricError if it cannot be registered.
    void prepare(const Slice& slice, MemoryDomain& domain) const {
        if (lends_) static_cast<void>(slice.buffer->registration(domain));
    }
    // Where it is to be written to; nowhere, if it is not lent.
    RemoteSlice place(const Slice& slice, MemoryDomain& domain) const {
        if (!lends_) return {};
        const Registration& registration = slice.buffer->registration(domain);
        const auto offset = static_cast<std::uint64_t>(slice.data - slice.buffer->data());
        return {.address = registration.base() + offset, .key = registration.key()};
    }

  private:
    Lending(Seals seals, bool lends) : seals_{seals}, lends_{lends} {}

    Seals seals_;
    bool lends_;
};

} // namespace netio::stream::inline v0_2
