// SPDX-License-Identifier: Apache-2.0
#include "stream/core/options.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>

namespace netio::stream::inline v0_3 {

namespace {

void require(bool condition, const char* option, std::uint64_t value, const char* rule) {
    if (condition) return;
    throw std::invalid_argument{std::string{"stream option "} + option + " is " +
                                std::to_string(value) + ", but " + rule};
}

} // namespace

SenderOptions improved_sender(std::uint64_t ring_bytes) {
    return SenderOptions{.ring_bytes = ring_bytes};
}

ReceiverOptions improved_receiver(std::uint64_t ring_bytes, std::uint64_t ring_limit_bytes) {
    return ReceiverOptions{.ring_bytes = ring_bytes,
                           .ring_limit_bytes = ring_limit_bytes,
                           .ack_threshold_bytes = ring_bytes / 4};
}

SenderOptions published_sender(std::uint64_t ring_bytes) {
    return SenderOptions{.ring_bytes = ring_bytes,
                         .backlog_limit_bytes = unlimited_bytes,
                         .patience_threshold_bytes = unlimited_bytes,
                         .direct_threshold_bytes = 0,
                         .avoid_slivers = false,
                         .drain = false,
                         .ring_transfer_limit_bytes = unlimited_bytes,
                         .coalesce_limit_bytes = 0,
                         .cork = false,
                         .report_ring_waits = false};
}

ReceiverOptions published_receiver(std::uint64_t ring_bytes) {
    return ReceiverOptions{.ring_bytes = ring_bytes,
                           .advert_number = AdvertNumber::estimated,
                           .readvertise = false,
                           .adverts_first = false,
                           .batch_limit_count = 1,
                           .ack_threshold_bytes = 0,
                           .advert_threshold_bytes = 0,
                           .report_no_advert = false};
}

void validate(const SenderOptions& options) {
    require(options.ring_bytes > 0 || options.mode == TransferMode::direct_only, "ring_bytes",
            options.ring_bytes, "only a direct-only sender works without a ring");
    require(options.longest_transfer_bytes > 0 &&
                options.longest_transfer_bytes <= transfer_limit_bytes,
            "longest_transfer_bytes", options.longest_transfer_bytes,
            "it must be from 1 to 536870911");
    // Only a direct transfer is always answered (P10).
    require(options.patience_threshold_bytes > 0, "patience_threshold_bytes",
            options.patience_threshold_bytes, "without a direct transfer there is no answer");
    require(options.ring_transfer_limit_bytes > 0, "ring_transfer_limit_bytes",
            options.ring_transfer_limit_bytes, "a transfer has at least 1 byte");
    require(options.advert_limit_count > 0 || options.mode == TransferMode::indirect_only,
            "advert_limit_count", options.advert_limit_count,
            "only an indirect-only sender works without adverts");
}

void validate(const ReceiverOptions& options) {
    require(options.ring_bytes > 0 || options.mode == TransferMode::direct_only, "ring_bytes",
            options.ring_bytes, "only the receiver of a direct-only sender works without a ring");
    require(options.advert_limit_count > 0 || options.mode == TransferMode::indirect_only,
            "advert_limit_count", options.advert_limit_count,
            "only an indirect-only receiver works without adverts");
    require(options.batch_limit_count > 0, "batch_limit_count", options.batch_limit_count,
            "a control message carries at least one item");
    // P3 and P6 together: with an empty ring, the sender must know of enough space to continue.
    require(options.ack_threshold_bytes <= std::max<std::uint64_t>(1, options.ring_bytes / 2),
            "ack_threshold_bytes", options.ack_threshold_bytes,
            "it must be at most half of ring_bytes");
    // P11: otherwise a single acknowledgement would look like a ring that is too small.
    require(!ring_may_grow(options) || options.ack_threshold_bytes <= options.ring_bytes / 4,
            "ack_threshold_bytes", options.ack_threshold_bytes,
            "it must be at most a quarter of ring_bytes if the ring may grow");
    require(options.mode != TransferMode::direct_only || options.advert_threshold_bytes == 0,
            "advert_threshold_bytes", options.advert_threshold_bytes,
            "a direct-only peer needs an advert for every receive: set it to 0");
}

} // namespace netio::stream::inline v0_3
