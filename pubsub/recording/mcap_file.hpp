// SPDX-License-Identifier: Apache-2.0
#pragma once

// MCAP files: reading the records of one, and writing one in chunks.

// Reads the records of an MCAP file (https://mcap.dev/spec), whole or damaged. Every length in the
// file is checked before memory is allocated, and no buffer is larger than the given limit. Bytes
// that are added to the file after it was opened are not read. Belongs to one thread.

#include "netio/base/kept_bytes.hpp"
#include "pubsub/recording/mcap.hpp"
#include "pubsub/recording/recording_error.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
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
    // `size_limit`: bytes of the file that are read, if it is still written.
    McapInput(std::string path, std::size_t limit_bytes, std::uint64_t size_limit = UINT64_MAX);
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

// The messages of a chunk while they are collected: their records are as in the file. No I/O.

namespace netio::mcap::inline v0_3 {

class Chunk {
  public:
    // Of a message, for the message indexes.
    struct Item {
        std::uint64_t log_time;
        std::uint64_t offset;
        std::uint16_t channel;
    };
    // Memory of the user, which follows the first `at` bytes of own memory.
    struct Piece {
        std::size_t at;
        KeptBytes bytes;
    };

    // Allocates memory for that many bytes of records, so that the chunk does not grow by copies:
    // their page faults take longer than recording small messages.
    void reserve(std::size_t bytes) {
        if (bytes > capacity_) grow_to(bytes);
    }
    // Appends the head of a message of `data_bytes` bytes, and returns where to store the first
    // `stored_bytes` of them. The caller must append the others with append_piece().
    std::byte* append_message(const MessageFields& fields, std::size_t data_bytes,
                              std::size_t stored_bytes) {
        items_.push_back({fields.log_time, size_, fields.channel_id});
        std::byte* const out = extend(message_head_bytes + stored_bytes);
        store_message_head(out, fields, data_bytes);
        return out + message_head_bytes;
    }
    void append_piece(KeptBytes bytes) {
        size_ += bytes.size();
        pieces_.push_back({used_, std::move(bytes)});
    }
    // The channel must be in the file before the chunk.
    void declare(Channel channel) { channels_.push_back(std::move(channel)); }
    void clear() noexcept {
        items_.clear();
        pieces_.clear();
        channels_.clear();
        used_ = size_ = 0;
    }

    bool empty() const noexcept { return items_.empty(); }
    std::size_t size() const noexcept { return size_; }         // of the records
    std::size_t capacity() const noexcept { return capacity_; } // bytes of own memory
    std::span<const Item> items() const noexcept { return items_; }
    std::vector<Channel>& channels() noexcept { return channels_; }
    // Calls visit(span) for the parts of the records, in order.
    template <typename Visit>
    void for_each_part(Visit visit) const {
        std::size_t at = 0;
        for (const Piece& piece : pieces_) {
            visit(std::span<const std::byte>{memory_.get() + at, piece.at - at});
            visit(piece.bytes.bytes());
            at = piece.at;
        }
        visit(std::span<const std::byte>{memory_.get() + at, used_ - at});
    }

  private:
    std::byte* extend(std::size_t bytes) {
        if (bytes > capacity_ - used_) grow_to(std::max(2 * capacity_, used_ + bytes));
        std::byte* const out = memory_.get() + used_;
        used_ += bytes;
        size_ += bytes;
        return out;
    }
    void grow_to(std::size_t capacity) {
        auto memory = std::make_unique_for_overwrite<std::byte[]>(capacity);
        if (used_ > 0) std::memcpy(memory.get(), memory_.get(), used_);
        memory_ = std::move(memory);
        capacity_ = capacity;
    }

    std::unique_ptr<std::byte[]> memory_;
    std::size_t capacity_ = 0;
    std::size_t used_ = 0;
    std::size_t size_ = 0;
    std::vector<Item> items_;
    std::vector<Piece> pieces_;
    std::vector<Channel> channels_;
};

} // namespace netio::mcap::inline v0_3

// An MCAP file that is being written: its chunks, and the index at its end. Every function throws
// std::system_error that names the file.

namespace netio::mcap::inline v0_3 {

// Compresses the records of chunks: "", "lz4" or "zstd".
class Compressor {
  public:
    explicit Compressor(std::string name);
    ~Compressor();
    const std::string& name() const noexcept { return name_; }
    // Valid until the next call. Returns nullopt if the result is not smaller. Throws
    // std::bad_alloc, and std::runtime_error if the library fails.
    std::optional<std::span<const std::byte>> compress(std::span<const std::byte> bytes);

  private:
    struct State;
    std::string name_;
    std::unique_ptr<State> state_;
};

// Throws std::system_error "WHAT PATH; REMEDY: REASON", with a remedy if `error` has one.
[[noreturn]] void throw_file_error(std::string_view what, const std::string& path, int error);

// Appends to a new file. Every append() begins where the last one that succeeded ended.
class FileOutput {
  public:
    FileOutput(std::string path, bool direct_io);
    ~FileOutput();
    FileOutput(const FileOutput&) = delete;
    FileOutput& operator=(const FileOutput&) = delete;

    void append(std::span<const std::span<const std::byte>> parts);
    void sync();
    void close(); // reports errors of the file system
    std::uint64_t size() const noexcept { return size_; }
    std::uint64_t available_bytes() const; // in the file system
    bool is_direct() const noexcept { return staging_ != nullptr; }
    const std::string& path() const noexcept { return path_; }

  private:
    void write_buffered(std::span<const std::span<const std::byte>> parts);
    void write_direct(std::span<const std::span<const std::byte>> parts);
    void write_at(const std::byte* from, std::size_t bytes, std::uint64_t at);
    void set_direct(bool on);
    [[noreturn]] void fail(const char* what, int error) const;

    struct Free {
        void operator()(std::byte* memory) const noexcept;
    };
    std::string path_;
    int descriptor_ = -1;
    std::uint64_t size_ = 0;
    std::unique_ptr<std::byte, Free> staging_; // null: through the page cache
    std::size_t staged_ = 0;                   // the last bytes of the file, from a block on
};

class McapFile {
  public:
    struct Run {
        std::string id;
        std::string host;
    };
    McapFile(const std::string& path, const Run& run, unsigned part, bool direct_io);

    // `channels` has the channels of the run by their ids. With a compressor that compresses, the
    // chunk has no memory of the user.
    void write(const Chunk& chunk, std::span<const Channel> channels, Compressor& compressor);
    void finish(std::span<const Channel> channels, bool sync);

    FileOutput& output() noexcept { return output_; }
    std::uint64_t messages() const noexcept { return statistics_.message_count; }
    std::uint64_t first_time() const noexcept { return statistics_.message_start_time; }
    // Upper limits of what the chunk would add to the file, and of the index after it.
    std::size_t size_with(const Chunk& chunk) const noexcept;
    std::size_t index_with(const Chunk& chunk) const noexcept;

  private:
    // The channels of the chunk's messages, ascending, with the number of their messages.
    std::vector<std::pair<std::uint16_t, std::uint32_t>> count(const Chunk& chunk);
    void append_message_indexes(Bytes& out, const Chunk& chunk, ChunkIndex& index,
                                std::uint64_t begin);

    FileOutput output_;
    Statistics statistics_;
    MetadataIndex metadata_;
    Bytes chunk_indexes_;
    std::vector<std::uint64_t> messages_of_; // by channel
    std::vector<bool> is_declared_;          // by channel
    std::vector<std::uint32_t> counts_;      // by channel, of one chunk; otherwise zeros
    std::size_t declared_bytes_ = 0;
    // Reused for each chunk.
    Bytes head_;
    Bytes tail_;
};

} // namespace netio::mcap::inline v0_3
