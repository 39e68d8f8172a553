// SPDX-License-Identifier: Apache-2.0
#pragma once

// WriteCarrier: each transfer is one remote write, into the receive or the ring that the peer has
// told of.

#include "stream/socket/carrier.hpp"

namespace netio::stream::inline v0_2 {

class WriteCarrier final : public Carrier {
  public:
    ProtocolError on_ring(const RemoteRing& ring) override;
    ProtocolError on_advert(const Advert& advert) override;
    void prepare(const Slice& slice, MemoryDomain& domain) override;
    std::size_t piece_count(const Session& session) const override;
    std::size_t joined_count(const Session&) const override { return 0; } // each is worth a write
    bool is_ready(Session& session) override;
    bool take(const Transfer& transfer, std::span<const Slice> pieces, Session& session) override;
    std::uint64_t waiting_bytes() const override { return 0; }
    bool on_sent(std::uint64_t) override { return true; }

  private:
    RemoteRing ring_;
};

} // namespace netio::stream::inline v0_2
