// SPDX-License-Identifier: Apache-2.0
#pragma once

// The switches of the stream protocol. The defaults are our policy; published_sender() and
// published_receiver() are the policy of the 2014 study; each member can be changed alone, so that
// any two variants can be compared. Every combination that validate() lets pass keeps the stream
// correct; they differ in speed only. Two sides must agree in this: a direct-only sender needs a
// receiver that advertises everything, an indirect-only receiver a sender that uses the ring.

#include "stream/protocol.hpp"

#include <cstddef>
#include <cstdint>
#include <limits>

namespace stream {

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

struct SenderOptions {
    std::uint64_t ring_bytes = 0; // of the peer's ring; 0 only with direct_only
    TransferMode mode = TransferMode::dynamic;
    std::uint32_t longest_transfer_bytes = transfer_limit_bytes;
    std::size_t advert_limit_count = 256; // adverts the peer may have outstanding

    // P1 late decision: without a usable advert, the ring is chosen only while at most this many
    // posted bytes are not yet reported done. Where a write is reported done only after the peer
    // has it, this should be at least bandwidth times round trip. Published: unlimited.
    std::uint64_t backlog_limit_bytes = 64 * 1024;
    // P2 zero-copy threshold: shorter sends prefer the ring. Published: 0.
    std::uint64_t direct_threshold_bytes = 4 * 1024;
    // P3: wait for more ring space rather than send a small part of a send. Published: false.
    bool avoid_slivers = true;
    // P4: sends gathered into one transfer are together at most this long. Published: 0.
    std::uint64_t coalesce_limit_bytes = 16 * 1024;
    // P4: while a transfer is under way, wait for more small sends to gather. Published: false.
    bool cork = true;
};

struct ReceiverOptions {
    std::uint64_t ring_bytes = 0;              // of our ring; 0 only if the peer is direct_only
    TransferMode mode = TransferMode::dynamic; // direct_only is the same as dynamic here
    std::size_t advert_limit_count = 256;      // the peer's SenderOptions::advert_limit_count

    AdvertNumber advert_number = AdvertNumber::exact; // R5. Published: estimated
    // R7: the first indirect transfer of a phase voids all adverts; they are sent again when the
    // ring is empty. Without it (published) each must be satisfied through the ring first.
    bool readvertise = true;
    // P5: adverts leave before acknowledgements. Published: false.
    bool adverts_first = true;
    // P5: adverts and acknowledgements in one control message. Published: 1.
    std::size_t batch_limit_count = 33;
    // P6: acknowledge when this many bytes have been copied out, at most half of the ring; smaller
    // amounts leave with the next adverts. Published: 0, after every copy.
    std::uint64_t ack_threshold_bytes = 0;
    // P7: shorter receives are not advertised; nor is anything right after a shorter indirect
    // transfer, for then the peer's sends are small. 0 if the peer is direct_only. Published: 0.
    std::uint64_t advert_threshold_bytes = 4 * 1024;
};

// Our policy for a ring of this size.
SenderOptions improved_sender(std::uint64_t ring_bytes);
ReceiverOptions improved_receiver(std::uint64_t ring_bytes);

// The policy of the 2014 study.
SenderOptions published_sender(std::uint64_t ring_bytes);
ReceiverOptions published_receiver(std::uint64_t ring_bytes);

// Throw std::invalid_argument, naming the option, its value and what is allowed. The constructors
// of Sender and Receiver call them.
void validate(const SenderOptions& options);
void validate(const ReceiverOptions& options);

} // namespace stream
