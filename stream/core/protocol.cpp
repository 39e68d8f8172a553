// SPDX-License-Identifier: Apache-2.0
#include "stream/core/protocol.hpp"

namespace netio::stream::inline v0_3 {

std::string_view to_string(ProtocolError error) noexcept {
    switch (error) {
    case ProtocolError::none:
        return "no error";
    case ProtocolError::advert_malformed:
        return "malformed advert";
    case ProtocolError::advert_limit:
        return "more adverts than agreed";
    case ProtocolError::advert_phase:
        return "advert of an impossible phase";
    case ProtocolError::advert_ahead:
        return "advert ahead of the bytes sent";
    case ProtocolError::advert_behind:
        return "advert more than a ring behind";
    case ProtocolError::ack_out_of_range:
        return "acknowledgement out of range";
    case ProtocolError::transfer_malformed:
        return "empty transfer";
    case ProtocolError::direct_unexpected:
        return "direct transfer without an open advert";
    case ProtocolError::direct_too_long:
        return "direct transfer longer than its receive";
    case ProtocolError::ring_overrun:
        return "indirect transfer overruns the ring";
    case ProtocolError::ring_unexpected:
        return "unexpected ring";
    case ProtocolError::transfer_after_end:
        return "data after the end of the stream";
    case ProtocolError::end_mismatch:
        return "end of the stream at another position";
    case ProtocolError::memory_named:
        return "memory address where bytes come in frames";
    }
    return "unknown error";
}

} // namespace netio::stream::inline v0_3
