// SPDX-License-Identifier: Apache-2.0
#include "pubsub/recording/mcap_file.hpp"

#include "netio/base/version.hpp"
#include "netio/base/wire.hpp"

#include <fcntl.h>
#include <limits.h>
#include <lz4frame.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <unistd.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <system_error>
#include <utility>

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

McapInput::McapInput(std::string path, std::size_t limit_bytes, std::uint64_t size_limit)
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
    size_ = std::min(static_cast<std::uint64_t>(status.st_size), size_limit);
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

// --- Compressor ---------------------------------------------------------------------------------

struct Compressor::State {
    std::unique_ptr<ZSTD_CCtx, decltype(&ZSTD_freeCCtx)> zstd{nullptr, &ZSTD_freeCCtx};
    Bytes out;
};

Compressor::Compressor(std::string name)
    : name_{std::move(name)}, state_{std::make_unique<State>()} {
    if (name_ != "zstd") return;
    state_->zstd.reset(ZSTD_createCCtx());
    if (!state_->zstd) throw std::bad_alloc{};
}

Compressor::~Compressor() = default;

std::optional<std::span<const std::byte>> Compressor::compress(std::span<const std::byte> bytes) {
    constexpr int zstd_level = 1; // the disk is the limit: speed counts more than size
    if (name_.empty()) return {};
    Bytes& out = state_->out;
    const std::size_t bound = state_->zstd ? ZSTD_compressBound(bytes.size())
                                           : LZ4F_compressFrameBound(bytes.size(), nullptr);
    if (out.size() < bound) out.resize(bound);
    std::size_t size = 0;
    if (state_->zstd) {
        size = ZSTD_compressCCtx(state_->zstd.get(), out.data(), out.size(), bytes.data(),
                                 bytes.size(), zstd_level);
        if (ZSTD_isError(size) != 0) throw std::runtime_error{ZSTD_getErrorName(size)};
    } else {
        size = LZ4F_compressFrame(out.data(), out.size(), bytes.data(), bytes.size(), nullptr);
        if (LZ4F_isError(size) != 0) throw std::runtime_error{LZ4F_getErrorName(size)};
    }
    if (size >= bytes.size()) return {};
    return std::span<const std::byte>{out.data(), size};
}

// --- FileOutput ---------------------------------------------------------------------------------

namespace {

constexpr std::size_t block_bytes = 4096; // a multiple of what direct I/O requires anywhere
constexpr std::size_t staging_bytes = std::size_t{1} << 20;

std::string_view remedy_of(int error) {
    switch (error) {
    case ENOSPC:
    case EDQUOT:
        return "; free space there, or write to another file system";
    case EFBIG:
        return "; raise the limit of file sizes (ulimit -f), or write smaller files";
    case EACCES:
    case EPERM:
    case EROFS:
        return "; choose a folder in which this user may write";
    case ENOENT:
    case ENOTDIR:
        return "; create its folder first";
    default:
        return {};
    }
}

} // namespace

void throw_file_error(std::string_view what, const std::string& path, int error) {
    std::string text{what};
    text.append(" ").append(path).append(remedy_of(error));
    throw std::system_error{error, std::generic_category(), text};
}

void FileOutput::Free::operator()(std::byte* memory) const noexcept {
    std::free(memory);
}

FileOutput::FileOutput(std::string path, bool direct_io) : path_{std::move(path)} {
    constexpr int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
    descriptor_ = ::open(path_.c_str(), flags, 0666);
    if (descriptor_ < 0) {
        const int error = errno;
        fail(error == EEXIST ? "a recording overwrites nothing; use another name than"
                             : "cannot create",
             error);
    }
    if (!direct_io || ::fcntl(descriptor_, F_SETFL, O_DIRECT) != 0) return;
    staging_.reset(static_cast<std::byte*>(std::aligned_alloc(block_bytes, staging_bytes)));
    if (staging_ == nullptr) {
        ::close(descriptor_);
        throw std::bad_alloc{};
    }
}

FileOutput::~FileOutput() {
    if (descriptor_ >= 0) ::close(descriptor_);
}

void FileOutput::fail(const char* what, int error) const {
    throw_file_error(what, path_, error);
}

void FileOutput::append(std::span<const std::span<const std::byte>> parts) {
    const std::uint64_t size_before = size_;
    try {
        if (staging_ != nullptr) {
            write_direct(parts);
        } else {
            write_buffered(parts);
        }
    } catch (...) {
        // A part of the record would be a torn one, and may take the space that the index needs.
        size_ = size_before;
        if (staging_ != nullptr) set_direct(false);
        staging_.reset(); // it has bytes of this part
        staged_ = 0;
        (void)!::ftruncate(descriptor_, static_cast<off_t>(size_));
        throw;
    }
}

void FileOutput::write_buffered(std::span<const std::span<const std::byte>> parts) {
    constexpr std::size_t batch = std::min<std::size_t>(IOV_MAX, 1024);
    std::array<iovec, batch> vectors; // NOLINT: filled below
    std::size_t offset = 0;           // in the first part
    while (!parts.empty()) {
        std::size_t count = 0;
        for (std::size_t skip = offset; count < std::min(batch, parts.size()); ++count, skip = 0) {
            const auto part = parts[count].subspan(skip);
            vectors[count] = {const_cast<std::byte*>(part.data()), part.size()};
        }
        const ssize_t written = ::pwritev(descriptor_, vectors.data(), static_cast<int>(count),
                                          static_cast<off_t>(size_));
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) fail("cannot write to", errno);
        size_ += static_cast<std::uint64_t>(written);
        offset += static_cast<std::size_t>(written);
        while (!parts.empty() && offset >= parts.front().size()) {
            offset -= parts.front().size();
            parts = parts.subspan(1);
        }
    }
}

// Whole blocks are written directly; the last part of a block also, but through the page cache, and
// again with the next bytes.
void FileOutput::write_direct(std::span<const std::span<const std::byte>> parts) {
    std::uint64_t begin = size_ - staged_;
    const auto write_blocks = [&] {
        const std::size_t whole = staged_ - staged_ % block_bytes;
        if (whole == 0) return;
        write_at(staging_.get(), whole, begin);
        std::memmove(staging_.get(), staging_.get() + whole, staged_ - whole);
        begin += whole;
        staged_ -= whole;
    };
    for (std::span<const std::byte> part : parts) {
        while (!part.empty()) {
            const std::size_t count = std::min(part.size(), staging_bytes - staged_);
            std::memcpy(staging_.get() + staged_, part.data(), count);
            staged_ += count;
            part = part.subspan(count);
            if (staged_ == staging_bytes) write_blocks();
        }
    }
    write_blocks();
    if (staged_ > 0) {
        set_direct(false);
        write_at(staging_.get(), staged_, begin);
        set_direct(true);
    }
    size_ = begin + staged_;
}

void FileOutput::write_at(const std::byte* from, std::size_t bytes, std::uint64_t at) {
    while (bytes > 0) {
        const ssize_t written = ::pwrite(descriptor_, from, bytes, static_cast<off_t>(at));
        if (written < 0 && errno == EINTR) continue;
        if (written < 0) fail("cannot write to", errno);
        from += written;
        bytes -= static_cast<std::size_t>(written);
        at += static_cast<std::uint64_t>(written);
    }
}

void FileOutput::set_direct(bool on) {
    (void)::fcntl(descriptor_, F_SETFL, on ? O_DIRECT : 0);
}

void FileOutput::sync() {
    if (::fdatasync(descriptor_) != 0) fail("cannot write to the disk", errno);
}

void FileOutput::close() {
    if (::close(std::exchange(descriptor_, -1)) != 0) fail("cannot close", errno);
}

std::uint64_t FileOutput::available_bytes() const {
    struct statvfs about {};
    if (::fstatvfs(descriptor_, &about) != 0) fail("cannot find the free space for", errno);
    return std::uint64_t{about.f_bavail} * about.f_frsize;
}

// --- McapFile -----------------------------------------------------------------------------------

McapFile::McapFile(const std::string& path, const Run& run, unsigned part, bool direct_io)
    : output_{path, direct_io} {
    head_.assign(magic.begin(), magic.end());
    mcap::append(head_, Header{.profile = std::string{profile}, .library = library_text()});
    metadata_ = {.offset = head_.size(), .name = std::string{run_metadata}};
    mcap::append(head_, Metadata{.name = std::string{run_metadata},
                                 .metadata = {{"run", run.id},
                                              {"part", std::to_string(part)},
                                              {"host", run.host},
                                              {"version", version()}}});
    metadata_.length = head_.size() - metadata_.offset;
    mcap::append(head_, events_schema());
    const std::array<std::span<const std::byte>, 1> parts{head_};
    try {
        output_.append(parts);
    } catch (...) { // an empty file is no recording
        (void)::unlink(path.c_str());
        throw;
    }
    statistics_ = {.schema_count = 1, .metadata_count = 1};
}

std::vector<std::pair<std::uint16_t, std::uint32_t>> McapFile::count(const Chunk& chunk) {
    std::vector<std::pair<std::uint16_t, std::uint32_t>> found;
    for (const Chunk::Item& item : chunk.items())
        if (counts_[item.channel]++ == 0) found.emplace_back(item.channel, 0);
    std::ranges::sort(found);
    for (auto& [channel, messages] : found)
        messages = std::exchange(counts_[channel], 0);
    return found;
}

// The index of each channel has its final place from the beginning, so that one pass over the
// messages fills all of them.
void McapFile::append_message_indexes(Bytes& out, const Chunk& chunk, ChunkIndex& index,
                                      std::uint64_t begin) {
    constexpr std::size_t item_bytes = 16;
    const auto found = count(chunk);
    for (const auto& [channel, messages] : found) {
        index.message_index_offsets.emplace_back(channel, begin + out.size());
        mcap::append(out, MessageIndex{.channel_id = channel});
        // The two lengths, of the content and of its list.
        wire::store(out.data() + out.size() - 4, static_cast<std::uint32_t>(messages * item_bytes));
        wire::store(out.data() + out.size() - 14,
                    std::uint64_t{2 + 4 + std::size_t{messages} * item_bytes});
        counts_[channel] = static_cast<std::uint32_t>(out.size()); // where its next item goes
        out.resize(out.size() + messages * item_bytes);
        messages_of_[channel] += messages;
    }
    for (const Chunk::Item& item : chunk.items()) {
        std::uint32_t& at = counts_[item.channel];
        wire::store(out.data() + at, item.log_time);
        wire::store(out.data() + at + 8, item.offset);
        at += item_bytes;
    }
    for (const auto& [channel, messages] : found)
        counts_[channel] = 0;
}

void McapFile::write(const Chunk& chunk, std::span<const Channel> channels,
                     Compressor& compressor) {
    counts_.resize(channels.size());
    messages_of_.resize(channels.size());
    is_declared_.resize(channels.size());
    head_.clear();
    std::vector<std::uint16_t> declared;
    for (const Chunk::Item& item : chunk.items()) {
        if (is_declared_[item.channel]) continue;
        is_declared_[item.channel] = true;
        declared.push_back(item.channel);
        mcap::append(head_, channels[item.channel]);
    }
    const std::size_t declared_bytes = head_.size();

    ChunkFields fields{.message_start_time = chunk.items().front().log_time,
                       .message_end_time = chunk.items().back().log_time,
                       .uncompressed_size = chunk.size()};
    std::vector<std::span<const std::byte>> parts(1); // the first one: the head
    chunk.for_each_part([&](std::span<const std::byte> part) {
        fields.uncompressed_crc = crc32(part, fields.uncompressed_crc);
        if (!part.empty()) parts.push_back(part);
    });
    fields.records_size = chunk.size();
    if (!compressor.name().empty()) {
        // One part: memory of the user is not used with compression.
        if (const auto compressed = compressor.compress(parts.back())) {
            parts = {{}, *compressed};
            fields.records_size = compressed->size();
            fields.compression = compressor.name();
        }
    }
    mcap::append(head_, fields);
    parts.front() = head_;

    const std::uint64_t begin = output_.size();
    ChunkIndex index{.message_start_time = fields.message_start_time,
                     .message_end_time = fields.message_end_time,
                     .chunk_start_offset = begin + declared_bytes,
                     .chunk_length = head_.size() - declared_bytes + fields.records_size,
                     .compression = fields.compression,
                     .compressed_size = fields.records_size,
                     .uncompressed_size = fields.uncompressed_size};
    tail_.clear();
    append_message_indexes(tail_, chunk, index, index.chunk_start_offset + index.chunk_length);
    index.message_index_length = tail_.size();
    parts.emplace_back(tail_);
    try {
        output_.append(parts);
    } catch (...) { // the index at the end of the file must not have it
        for (const Chunk::Item& item : chunk.items())
            --messages_of_[item.channel];
        for (const std::uint16_t channel : declared)
            is_declared_[channel] = false;
        throw;
    }
    declared_bytes_ += declared_bytes;
    mcap::append(chunk_indexes_, index);
    if (statistics_.message_count == 0) statistics_.message_start_time = fields.message_start_time;
    statistics_.message_end_time = fields.message_end_time;
    statistics_.message_count += chunk.items().size();
    ++statistics_.chunk_count;
}

std::size_t McapFile::index_with(const Chunk& chunk) const noexcept {
    constexpr std::size_t fields_bytes = 128; // of a chunk index, without its map
    constexpr std::size_t per_channel = 10;
    const std::size_t channels = std::min(chunk.items().size(), std::size_t{1} << 16);
    return chunk_indexes_.size() + declared_bytes_ + fields_bytes + per_channel * channels;
}

std::size_t McapFile::size_with(const Chunk& chunk) const noexcept {
    constexpr std::size_t end_bytes = 1024; // schema, metadata index, summary offsets, footer
    constexpr std::size_t item_bytes = 16 + record_head_bytes + 6; // if each has its own channel
    return output_.size() + chunk.size() + chunk.items().size() * item_bytes + index_with(chunk) +
           end_bytes;
}

void McapFile::finish(std::span<const Channel> channels, bool sync) {
    Bytes schema;
    mcap::append(schema, events_schema());
    Bytes declared;
    for (std::size_t id = 0; id < is_declared_.size(); ++id) {
        if (!is_declared_[id]) continue;
        mcap::append(declared, channels[id]);
        ++statistics_.channel_count;
        statistics_.channel_message_counts.emplace_back(id, messages_of_[id]);
    }
    Bytes statistics;
    mcap::append(statistics, statistics_);
    Bytes metadata;
    mcap::append(metadata, metadata_);
    const std::array<SummaryGroup, 5> groups{{{Opcode::schema, schema},
                                              {Opcode::channel, declared},
                                              {Opcode::statistics, statistics},
                                              {Opcode::chunk_index, chunk_indexes_},
                                              {Opcode::metadata_index, metadata}}};
    Bytes out;
    append_end(out, output_.size(), groups);
    const std::array<ByteSpan, 1> parts{out};
    output_.append(parts);
    if (sync) output_.sync();
    output_.close();
}

} // namespace netio::mcap::inline v0_3
