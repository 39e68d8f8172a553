// SPDX-License-Identifier: Apache-2.0
#include "stream/core/agreement.hpp"

#include <algorithm>

namespace netio::stream::inline v0_2 {
namespace {

// R16: the bytes of frames are copied once, whether an advert was there or not. So what is shorter
// rather gathers in one frame for the ring, and needs no adverts (P2, P4, P7).
constexpr std::uint64_t gathered_bytes = 64 * 1024;

// Where the policy is on.
std::uint64_t at_least(std::uint64_t threshold, std::uint64_t least) {
    return threshold > 0 ? std::max(threshold, least) : 0;
}

} // namespace

Hello hello_of(const SenderOptions& sender, const ReceiverOptions& receiver, bool lends) {
    return {.advert_limit_count = static_cast<std::uint16_t>(sender.advert_limit_count),
            .advertises = receiver.mode != TransferMode::indirect_only,
            .needs_adverts = sender.mode == TransferMode::direct_only,
            .reports_no_advert = receiver.report_no_advert,
            .ring_may_grow = ring_may_grow(receiver),
            .lends_memory = lends};
}

std::string_view misfit(const SenderOptions& sender, const ReceiverOptions& receiver,
                        const Hello& peer) {
    if (peer.needs_adverts && receiver.mode == TransferMode::indirect_only) {
        return "is direct-only, and this side advertises nothing (indirect-only)";
    }
    if (!peer.advertises && sender.mode == TransferMode::direct_only) {
        return "advertises nothing (indirect-only), and this side is direct-only";
    }
    const bool takes_adverts = peer.advert_limit_count > 0;
    if (!takes_adverts && (peer.needs_adverts || receiver.mode == TransferMode::direct_only)) {
        return "takes no adverts, and one of the two sides is direct-only";
    }
    return {};
}

ReceiverOptions agreed(const ReceiverOptions& options, const Hello& peer, bool lends) {
    ReceiverOptions agreed = options;
    if (!lends) {
        agreed.advert_threshold_bytes = at_least(options.advert_threshold_bytes, gathered_bytes);
    }
    agreed.advert_limit_count =
        std::min<std::size_t>(options.advert_limit_count, peer.advert_limit_count);
    if (agreed.advert_limit_count == 0) agreed.mode = TransferMode::indirect_only;
    if (peer.needs_adverts) agreed.advert_threshold_bytes = 0; // P7
    return agreed;
}

SenderOptions agreed(const SenderOptions& options, const Hello& peer, std::uint64_t ring_bytes,
                     std::uint64_t message_bytes) {
    SenderOptions agreed = options;
    agreed.ring_bytes = ring_bytes;
    if (peer.lends_memory) {
        agreed.longest_transfer_bytes = static_cast<std::uint32_t>(
            std::min<std::uint64_t>(options.longest_transfer_bytes, message_bytes));
    } else { // R16: a direct transfer may be several frames
        const std::uint64_t gathered = std::min(gathered_bytes, message_bytes);
        agreed.direct_threshold_bytes = at_least(options.direct_threshold_bytes, gathered);
        agreed.coalesce_limit_bytes = at_least(options.coalesce_limit_bytes, gathered);
        agreed.ring_transfer_limit_bytes =
            std::min(options.ring_transfer_limit_bytes, message_bytes);
        // An advert that is waited for spares no copy (P1), nor does an empty ring bring one that
        // is worth its round trip (P8).
        agreed.patience_threshold_bytes = unlimited_bytes;
        agreed.drain = false;
    }
    if (!peer.advertises) agreed.mode = TransferMode::indirect_only;
    if (!peer.reports_no_advert) agreed.patience_threshold_bytes = unlimited_bytes; // P1, P10
    if (!peer.ring_may_grow) agreed.report_ring_waits = false;                      // P11
    if (ring_bytes == 0 && agreed.mode == TransferMode::dynamic) {
        agreed.mode = TransferMode::direct_only;
    }
    return agreed;
}

} // namespace netio::stream::inline v0_2
