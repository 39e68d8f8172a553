// SPDX-License-Identifier: Apache-2.0
#pragma once

// The messages of a stream in addition to the user's bytes. All numbers are little-endian.
//
// Immediate data of a transfer (32 bits, the minimum of all providers):
//
//      31        30        29        28                                0
//     +---------+---------+---------+-----------------------------------+
//     | 1 = ring| waited  | first   | length, 1 .. 2^29-1               |
//     +---------+---------+---------+-----------------------------------+
//     waited: it had to wait for ring space (P11); first: into the ring announced last (R15);
//     both are 0 if it is not for the ring
//
// Control message: ADVERT, ACK and FIN parts in any combination. One part costs as much as all
// together: one receive and one completion at the peer. The header of the frame has the credits
// (netio/base/frame.hpp).
//
//      0       1         2   8             16            24
//     +-------+---------+---+-------------+-------------+---------------
//     | parts | adverts | 0 | acknowledged| end of stream| adverts
//     |       | 0 .. 32 |   | total bytes | total bytes | 40 bytes each
//     +-------+---------+---+-------------+-------------+---------------
//     parts: bit 0 ACK, bit 1 FIN, bit 2 only with FIN: the sender receives no more either;
//     a total whose bit is not set is 0
//
//      0          8       12      16        24      32      40
//     +----------+-------+-------+---------+-------+-------+
//     | sequence | phase | flags | address | key   | bytes |    flags: bit 0 wait-all
//     +----------+-------+-------+---------+-------+-------+
//
// Ring: the memory for the peer's indirect transfers. The first message of each side, and another
// one for each larger ring (R15).
//
//      0         8      16           24
//     +---------+------+------------+
//     | address | key  | bytes      |
//     +---------+------+------------+
//     bytes may be 0 in the first, if the receiver advertises every receive
//
// Frame of bytes: for a receiver that offers no memory (R16). The body contains only bytes; the
// flags of the frame have their destination:
//
//      bit 0 for the ring; if not set, for the receive at the head
//      bit 1 it had to wait for ring space (P11), bit 2 first into the ring announced last (R15);
//            both only with bit 0
//      bit 3 only without bit 0: the transfer continues in the next frame
//
// Hello: the stream's part of the connection data, both ways.
//
//      0         1       2                  4
//     +---------+-------+------------------+
//     | version | flags | adverts accepted |
//     |  =4     |       | at a time        |
//     +---------+-------+------------------+
//     flags: bit 0 advertises receives,
//            bit 1 sends into adverts only, so every receive must be advertised
//            bit 2 reports when it has nothing to advertise (P10)
//            bit 3 has a ring that may grow (P11)
//            bit 4 offers memory for writes; if not set, bytes come in frames (R16)
//
// The decoders accept any bytes: they check every length and every bit that must be 0, and return a
// DecodeError; `out` is valid only if that is `none`.

#include "stream/core/options.hpp"
#include "stream/core/protocol.hpp"

#include "netio/base/frame.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace netio::stream::inline v0_3 {

enum class [[nodiscard]] DecodeError : std::uint8_t{
    none,
    truncated,      // shorter than its advert count says
    trailing_bytes, // longer
    unknown_bits,   // a bit is set that must be 0
    bad_length, // a transfer of 0 bytes, an advert of 0 bytes, or memory beyond the address space
    bad_phase,  // an advert of an odd phase
    too_many_adverts,
    unknown_version,
};

std::string_view to_string(DecodeError error) noexcept;

// --- Immediate data -----------------------------------------------------------------------------

struct Immediate {
    TransferKind kind = TransferKind::direct;
    std::uint32_t bytes = 0;
    RingNotice notice{}; // of an indirect transfer

    friend bool operator==(const Immediate&, const Immediate&) = default;
};

// `immediate.bytes` is from 1 to transfer_limit_bytes.
std::uint32_t encode_immediate(const Immediate& immediate);
DecodeError decode_immediate(std::uint32_t word, Immediate& out) noexcept;

// --- Frame of bytes -----------------------------------------------------------------------------

// `ring` must be empty and `more` false unless the kind allows them.
std::uint8_t encode_frame_flags(const FrameNotice& notice);
DecodeError decode_frame_flags(std::uint8_t flags, FrameNotice& out) noexcept;

// --- Control message ----------------------------------------------------------------------------

inline constexpr std::size_t adverts_per_message = 32;
inline constexpr std::size_t control_header_bytes = 24;
inline constexpr std::size_t advert_bytes = 40;
inline constexpr std::size_t control_limit_bytes =
    control_header_bytes + adverts_per_message * advert_bytes;

struct ControlMessage {
    std::optional<std::uint64_t> acknowledged_bytes; // Receiver::next_ack
    std::optional<std::uint64_t> end_bytes;          // Sender::next_fin
    bool closes = false; // with end_bytes: the sender receives no more either
    std::size_t advert_count = 0;
    std::array<Advert, adverts_per_message> adverts{};

    std::size_t item_count() const noexcept {
        return advert_count + (acknowledged_bytes ? 1 : 0) + (end_bytes ? 1 : 0);
    }
};

// Writes the message to the start of `space`, which must have control_limit_bytes bytes, and
// returns its length.
std::size_t encode_control(const ControlMessage& message, std::span<std::byte> space);
DecodeError decode_control(std::span<const std::byte> message, ControlMessage& out) noexcept;

// --- Ring ---------------------------------------------------------------------------------------

inline constexpr std::size_t ring_bytes_on_wire = 24;

struct RemoteRing {
    std::uint64_t address = 0;
    std::uint64_t key = 0;
    std::uint64_t bytes = 0;

    friend bool operator==(const RemoteRing&, const RemoteRing&) = default;
};

std::array<std::byte, ring_bytes_on_wire> encode_ring(const RemoteRing& ring) noexcept;
DecodeError decode_ring(std::span<const std::byte> message, RemoteRing& out) noexcept;

// --- Hello --------------------------------------------------------------------------------------

inline constexpr std::size_t hello_bytes = 4;
inline constexpr std::uint8_t hello_version = 4;

struct Hello {
    std::uint16_t advert_limit_count = 0; // SenderOptions::advert_limit_count
    bool advertises = true;               // false: indirect-only receiver
    bool needs_adverts = false;           // true: direct-only sender
    bool reports_no_advert = false;       // P10; a patient sender relies on it
    bool ring_may_grow = false;           // P11; asks the sender to report waits
    bool lends_memory = false;            // R16; false: address and key of its memory are 0

    friend bool operator==(const Hello&, const Hello&) = default;
};

std::array<std::byte, hello_bytes> encode_hello(const Hello& hello) noexcept;
DecodeError decode_hello(std::span<const std::byte> data, Hello& out) noexcept;

// The agreement of two sides with different options: each side announces in its hello what it does
// and needs, and adapts its own options to the peer's hello.

// `lends`: the peer writes to its memory.
Hello hello_of(const SenderOptions& sender, const ReceiverOptions& receiver, bool lends);

// Why the two sides cannot work together, from the view of the peer; empty if they can.
std::string_view incompatibility(const SenderOptions& sender, const ReceiverOptions& receiver,
                                 const Hello& peer);

// The options of this side's receiver with this peer; `lends`: the peer writes into the memory
// here.
ReceiverOptions agreed(const ReceiverOptions& options, const Hello& peer, bool lends);

// The options of this side's sender with this peer, whose first ring has `ring_bytes`. The longest
// write is `message_bytes`; for a peer that offers no memory, the longest frame. Without a ring all
// transfers are direct, so the options must not be indirect-only then.
SenderOptions agreed(const SenderOptions& options, const Hello& peer, std::uint64_t ring_bytes,
                     std::uint64_t message_bytes);

// --- Frames of the stream service ---------------------------------------------------------------

// docs/wire-formats.md, "Stream": the messages above are the bodies of these frames.
inline constexpr std::uint8_t bytes_kind = first_service_kind;
inline constexpr std::uint8_t control_kind = first_state_kind;
inline constexpr std::uint8_t ring_kind = first_state_kind + 1;
inline constexpr std::size_t frame_limit_bytes = frame_header_bytes + control_limit_bytes;
static_assert(frame_limit_bytes == 1312);

} // namespace netio::stream::inline v0_3
