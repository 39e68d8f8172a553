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

std::vector<std::pair<std::string, std::string>> RecordParser::texts() {
    std::vector<std::pair<std::string, std::string>> all;
    RecordParser map{bytes(u32())};
    while (map.is_whole() && !map.rest().empty()) {
        const std::string_view key = map.text();
        const std::string_view value = map.text();
        if (map.is_whole()) all.emplace_back(key, value);
    }
    is_whole_ = is_whole_ && map.is_whole();
    return all;
}

std::optional<ChannelRecord> parse_channel(ByteSpan content) {
    RecordParser parser{content};
    ChannelRecord channel{.id = parser.u16(),
                          .schema = parser.u16(),
                          .topic = parser.text(),
                          .encoding = parser.text(),
                          .metadata = parser.texts()};
    if (!parser.is_whole()) return std::nullopt;
    return channel;
}

std::optional<MessageRecord> parse_message(ByteSpan content) {
    RecordParser parser{content};
    MessageRecord message{.channel = parser.u16(),
                          .sequence = parser.u32(),
                          .log_time = parser.u64(),
                          .publish_time = parser.u64(),
                          .data = {}};
    if (!parser.is_whole()) return std::nullopt;
    message.data = parser.rest();
    return message;
}

std::optional<ChunkIndexRecord> parse_chunk_index(ByteSpan content) {
    RecordParser parser{content};
    const ChunkIndexRecord index{.begin_time = parser.u64(),
                                 .end_time = parser.u64(),
                                 .offset = parser.u64(),
                                 .length = parser.u64(),
                                 .channels = parser.bytes(parser.u32())};
    static_cast<void>(parser.u64()); // length of the message indexes
    static_cast<void>(parser.text());
    static_cast<void>(parser.u64()); // compressed size
    static_cast<void>(parser.u64()); // uncompressed size
    if (!parser.is_whole() || index.channels.size() % 10 != 0) return std::nullopt;
    return index;
}

std::optional<StatisticsRecord> parse_statistics(ByteSpan content) {
    RecordParser parser{content};
    StatisticsRecord statistics;
    statistics.messages = parser.u64();
    static_cast<void>(parser.u16()); // schemas
    statistics.channels = parser.u32();
    statistics.attachments = parser.u32();
    statistics.metadata = parser.u32();
    statistics.chunks = parser.u32();
    statistics.begin_time = parser.u64();
    statistics.end_time = parser.u64();
    statistics.channel_messages = parser.bytes(parser.u32());
    if (!parser.is_whole() || statistics.channel_messages.size() % 10 != 0) return std::nullopt;
    return statistics;
}

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
        refuse("is no MCAP file; give a file that `netio record` wrote");
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

std::optional<McapInput::Chunk> McapInput::chunk(const Record& record) {
    const std::size_t fixed = chunk_head_bytes + 4 + longest_compression + 8;
    RecordParser parser{
        view(record.offset + record_head_bytes,
             static_cast<std::size_t>(std::min<std::uint64_t>(fixed, record.length)))};
    Chunk chunk;
    chunk.begin_time = parser.u64();
    chunk.end_time = parser.u64();
    chunk.records_bytes = parser.u64();
    chunk.crc = parser.u32();
    chunk.compression = parser.text();
    chunk.stored_bytes = parser.u64();
    const std::uint64_t head = chunk_head_bytes + 4 + chunk.compression.size() + 8;
    if (!parser.is_whole() || head > record.length || chunk.stored_bytes != record.length - head ||
        chunk.begin_time > chunk.end_time ||
        (chunk.compression.empty() && chunk.stored_bytes != chunk.records_bytes))
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
    std::optional<Chunk> found = chunk(record);
    if (!found) {
        problem = "the chunk's header is damaged";
        return std::nullopt;
    }
    const std::string compression{found->compression}; // the window moves
    if (!is_compression(compression)) {
        problem = "the chunk is compressed by '" + compression + "', not by lz4 or zstd";
        return std::nullopt;
    }
    if (found->records_bytes > limit_bytes_)
        fail(record.offset, "a chunk of " + std::to_string(found->records_bytes) + " bytes",
             "increase chunk_memory_limit, which is " + std::to_string(limit_bytes_) + " bytes");
    const auto bytes = static_cast<std::size_t>(found->records_bytes);
    // lz4 reduces by 255 at most: a length beyond that costs no memory.
    if (compression == "lz4" && bytes / 256 > found->stored_bytes) {
        problem = "the chunk's length is damaged";
        return std::nullopt;
    }
    const ByteSpan all = content(record);
    if (all.size() < found->stored_bytes) {
        problem = "the file became shorter";
        return std::nullopt;
    }
    const ByteSpan stored = all.last(static_cast<std::size_t>(found->stored_bytes));
    ByteSpan records = stored;
    if (!compression.empty()) {
        if (!decompress(compression, stored, bytes)) {
            problem = "the chunk cannot be decompressed (" + compression + ")";
            return std::nullopt;
        }
        records = ByteSpan{records_}.first(bytes);
    }
    if (found->crc != 0 && crc32(records) != found->crc) {
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
    End found{.summary = parser.u64(), .summary_crc = 0, .offset = record->offset};
    static_cast<void>(parser.u64()); // summary offsets
    found.summary_crc = parser.u32();
    if (found.summary > found.offset) return std::nullopt;
    return found;
}

bool McapInput::visit_summary(const End& end, const std::function<void(Opcode, ByteSpan)>& visit) {
    if (end.summary < magic.size()) return false;
    if (end.summary_crc != 0) {
        std::uint32_t crc = 0;
        const std::uint64_t crc_end = end.offset + record_head_bytes + footer_bytes - 4;
        for (std::uint64_t at = end.summary; at < crc_end;) {
            const ByteSpan part = view(
                at, static_cast<std::size_t>(std::min<std::uint64_t>(window_bytes, crc_end - at)));
            if (part.empty()) return false;
            crc = crc32(part, crc);
            at += part.size();
        }
        if (crc != end.summary_crc) return false;
    }
    std::uint64_t at = end.summary;
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
    std::uint64_t checked = 0; // bytes of chunks that were checked in vain
    std::vector<std::byte> part;
    while (offset < size_) {
        const ByteSpan seen = view(offset, window_bytes);
        part.assign(seen.begin(), seen.end()); // the check of a chunk moves the window
        const std::size_t last = offset + part.size() < size_ && part.size() > seen_bytes
                                     ? part.size() - seen_bytes
                                     : part.size();
        if (last == 0) break;
        for (std::size_t i = 0; i < last; ++i) {
            if (part[i] != std::byte{6}) continue; // Opcode::chunk
            RecordParser parser{ByteSpan{part}.subspan(i + 1)};
            const std::uint64_t length = parser.u64();
            const std::uint64_t at = offset + i;
            if (at + record_head_bytes > size_ || length > size_ - at - record_head_bytes ||
                length > limit_bytes_)
                continue;
            const Record record{.opcode = Opcode::chunk, .offset = at, .length = length};
            static_cast<void>(parser.bytes(8 + 8 + 8 + 4));
            if (!is_compression(parser.text()) || !parser.is_whole()) continue;
            const auto head = chunk(record);
            if (!head || head->crc == 0 || head->records_bytes > limit_bytes_) continue;
            std::string problem;
            const std::uint64_t cost = head->records_bytes + length;
            if (chunk_records(record, problem)) return record;
            checked += cost;
            if (checked > 4 * std::uint64_t{limit_bytes_}) return std::nullopt;
        }
        offset += last;
    }
    return std::nullopt;
}

} // namespace netio::mcap::inline v0_3
