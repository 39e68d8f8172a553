// SPDX-License-Identifier: Apache-2.0
#pragma once

// The records of an MCAP file (https://mcap.dev/spec), and what netio writes into them
// (docs/recording.md, "Format"). Encoding and decoding; no I/O.

#include "netio/base/wire.hpp"
#include "pubsub/core/fid.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace netio::mcap::inline v0_3 {

// --- MCAP ----------------------------------------------------------------------------------------

// At the beginning and at the end of a file. The sixth byte is the major version.
inline constexpr std::array<std::byte, 8> magic{std::byte{0x89}, std::byte{'M'}, std::byte{'C'},
                                                std::byte{'A'},  std::byte{'P'}, std::byte{'0'},
                                                std::byte{'\r'}, std::byte{'\n'}};

enum class Opcode : std::uint8_t {
    header = 0x01,
    footer = 0x02,
    schema = 0x03,
    channel = 0x04,
    message = 0x05,
    chunk = 0x06,
    message_index = 0x07,
    chunk_index = 0x08,
    attachment = 0x09,
    attachment_index = 0x0a,
    statistics = 0x0b,
    metadata = 0x0c,
    metadata_index = 0x0d,
    summary_offset = 0x0e,
    data_end = 0x0f,
};

// A record is its opcode, the 64-bit length of its content, and the content.
inline constexpr std::size_t record_head_bytes = 9;
// Sizes of contents, without the head.
inline constexpr std::size_t message_fields_bytes = 22; // followed by the data
inline constexpr std::size_t footer_bytes = 20;
inline constexpr std::size_t data_end_bytes = 4;
inline constexpr std::size_t summary_offset_bytes = 17;

using Bytes = std::vector<std::byte>;
using ByteSpan = std::span<const std::byte>;
using Texts = std::map<std::string, std::string>;

struct Header {
    std::string profile;
    std::string library;
};
struct Footer {
    std::uint64_t summary_start = 0;        // 0: there is no summary
    std::uint64_t summary_offset_start = 0; // 0: there are no summary offsets
    // From the begin of the summary up to and including summary_offset_start. 0: not available.
    std::uint32_t summary_crc = 0;
};
struct Schema {
    std::uint16_t id = 0; // not 0
    std::string name;
    std::string encoding;
    std::string data;
};
struct Channel {
    std::uint16_t id = 0;
    std::uint16_t schema_id = 0; // 0: none
    std::string topic;
    std::string message_encoding;
    Texts metadata;
};
struct MessageFields {
    std::uint16_t channel_id = 0;
    std::uint32_t sequence = 0;
    std::uint64_t log_time = 0; // ns since 1970, as all times here
    std::uint64_t publish_time = 0;
};
struct ChunkFields {
    std::uint64_t message_start_time = 0; // of log_time; 0 if there are no messages
    std::uint64_t message_end_time = 0;
    std::uint64_t uncompressed_size = 0; // of the records
    std::uint32_t uncompressed_crc = 0;  // 0: not available
    std::string compression;             // "", "lz4" or "zstd"
    std::uint64_t records_size = 0;      // as they are in the file
};
struct MessageIndexEntry {
    std::uint64_t log_time = 0;
    std::uint64_t offset = 0; // of the message's record, in the uncompressed records
};
struct MessageIndex {
    std::uint16_t channel_id = 0;
    std::vector<MessageIndexEntry> entries;
};
struct ChunkIndex {
    std::uint64_t message_start_time = 0;
    std::uint64_t message_end_time = 0;
    std::uint64_t chunk_start_offset = 0; // in the file
    std::uint64_t chunk_length = 0;       // of the record with its head
    // By channel: where the message index of the channel is in the file.
    std::vector<std::pair<std::uint16_t, std::uint64_t>> message_index_offsets;
    std::uint64_t message_index_length = 0; // of all of them
    std::string compression;
    std::uint64_t compressed_size = 0;
    std::uint64_t uncompressed_size = 0;
};
struct Metadata {
    std::string name;
    Texts metadata;
};
struct MetadataIndex {
    std::uint64_t offset = 0;
    std::uint64_t length = 0; // of the record with its head
    std::string name;
};
struct Statistics {
    std::uint64_t message_count = 0;
    std::uint16_t schema_count = 0;
    std::uint32_t channel_count = 0;
    std::uint32_t attachment_count = 0;
    std::uint32_t metadata_count = 0;
    std::uint32_t chunk_count = 0;
    std::uint64_t message_start_time = 0;
    std::uint64_t message_end_time = 0;
    std::vector<std::pair<std::uint16_t, std::uint64_t>> channel_message_counts;
};
struct SummaryOffset {
    Opcode group_opcode{};
    std::uint64_t group_start = 0;
    std::uint64_t group_length = 0;
};
struct DataEnd {
    std::uint32_t data_section_crc = 0; // 0: not available
};

// Each appends a record with its head.
void append(Bytes& out, const Header& record);
void append(Bytes& out, const Footer& record);
void append(Bytes& out, const Schema& record);
void append(Bytes& out, const Channel& record);
void append(Bytes& out, const MessageIndex& record);
void append(Bytes& out, const ChunkIndex& record);
void append(Bytes& out, const Metadata& record);
void append(Bytes& out, const MetadataIndex& record);
void append(Bytes& out, const Statistics& record);
void append(Bytes& out, const SummaryOffset& record);
void append(Bytes& out, const DataEnd& record);
// A chunk up to its records, which follow it in the file.
void append(Bytes& out, const ChunkFields& record);
// The head and fields of a message whose data has `data_bytes` bytes and follows.
inline constexpr std::size_t message_head_bytes = record_head_bytes + message_fields_bytes;
void store_message_head(std::byte* out, const MessageFields& fields,
                        std::uint64_t data_bytes) noexcept;

// Takes values from the content of a record. After the first value that does not fit, every value
// is zero or empty, and is_whole() is false.
class RecordParser {
  public:
    explicit RecordParser(ByteSpan bytes) noexcept : rest_{bytes} {}

    std::uint8_t u8() noexcept { return integer<std::uint8_t>(); }
    std::uint16_t u16() noexcept { return integer<std::uint16_t>(); }
    std::uint32_t u32() noexcept { return integer<std::uint32_t>(); }
    std::uint64_t u64() noexcept { return integer<std::uint64_t>(); }
    ByteSpan bytes(std::uint64_t count) noexcept {
        if (count > rest_.size()) {
            is_whole_ = false;
            rest_ = {};
            return {};
        }
        const ByteSpan taken = rest_.first(static_cast<std::size_t>(count));
        rest_ = rest_.subspan(taken.size());
        return taken;
    }
    std::string_view text() noexcept {
        const ByteSpan taken = bytes(u32());
        return {reinterpret_cast<const char*>(taken.data()), taken.size()};
    }
    Texts texts();
    std::vector<std::pair<std::uint16_t, std::uint64_t>> numbers();
    ByteSpan rest() const noexcept { return rest_; }
    bool is_whole() const noexcept { return is_whole_; }

  private:
    template <typename Integer>
    Integer integer() noexcept {
        const ByteSpan taken = bytes(sizeof(Integer));
        return taken.empty() ? Integer{0} : wire::load<Integer>(taken.data());
    }

    ByteSpan rest_;
    bool is_whole_ = true;
};

struct MessageRecord : MessageFields {
    ByteSpan data; // a part of the content
};
// Decode the content of a record, without its head. Return nullopt if it is not whole.
std::optional<Channel> parse_channel(ByteSpan content);
std::optional<MessageRecord> parse_message(ByteSpan content);
std::optional<ChunkIndex> parse_chunk_index(ByteSpan content);
std::optional<Statistics> parse_statistics(ByteSpan content);

// Records of one kind in the summary.
struct SummaryGroup {
    Opcode opcode{};
    ByteSpan records; // with their heads
};
// Appends what follows the chunks of a file: the end of the data, the summary with the groups that
// are not empty, the footer, and the magic bytes. `begin`: where `out` begins in the file.
void append_end(Bytes& out, std::uint64_t begin, std::span<const SummaryGroup> groups);

// The CRC-32 of IEEE 802.3, as zlib's crc32(): of `bytes` after those of `previous`.
std::uint32_t crc32(ByteSpan bytes, std::uint32_t previous = 0) noexcept;

// --- what netio writes ---------------------------------------------------------------------------

inline constexpr std::string_view profile = "netio";
// "netio-daq <version>"
std::string library_text();

// The metadata record with the members run (a UUID), part ("1", "2"...), host and version.
inline constexpr std::string_view run_metadata = "netio";

// The encoding of the channels of fids. Each fid has its own channel, up to fid_channel_limit;
// further fids share the channel of their publisher.
inline constexpr std::string_view fid_encoding = "netio/1";
inline constexpr std::size_t fid_channel_limit = 60000;
// Whether no checksum protects the records of this kind. They have no recordings in them, as
// attachments may.
constexpr bool has_unchecked_length(Opcode opcode) noexcept {
    return opcode == Opcode::schema || opcode == Opcode::channel ||
           opcode == Opcode::message_index || opcode == Opcode::metadata;
}
std::string fid_topic(Fid fid); // "netio/fid/0x" and 16 digits
// The fid of such a channel, which its topic and its metadata have. Returns nullopt if they differ:
// no checksum protects a channel record outside of a chunk.
std::optional<Fid> fid_of(const Channel& channel);
// Fids beyond that limit share a channel for each publisher.
inline constexpr std::string_view publisher_encoding = "netio-fid/1";
std::string publisher_topic(std::string_view publisher); // "netio/publisher/HOST:PORT"

// What happened to publishers and to the recording: JSON objects.
inline constexpr std::string_view events_topic = "netio/events";
inline constexpr std::string_view events_encoding = "json";
Schema events_schema(); // its id is 1

// Precedes the bytes of a message. In a channel of fid_encoding without the fid.
struct Prefix {
    std::uint8_t status = 0;
    bool has_publish_time = false; // publish_time is the publisher's, else it equals log_time
    std::uint64_t sequence = 0;    // within the fid
    Fid fid{};
};
inline constexpr std::size_t fid_prefix_bytes = 16;
inline constexpr std::size_t publisher_prefix_bytes = 24;
// Stores fid_prefix_bytes or publisher_prefix_bytes bytes.
void store_fid_prefix(std::byte* out, const Prefix& prefix) noexcept;
void store_publisher_prefix(std::byte* out, const Prefix& prefix) noexcept;
// Requires as many bytes. The fid of load_fid_prefix() is 0: the channel has it.
Prefix load_fid_prefix(const std::byte* in) noexcept;
Prefix load_publisher_prefix(const std::byte* in) noexcept;

} // namespace netio::mcap::inline v0_3
