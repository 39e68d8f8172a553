// SPDX-License-Identifier: Apache-2.0
#pragma once

// FrameCarrier: transfers travel in frames of the session, a direct one in several if it is longer
// than a frame (R16). For a peer that lends no memory; so it has nothing to say of its memory.

#include "stream/core/fifo.hpp"
#include "stream/socket/carrier.hpp"

#include <array>

namespace netio::stream::inline v0_2 {

class FrameCarrier final : public Carrier {
  public:
    ProtocolError on_ring(const RemoteRing& ring) override;
    ProtocolError on_advert(const Advert& advert) override;
    void prepare(const Slice&, MemoryDomain&) override {} // the session does where it must be
    std::size_t piece_count(const Session& session) const override;
    std::size_t joined_count(const Session& session) const override;
    bool is_ready(Session& session) override;
    bool take(const Transfer& transfer, std::span<const Slice> pieces, Session& session) override;
    std::uint64_t waiting_bytes() const override { return left_bytes_; }
    bool on_sent(std::uint64_t transfer) override;

  private:
    // Sends what is left of the present transfer as far as there is capacity. False: the connection
    // has broken.
    bool go_on(Session& session);
    Status send_frame(std::uint64_t bytes, Session& session);
    void drop(std::uint64_t bytes);

    Transfer transfer_;
    std::array<Slice, piece_limit> rest_{}; // of its memory
    std::size_t rest_begin_ = 0;
    std::uint64_t left_bytes_ = 0;

    // Frames of each transfer that have not left, and one more while there is something left to
    // send of it.
    Fifo<std::uint32_t> open_frames_;
    std::uint64_t first_open_ = 0; // number of the front
};

} // namespace netio::stream::inline v0_2
