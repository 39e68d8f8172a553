// SPDX-License-Identifier: Apache-2.0
#include "stream/core/wire.hpp"

#include "netio/base/check.hpp"

#include <algorithm>
#include <concepts>

namespace netio::stream::inline v0_3 {

namespace {

constexpr std::uint32_t indirect_bit = 1U << 31;
constexpr std::uint32_t waited_bit = 1U << 30;
constexpr std::uint32_t first_bit = 1U << 29;
constexpr std::uint8_t ack_part = 1;
constexpr std::uint8_t fin_part = 2;
constexpr std::uint8_t close_part = 4;
constexpr std::uint32_t wait_all_flag = 1;
constexpr std::uint8_t advertises_flag = 1;
constexpr std::uint8_t needs_adverts_flag = 2;
constexpr std::uint8_t reports_no_advert_flag = 4;
constexpr std::uint8_t ring_may_grow_flag = 8;
constexpr std::uint8_t lends_memory_flag = 16;
constexpr std::uint8_t all_hello_flags = advertises_flag | needs_adverts_flag |
                                         reports_no_advert_flag | ring_may_grow_flag |
                                         lends_memory_flag;
constexpr std::uint8_t frame_ring_flag = 1;
constexpr std::uint8_t frame_waited_flag = 2;
constexpr std::uint8_t frame_first_flag = 4;
constexpr std::uint8_t frame_more_flag = 8;
// No memory is larger, and sums of such lengths do not wrap.
constexpr std::uint64_t longest_memory_bytes = std::uint64_t{1} << 62;

// Checks that the constants match the diagrams in the header.
static_assert(transfer_limit_bytes == first_bit - 1);
static_assert(control_header_bytes ==
              2 * sizeof(std::uint8_t) + 6 * sizeof(std::uint8_t) + 2 * sizeof(std::uint64_t));
static_assert(advert_bytes == 2 * sizeof(std::uint32_t) + 4 * sizeof(std::uint64_t));
static_assert(hello_bytes == 2 * sizeof(std::uint8_t) + sizeof(std::uint16_t));
static_assert(ring_bytes_on_wire == 3 * sizeof(std::uint64_t));
static_assert(control_limit_bytes == 1304);

class Writer {
  public:
    explicit Writer(std::span<std::byte> space) : space_{space} {}

    template <std::unsigned_integral T>
    void put(T value) {
        NETIO_CHECK_MSG(used_ + sizeof(T) <= space_.size(), "no room for the message");
        for (std::size_t i = 0; i < sizeof(T); ++i) {
            space_[used_++] = static_cast<std::byte>((std::uint64_t{value} >> (8 * i)) & 0xFFU);
        }
    }
    std::size_t used() const { return used_; }

  private:
    std::span<std::byte> space_;
    std::size_t used_ = 0;
};

// The caller has checked the number of bytes.
class Reader {
  public:
    explicit Reader(std::span<const std::byte> bytes) : bytes_{bytes} {}

    template <std::unsigned_integral T>
    T get() {
        std::uint64_t value = 0;
        for (std::size_t i = 0; i < sizeof(T); ++i) {
            value |= std::uint64_t{std::to_integer<std::uint8_t>(bytes_[used_++])} << (8 * i);
        }
        return static_cast<T>(value);
    }

  private:
    std::span<const std::byte> bytes_;
    std::size_t used_ = 0;
};

DecodeError read_advert(Reader& reader, Advert& out) {
    out.terms.sequence = Sequence{reader.get<std::uint64_t>()};
    out.terms.phase = Phase{reader.get<std::uint32_t>()};
    const auto flags = reader.get<std::uint32_t>();
    out.address = reader.get<std::uint64_t>();
    out.key = reader.get<std::uint64_t>();
    out.terms.bytes = reader.get<std::uint64_t>();
    out.terms.wait_all = flags == wait_all_flag;
    if ((flags & ~wait_all_flag) != 0) return DecodeError::unknown_bits;
    if (!out.terms.phase.is_direct()) return DecodeError::bad_phase;
    if (out.terms.bytes == 0 || out.terms.bytes > longest_memory_bytes) {
        return DecodeError::bad_length;
    }
    return DecodeError::none;
}

// A message whose length must be exactly `expected`.
DecodeError check_length(std::size_t actual, std::size_t expected) {
    if (actual < expected) return DecodeError::truncated;
    return actual > expected ? DecodeError::trailing_bytes : DecodeError::none;
}

} // namespace

std::string_view to_string(DecodeError error) noexcept {
    switch (error) {
    case DecodeError::none:
        return "no error";
    case DecodeError::truncated:
        return "truncated";
    case DecodeError::trailing_bytes:
        return "trailing bytes";
    case DecodeError::unknown_bits:
        return "unknown bits set";
    case DecodeError::bad_length:
        return "impossible length";
    case DecodeError::bad_phase:
        return "advert of an odd phase";
    case DecodeError::too_many_adverts:
        return "too many adverts in a message";
    case DecodeError::unknown_version:
        return "unknown version";
    }
    return "unknown error";
}

std::uint32_t encode_immediate(const Immediate& immediate) {
    NETIO_CHECK(immediate.bytes > 0 && immediate.bytes <= transfer_limit_bytes); // R11
    if (immediate.kind == TransferKind::direct) return immediate.bytes;
    return indirect_bit | (immediate.notice.waited ? waited_bit : 0U) |
           (immediate.notice.first ? first_bit : 0U) | immediate.bytes;
}

DecodeError decode_immediate(std::uint32_t word, Immediate& out) noexcept {
    out.kind = (word & indirect_bit) != 0 ? TransferKind::indirect : TransferKind::direct;
    out.notice = {.waited = (word & waited_bit) != 0, .first = (word & first_bit) != 0};
    if (out.kind == TransferKind::direct && out.notice != RingNotice{}) {
        return DecodeError::unknown_bits;
    }
    out.bytes = word & transfer_limit_bytes;
    return out.bytes == 0 ? DecodeError::bad_length : DecodeError::none;
}

std::uint8_t encode_frame_flags(const FrameNotice& notice) {
    const bool in_ring = notice.kind == TransferKind::indirect;
    NETIO_CHECK(in_ring ? !notice.more : notice.ring == RingNotice{});
    return static_cast<std::uint8_t>(
        (in_ring ? frame_ring_flag : 0) | (notice.ring.waited ? frame_waited_flag : 0) |
        (notice.ring.first ? frame_first_flag : 0) | (notice.more ? frame_more_flag : 0));
}

DecodeError decode_frame_flags(std::uint8_t flags, FrameNotice& out) noexcept {
    const bool in_ring = (flags & frame_ring_flag) != 0;
    const int allowed =
        in_ring ? frame_ring_flag | frame_waited_flag | frame_first_flag : frame_more_flag;
    if ((flags & ~allowed) != 0) return DecodeError::unknown_bits;
    out.kind = in_ring ? TransferKind::indirect : TransferKind::direct;
    out.ring = {.waited = (flags & frame_waited_flag) != 0,
                .first = (flags & frame_first_flag) != 0};
    out.more = (flags & frame_more_flag) != 0;
    return DecodeError::none;
}

std::size_t encode_control(const ControlMessage& message, std::span<std::byte> space) {
    NETIO_CHECK(message.advert_count <= adverts_per_message);
    NETIO_CHECK(message.end_bytes || !message.closes);
    Writer writer{space};
    writer.put(static_cast<std::uint8_t>((message.acknowledged_bytes ? ack_part : 0) |
                                         (message.end_bytes ? fin_part : 0) |
                                         (message.closes ? close_part : 0)));
    writer.put(static_cast<std::uint8_t>(message.advert_count));
    writer.put(std::uint16_t{0});
    writer.put(std::uint32_t{0});
    writer.put(message.acknowledged_bytes.value_or(0));
    writer.put(message.end_bytes.value_or(0));
    for (std::size_t i = 0; i < message.advert_count; ++i) {
        const Advert& advert = message.adverts[i];
        writer.put(advert.terms.sequence.value());
        writer.put(advert.terms.phase.value());
        writer.put(advert.terms.wait_all ? wait_all_flag : 0U);
        writer.put(advert.address);
        writer.put(advert.key);
        writer.put(advert.terms.bytes);
    }
    return writer.used();
}

DecodeError decode_control(std::span<const std::byte> message, ControlMessage& out) noexcept {
    if (message.size() < control_header_bytes) return DecodeError::truncated;
    Reader reader{message};
    const auto parts = reader.get<std::uint8_t>();
    const auto advert_count = reader.get<std::uint8_t>();
    const std::uint32_t zero = reader.get<std::uint16_t>();
    const auto more_zero = reader.get<std::uint32_t>();
    const auto acknowledged = reader.get<std::uint64_t>();
    const auto end = reader.get<std::uint64_t>();

    const bool has_ack = (parts & ack_part) != 0;
    const bool has_fin = (parts & fin_part) != 0;
    const bool closes = (parts & close_part) != 0;
    if ((parts & ~(ack_part | fin_part | close_part)) != 0 || zero != 0 || more_zero != 0 ||
        (!has_ack && acknowledged != 0) || (!has_fin && (end != 0 || closes))) {
        return DecodeError::unknown_bits;
    }
    if (advert_count > adverts_per_message) return DecodeError::too_many_adverts;
    const DecodeError length =
        check_length(message.size(), control_header_bytes + advert_count * advert_bytes);
    if (length != DecodeError::none) return length;

    out.acknowledged_bytes = has_ack ? std::optional{acknowledged} : std::nullopt;
    out.closes = closes;
    out.end_bytes = has_fin ? std::optional{end} : std::nullopt;
    out.advert_count = advert_count;
    for (std::size_t i = 0; i < out.advert_count; ++i) {
        const DecodeError error = read_advert(reader, out.adverts[i]);
        if (error != DecodeError::none) return error;
    }
    return DecodeError::none;
}

std::array<std::byte, ring_bytes_on_wire> encode_ring(const RemoteRing& ring) noexcept {
    std::array<std::byte, ring_bytes_on_wire> data{};
    Writer writer{data};
    writer.put(ring.address);
    writer.put(ring.key);
    writer.put(ring.bytes);
    return data;
}

DecodeError decode_ring(std::span<const std::byte> message, RemoteRing& out) noexcept {
    const DecodeError length = check_length(message.size(), ring_bytes_on_wire);
    if (length != DecodeError::none) return length;
    Reader reader{message};
    out.address = reader.get<std::uint64_t>();
    out.key = reader.get<std::uint64_t>();
    out.bytes = reader.get<std::uint64_t>();
    return out.bytes > longest_memory_bytes ? DecodeError::bad_length : DecodeError::none;
}

std::array<std::byte, hello_bytes> encode_hello(const Hello& hello) noexcept {
    std::array<std::byte, hello_bytes> data{};
    Writer writer{data};
    writer.put(hello_version);
    writer.put(static_cast<std::uint8_t>((hello.advertises ? advertises_flag : 0) |
                                         (hello.needs_adverts ? needs_adverts_flag : 0) |
                                         (hello.reports_no_advert ? reports_no_advert_flag : 0) |
                                         (hello.ring_may_grow ? ring_may_grow_flag : 0) |
                                         (hello.lends_memory ? lends_memory_flag : 0)));
    writer.put(hello.advert_limit_count);
    return data;
}

DecodeError decode_hello(std::span<const std::byte> data, Hello& out) noexcept {
    if (data.empty()) return DecodeError::truncated;
    Reader reader{data};
    // A newer version may be longer, so the version is checked first.
    if (reader.get<std::uint8_t>() != hello_version) return DecodeError::unknown_version;
    const DecodeError length = check_length(data.size(), hello_bytes);
    if (length != DecodeError::none) return length;
    const auto flags = reader.get<std::uint8_t>();
    if ((flags & ~all_hello_flags) != 0) return DecodeError::unknown_bits;
    out.advertises = (flags & advertises_flag) != 0;
    out.needs_adverts = (flags & needs_adverts_flag) != 0;
    out.reports_no_advert = (flags & reports_no_advert_flag) != 0;
    out.ring_may_grow = (flags & ring_may_grow_flag) != 0;
    out.lends_memory = (flags & lends_memory_flag) != 0;
    out.advert_limit_count = reader.get<std::uint16_t>();
    return DecodeError::none;
}

// --- agreement ------------------------------------------------------------------------------

namespace {

// R16: the bytes of frames are copied once, with or without an advert. So shorter sends are
// gathered in one frame for the ring, and need no adverts (P2, P4, P7).
constexpr std::uint64_t gathered_bytes = 64 * 1024;

// The threshold of a policy that is on.
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

std::string_view incompatibility(const SenderOptions& sender, const ReceiverOptions& receiver,
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
        // Waiting for an advert saves no copy (P1), and an empty ring brings no advert that is
        // worth its round trip (P8).
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

} // namespace netio::stream::inline v0_3
