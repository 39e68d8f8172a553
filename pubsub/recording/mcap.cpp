// SPDX-License-Identifier: Apache-2.0
#include "pubsub/recording/mcap.hpp"

#include "netio/base/version.hpp"

#include <array>
#include <charconv>
#include <cstdio>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace netio::mcap::inline v0_3 {
namespace {

// Writes one record: its head first, whose length is known at the end.
class RecordEncoder {
  public:
    RecordEncoder(Bytes& out, Opcode opcode) : out_{out}, begin_{out.size()} {
        number(static_cast<std::uint8_t>(opcode));
        number(std::uint64_t{0});
    }
    // Must be called once. `following`: bytes of the content that the caller appends.
    void end(std::uint64_t following = 0) noexcept {
        wire::store(out_.data() + begin_ + 1,
                    std::uint64_t{out_.size() - begin_ - record_head_bytes} + following);
    }

    template <typename Integer>
    void number(Integer value) {
        const std::size_t at = out_.size();
        out_.resize(at + sizeof value);
        wire::store(out_.data() + at, value);
    }
    void text(std::string_view text) {
        number(static_cast<std::uint32_t>(text.size()));
        const auto bytes = std::as_bytes(std::span{text});
        out_.insert(out_.end(), bytes.begin(), bytes.end());
    }
    // The 32-bit length of what `write` appends, and that.
    template <typename Write>
    void sized(Write write) {
        const std::size_t at = out_.size();
        number(std::uint32_t{0});
        write();
        wire::store(out_.data() + at, static_cast<std::uint32_t>(out_.size() - at - 4));
    }
    void texts(const Texts& texts) {
        sized([&] {
            for (const auto& [key, value] : texts) {
                text(key);
                text(value);
            }
        });
    }
    void numbers(std::span<const std::pair<std::uint16_t, std::uint64_t>> numbers) {
        sized([&] {
            for (const auto& [key, value] : numbers) {
                number(key);
                number(value);
            }
        });
    }

  private:
    Bytes& out_;
    std::size_t begin_;
};

} // namespace

void append(Bytes& out, const Header& record) {
    RecordEncoder to{out, Opcode::header};
    to.text(record.profile);
    to.text(record.library);
    to.end();
}

void append(Bytes& out, const Footer& record) {
    RecordEncoder to{out, Opcode::footer};
    to.number(record.summary_start);
    to.number(record.summary_offset_start);
    to.number(record.summary_crc);
    to.end();
}

void append(Bytes& out, const Schema& record) {
    RecordEncoder to{out, Opcode::schema};
    to.number(record.id);
    to.text(record.name);
    to.text(record.encoding);
    to.text(record.data);
    to.end();
}

void append(Bytes& out, const Channel& record) {
    RecordEncoder to{out, Opcode::channel};
    to.number(record.id);
    to.number(record.schema_id);
    to.text(record.topic);
    to.text(record.message_encoding);
    to.texts(record.metadata);
    to.end();
}

void append(Bytes& out, const MessageIndex& record) {
    RecordEncoder to{out, Opcode::message_index};
    to.number(record.channel_id);
    to.sized([&] {
        for (const MessageIndexEntry& entry : record.entries) {
            to.number(entry.log_time);
            to.number(entry.offset);
        }
    });
    to.end();
}

void append(Bytes& out, const ChunkIndex& record) {
    RecordEncoder to{out, Opcode::chunk_index};
    to.number(record.message_start_time);
    to.number(record.message_end_time);
    to.number(record.chunk_start_offset);
    to.number(record.chunk_length);
    to.numbers(record.message_index_offsets);
    to.number(record.message_index_length);
    to.text(record.compression);
    to.number(record.compressed_size);
    to.number(record.uncompressed_size);
    to.end();
}

void append(Bytes& out, const Metadata& record) {
    RecordEncoder to{out, Opcode::metadata};
    to.text(record.name);
    to.texts(record.metadata);
    to.end();
}

void append(Bytes& out, const MetadataIndex& record) {
    RecordEncoder to{out, Opcode::metadata_index};
    to.number(record.offset);
    to.number(record.length);
    to.text(record.name);
    to.end();
}

void append(Bytes& out, const Statistics& record) {
    RecordEncoder to{out, Opcode::statistics};
    to.number(record.message_count);
    to.number(record.schema_count);
    to.number(record.channel_count);
    to.number(record.attachment_count);
    to.number(record.metadata_count);
    to.number(record.chunk_count);
    to.number(record.message_start_time);
    to.number(record.message_end_time);
    to.numbers(record.channel_message_counts);
    to.end();
}

void append(Bytes& out, const SummaryOffset& record) {
    RecordEncoder to{out, Opcode::summary_offset};
    to.number(static_cast<std::uint8_t>(record.group_opcode));
    to.number(record.group_start);
    to.number(record.group_length);
    to.end();
}

void append(Bytes& out, const DataEnd& record) {
    RecordEncoder to{out, Opcode::data_end};
    to.number(record.data_section_crc);
    to.end();
}

void append(Bytes& out, const ChunkFields& record) {
    RecordEncoder to{out, Opcode::chunk};
    to.number(record.message_start_time);
    to.number(record.message_end_time);
    to.number(record.uncompressed_size);
    to.number(record.uncompressed_crc);
    to.text(record.compression);
    to.number(record.records_size);
    to.end(record.records_size);
}

void store_message_head(std::byte* out, const MessageFields& fields,
                        std::uint64_t data_bytes) noexcept {
    out[0] = static_cast<std::byte>(Opcode::message);
    wire::store(out + 1, message_fields_bytes + data_bytes);
    wire::store(out + 9, fields.channel_id);
    wire::store(out + 11, fields.sequence);
    wire::store(out + 15, fields.log_time);
    wire::store(out + 23, fields.publish_time);
}

// --- decoding ------------------------------------------------------------------------------------

Texts RecordParser::texts() {
    Texts all;
    RecordParser map{bytes(u32())};
    while (map.is_whole() && !map.rest().empty()) {
        const std::string_view key = map.text();
        const std::string_view value = map.text();
        if (map.is_whole()) all.emplace(key, value);
    }
    is_whole_ = is_whole_ && map.is_whole();
    return all;
}

std::vector<std::pair<std::uint16_t, std::uint64_t>> RecordParser::numbers() {
    std::vector<std::pair<std::uint16_t, std::uint64_t>> all;
    RecordParser map{bytes(u32())};
    all.reserve(map.rest().size() / 10);
    while (map.is_whole() && !map.rest().empty()) {
        const std::uint16_t key = map.u16();
        all.emplace_back(key, map.u64());
    }
    is_whole_ = is_whole_ && map.is_whole();
    return all;
}

std::optional<Channel> parse_channel(ByteSpan content) {
    RecordParser parser{content};
    Channel channel{.id = parser.u16(),
                    .schema_id = parser.u16(),
                    .topic = std::string{parser.text()},
                    .message_encoding = std::string{parser.text()},
                    .metadata = parser.texts()};
    if (!parser.is_whole()) return std::nullopt;
    return channel;
}

std::optional<MessageRecord> parse_message(ByteSpan content) {
    RecordParser parser{content};
    MessageRecord message;
    message.channel_id = parser.u16();
    message.sequence = parser.u32();
    message.log_time = parser.u64();
    message.publish_time = parser.u64();
    if (!parser.is_whole()) return std::nullopt;
    message.data = parser.rest();
    return message;
}

std::optional<ChunkIndex> parse_chunk_index(ByteSpan content) {
    RecordParser parser{content};
    ChunkIndex index{.message_start_time = parser.u64(),
                     .message_end_time = parser.u64(),
                     .chunk_start_offset = parser.u64(),
                     .chunk_length = parser.u64(),
                     .message_index_offsets = parser.numbers(),
                     .message_index_length = parser.u64(),
                     .compression = std::string{parser.text()},
                     .compressed_size = parser.u64(),
                     .uncompressed_size = parser.u64()};
    if (!parser.is_whole()) return std::nullopt;
    return index;
}

std::optional<Statistics> parse_statistics(ByteSpan content) {
    RecordParser parser{content};
    Statistics statistics{.message_count = parser.u64(),
                          .schema_count = parser.u16(),
                          .channel_count = parser.u32(),
                          .attachment_count = parser.u32(),
                          .metadata_count = parser.u32(),
                          .chunk_count = parser.u32(),
                          .message_start_time = parser.u64(),
                          .message_end_time = parser.u64(),
                          .channel_message_counts = parser.numbers()};
    if (!parser.is_whole()) return std::nullopt;
    return statistics;
}

// --- the end of a file ---------------------------------------------------------------------------

void append_end(Bytes& out, std::uint64_t begin, std::span<const SummaryGroup> groups) {
    append(out, DataEnd{});
    const std::size_t summary = out.size();
    Bytes offsets;
    for (const SummaryGroup& group : groups) {
        if (group.records.empty()) continue;
        append(offsets, SummaryOffset{.group_opcode = group.opcode,
                                      .group_start = begin + out.size(),
                                      .group_length = group.records.size()});
        out.insert(out.end(), group.records.begin(), group.records.end());
    }
    Footer record{.summary_start = begin + summary, .summary_offset_start = begin + out.size()};
    out.insert(out.end(), offsets.begin(), offsets.end());
    const std::size_t footer = out.size();
    append(out, record);
    record.summary_crc = crc32(ByteSpan{out}.subspan(summary, out.size() - 4 - summary));
    out.resize(footer);
    append(out, record);
    out.insert(out.end(), magic.begin(), magic.end());
}

// --- CRC-32 --------------------------------------------------------------------------------------

namespace {

// Slicing by 8: table k has the CRC of a byte that k zero bytes follow.
constexpr std::array<std::array<std::uint32_t, 256>, 8> make_tables() noexcept {
    std::array<std::array<std::uint32_t, 256>, 8> tables{};
    for (std::uint32_t byte = 0; byte < 256; ++byte) {
        std::uint32_t value = byte;
        for (int bit = 0; bit < 8; ++bit)
            value = (value >> 1) ^ ((value & 1) != 0 ? 0xEDB88320U : 0U);
        tables[0][byte] = value;
    }
    for (std::size_t k = 1; k < 8; ++k) {
        for (std::size_t byte = 0; byte < 256; ++byte) {
            const std::uint32_t before = tables[k - 1][byte];
            tables[k][byte] = (before >> 8) ^ tables[0][before & 0xFF];
        }
    }
    return tables;
}
constexpr auto tables = make_tables();

std::uint32_t by_tables(std::uint32_t crc, const std::byte* in, std::size_t size) noexcept {
    for (; size >= 8; in += 8, size -= 8) {
        const std::uint64_t word = wire::load<std::uint64_t>(in) ^ crc;
        crc = 0;
        for (std::size_t k = 0; k < 8; ++k)
            crc ^= tables[7 - k][(word >> (8 * k)) & 0xFF];
    }
    for (; size > 0; ++in, --size)
        crc = (crc >> 8) ^ tables[0][(crc ^ std::to_integer<std::uint32_t>(*in)) & 0xFF];
    return crc;
}

#if defined(__x86_64__)
// The remainders of powers of x that fold 128 bits over the distance of 512 and of 128 bits, 64
// bits over 32, and the constants of Barrett's reduction, all bit-reflected: V. Gopal et al., "Fast
// CRC Computation for Generic Polynomials Using PCLMULQDQ", Intel 2009.
constexpr long long over_512[2] = {0x0154442bd4, 0x01c6e41596};
constexpr long long over_128[2] = {0x01751997d0, 0x00ccaa009e};
constexpr long long over_32 = 0x0163cd6124;
constexpr long long barrett[2] = {0x01db710641, 0x01f7011641};

__attribute__((target("pclmul,sse4.1"))) __m128i load_16(const std::byte* in) noexcept {
    return _mm_loadu_si128(static_cast<const __m128i*>(static_cast<const void*>(in)));
}

__attribute__((target("pclmul,sse4.1"))) __m128i fold(__m128i value, __m128i by,
                                                      __m128i next) noexcept {
    const __m128i low = _mm_clmulepi64_si128(value, by, 0x00);
    const __m128i high = _mm_clmulepi64_si128(value, by, 0x11);
    return _mm_xor_si128(_mm_xor_si128(low, high), next);
}

// Requires a multiple of 16 bytes, and at least 64.
__attribute__((target("pclmul,sse4.1"))) std::uint32_t
by_multiplication(std::uint32_t crc, const std::byte* in, std::size_t size) noexcept {
    __m128i lanes[4];
    for (std::size_t i = 0; i < 4; ++i)
        lanes[i] = load_16(in + 16 * i);
    lanes[0] = _mm_xor_si128(lanes[0], _mm_cvtsi32_si128(static_cast<int>(crc)));
    const __m128i by_512 = _mm_set_epi64x(over_512[1], over_512[0]);
    for (in += 64, size -= 64; size >= 64; in += 64, size -= 64) {
        for (std::size_t i = 0; i < 4; ++i)
            lanes[i] = fold(lanes[i], by_512, load_16(in + 16 * i));
    }
    const __m128i by_128 = _mm_set_epi64x(over_128[1], over_128[0]);
    __m128i rest = lanes[0];
    for (std::size_t i = 1; i < 4; ++i)
        rest = fold(rest, by_128, lanes[i]);
    for (; size >= 16; in += 16, size -= 16)
        rest = fold(rest, by_128, load_16(in));

    const __m128i low_32 = _mm_setr_epi32(-1, 0, -1, 0);
    // 128 bits to 96, to 64.
    rest = _mm_xor_si128(_mm_srli_si128(rest, 8), _mm_clmulepi64_si128(rest, by_128, 0x10));
    rest = _mm_xor_si128(
        _mm_srli_si128(rest, 4),
        _mm_clmulepi64_si128(_mm_and_si128(rest, low_32), _mm_set_epi64x(0, over_32), 0x00));
    const __m128i polynomial = _mm_set_epi64x(barrett[1], barrett[0]);
    __m128i quotient = _mm_clmulepi64_si128(_mm_and_si128(rest, low_32), polynomial, 0x10);
    quotient = _mm_clmulepi64_si128(_mm_and_si128(quotient, low_32), polynomial, 0x00);
    return static_cast<std::uint32_t>(_mm_extract_epi32(_mm_xor_si128(rest, quotient), 1));
}

bool can_multiply() noexcept {
    static const bool can = __builtin_cpu_supports("pclmul") && __builtin_cpu_supports("sse4.1");
    return can;
}
#endif

} // namespace

std::uint32_t crc32(ByteSpan bytes, std::uint32_t previous) noexcept {
    std::uint32_t crc = ~previous;
#if defined(__x86_64__)
    if (bytes.size() >= 64 && can_multiply()) {
        const std::size_t whole = bytes.size() & ~std::size_t{15};
        crc = by_multiplication(crc, bytes.data(), whole);
        bytes = bytes.subspan(whole);
    }
#endif
    return ~by_tables(crc, bytes.data(), bytes.size());
}

// --- what netio writes ---------------------------------------------------------------------------

namespace {

std::optional<Fid> parse_fid(std::string_view text) {
    if (text.starts_with("0x")) text.remove_prefix(2);
    std::uint64_t value = 0;
    const auto result = std::from_chars(text.data(), text.data() + text.size(), value, 16);
    if (text.empty() || result.ec != std::errc{} || result.ptr != text.data() + text.size())
        return std::nullopt;
    return Fid{value};
}

} // namespace

Schema events_schema() {
    return {.id = 1, .name = "netio.event", .encoding = "jsonschema", .data = R"({
  "type": "object",
  "required": ["event"],
  "properties": {
    "event": {"enum": ["lost", "connected", "disconnected", "publisher_ended", "publisher_restarted",
                       "stalled", "clock_step", "disk_slow", "refused"]},
    "publisher": {"type": "string", "description": "HOST:PORT"},
    "fids": {"type": "string", "description": "fids and ranges of them: 0-63,0x80"},
    "count": {"type": "integer", "description": "of messages"},
    "reason": {"type": "string"}
  }
})"};
}

std::string library_text() {
    return "netio-daq " + std::string{version()};
}

std::string fid_topic(Fid fid) {
    char text[32];
    std::snprintf(text, sizeof text, "netio/fid/0x%016llx",
                  static_cast<unsigned long long>(fid.value()));
    return text;
}

std::optional<Fid> fid_of(const Channel& channel) {
    constexpr std::string_view prefix = "netio/fid/";
    const std::string_view topic = channel.topic;
    const auto by_topic =
        topic.starts_with(prefix) ? parse_fid(topic.substr(prefix.size())) : std::nullopt;
    const auto found = channel.metadata.find("fid");
    const auto by_metadata =
        found != channel.metadata.end() ? parse_fid(found->second) : std::nullopt;
    if (by_topic && by_metadata && *by_topic != *by_metadata) return std::nullopt;
    return by_metadata ? by_metadata : by_topic;
}

std::string publisher_topic(std::string_view publisher) {
    return "netio/publisher/" + std::string{publisher};
}

void store_fid_prefix(std::byte* out, const Prefix& prefix) noexcept {
    std::memset(out, 0, 8);
    out[0] = std::byte{prefix.status};
    out[1] = std::byte{prefix.has_publish_time};
    wire::store(out + 8, prefix.sequence);
}

void store_publisher_prefix(std::byte* out, const Prefix& prefix) noexcept {
    store_fid_prefix(out, prefix);
    wire::store(out + 16, prefix.fid.value());
}

Prefix load_fid_prefix(const std::byte* in) noexcept {
    return {.status = std::to_integer<std::uint8_t>(in[0]),
            .has_publish_time = (in[1] & std::byte{1}) != std::byte{0},
            .sequence = wire::load<std::uint64_t>(in + 8)};
}

Prefix load_publisher_prefix(const std::byte* in) noexcept {
    Prefix prefix = load_fid_prefix(in);
    prefix.fid = wire::load<std::uint64_t>(in + 16);
    return prefix;
}

} // namespace netio::mcap::inline v0_3
