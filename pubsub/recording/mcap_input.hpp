// SPDX-License-Identifier: Apache-2.0
#pragma once

// Reads the records of an MCAP file (https://mcap.dev/spec), whole or damaged. Every length in the
// file is checked before memory is allocated, and no buffer is larger than the given limit. Bytes
// that are added to the file after it was opened are not read. Belongs to one thread.

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
    struct End {
        Footer footer;
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
    std::optional<ChunkFields> chunk(const Record& record);
    // The uncompressed records of a chunk, valid until the next call. If they are damaged, returns
    // nullopt and stores the reason in `problem`.
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
