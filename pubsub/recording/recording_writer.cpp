// SPDX-License-Identifier: Apache-2.0
#include "pubsub/recording/recording_writer.hpp"

#include "netio/base/option_check.hpp"
#include "netio/base/signals_blocked.hpp"
#include "netio/random_number.hpp"
#include "pubsub/core/fid_map.hpp"
#include "pubsub/discovery/bus.hpp"
#include "pubsub/recording/mcap_file.hpp"

#include <nlohmann/json.hpp>

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <condition_variable>
#include <cstdio>
#include <cstring>
#include <deque>
#include <exception>
#include <filesystem>
#include <map>
#include <mutex>
#include <new>
#include <stdexcept>
#include <system_error>
#include <thread>
#include <utility>

namespace netio::inline v0_3 {
namespace {

using mcap::Chunk;

constexpr std::string_view suffix = ".mcap";
constexpr std::size_t shortest_number = 6;                        // at least
constexpr std::size_t event_reserve_bytes = std::size_t{1} << 20; // beyond queue_limit_bytes
// A step back of the clock below this is a thread that was delayed between reading the clock and
// its call.
constexpr std::uint64_t clock_step_ns = 1'000'000;

constexpr std::uint16_t events_channel = 0;
constexpr std::uint16_t first_fid_channel = 1;
// The last id is for the publishers that have none of their own.
constexpr std::uint16_t last_channel = 65534;

std::uint64_t wall_clock_ns() noexcept {
    timespec now{};
    ::clock_gettime(CLOCK_REALTIME, &now);
    return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
           static_cast<std::uint64_t>(now.tv_nsec);
}

std::string new_uuid() {
    const std::uint64_t high = (random_number() & ~0xF000ULL) | 0x4000ULL; // version 4
    const std::uint64_t low = (random_number() & ~(3ULL << 62)) | (2ULL << 62);
    char text[40];
    std::snprintf(text, sizeof text, "%08llx-%04llx-%04llx-%04llx-%012llx",
                  static_cast<unsigned long long>(high >> 32),
                  static_cast<unsigned long long>((high >> 16) & 0xFFFF),
                  static_cast<unsigned long long>(high & 0xFFFF),
                  static_cast<unsigned long long>(low >> 48),
                  static_cast<unsigned long long>(low & 0xFFFFFFFFFFFFULL));
    return text;
}

RecordingWriter::Entry entry_of(const Message& message) {
    RecordingWriter::Entry entry{.fid = message.fid(),
                                 .bytes = message.bytes(),
                                 .status = message.status(),
                                 .lost_before = message.lost_before()};
    const auto stamp = message.time();
    const auto utc = stamp ? stamp->utc_ns() : std::nullopt;
    if (utc && *utc >= 0) entry.publish_ns = static_cast<std::uint64_t>(*utc);
    return entry;
}

// "0-63,128": as options of the program take them.
std::string text_of(const FidSet& fids) {
    std::string text;
    for (const FidRange& range : fids.ranges()) {
        if (!text.empty()) text += ',';
        text += std::to_string(range.first.value());
        if (range.last != range.first) text += '-' + std::to_string(range.last.value());
    }
    return text;
}

std::string json_of(const RecordingWriter::Event& event) {
    nlohmann::ordered_json json{{"event", event.event}};
    if (!event.publisher.empty()) json["publisher"] = event.publisher;
    if (!event.fids.empty()) json["fids"] = text_of(event.fids);
    if (event.count) json["count"] = *event.count;
    if (!event.reason.empty()) json["reason"] = event.reason;
    // Texts may come from peers.
    return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

void check(const std::string& path, const RecordingWriter::Options& options) {
    require_option(path.ends_with(suffix) && path.size() > suffix.size(),
                   "the name of a recording is '" + path + "'; it must end in .mcap");
    require_between("chunk_size_bytes", options.chunk_size_bytes, 4096, std::uint64_t{1} << 30);
    require_between("queue_limit_bytes", options.queue_limit_bytes, 2 * options.chunk_size_bytes,
                    std::uint64_t{1} << 40);
    require_between("index_limit_bytes", options.index_limit_bytes, 4096, std::uint64_t{1} << 32);
    require_option(options.rotate_size_bytes == 0 || options.rotate_size_bytes >= 4096,
                   "rotate_size_bytes is " + std::to_string(options.rotate_size_bytes) +
                       "; it must be 0 or at least 4096");
    require_time("flush_interval", clamped_milliseconds(options.flush_interval));
    if (options.rotate_interval != Duration{0})
        require_time("rotate_interval", clamped_milliseconds(options.rotate_interval));
}

std::string compression_name(RecordingWriter::Compression compression) {
    switch (compression) {
    case RecordingWriter::Compression::none:
        return "";
    case RecordingWriter::Compression::lz4:
        return "lz4";
    case RecordingWriter::Compression::zstd:
        return "zstd";
    }
    return "";
}

// Assigns channels to fids and publishers, and sequences to messages. No I/O.
class Channels {
  public:
    struct Assignment {
        std::uint16_t channel = 0;
        bool has_fid = false; // the prefix contains the fid
        std::uint64_t sequence = 0;
    };
    // A channel that is new is declared in the chunk.
    Assignment assign(const RecordingWriter::Entry& entry, Chunk& chunk) {
        FidState& fid = fids_[entry.fid];
        if (fid.channel == 0) fid.channel = add_fid(entry, chunk);
        Assignment assigned{.channel = fid.channel,
                            .sequence = entry.sequence.value_or(fid.next + entry.lost_before)};
        if (fid.channel == shared) {
            assigned.channel = publisher_channel(entry.publisher, chunk);
            assigned.has_fid = true;
        }
        fid.next = assigned.sequence + 1;
        return assigned;
    }
    void skip(Fid fid, std::uint64_t count) { fids_[fid].next += count; }

  private:
    static constexpr std::uint16_t shared = 65535; // of fids without a channel of their own

    struct FidState {
        std::uint64_t next = 0;    // sequence
        std::uint16_t channel = 0; // 0: none yet
    };

    std::uint16_t add_fid(const RecordingWriter::Entry& entry, Chunk& chunk) {
        if (fid_channels_ == mcap::fid_channel_limit) return shared;
        const auto id = static_cast<std::uint16_t>(first_fid_channel + fid_channels_++);
        mcap::Channel channel{.id = id,
                              .topic = mcap::fid_topic(entry.fid),
                              .message_encoding = std::string{mcap::fid_encoding},
                              .metadata = {{"fid", to_string(entry.fid)}}};
        if (!entry.publisher.empty()) channel.metadata["publisher"] = entry.publisher;
        chunk.declare(std::move(channel));
        return id;
    }
    std::uint16_t publisher_channel(std::string_view publisher, Chunk& chunk) {
        const auto known = publishers_.find(publisher);
        if (known != publishers_.end()) return known->second;
        const std::size_t next = first_fid_channel + mcap::fid_channel_limit + publishers_.size();
        if (next > last_channel) return last_channel;
        const auto id = static_cast<std::uint16_t>(next);
        const std::string name{id == last_channel ? "others" : publisher};
        publishers_.emplace(name, id);
        chunk.declare({.id = id,
                       .topic = mcap::publisher_topic(name),
                       .message_encoding = std::string{mcap::publisher_encoding},
                       .metadata = {{"publisher", name}}});
        return id;
    }

    pubsub::FidMap<FidState> fids_;
    std::size_t fid_channels_ = 0;
    std::map<std::string, std::uint16_t, std::less<>> publishers_;
};

// Log times do not decrease within a recording. No I/O.
class LogClock {
  public:
    struct Time {
        std::uint64_t ns;
        std::uint64_t step_ns = 0; // back, if it is to be reported
    };
    Time hold(std::uint64_t ns) noexcept {
        if (ns >= last_) {
            last_ = ns;
            is_held_ = false;
            return {ns};
        }
        if (is_held_ || last_ - ns < clock_step_ns) return {last_};
        is_held_ = true;
        return {last_, last_ - ns};
    }

  private:
    std::uint64_t last_ = 0;
    bool is_held_ = false;
};

} // namespace

// The callers' side fills the open chunk; the thread takes full and old ones, and writes them.
struct RecordingWriter::Impl {
    Impl(std::string file, Options wanted)
        : path{std::move(file)}, options{std::move(wanted)}, run{new_uuid(), pubsub::this_host()},
          compressor{compression_name(options.compress)} {
        check(path, options);
        channels.reserve(1024);
        channels.push_back({.id = events_channel,
                            .schema_id = mcap::events_schema().id,
                            .topic = std::string{mcap::events_topic},
                            .message_encoding = std::string{mcap::events_encoding},
                            .metadata = {}});
        open.reserve(options.chunk_size_bytes);
        refuse_other_set();
        open_part();
        const AllSignalsBlocked blocked; // also SIGXFSZ, at the limit of a file's size
        thread = std::thread{[this] { run_thread(); }};
    }
    ~Impl() {
        begin_close();
        if (thread.joinable()) thread.join();
    }

    // --- the callers' side, with the mutex -----------------------------------------------------

    Status write(const Entry& entry, KeptBytes memory) {
        const std::lock_guard lock{mutex};
        if (is_ended()) return Status::closed;
        if (is_full) return Status::again;
        const Channels::Assignment assigned = assignments.assign(entry, open);
        const std::size_t prefix_bytes =
            assigned.has_fid ? mcap::publisher_prefix_bytes : mcap::fid_prefix_bytes;
        const std::size_t data_bytes = prefix_bytes + entry.bytes.size();
        const std::uint64_t time = held(entry.arrival_ns != 0 ? entry.arrival_ns : wall_clock_ns());
        make_space(data_bytes);
        const bool borrows = !memory.empty();
        const std::size_t stored_bytes = borrows ? prefix_bytes : data_bytes;
        std::byte* const out =
            open.append_message({.channel_id = assigned.channel,
                                 .sequence = static_cast<std::uint32_t>(assigned.sequence),
                                 .log_time = time,
                                 .publish_time = entry.publish_ns.value_or(time)},
                                data_bytes, stored_bytes);
        const mcap::Prefix prefix{.status = entry.status,
                                  .has_publish_time = entry.publish_ns.has_value(),
                                  .sequence = assigned.sequence,
                                  .fid = entry.fid};
        if (assigned.has_fid) {
            mcap::store_publisher_prefix(out, prefix);
        } else {
            mcap::store_fid_prefix(out, prefix);
        }
        if (borrows) {
            open.append_piece(std::move(memory));
        } else if (!entry.bytes.empty()) {
            std::memcpy(out + prefix_bytes, entry.bytes.data(), entry.bytes.size());
        }
        ++sums.messages;
        sums.bytes += entry.bytes.size();
        ++open_messages;
        note_growth();
        return Status::ok;
    }

    Status write(const Event& event) {
        const std::lock_guard lock{mutex};
        if (is_ended()) return Status::closed;
        if (queued_bytes + open.size() >= options.queue_limit_bytes + event_reserve_bytes)
            return Status::again;
        append_event(event, held(event.arrival_ns != 0 ? event.arrival_ns : wall_clock_ns()));
        return Status::ok;
    }

    // May append an event, if the clock has stepped back.
    std::uint64_t held(std::uint64_t ns) {
        const LogClock::Time time = clock.hold(ns);
        if (time.step_ns > 0) {
            ++sums.clock_steps;
            append_event({.event = "clock_step",
                          .reason = "the clock stepped back by " +
                                    std::to_string(time.step_ns / 1'000'000) +
                                    " ms; times are held until it has passed the last one"},
                         time.ns);
        }
        return time.ns;
    }

    void append_event(const Event& event, std::uint64_t time) {
        const std::string text = json_of(event);
        make_space(text.size());
        std::byte* const out =
            open.append_message({.channel_id = events_channel,
                                 .sequence = static_cast<std::uint32_t>(sums.events),
                                 .log_time = time,
                                 .publish_time = time},
                                text.size(), text.size());
        std::memcpy(out, text.data(), text.size());
        ++sums.events;
        note_growth();
    }

    // Queues the open chunk if a message with `data_bytes` bytes of data does not fit into it.
    void make_space(std::size_t data_bytes) {
        const std::size_t bytes = mcap::message_head_bytes + data_bytes;
        if (!open.empty() && open.size() + bytes > options.chunk_size_bytes) queue_open();
    }

    void queue_open() {
        queued_bytes += open.size();
        ++chunks_queued;
        queue.push_back({std::move(open), std::exchange(open_messages, 0)});
        if (spare.empty()) {
            open = Chunk{};
            open.reserve(options.chunk_size_bytes);
        } else {
            open = std::move(spare.back());
            spare.pop_back();
        }
        for_thread.notify_one();
    }

    void note_growth() {
        if (open.items().size() == 1) {
            open_since = Clock::now();
            for_thread.notify_one(); // to wait until flush_interval
        }
        if (!is_full && queued_bytes + open.size() >= options.queue_limit_bytes) is_full = true;
    }

    bool is_ended() const noexcept { return is_closing || !sums.failure.empty(); }

    void begin_close() {
        const std::lock_guard lock{mutex};
        if (!is_ended() && !open.empty()) queue_open();
        is_closing = true;
        for_thread.notify_one();
        for_callers.notify_all();
    }

    // --- the thread ------------------------------------------------------------------------------

    struct Queued {
        Chunk chunk;
        std::uint64_t messages = 0; // without events
    };

    void run_thread() {
        while (std::optional<Queued> next = take()) {
            try {
                write_chunk(next->chunk);
            } catch (const std::exception&) {
                return fail(std::current_exception(), next->messages);
            }
            count_written(std::move(*next));
        }
        try {
            finish_part();
        } catch (const std::exception&) {
            return fail(std::current_exception(), 0);
        }
        const std::lock_guard lock{mutex};
        is_done = true;
        for_callers.notify_all();
    }

    // Waits for the next chunk. Returns nullopt at the end.
    std::optional<Queued> take() {
        std::unique_lock lock{mutex};
        while (queue.empty()) {
            if (is_closing) return {};
            if (open.empty()) {
                for_thread.wait(lock);
            } else if (Clock::now() >= open_since + options.flush_interval) {
                queue_open();
            } else {
                for_thread.wait_until(lock, open_since + options.flush_interval);
            }
        }
        Queued next = std::move(queue.front());
        queue.pop_front();
        return next;
    }

    // Its index is written once, even if that fails.
    void finish_part() {
        const auto ending = std::exchange(part, nullptr);
        ending->finish(channels, options.fsync);
        finished_bytes += ending->output().size();
        const std::lock_guard lock{mutex};
        note_sizes();
    }

    void write_chunk(Chunk& chunk) {
        for (mcap::Channel& channel : chunk.channels()) {
            if (channels.size() <= channel.id) channels.resize(channel.id + std::size_t{1});
            channels[channel.id] = std::move(channel);
        }
        const std::uint64_t first = chunk.items().front().log_time;
        const auto interval = static_cast<std::uint64_t>(options.rotate_interval.count());
        if (part->messages() > 0 && ((options.rotate_size_bytes > 0 &&
                                      part->size_with(chunk) > options.rotate_size_bytes) ||
                                     (interval > 0 && first >= part->first_time() + interval) ||
                                     part->index_with(chunk) > options.index_limit_bytes)) {
            finish_part();
            open_part();
        }
        check_free_space(chunk);
        part->write(chunk, channels, compressor);
        if (options.fsync && Clock::now() >= last_sync + options.flush_interval) {
            part->output().sync();
            last_sync = Clock::now();
        }
    }

    void check_free_space(const Chunk& chunk) {
        if (options.min_free_bytes == 0) return;
        const std::uint64_t available = part->output().available_bytes();
        if (available >= options.min_free_bytes + chunk.size()) return;
        throw std::runtime_error{"the file system of " + part->output().path() + " has " +
                                 std::to_string(available >> 20) +
                                 " MiB available, and min_free_bytes reserves " +
                                 std::to_string(options.min_free_bytes >> 20) +
                                 " MiB; nothing more is written. Delete files, write to another "
                                 "file system, or decrease min_free_bytes"};
    }

    void open_part() {
        if (++part_number == 2 && !is_rotated()) number_first_part();
        std::string name = part_number > 1 || is_rotated() ? numbered(part_number) : path;
        part = std::make_unique<mcap::McapFile>(name, run, part_number, options.direct_io);
        const std::lock_guard lock{mutex};
        sums.files.push_back(std::move(name));
        note_sizes();
    }

    // A file of an earlier set would end this recording when it reaches that number, and the name
    // of the set would mean the single file "run.mcap".
    void refuse_other_set() const {
        namespace fs = std::filesystem;
        std::error_code error;
        if (is_rotated() && fs::symlink_status(path, error).type() != fs::file_type::not_found)
            refuse_existing(path);
        const fs::path folder = fs::path{path}.parent_path();
        fs::directory_iterator entry{folder.empty() ? "." : folder, error};
        for (; !error && entry != fs::directory_iterator{}; entry.increment(error)) {
            if (is_part(entry->path().filename().string()))
                refuse_existing((folder / entry->path().filename()).string());
        }
    }

    // Whether it is a name as numbered() makes them.
    bool is_part(const std::string& name) const {
        const std::string mine = std::filesystem::path{path}.filename().string();
        const std::string_view stem{mine.data(), mine.size() - suffix.size()};
        if (!name.starts_with(stem) || !name.ends_with(suffix)) return false;
        const std::string_view number =
            std::string_view{name}.substr(stem.size(), name.size() - stem.size() - suffix.size());
        return number.size() > shortest_number && number.front() == '-' &&
               number.find_first_not_of("0123456789", 1) == number.npos;
    }

    [[noreturn]] static void refuse_existing(const std::string& found) {
        throw std::system_error{EEXIST, std::generic_category(),
                                "a recording overwrites nothing; use another name than that of " +
                                    found};
    }

    bool is_rotated() const noexcept {
        return options.rotate_size_bytes > 0 || options.rotate_interval.count() > 0;
    }

    std::string numbered(unsigned number) const {
        char text[24];
        std::snprintf(text, sizeof text, "-%06u", number);
        std::string name = path;
        return name.insert(name.size() - suffix.size(), text);
    }

    // A limit of the index has ended the only file: it becomes the first part of a set, because
    // readers would not look for further parts of "run.mcap".
    void number_first_part() {
        const std::string name = numbered(1);
        { const mcap::FileOutput reserved{name, false}; } // replaces no other file
        if (::rename(path.c_str(), name.c_str()) != 0) {
            const int error = errno;
            ::unlink(name.c_str());
            throw std::system_error{error, std::generic_category(),
                                    "cannot rename " + path + " to " + name};
        }
        const std::lock_guard lock{mutex};
        sums.files.front() = name;
    }

    // With the mutex.
    void note_sizes() {
        sums.file_bytes = finished_bytes + (part ? part->output().size() : 0);
        if (part) sums.direct_io = part->output().is_direct();
    }

    void count_written(Queued done) {
        const std::size_t bytes = done.chunk.size();
        done.chunk.clear(); // returns memory to its owner without the mutex
        bool is_writable_again = false;
        {
            const std::lock_guard lock{mutex};
            queued_bytes -= bytes;
            sums.written += done.messages;
            ++sums.chunks;
            note_sizes();
            if (spare.size() < options.queue_limit_bytes / options.chunk_size_bytes &&
                done.chunk.capacity() <= options.chunk_size_bytes)
                spare.push_back(std::move(done.chunk));
            if (is_full && queued_bytes + open.size() <= options.queue_limit_bytes / 2) {
                is_full = false;
                is_writable_again = true;
            }
            for_callers.notify_all();
        }
        if (is_writable_again && options.on_writable) options.on_writable();
    }

    // Closes the file with what is whole, and discards the rest.
    void fail(const std::exception_ptr& why, std::uint64_t messages) {
        std::string text = "recording failed";
        std::error_code code;
        try {
            std::rethrow_exception(why);
        } catch (const std::system_error& error) {
            text = error.what();
            code = error.code();
        } catch (const std::exception& error) {
            text = error.what();
        }
        try {
            if (part) finish_part();
        } catch (const std::exception&) { // the file is valid without its index
        }
        std::deque<Queued> dropped; // destroyed without the mutex
        Chunk last;
        {
            const std::lock_guard lock{mutex};
            sums.failure = text;
            failure_code = code;
            is_failure_reported = false;
            sums.discarded = messages + open_messages;
            for (const Queued& each : queue)
                sums.discarded += each.messages;
            dropped.swap(queue);
            std::swap(last, open);
            queued_bytes = 0;
            is_full = false;
            is_done = true;
            note_sizes();
            for_callers.notify_all();
        }
        if (options.on_failure) options.on_failure(text);
    }

    // With the mutex. The exception is the caller's own, not one that the thread still holds.
    void throw_failure() const {
        if (sums.failure.empty()) return;
        if (!failure_code) throw std::runtime_error{sums.failure};
        std::string text = sums.failure; // system_error appends the system's words
        const std::string words = ": " + failure_code.message();
        if (text.ends_with(words)) text.resize(text.size() - words.size());
        throw std::system_error{failure_code, text};
    }

    const std::string path;
    const Options options;
    const mcap::McapFile::Run run;

    mutable std::mutex mutex; // of what follows
    std::condition_variable for_thread;
    std::condition_variable for_callers;
    Channels assignments;
    LogClock clock;
    Chunk open;
    std::uint64_t open_messages = 0;
    TimePoint open_since{};
    std::deque<Queued> queue;
    std::vector<Chunk> spare; // written ones, whose memory is used again: it causes no page faults
    std::size_t queued_bytes = 0;     // without the open chunk
    std::atomic<bool> is_full{false}; // written with the mutex
    bool is_closing = false;
    std::uint64_t chunks_queued = 0; // so far
    bool is_done = false;            // the thread does nothing more
    std::error_code failure_code;    // 0 if it was not the system's
    bool is_failure_reported = true;
    Stats sums;

    // Of the thread.
    std::vector<mcap::Channel> channels; // by id
    mcap::Compressor compressor;
    std::unique_ptr<mcap::McapFile> part;
    unsigned part_number = 0;
    std::uint64_t finished_bytes = 0; // of former files
    TimePoint last_sync{};
    std::thread thread;
};

RecordingWriter::RecordingWriter(std::string path) : RecordingWriter{std::move(path), Options{}} {}
RecordingWriter::RecordingWriter(std::string path, Options options)
    : impl_{new Impl{std::move(path), std::move(options)}} {}
RecordingWriter::~RecordingWriter() = default;

Status RecordingWriter::write(const Entry& entry) {
    return impl_->write(entry, {});
}

Status RecordingWriter::write(const Entry& entry, KeptBytes memory) {
    if (entry.bytes.size() < kept_from_bytes || !writes_from_memory())
        return impl_->write(entry, {});
    return impl_->write(entry, memory.part(entry.bytes));
}

Status RecordingWriter::write(const Message& message) {
    return write(entry_of(message));
}

Status RecordingWriter::write(const KeptMessage& message) {
    const auto owner = std::make_shared<const KeptMessage>(message);
    return write(entry_of(message.view()), KeptBytes{owner, owner->bytes()});
}

bool RecordingWriter::writes_from_memory() const noexcept {
    return impl_->options.compress == Compression::none && !impl_->options.direct_io;
}

void RecordingWriter::skip(Fid fid, std::uint64_t count) {
    const std::lock_guard lock{impl_->mutex};
    impl_->assignments.skip(fid, count);
}

Status RecordingWriter::write(const Event& event) {
    return impl_->write(event);
}

bool RecordingWriter::is_full() const {
    return impl_->is_full.load(std::memory_order_relaxed);
}

bool RecordingWriter::wait_until_writable(std::chrono::milliseconds timeout) {
    std::unique_lock lock{impl_->mutex};
    impl_->for_callers.wait_for(lock, std::min(timeout, longest_time),
                                [&] { return !impl_->is_full || impl_->is_ended(); });
    return !impl_->is_full && !impl_->is_ended();
}

void RecordingWriter::flush() {
    std::unique_lock lock{impl_->mutex};
    if (!impl_->is_ended() && !impl_->open.empty()) impl_->queue_open();
    const std::uint64_t wanted = impl_->chunks_queued;
    impl_->for_callers.wait(lock, [&] { return impl_->is_done || impl_->sums.chunks >= wanted; });
    impl_->throw_failure();
}

void RecordingWriter::close() {
    impl_->begin_close();
    std::unique_lock lock{impl_->mutex};
    impl_->for_callers.wait(lock, [&] { return impl_->is_done; });
    if (!std::exchange(impl_->is_failure_reported, true)) impl_->throw_failure();
}

RecordingWriter::Stats RecordingWriter::stats() const {
    const std::lock_guard lock{impl_->mutex};
    Stats stats = impl_->sums;
    stats.queued_bytes = impl_->queued_bytes + impl_->open.size();
    return stats;
}

} // namespace netio::inline v0_3
