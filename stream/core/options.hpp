// SPDX-License-Identifier: Apache-2.0
#pragma once

// The options of the stream protocol. The defaults are this library's policy; published_sender()
// and published_receiver() give the policy of the 2014 study. Each member can be changed alone, so
// that any two variants can be compared. Every combination that validate() accepts keeps the stream
// correct; only the speed differs. The two sides must match: a direct-only sender needs a receiver
// that advertises everything, an indirect-only receiver needs a sender that uses the ring, and a
// patient sender needs a receiver that reports when it has nothing to advertise (P1, P10). Letters
// with numbers are the rules and policies of docs/stream-protocol.md.

#include "netio/base/export.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace netio::stream::inline v0_3 {

enum class TransferMode : std::uint8_t {
    dynamic,       // direct when an advert allows it, else through the ring
    direct_only,   // baseline: the sender always waits for an advert
    indirect_only, // baseline: nothing is advertised, everything is copied
};

enum class AdvertNumber : std::uint8_t {
    exact,     // bytes delivered so far
    estimated, // the published estimate of the position at which the receive will begin
};

inline constexpr std::uint64_t unlimited_bytes = std::numeric_limits<std::uint64_t>::max();

// P6: when the ring is empty, this many unacknowledged bytes are acknowledged at once. A sender
// that waits for the acknowledgement (P8) may treat fewer bytes as none.
constexpr std::uint64_t prompt_ack_bytes(std::uint64_t ring_bytes) {
    return std::clamp<std::uint64_t>(ring_bytes / 64, 1, 16 * 1024);
}

// The length field of the immediate data has 29 bits (stream/core/wire.hpp).
inline constexpr std::uint32_t transfer_limit_bytes = (1U << 29) - 1;

// A waiting close() takes each finished transfer as progress of the peer, so one transfer must take
// less time than close() waits. This one takes a tenth of a second at 1.3 Gb/s.
inline constexpr std::uint32_t usual_transfer_bytes = 16 * 1024 * 1024;

struct SenderOptions {
    std::uint64_t ring_bytes = 0; // of the peer's ring; 0 only with direct_only
    TransferMode mode = TransferMode::dynamic;
    std::uint32_t longest_transfer_bytes = usual_transfer_bytes; // published: 2^29 - 1
    std::size_t advert_limit_count = 256; // adverts the peer may have outstanding

    // P1 late decision: a direct phase ends for lack of an advert only while at most this many
    // posted bytes are not yet reported done. If a write is reported done only after the peer has
    // it, bytes in flight count as well: over a long distance, this should be about bandwidth times
    // round trip. Published: unlimited.
    std::uint64_t backlog_limit_bytes = 24 * 1024;
    // P1 patience: after a direct run of this many bytes, a sender without an advert waits until
    // the peer has answered these bytes, and only then uses the ring. Published: unlimited.
    std::uint64_t patience_threshold_bytes = 192 * 1024;
    // P2 zero-copy threshold: shorter sends prefer the ring. Published: 0.
    std::uint64_t direct_threshold_bytes = 4 * 1024;
    // P3: wait for more ring space rather than send a small part of a send. Published: false.
    bool avoid_slivers = true;
    // P8: after a quarter of the ring, wait until the peer has emptied it, because only then an
    // advert can be used again. After each wait without that result the amount doubles. Does not
    // wait while there is no sign that the peer's user receives. Published: false.
    bool drain = true;
    // P9: longer indirect transfers are split, so that the peer copies one part while the next is
    // in flight. Published: unlimited.
    std::uint64_t ring_transfer_limit_bytes = 256 * 1024;
    // P4: limit of the total length of sends that are gathered into one transfer. Published: 0.
    std::uint64_t coalesce_limit_bytes = 16 * 1024;
    // P4: while a transfer is in flight, wait for more small sends to gather. Published: false.
    bool cork = true;
    // P11: report when a transfer had to wait for ring space, so that the peer may enlarge its
    // ring. Published: false.
    bool report_ring_waits = true;
};

struct ReceiverOptions {
    std::uint64_t ring_bytes = 0; // of this side's ring; 0 only if the peer is direct_only
    // P11: the ring grows as the distance to the peer requires, up to this size; not at all if this
    // is not larger than ring_bytes. While it grows, the previous ring, half as large, exists as
    // well. Published: 0.
    std::uint64_t ring_limit_bytes = 0;
    TransferMode mode = TransferMode::dynamic; // direct_only is the same as dynamic here
    std::size_t advert_limit_count = 256;      // the peer's SenderOptions::advert_limit_count

    AdvertNumber advert_number = AdvertNumber::exact; // R5. Published: estimated
    // R7: the first indirect transfer of a phase voids all adverts; they are sent again when the
    // ring is empty. If false (published), each advert must be satisfied through the ring first.
    bool readvertise = true;
    // P5: adverts are sent before acknowledgements. Published: false.
    bool adverts_first = true;
    // P5: adverts and acknowledgements in one control message. Published: 1.
    std::size_t batch_limit_count = 33;
    // P6: acknowledge when this many bytes have been copied out, at most half of the ring, or when
    // the ring is empty (prompt_ack_bytes); smaller amounts are sent with the next adverts. For a
    // ring that may grow, at most a quarter of it, and the same for all its sizes. Published: 0,
    // after every copy.
    std::uint64_t ack_threshold_bytes = 0;
    // P7: receives that are shorter than this are not advertised. After an indirect transfer
    // shorter than this, the peer's sends are small, so no receive is advertised then. Must be 0 if
    // the peer is direct_only. Published: 0.
    std::uint64_t advert_threshold_bytes = 4 * 1024;
    // P10: report when the last advert has been used and there is no other. Published: false.
    bool report_no_advert = true;
};

// Whether the receiver may replace its first ring by a larger one.
constexpr bool ring_may_grow(const ReceiverOptions& options) {
    return options.ring_bytes > 0 && options.ring_limit_bytes > options.ring_bytes;
}

// This library's policy for a ring of this size.
NETIO_EXPORT SenderOptions improved_sender(std::uint64_t ring_bytes);
NETIO_EXPORT ReceiverOptions improved_receiver(std::uint64_t ring_bytes,
                                               std::uint64_t ring_limit_bytes = 0);

// The policy of the 2014 study.
NETIO_EXPORT SenderOptions published_sender(std::uint64_t ring_bytes);
NETIO_EXPORT ReceiverOptions published_receiver(std::uint64_t ring_bytes);

// Throw std::invalid_argument, which names the option, its value and the allowed values. The
// constructors of Sender and Receiver call them.
NETIO_EXPORT void validate(const SenderOptions& options);
NETIO_EXPORT void validate(const ReceiverOptions& options);

} // namespace netio::stream::inline v0_3
