// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads the records of an MCAP file (https://mcap.dev/spec), whole or damaged. Every length in the
// file is checked before memory is allocated, and no buffer is larger than the given limit. The
// file may grow meanwhile: what is added after it was opened is not read. Belongs to one thread.

#include "netio/base/wire.hpp"
#include "pubsub/recording/mcap.hpp"
#include "pubsub/recording/recording_error.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace netio::mcap::inline v0_3 {

using ByteSpan = std::span<const std::byte>;

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
    // A map of texts.
    std::vector<std::pair<std::string, std::string>> texts();
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

struct ChannelRecord {
    std::uint16_t id = 0;
    std::uint16_t schema = 0;
    std::string_view topic;
    std::string_view encoding;
    std::vector<std::pair<std::string, std::string>> metadata;
};
struct MessageRecord {
    std::uint16_t channel = 0;
    std::uint32_t sequence = 0;
    std::uint64_t log_time = 0;
    std::uint64_t publish_time = 0;
    ByteSpan data;
};
struct ChunkIndexRecord {
    std::uint64_t begin_time = 0;
    std::uint64_t end_time = 0;
    std::uint64_t offset = 0;
    std::uint64_t length = 0; // of the record, with its first 9 bytes
    ByteSpan channels;        // pairs of a channel (16 bits) and an offset (64 bits)
};
struct StatisticsRecord {
    std::uint64_t messages = 0;
    std::uint32_t channels = 0;
    std::uint32_t chunks = 0;
    std::uint32_t attachments = 0;
    std::uint32_t metadata = 0;
    std::uint64_t begin_time = 0;
    std::uint64_t end_time = 0;
    ByteSpan channel_messages; // pairs of a channel (16 bits) and a number (64 bits)
};

// Return nullopt if the record is not whole.
std::optional<ChannelRecord> parse_channel(ByteSpan content);
std::optional<MessageRecord> parse_message(ByteSpan content);
std::optional<ChunkIndexRecord> parse_chunk_index(ByteSpan content);
std::optional<StatisticsRecord> parse_statistics(ByteSpan content);

class McapInput {
  public:
    // Throws RecordingError if the file cannot be read, is no MCAP file, or is one of a newer
    // version. A file that ends within its first bytes is empty.
    McapInput(std::string path, std::size_t limit_bytes);
    ~McapInput();
    McapInput(const McapInput&) = delete;
    McapInput& operator=(const McapInput&) = delete;

    struct Record {
        Opcode opcode{};
        std::uint64_t offset = 0;
        std::uint64_t length = 0; // of its content
        std::uint64_t end() const noexcept { return offset + record_head_bytes + length; }
    };
    struct Chunk {
        std::uint64_t begin_time = 0;
        std::uint64_t end_time = 0;
        std::uint64_t records_bytes = 0; // uncompressed
        std::uint32_t crc = 0;           // of the uncompressed records; 0: none
        std::string_view compression;
        std::uint64_t stored_bytes = 0;
    };
    struct End {
        std::uint64_t summary = 0; // its offset; 0: there is none
        std::uint32_t summary_crc = 0;
        std::uint64_t offset = 0; // of the footer's record
    };

    const std::string& path() const noexcept { return path_; }
    std::uint64_t size() const noexcept { return size_; }
    static constexpr std::uint64_t first_record = 8; // after the magic bytes

    // Returns nullopt if no whole record begins there.
    std::optional<Record> record_at(std::uint64_t offset);
    // The content of a record, valid until the next call of another function. Throws
    // RecordingError if it is larger than the limit.
    ByteSpan content(const Record& record);
    // The same with the record's head.
    ByteSpan whole(const Record& record);
    // The properties of a chunk without its records; nullopt if they are not whole.
    std::optional<Chunk> chunk(const Record& record);
    // The uncompressed records of a chunk, valid until the next call. Returns nullopt, and says in
    // `problem` what is wrong, if they are damaged.
    std::optional<ByteSpan> chunk_records(const Record& record, std::string& problem);
    // Returns nullopt if the file does not end as a complete file does.
    std::optional<End> end();
    // Visits the records of the summary. Returns false if its checksum or a record is wrong.
    bool visit_summary(const End& end, const std::function<void(Opcode, ByteSpan)>& visit);
    // The first whole and undamaged chunk at or after the offset.
    std::optional<Record> find_chunk(std::uint64_t offset);

    [[noreturn]] void fail(std::uint64_t offset, std::string_view problem,
                           std::string_view remedy) const;

  private:
    ByteSpan view(std::uint64_t offset, std::size_t bytes);
    bool decompress(std::string_view compression, ByteSpan stored, std::size_t bytes);

    std::string path_;
    std::size_t limit_bytes_;
    int fd_ = -1;
    std::uint64_t size_ = 0;
    std::vector<std::byte> window_;
    std::uint64_t window_offset_ = 0;
    std::size_t window_bytes_ = 0;
    std::vector<std::byte> records_; // of the chunk that was decompressed last
};

} // namespace netio::mcap::inline v0_3
