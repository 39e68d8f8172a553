// SPDX-License-Identifier: Apache-2.0
#pragma once

// An MCAP file that is being written: its chunks, and the index at its end. Every function throws
// std::system_error that names the file.

#include "pubsub/recording/chunk.hpp"
#include "pubsub/recording/mcap.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

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
