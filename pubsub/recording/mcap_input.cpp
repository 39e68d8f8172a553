// SPDX-License-Identifier: Apache-2.0
#include "pubsub/recording/mcap_input.hpp"

#include <lz4frame.h>
#include <zstd.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <system_error>

namespace netio::mcap::inline v0_3 {
namespace {

constexpr std::size_t version_at = 5;
constexpr std::size_t window_bytes = std::size_t{256} << 10;
// The fixed part of a chunk before the name of the compression.
constexpr std::size_t chunk_head_bytes = 8 + 8 + 8 + 4;
constexpr std::size_t longest_compression = 16;

bool is_compression(std::string_view name) {
    return name.empty() || name == "lz4" || name == "zstd";
}

} // namespace

McapInput::McapInput(std::string path, std::size_t limit_bytes)
    : path_{std::move(path)}, limit_bytes_{limit_bytes} {
    fd_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    const auto refuse = [&](const std::string& why) {
        if (fd_ >= 0) ::close(fd_);
        throw RecordingError{path_ + ": " + why};
    };
    struct stat status {};
    if (fd_ < 0 || ::fstat(fd_, &status) != 0)
        refuse("cannot be read: " + std::generic_category().message(errno));
    if (!S_ISREG(status.st_mode))
        refuse("is no regular file; give the path of a recording, as run.mcap");
    size_ = static_cast<std::uint64_t>(status.st_size);
    ::posix_fadvise(fd_, 0, 0, POSIX_FADV_SEQUENTIAL);
    ByteSpan begin;
    try {
        begin = view(0, magic.size());
    } catch (...) {
        ::close(fd_);
        throw;
    }
    for (std::size_t i = 0; i < begin.size(); ++i) {
        if (begin[i] == magic[i]) continue;
        const auto value = std::to_integer<unsigned char>(begin[i]);
        if (i == version_at && value > '0' && value <= '9')
            refuse("is MCAP of the newer version " + std::string(1, static_cast<char>(value)) +
                   "; this program reads version 0: use a newer netio");
        refuse("is no MCAP file; give a file that `netio record` or a RecordingWriter wrote");
    }
    if (begin.size() < magic.size()) size_ = 0; // its writer was killed at once
}

McapInput::~McapInput() {
    ::close(fd_);
}

void McapInput::fail(std::uint64_t offset, std::string_view problem,
                     std::string_view remedy) const {
    throw RecordingError{path_ + ": at offset " + std::to_string(offset) + ": " +
                         std::string{problem} + "; " + std::string{remedy}};
}

// Returns the bytes of the file from an offset, fewer at its end. The caller has checked them
// against the limit.
ByteSpan McapInput::view(std::uint64_t offset, std::size_t bytes) {
    if (offset >= size_) return {};
    bytes = static_cast<std::size_t>(std::min<std::uint64_t>(bytes, size_ - offset));
    if (offset < window_offset_ || offset + bytes > window_offset_ + window_bytes_) {
        const auto wanted = static_cast<std::size_t>(
            std::min<std::uint64_t>(std::max(bytes, window_bytes), size_ - offset));
        if (window_.size() < wanted) {
            window_.clear(); // not to be copied into the larger one
            window_.resize(wanted);
        }
        window_offset_ = offset;
        window_bytes_ = 0;
        while (window_bytes_ < wanted) {
            const ssize_t got = ::pread(fd_, window_.data() + window_bytes_, wanted - window_bytes_,
                                        static_cast<off_t>(offset + window_bytes_));
            if (got < 0 && errno == EINTR) continue;
            if (got < 0)
                throw RecordingError{path_ + ": cannot be read at offset " +
                                     std::to_string(offset + window_bytes_) + ": " +
                                     std::generic_category().message(errno)};
            if (got == 0) break; // the file became shorter
            window_bytes_ += static_cast<std::size_t>(got);
        }
        bytes = std::min(bytes, window_bytes_);
    }
    return ByteSpan{window_}.subspan(static_cast<std::size_t>(offset - window_offset_), bytes);
}

std::optional<McapInput::Record> McapInput::record_at(std::uint64_t offset) {
    const ByteSpan head = view(offset, record_head_bytes);
    if (head.size() < record_head_bytes) return std::nullopt;
    RecordParser parser{head};
    const Record record{.opcode = Opcode{parser.u8()}, .offset = offset, .length = parser.u64()};
    if (record.opcode == Opcode{0} || record.length > size_ - offset - record_head_bytes)
        return std::nullopt;
    return record;
}

ByteSpan McapInput::content(const Record& record) {
    const ByteSpan all = whole(record);
    return all.subspan(std::min(all.size(), record_head_bytes));
}

ByteSpan McapInput::whole(const Record& record) {
    if (record.length > limit_bytes_)
        fail(record.offset, "a record of " + std::to_string(record.length) + " bytes",
             "increase chunk_memory_limit, which is " + std::to_string(limit_bytes_) + " bytes");
    return view(record.offset, record_head_bytes + static_cast<std::size_t>(record.length));
}

std::optional<ChunkFields> McapInput::chunk(const Record& record) {
    const std::size_t fixed = chunk_head_bytes + 4 + longest_compression + 8;
    RecordParser parser{
        view(record.offset + record_head_bytes,
             static_cast<std::size_t>(std::min<std::uint64_t>(fixed, record.length)))};
    ChunkFields chunk{.message_start_time = parser.u64(),
                      .message_end_time = parser.u64(),
                      .uncompressed_size = parser.u64(),
                      .uncompressed_crc = parser.u32(),
                      .compression = std::string{parser.text()},
                      .records_size = parser.u64()};
    const std::uint64_t head = chunk_head_bytes + 4 + chunk.compression.size() + 8;
    if (!parser.is_whole() || head > record.length || chunk.records_size != record.length - head ||
        chunk.message_start_time > chunk.message_end_time ||
        (chunk.compression.empty() && chunk.records_size != chunk.uncompressed_size))
        return std::nullopt;
    return chunk;
}

bool McapInput::decompress(std::string_view compression, ByteSpan stored, std::size_t bytes) {
    if (records_.size() < bytes) {
        records_.clear();
        records_.resize(bytes);
    }
    if (compression == "zstd")
        return ZSTD_decompress(records_.data(), bytes, stored.data(), stored.size()) == bytes;
    LZ4F_dctx* context = nullptr;
    if (LZ4F_isError(LZ4F_createDecompressionContext(&context, LZ4F_VERSION)) != 0) return false;
    const std::unique_ptr<LZ4F_dctx, LZ4F_errorCode_t (*)(LZ4F_dctx*)> owned{
        context, LZ4F_freeDecompressionContext};
    std::size_t made = 0;
    while (!stored.empty()) {
        std::size_t out = bytes - made;
        std::size_t in = stored.size();
        const std::size_t left =
            LZ4F_decompress(context, records_.data() + made, &out, stored.data(), &in, nullptr);
        if (LZ4F_isError(left) != 0 || (in == 0 && out == 0)) return false;
        made += out;
        stored = stored.subspan(in);
        if (left == 0) return made == bytes && stored.empty();
    }
    return false;
}

std::optional<ByteSpan> McapInput::chunk_records(const Record& record, std::string& problem) {
    const std::optional<ChunkFields> found = chunk(record);
    if (!found) {
        problem = "the chunk's header is damaged";
        return std::nullopt;
    }
    const std::string& compression = found->compression;
    if (!is_compression(compression)) {
        problem = "the chunk is compressed by '" + compression + "', not by lz4 or zstd";
        return std::nullopt;
    }
    if (found->uncompressed_size > limit_bytes_)
        fail(record.offset, "a chunk of " + std::to_string(found->uncompressed_size) + " bytes",
             "increase chunk_memory_limit, which is " + std::to_string(limit_bytes_) + " bytes");
    const auto bytes = static_cast<std::size_t>(found->uncompressed_size);
    // lz4 reduces by 255 at most: a length beyond that costs no memory.
    if (compression == "lz4" && bytes / 256 > found->records_size) {
        problem = "the chunk's length is damaged";
        return std::nullopt;
    }
    const ByteSpan all = content(record);
    if (all.size() < found->records_size) {
        problem = "the file became shorter";
        return std::nullopt;
    }
    const ByteSpan stored = all.last(static_cast<std::size_t>(found->records_size));
    ByteSpan records = stored;
    if (!compression.empty()) {
        if (!decompress(compression, stored, bytes)) {
            problem = "the chunk cannot be decompressed (" + compression + ")";
            return std::nullopt;
        }
        records = ByteSpan{records_}.first(bytes);
    }
    if (found->uncompressed_crc != 0 && crc32(records) != found->uncompressed_crc) {
        problem = "the chunk's checksum is wrong";
        return std::nullopt;
    }
    return records;
}

std::optional<McapInput::End> McapInput::end() {
    constexpr std::uint64_t tail = record_head_bytes + footer_bytes + magic.size();
    if (size_ < magic.size() + tail) return std::nullopt;
    if (!std::ranges::equal(view(size_ - magic.size(), magic.size()), magic)) return std::nullopt;
    const auto record = record_at(size_ - tail);
    if (!record || record->opcode != Opcode::footer || record->length != footer_bytes)
        return std::nullopt;
    RecordParser parser{content(*record)};
    const End found{.footer = {.summary_start = parser.u64(),
                               .summary_offset_start = parser.u64(),
                               .summary_crc = parser.u32()},
                    .offset = record->offset};
    if (found.footer.summary_start > found.offset) return std::nullopt;
    return found;
}

bool McapInput::visit_summary(const End& end, const std::function<void(Opcode, ByteSpan)>& visit) {
    const std::uint64_t summary = end.footer.summary_start;
    if (summary < magic.size()) return false;
    if (end.footer.summary_crc != 0) {
        std::uint32_t crc = 0;
        const std::uint64_t crc_end = end.offset + record_head_bytes + footer_bytes - 4;
        for (std::uint64_t at = summary; at < crc_end;) {
            const ByteSpan part = view(
                at, static_cast<std::size_t>(std::min<std::uint64_t>(window_bytes, crc_end - at)));
            if (part.empty()) return false;
            crc = crc32(part, crc);
            at += part.size();
        }
        if (crc != end.footer.summary_crc) return false;
    }
    std::uint64_t at = summary;
    while (at < end.offset) {
        const auto record = record_at(at);
        if (!record || record->end() > end.offset) return false;
        visit(record->opcode, content(*record));
        at = record->end();
    }
    return at == end.offset;
}

std::optional<McapInput::Record> McapInput::find_chunk(std::uint64_t offset) {
    constexpr std::size_t seen_bytes =
        record_head_bytes + chunk_head_bytes + 4 + longest_compression + 8;
    std::uint64_t checked = 0; // bytes of candidates that were no whole chunk
    std::vector<std::byte> part;
    while (offset < size_) {
        const ByteSpan seen = view(offset, window_bytes);
        part.assign(seen.begin(), seen.end()); // the check of a chunk moves the window
        const std::size_t last = offset + part.size() < size_ && part.size() > seen_bytes
                                     ? part.size() - seen_bytes
                                     : part.size();
        if (last == 0) break;
        for (std::size_t i = 0; i < last; ++i) {
            if (Opcode{std::to_integer<std::uint8_t>(part[i])} != Opcode::chunk) continue;
            RecordParser parser{ByteSpan{part}.subspan(i + 1)};
            const std::uint64_t length = parser.u64();
            const std::uint64_t at = offset + i;
            if (at + record_head_bytes > size_ || length > size_ - at - record_head_bytes ||
                length > limit_bytes_)
                continue;
            const Record record{.opcode = Opcode::chunk, .offset = at, .length = length};
            static_cast<void>(parser.bytes(chunk_head_bytes));
            if (!is_compression(parser.text()) || !parser.is_whole()) continue;
            const auto head = chunk(record);
            if (!head || head->uncompressed_crc == 0 || head->uncompressed_size > limit_bytes_)
                continue;
            std::string problem;
            const std::uint64_t cost = head->uncompressed_size + length;
            if (chunk_records(record, problem)) return record;
            checked += cost;
            if (checked > 4 * std::uint64_t{limit_bytes_}) return std::nullopt;
        }
        offset += last;
    }
    return std::nullopt;
}

} // namespace netio::mcap::inline v0_3
