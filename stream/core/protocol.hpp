// SPDX-License-Identifier: Apache-2.0
#pragma once

// The input and output values of the two state machines of a stream, and the protocol's constants.
// docs/stream-protocol.md has the rules (R1 ...) and policies (P1 ...) that the code cites.

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace netio::stream::inline v0_3 {

// A position in the byte stream of one direction. It has 64 bits and never wraps.
class Sequence {
  public:
    constexpr Sequence() = default;
    constexpr explicit Sequence(std::uint64_t value) : value_{value} {}

    constexpr std::uint64_t value() const noexcept { return value_; }

    constexpr Sequence& operator+=(std::uint64_t bytes) noexcept {
        value_ += bytes;
        return *this;
    }
    friend constexpr Sequence operator+(Sequence position, std::uint64_t bytes) noexcept {
        return Sequence{position.value_ + bytes};
    }
    // Bytes from `earlier` to `later`, which must be in this order.
    friend constexpr std::uint64_t operator-(Sequence later, Sequence earlier) noexcept {
        return later.value_ - earlier.value_;
    }
    friend constexpr auto operator<=>(const Sequence&, const Sequence&) = default;

  private:
    std::uint64_t value_ = 0;
};

// Counts the switches between direct (even) and indirect (odd) transfers. It has 32 bits and may
// wrap: phases are compared by their signed distance, never by `<` (R6).
class Phase {
  public:
    constexpr Phase() = default;
    constexpr explicit Phase(std::uint32_t value) : value_{value} {}

    constexpr std::uint32_t value() const noexcept { return value_; }
    constexpr bool is_direct() const noexcept { return (value_ & 1U) == 0; }
    constexpr Phase next() const noexcept { return Phase{value_ + 1}; }

    // Steps from `earlier` to `later`, negative if they are in the other order.
    friend constexpr std::int32_t operator-(Phase later, Phase earlier) noexcept {
        return static_cast<std::int32_t>(later.value_ - earlier.value_);
    }
    friend constexpr bool operator==(const Phase&, const Phase&) = default;

  private:
    std::uint32_t value_ = 0;
};

static_assert(sizeof(Sequence) == 8 && sizeof(Phase) == 4);
static_assert(Phase{}.is_direct() && !Phase{}.next().is_direct());
static_assert(Phase{UINT32_MAX}.next() == Phase{0} && !Phase{UINT32_MAX}.is_direct(),
              "wrapping keeps the parity");
static_assert(Phase{0} - Phase{UINT32_MAX} == 1);

// Chosen by the caller and returned in the results; the state machines do not interpret it.
enum class SendId : std::uint64_t {};
enum class ReceiveId : std::uint64_t {};

enum class TransferKind : std::uint8_t {
    direct,   // into the memory of the receive at the head of the receiver's queue
    indirect, // into the receiver's ring
};

// The part of an indirect transfer's notice in addition to its length.
struct RingNotice {
    bool waited = false; // P11: the sender had to wait for ring space before it
    bool first = false;  // R15: it is the first into the ring that was announced last

    friend bool operator==(const RingNotice&, const RingNotice&) = default;
};

// The content of a frame to a peer that offers no memory: a transfer, or a part of one (R16).
struct FrameNotice {
    TransferKind kind = TransferKind::direct;
    RingNotice ring{}; // of an indirect transfer
    bool more = false; // of a direct one: it continues in the next frame

    friend bool operator==(const FrameNotice&, const FrameNotice&) = default;
};

// A violation of the protocol by the peer. The connection cannot be used any more: after the first
// error, a state machine accepts no input, and its only outputs are the completions of operations
// that were finished before. `none` is success.
enum class [[nodiscard]] ProtocolError : std::uint8_t{
    none,
    advert_malformed,   // length 0, or an odd phase
    advert_limit,       // more adverts outstanding than agreed
    advert_phase,       // a phase that no advert can have now
    advert_ahead,       // sequence number of bytes that were not sent yet
    advert_behind,      // sequence number more than a ring behind
    ack_out_of_range,   // acknowledges less than before, or more than was sent
    transfer_malformed, // length 0
    direct_unexpected,  // direct transfer while the head receive is not open for one
    direct_too_long,    // direct transfer longer than the rest of the head receive
    ring_overrun,       // indirect transfer into bytes that are in use, or across the ring's end
    ring_unexpected,    // a ring, or a transfer into one, that was not requested or is not larger
    transfer_after_end, // data, or a second end, after the end of the stream
    end_mismatch,       // the end announces another total than the bytes that arrived
    memory_named,       // a memory address, from a peer whose bytes come in frames (R16)
};

std::string_view to_string(ProtocolError error) noexcept;

// The part of an advert that the protocol reads.
struct AdvertTerms {
    Sequence sequence{}; // R5
    Phase phase{};       // even
    std::uint64_t bytes = 0;
    bool wait_all = false;

    friend bool operator==(const AdvertTerms&, const AdvertTerms&) = default;
};

// An advert on the side that owns the memory: the open part of a receive.
struct LocalAdvert {
    AdvertTerms terms{};
    ReceiveId id{};
    std::uint64_t offset = 0; // of the first open byte in the receive

    friend bool operator==(const LocalAdvert&, const LocalAdvert&) = default;
};

// An advert on the side that will write: the address of the memory, as the owner knows it.
struct Advert {
    AdvertTerms terms{};
    std::uint64_t address = 0;
    std::uint64_t key = 0;

    friend bool operator==(const Advert&, const Advert&) = default;
};

// The position of indirect transfers in one ring (R4).
//
// Both sides count indirect bytes from the beginning of the stream, through all rings that a
// direction has had (R15). A ring contains the bytes from `begin` on, the first of them at its
// start.
struct RingSpan {
    std::uint64_t begin = 0; // indirect bytes of the rings before this one
    std::uint64_t bytes = 0;

    // The offset of the byte at this position, which must be in this ring.
    std::uint64_t offset(std::uint64_t position) const { return (position - begin) % bytes; }
    std::uint64_t bytes_to_end(std::uint64_t position) const { return bytes - offset(position); }
    // Bytes of this ring in use, given the totals of bytes copied out of all rings, and written
    // into them.
    std::uint64_t used_bytes(std::uint64_t copied, std::uint64_t written) const {
        return written - std::max(copied, begin);
    }
    std::uint64_t free_bytes(std::uint64_t copied, std::uint64_t written) const {
        return bytes - used_bytes(copied, written);
    }
};

// A run of bytes of one send.
struct Piece {
    SendId id{};
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;

    friend bool operator==(const Piece&, const Piece&) = default;
};

// One write with immediate data for the caller to post. Its bytes are those of the first
// `piece_count` pieces that next_transfer filled in, one after another.
struct Transfer {
    TransferKind kind = TransferKind::direct;
    std::uint64_t number = 0; // 0, 1, 2 ...; to be passed to on_transfer_done
    Sequence sequence{};      // of its first byte; not sent
    std::uint32_t bytes = 0;
    std::size_t piece_count = 0;
    std::uint64_t address = 0;     // direct: the address in the peer's memory
    std::uint64_t key = 0;         // direct
    std::uint64_t ring_offset = 0; // indirect: the offset in the peer's ring
    RingNotice notice{};           // indirect

    friend bool operator==(const Transfer&, const Transfer&) = default;
};

// A contiguous run of ring bytes for the caller to copy into a receive.
struct Copy {
    ReceiveId id{};
    std::uint64_t receive_offset = 0;
    std::uint32_t ring = 0; // 0, 1, 2 ... in the order of announcement (R15)
    std::uint64_t ring_offset = 0;
    std::uint64_t bytes = 0;

    friend bool operator==(const Copy&, const Copy&) = default;
};

// A contiguous run of ring bytes that the user reads where they lie.
struct RingPart {
    std::uint32_t ring = 0; // as in Copy
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;

    friend bool operator==(const RingPart&, const RingPart&) = default;
};

// Where to put the bytes of a frame.
struct Place {
    ReceiveId id{};           // direct
    std::uint32_t ring = 0;   // indirect; as in Copy
    std::uint64_t offset = 0; // in one or the other

    friend bool operator==(const Place&, const Place&) = default;
};

struct ReceiveCompletion {
    ReceiveId id{};
    std::uint64_t bytes = 0;
    // The stream has ended, so `bytes` may be less than requested, even 0.
    bool end_of_stream = false;

    friend bool operator==(const ReceiveCompletion&, const ReceiveCompletion&) = default;
};

} // namespace netio::stream::inline v0_3
