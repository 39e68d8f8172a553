// SPDX-License-Identifier: Apache-2.0
#include "apps/copy/sender.hpp"

#include "apps/common/io.hpp"
#include "apps/copy/served_folder.hpp"

#include <fmt/format.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <stdexcept>
#include <system_error>
#include <utility>
#include <vector>

namespace apps::copy {
namespace {

constexpr std::size_t read_step_bytes = std::size_t{1} << 20;

struct stat status_of(int fd, const std::string& path) {
    struct stat status {};
    if (::fstat(fd, &status) != 0) throw_errno("cannot read " + path);
    return status;
}

} // namespace

SourceFile::SourceFile(std::string path, ChecksumKind kind)
    : path_{std::move(path)}, checksum_{kind} {
    // Opening a pipe without a writer must not block.
    file_ = Descriptor{::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
    if (!file_.is_open()) throw_errno("cannot read " + path_);
    const struct stat status = status_of(file_.get(), path_);
    if (!S_ISREG(status.st_mode)) {
        throw std::runtime_error{path_ + " is not a regular file; only those can be copied"};
    }
    size_bytes_ = static_cast<std::uint64_t>(status.st_size);
    times_ = {time_of(status.st_mtim), time_of(status.st_ctim)};
    constexpr std::uint64_t block_bytes = 512; // stat(2)
    data_bytes_ = std::min(size_bytes_, static_cast<std::uint64_t>(status.st_blocks) * block_bytes);
    // Advice only: without it reading is slower.
    static_cast<void>(::posix_fadvise(file_.get(), 0, 0, POSIX_FADV_SEQUENTIAL));
}

SourceFile::Time SourceFile::time_of(const timespec& time) noexcept {
    return {.seconds = time.tv_sec, .nanoseconds = time.tv_nsec};
}

Attributes SourceFile::attributes() const {
    const struct stat status = status_of(file_.get(), path_);
    return {.modified_s = status.st_mtim.tv_sec,
            .modified_ns = static_cast<std::uint32_t>(status.st_mtim.tv_nsec),
            .mode = status.st_mode & 0777U};
}

std::vector<Extent> SourceFile::extents(std::uint64_t from, std::size_t limit) const {
    std::vector<Extent> found;
    while (found.size() < limit && from < size_bytes_) {
        const Extent next = find_data(file_.get(), from, size_bytes_);
        if (next.position - from > hole_step_bytes) {
            if (found.empty()) found.push_back({.position = from + hole_step_bytes});
            break;
        }
        if (next.bytes == 0) break;
        found.push_back(next);
        from = next.end();
    }
    return found;
}

void SourceFile::pass_hole(std::uint64_t position, const std::stop_token& stop) {
    checksum_.add_zeros(position - position_, stop);
    position_ = position;
}

Digest SourceFile::skip(std::uint64_t bytes, const std::stop_token& stop) {
    const std::uint64_t end = position_ + bytes;
    std::vector<std::byte> memory(
        static_cast<std::size_t>(std::min<std::uint64_t>(bytes, read_step_bytes)));
    while (position_ < end) {
        const Extent data = is_sparse() ? find_data(file_.get(), position_, end)
                                        : Extent{.position = position_, .bytes = end - position_};
        pass_hole(data.position, stop);
        while (position_ < data.end()) {
            if (stop.stop_requested()) throw std::runtime_error{"interrupted"};
            const std::uint64_t rest = data.end() - position_;
            read(std::span{memory}.first(
                static_cast<std::size_t>(std::min<std::uint64_t>(rest, memory.size()))));
        }
    }
    return checksum_.digest();
}

void SourceFile::rewind() {
    position_ = 0;
    checksum_.restart();
}

void SourceFile::read(std::span<std::byte> memory) {
    for (std::size_t done = 0; done < memory.size();) {
        const ssize_t count = ::pread(file_.get(), memory.data() + done, memory.size() - done,
                                      static_cast<off_t>(position_ + done));
        if (count < 0 && errno == EINTR) continue;
        if (count < 0) throw_errno("cannot read " + path_);
        if (count == 0) {
            static_cast<void>(times_now()); // throws if the file has become shorter
            throw std::runtime_error{path_ + " has fewer bytes than its size of " +
                                     std::to_string(size_bytes_) + "; it cannot be copied"};
        }
        done += static_cast<std::size_t>(count);
    }
    position_ += memory.size();
    checksum_.add(memory);
}

SourceFile::Times SourceFile::times_now() const {
    const struct stat status = status_of(file_.get(), path_);
    const Times now{time_of(status.st_mtim), time_of(status.st_ctim)};
    if (static_cast<std::uint64_t>(status.st_size) != size_bytes_ ||
        now.modified != times_.modified) {
        throw std::runtime_error{path_ + " was changed while it was copied; copy it again"};
    }
    return now;
}

Digest SourceFile::finish(const std::stop_token& stop) {
    if (position_ < size_bytes_) pass_hole(size_bytes_, stop);
    // Bytes after the end show that the file has grown, or that its size is meaningless, as for
    // files of /proc.
    std::byte more{};
    const ssize_t count = ::pread(file_.get(), &more, 1, static_cast<off_t>(position_));
    if (count < 0) throw_errno("cannot read " + path_);
    Times now = times_now();
    const Digest digest = checksum_.digest();
    // The contents may have changed and the date been set back, or only the name has changed.
    constexpr int most_readings = 3; // a limit, because renames may happen all the time
    for (int readings = 0; now != times_; ++readings) {
        rewind();
        if (readings == most_readings || skip(size_bytes_, stop) != digest) {
            throw std::runtime_error{path_ + " was changed while it was copied; copy it again"};
        }
        times_ = std::exchange(now, times_now());
    }
    if (count > 0) {
        throw std::runtime_error{path_ + " has more bytes than its size of " +
                                 std::to_string(size_bytes_) + "; it cannot be copied"};
    }
    return digest;
}

namespace {

// First pause between attempts to connect to a full server.
constexpr std::chrono::milliseconds first_pause{100};
constexpr std::chrono::milliseconds longest_pause{2000};

} // namespace

Sender::Sender(netio::EventLoop& loop, netio::Transport& transport, Options options,
               Handler& handler)
    : options_{std::move(options)}, transport_{transport}, handler_{handler}, loop_{loop},
      again_{loop, [this] { try_again(); }}, pause_{{.first = first_pause,
                                                     .limit = longest_pause,
                                                     .seed = options_.pause_seed}},
      channel_{options_.buffer_count, options_.remote_writes, *this}, disk_{options_.disk(loop)} {}

void Sender::start() {
    disk_->start();
    look_for_files();
}

// A mistyped name is reported at once, also if the server is not there.
void Sender::look_for_files() {
    state_ = State::looking;
    disk_->run(
        [this](const std::stop_token& stop) {
            for (const File& file : options_.files) {
                if (stop.stop_requested()) throw std::runtime_error{"interrupted"};
                std::string& flaw = on_disk_.flaws.emplace_back(file.flaw);
                try {
                    if (flaw.empty()) SourceFile{file.path, options_.checksum};
                } catch (const std::exception& error) {
                    flaw = error.what();
                }
            }
        },
        [this](const std::string& problem) {
            if (state_ != State::looking) return;
            if (problem.empty()) // else each file is looked for in its turn
                for (std::size_t at = 0; at < options_.files.size(); ++at)
                    options_.files[at].flaw = std::move(on_disk_.flaws[at]);
            pass_flawed_files();
            if (position_ == options_.files.size()) return finish();
            try {
                connect();
            } catch (const netio::FabricError& error) {
                problem_ = error.what();
                finish();
            }
        });
}

void Sender::connect() {
    state_ = State::connecting;
    channel_.connect(transport_, options_.server, options_.local_host, options_.key);
}

void Sender::stop() {
    if (state_ == State::finished) return;
    problem_ = "interrupted";
    const bool is_connected = state_ != State::looking && !again_.armed(); // or connecting
    state_ = State::leaving;
    disk_->drop();
    if (!is_connected) {
        again_.start(netio::Duration::zero());
    } else {
        channel_.abort();
    }
}

Sender::Progress Sender::progress() const {
    return {.path = current_.file.path,
            .size_bytes = current_.file.size_bytes,
            .done_bytes = current_.done_bytes,
            .moved_bytes = moved_bytes_};
}

std::span<const Sender::File> Sender::left() const {
    return std::span{options_.files}.subspan(position_);
}

// --- one file after another -----------------------------------------------------------------

void Sender::on_open() {
    full_until_.reset();
    pause_.reset();
    provider_ = channel_.provider();
    next_file();
}

void Sender::on_no_memory(const std::string& why) {
    end(why);
}

void Sender::pass_flawed_files() {
    while (position_ < options_.files.size() && !file().flaw.empty()) {
        current_ = {.file = {.path = file().path}};
        settle(CopiedFile::Outcome::failed, file().flaw);
    }
}

void Sender::next_file() {
    pass_flawed_files();
    if (position_ == options_.files.size()) {
        state_ = State::leaving;
        return channel_.close();
    }
    state_ = State::opening;
    ++attempt_;
    current_ = {.file = {.path = file().path}};
    disk_->run(
        [this, from = file(), kind = options_.checksum,
         overwrite = options_.overwrite](const std::stop_token&) {
            on_disk_.source = std::make_unique<SourceFile>(from.path, kind);
            on_disk_.attributes = on_disk_.source->attributes();
            on_disk_.open = {.name = from.name,
                             .size_bytes = on_disk_.source->size_bytes(),
                             .modified_ns = modified_ns_of(on_disk_.attributes),
                             .mode = on_disk_.attributes.mode,
                             .checksum = kind,
                             .overwrite = overwrite};
        },
        [this, attempt = attempt_](const std::string& problem) {
            if (attempt != attempt_ || state_ != State::opening) return;
            if (!problem.empty()) {
                settle(CopiedFile::Outcome::failed, problem);
                return next_file();
            }
            current_.file.size_bytes = on_disk_.open.size_bytes;
            state_ = State::asking;
            send(encode(on_disk_.open));
        });
}

void Sender::settle(CopiedFile::Outcome outcome, const std::string& detail) {
    CopiedFile file = std::exchange(current_, {}).file;
    file.outcome = outcome;
    file.detail = detail;
    ++position_;
    ++attempt_;
    handler_.on_file(file);
}

void Sender::give_up_file(const std::string& why) {
    state_ = State::leaving;
    disk_->drop();
    channel_.abort();
    settle(CopiedFile::Outcome::failed, why);
}

void Sender::end(const std::string& problem) {
    if (problem_.empty()) problem_ = problem;
    state_ = State::leaving;
    disk_->drop();
    channel_.abort();
}

void Sender::on_closed(const netio::Closed& closed) {
    const bool files_left = position_ < options_.files.size();
    if (state_ == State::leaving && problem_.empty() && files_left) {
        try {
            return connect();
        } catch (const netio::FabricError& error) {
            problem_ = error.what();
        }
    }
    if (state_ == State::connecting && wait_for_place(closed)) return;
    if (state_ != State::leaving && problem_.empty()) {
        problem_ = to_string(options_.server) + ": " + to_string(closed);
        if (closed.may_pass) {
            problem_ += fmt::format("; tried for {} s (--retry-for); wait until other senders have "
                                    "finished, or raise --senders or --senders-per-host there",
                                    options_.full_timeout.count() / 1000);
        }
    }
    finish();
}

// Returns whether to retry a full server.
bool Sender::wait_for_place(const netio::Closed& closed) {
    if (!closed.may_pass) return false;
    const netio::TimePoint now = loop_.now();
    if (!full_until_) {
        full_until_ = now + options_.full_timeout;
        if (now < *full_until_)
            handler_.on_waiting(to_string(options_.server) + ": " + to_string(closed));
    }
    if (now >= *full_until_) return false;
    again_.start(std::min(pause_.next(), *full_until_ - now));
    return true;
}

void Sender::try_again() {
    if (state_ == State::leaving) return finish();
    try {
        channel_.connect(transport_, options_.server, options_.local_host, options_.key);
    } catch (const netio::FabricError& error) {
        problem_ = error.what();
        finish();
    }
}

void Sender::finish() {
    disk_->drop();
    if (!current_.file.path.empty()) settle(CopiedFile::Outcome::failed, problem_);
    state_ = State::finished;
    handler_.on_finished(problem_);
}

void Sender::on_end() {
    if (state_ != State::leaving) end(to_string(options_.server) + ": the server has ended");
}

// --- messages -------------------------------------------------------------------------------

void Sender::send(const Message& message) {
    if (!channel_.send(message)) {
        end(to_string(options_.server) + ": the server does not receive messages");
    }
}

void Sender::on_flaw(std::string_view what) {
    if (state_ != State::leaving)
        end(to_string(options_.server) + ": the server " + std::string{what});
}

void Sender::on_message() {
    if (state_ == State::leaving) return;
    if (channel_.kind() == Kind::answer && state_ == State::asking) {
        take_answer();
    } else if (channel_.kind() == Kind::verdict &&
               (state_ == State::sending || state_ == State::repairing)) {
        take_verdict();
    } else {
        return end(to_string(options_.server) + ": the server sent a message out of order");
    }
    if (state_ != State::leaving) channel_.expect();
}

void Sender::take_answer() {
    Answer answer;
    const Flaw flaw = decode(channel_.body(), answer);
    if (flaw != Flaw::none || answer.offset_bytes > on_disk_.open.size_bytes) {
        return end(to_string(options_.server) + ": the server sent an invalid answer");
    }
    if (answer.outcome == Answer::Outcome::refused) {
        settle(CopiedFile::Outcome::failed, "refused by the server: " + answer.text);
        return next_file();
    }
    state_ = State::comparing;
    current_.offer = offer_of(answer.text);
    compare(answer, 0);
}

// Compares the server's bytes with the beginning, or the whole, of this file in steps, and reports
// progress to the server between them.
void Sender::compare(const Answer& answer, std::uint64_t position) {
    const std::uint64_t step = std::min(answer.offset_bytes - position, compare_step_bytes);
    const bool last = position + step == answer.offset_bytes;
    const bool whole = last && answer.outcome == Answer::Outcome::present &&
                       answer.offset_bytes == on_disk_.open.size_bytes;
    run_on_disk(
        [this, step, whole](const std::stop_token& stop) {
            on_disk_.digest = on_disk_.source->skip(step, stop);
            // The file will not be sent, so there is no later check whether it was changed.
            if (!whole) return;
            on_disk_.digest = on_disk_.source->finish(stop);
            on_disk_.attributes = on_disk_.source->attributes();
        },
        [this, answer, last, next = position + step] {
            if (last) return take_comparison(answer);
            // No new progress message while the last one is still in flight.
            if (current_.offer.comparing && channel_.has_sent_all_messages()) {
                send(encode(Comparing{next}));
                if (state_ != State::comparing) return;
            }
            compare(answer, next);
        });
}

void Sender::take_comparison(const Answer& answer) {
    const bool same = on_disk_.digest == answer.digest;
    if (answer.outcome != Answer::Outcome::present) return begin(same ? answer.offset_bytes : 0);
    current_.file.checksum = to_hex(options_.checksum, on_disk_.digest);
    if (same && answer.offset_bytes == on_disk_.open.size_bytes) {
        if (current_.offer.attributes) return repair();
        settle(CopiedFile::Outcome::present);
    } else {
        settle(CopiedFile::Outcome::failed,
               "refused: " + on_disk_.open.name +
                   " already exists there with other contents; --overwrite replaces it");
    }
    next_file();
}

// The content is complete. Date and permissions may differ.
void Sender::repair() {
    state_ = State::repairing;
    send(encode(on_disk_.attributes));
}

void Sender::take_verdict() {
    Verdict verdict;
    const Flaw flaw = decode(channel_.body(), verdict);
    const bool repaired = state_ == State::repairing;
    if (flaw != Flaw::none || (verdict.kept && !current_.end_sent && !repaired)) {
        return end(to_string(options_.server) + ": the server sent an invalid verdict");
    }
    if (!verdict.kept) return give_up_file("failed at the server: " + verdict.text);
    settle(repaired ? CopiedFile::Outcome::present : CopiedFile::Outcome::copied, verdict.text);
    next_file();
}

// --- the bytes ------------------------------------------------------------------------------

void Sender::begin(std::uint64_t offset) {
    state_ = State::sending;
    current_.file.resumed_bytes = offset;
    current_.announced = current_.done_bytes = offset;
    const std::uint64_t rest = on_disk_.open.size_bytes - offset;
    const bool sparse = current_.offer.extents && on_disk_.source->is_sparse();
    if (sparse) {
        send(encode(SparseStart{.offset_bytes = offset,
                                .data_bytes = std::min(on_disk_.source->data_bytes(), rest)}));
    } else {
        send(encode(Start{offset}));
        if (rest > 0) current_.extents.push_back({.position = offset, .bytes = rest});
        current_.announced = on_disk_.open.size_bytes;
    }
    if (state_ != State::sending) return;
    if (offset == 0)
        run_on_disk([this](const std::stop_token&) { on_disk_.source->rewind(); }, [] {});
    if (rest == 0) return send_end();
    go_on();
}

void Sender::go_on() {
    read_chunks();
    if (current_.extents.empty()) look_for_extents();
}

// Reads as many chunks as there are free buffers.
void Sender::read_chunks() {
    while (channel_.has_free_buffer() && !current_.extents.empty()) {
        Extent& next = current_.extents.front();
        const Extent chunk{.position = next.position,
                           .bytes = std::min<std::uint64_t>(chunk_bytes, next.bytes)};
        next = {.position = chunk.end(), .bytes = next.bytes - chunk.bytes};
        if (next.bytes == 0) current_.extents.pop_front();
        const Channel::Buffer buffer = channel_.take_buffer();
        run_on_disk(
            [this, buffer, chunk](const std::stop_token& stop) {
                const auto memory = channel_.bytes(buffer, static_cast<std::size_t>(chunk.bytes));
                on_disk_.source->pass_hole(chunk.position, stop);
                on_disk_.source->read(memory);
                encode({.position = chunk.position,
                        .bytes = chunk.bytes,
                        .digest = chunk_digest(memory)},
                       channel_.header(buffer));
            },
            [this, buffer, chunk] { send_chunk(buffer, chunk); });
        if (chunk.end() == on_disk_.open.size_bytes) send_end();
    }
}

// Finds the next extents of a sparse file to announce. Two messages are reserved for the end.
void Sender::look_for_extents() {
    if (current_.looks_for_extents || current_.announced == on_disk_.open.size_bytes ||
        channel_.free_message_count() < 3) {
        return;
    }
    current_.looks_for_extents = true;
    run_on_disk(
        [this, from = current_.announced](const std::stop_token& stop) {
            on_disk_.extents = on_disk_.source->extents(from, extents_limit);
            const bool hole = !on_disk_.extents.empty() && on_disk_.extents.front().bytes == 0;
            if (hole) on_disk_.source->pass_hole(on_disk_.extents.front().position, stop);
        },
        [this] {
            current_.looks_for_extents = false;
            announce(std::exchange(on_disk_.extents, {}));
        });
}

void Sender::announce(std::vector<Extent> extents) {
    if (extents.empty()) { // a hole up to the end of the file
        current_.announced = current_.done_bytes = on_disk_.open.size_bytes;
        return send_end();
    }
    current_.announced = extents.back().end();
    const bool hole = extents.front().bytes == 0;
    if (hole) {
        current_.done_bytes = current_.announced;
    } else {
        current_.extents.assign(extents.begin(), extents.end());
    }
    send(encode(Extents{std::move(extents)}));
    if (state_ == State::sending) go_on();
}

void Sender::send_chunk(Channel::Buffer buffer, const Extent& chunk) {
    try {
        channel_.send(buffer, static_cast<std::size_t>(chunk.bytes));
    } catch (const netio::FabricError& error) { // no more memory may be locked
        end(error.what());
    }
    current_.done_bytes = chunk.end();
    current_.file.moved_bytes += chunk.bytes;
    moved_bytes_ += chunk.bytes;
}

void Sender::on_sent(Channel::Buffer) {
    if (state_ == State::sending) go_on();
}

void Sender::on_message_sent() {
    if (state_ == State::sending) go_on();
}

// Sends the end after the last chunk, which the disk's thread has read by then.
void Sender::send_end() {
    run_on_disk(
        [this](const std::stop_token& stop) {
            on_disk_.digest = on_disk_.source->finish(stop);
            on_disk_.attributes = on_disk_.source->attributes();
        },
        [this] {
            current_.file.checksum = to_hex(options_.checksum, on_disk_.digest);
            current_.end_sent = true;
            if (current_.offer.attributes) send(encode(on_disk_.attributes));
            if (state_ == State::sending) send(encode(End{on_disk_.digest}));
        });
}

void Sender::run_on_disk(Disk::Task task, std::function<void()> then) {
    disk_->run(std::move(task),
               [this, attempt = attempt_, then = std::move(then)](const std::string& problem) {
                   if (attempt != attempt_ || state_ == State::leaving) return;
                   if (!problem.empty()) return give_up_file(problem);
                   then();
               });
}

} // namespace apps::copy
