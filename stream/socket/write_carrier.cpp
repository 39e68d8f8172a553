// SPDX-License-Identifier: Apache-2.0
#include "stream/socket/write_carrier.hpp"

#include <algorithm>

namespace netio::stream::inline v0_2 {

ProtocolError WriteCarrier::on_ring(const RemoteRing& ring) {
    ring_ = ring;
    return ProtocolError::none;
}

ProtocolError WriteCarrier::on_advert(const Advert&) {
    return ProtocolError::none; // its place comes back with the transfer
}

void WriteCarrier::prepare(const Slice& slice, MemoryDomain& domain) {
    static_cast<void>(slice.buffer->registration(domain));
}

std::size_t WriteCarrier::piece_count(const Session& session) const {
    return std::min(piece_limit, session.capabilities().segment_limit);
}

bool WriteCarrier::is_ready(Session& session) {
    return session.request_write_capacity();
}

bool WriteCarrier::take(const Transfer& transfer, std::span<const Slice> pieces, Session& session) {
    const RemoteSlice target = transfer.kind == TransferKind::direct
                                   ? RemoteSlice{transfer.address, transfer.key}
                                   : RemoteSlice{ring_.address + transfer.ring_offset, ring_.key};
    const OutgoingWrite write{
        .slices = pieces,
        .target = target,
        .notice = encode_immediate({transfer.kind, transfer.bytes, transfer.notice})};
    return session.write(write, Cookie{transfer.number}) == Status::ok;
}

} // namespace netio::stream::inline v0_2
