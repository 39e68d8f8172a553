// SPDX-License-Identifier: Apache-2.0
#include "apps/subscribe/recorder.hpp"

#include "apps/common/io.hpp"

#include <spdlog/spdlog.h>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <exception>
#include <filesystem>
#include <optional>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <utility>

namespace apps::subscribe {
namespace {

constexpr std::string_view part = ".part";
constexpr std::string_view gap = ".gap";
constexpr std::size_t digits = 16;
constexpr int open_flags = O_WRONLY | O_APPEND | O_CLOEXEC;

[[noreturn]] void fail(int error, const std::string& what) {
    throw std::system_error{error, std::generic_category(), what};
}
[[noreturn]] void fail(const std::string& what) {
    fail(errno, what);
}

// Returns the fid whose recording, finished or not, has this name.
std::optional<netio::pubsub::Fid> fid_of(std::string_view name) {
    if (name.size() < digits) return std::nullopt;
    const std::string_view suffix = name.substr(digits);
    if (!suffix.empty() && !suffix.ends_with(part) && suffix != gap) return std::nullopt;
    std::uint64_t value = 0;
    const auto [stop, error] = std::from_chars(name.data(), name.data() + digits, value, 16);
    if (error != std::errc{} || stop != name.data() + digits) return std::nullopt;
    return netio::pubsub::Fid{value};
}

void rename_file(const std::string& from, const std::string& to) {
    if (std::rename(from.c_str(), to.c_str()) != 0) fail("cannot rename " + from + " to " + to);
}

// Never replaces a file that has got this name in the meantime.
void rename_to_free_name(const std::string& from, const std::string& to) {
    if (rename_without_replacing(AT_FDCWD, from.c_str(), to.c_str()) != 0)
        fail("cannot rename " + from + " to " + to);
}

void remove_file(const std::string& path) {
    if (::unlink(path.c_str()) != 0 && errno != ENOENT) fail("cannot remove " + path);
}

bool exists(const std::string& path) {
    return ::access(path.c_str(), F_OK) == 0;
}

} // namespace

Recorder::Recorder(std::string folder, std::span<const FidRange> fids, Existing existing,
                   std::size_t open_limit)
    : folder_{std::move(folder)}, existing_{existing}, open_limit_{open_limit} {
    std::error_code error;
    std::filesystem::create_directories(folder_, error);
    if (error) throw std::system_error{error, "cannot make the folder " + folder_};
    if (::access(folder_.c_str(), W_OK | X_OK) != 0) fail("cannot write to the folder " + folder_);
    folder_fd_ = ::open(folder_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder_fd_ < 0) fail(folder_);
    try {
        lock_folder();
        if (existing_ != Existing::overwrite) refuse_existing(fids);
    } catch (...) {
        ::close(folder_fd_);
        throw;
    }
}

Recorder::~Recorder() {
    ::close(folder_fd_);
}

// The lock belongs to the descriptor, so it ends with the process. Without locks the names still
// protect the recordings: a part of another recorder is never opened, unless both append.
void Recorder::lock_folder() {
    const LockOutcome outcome = lock_file(folder_fd_, LockWait::no);
    if (outcome == LockOutcome::held) {
        fail(EBUSY, "another recorder writes to the folder " + folder_ + "; give each its own");
    }
    if (outcome == LockOutcome::unavailable) {
        spdlog::warn(no_locks_text(folder_, errno,
                                   "another recorder that writes there is not detected; use a "
                                   "different folder for each recorder"));
    }
}

void Recorder::refuse_existing(std::span<const FidRange> fids) const {
    for (const auto& entry : std::filesystem::directory_iterator{folder_}) {
        const std::string name = entry.path().filename().string();
        const auto fid = fid_of(name);
        const auto wanted = [&](const FidRange& range) { return contains(range, *fid); };
        if (!fid || std::ranges::none_of(fids, wanted)) continue;
        const std::string path = path_of(*fid);
        if (existing_ == Existing::refuse) {
            fail(EEXIST, "there is already a recording, " + folder_ + "/" + name +
                             "; give another folder, --append or --overwrite");
        }
        if (!entry.is_regular_file() && !entry.is_character_file()) { // a pipe would block
            fail(EINVAL, "cannot append to " + folder_ + "/" + name +
                             ", which is not a regular file; remove it, or give another folder");
        }
        if (name.ends_with(part) || (name.ends_with(gap) && exists(path))) {
            fail(EEXIST, "cannot decide which recording to append to, because there is " + folder_ +
                             "/" + name + "; give it another name, or another folder");
        }
    }
}

std::string Recorder::path_of(Fid fid) const {
    char name[digits + 1];
    std::snprintf(name, sizeof name, "%016" PRIx64, netio::pubsub::to_integer(fid));
    return folder_ + "/" + name;
}

std::string Recorder::part_of(Fid fid, unsigned number) const {
    return path_of(fid) + (number > 1 ? "." + std::to_string(number) : "") + std::string{part};
}

// Returns the descriptor, or -1. An unfinished recording of an earlier run is kept even if it is to
// be overwritten, because this run may not finish either.
int Recorder::begin(Fid fid, File& file) const {
    const std::string path = path_of(fid);
    const std::string with_gap = path + std::string{gap};
    const bool append = existing_ == Existing::append;
    file.had_gap = append && exists(with_gap);
    file.number = 1;
    if (append && (file.had_gap || exists(path))) {
        rename_file(file.had_gap ? with_gap : path, part_of(fid, 1));
        return ::open(part_of(fid, 1).c_str(), open_flags);
    }
    for (;; ++file.number) {
        const int descriptor =
            ::open(part_of(fid, file.number).c_str(), open_flags | O_CREAT | O_EXCL, 0666);
        const bool is_taken = descriptor < 0 && errno == EEXIST;
        if (!is_taken || existing_ != Existing::overwrite) return descriptor;
    }
}

void Recorder::open(Fid fid, File& file) {
    if (open_.size() >= open_limit_) close_oldest();
    const int descriptor =
        file.number == 0 ? begin(fid, file) : ::open(part_of(fid, file.number).c_str(), open_flags);
    const std::string name = part_of(fid, file.number);
    if (descriptor < 0) fail("cannot write " + name);
    file.file.reset(::fdopen(descriptor, "ab"));
    if (!file.file) {
        const int error = errno;
        ::close(descriptor);
        fail(error, "cannot write " + name);
    }
    open_.push_back(fid);
}

void Recorder::close_oldest() {
    const Fid fid = open_.front();
    open_.pop_front();
    File& file = **files_.find(fid);
    // Closing writes the buffered data, so it may fail on a full disk.
    if (std::fclose(file.file.release()) != 0) fail("cannot write " + part_of(fid, file.number));
}

void Recorder::write(Fid fid, std::span<const std::byte> message) {
    std::unique_ptr<File>& file = files_[fid];
    if (!file) file = std::make_unique<File>();
    if (!file->file) open(fid, *file);
    if (std::fwrite(message.data(), 1, message.size(), file->file.get()) != message.size()) {
        fail("cannot write " + part_of(fid, file->number));
    }
}

void Recorder::give_name(Fid fid, unsigned number, bool whole) const {
    const std::string path = path_of(fid);
    const std::string with_gap = path + std::string{gap};
    const std::string& name = whole ? path : with_gap;
    if (existing_ != Existing::overwrite) return rename_to_free_name(part_of(fid, number), name);
    rename_file(part_of(fid, number), name);
    // Removes the replaced recording under its other name.
    remove_file(whole ? with_gap : path);
    for (unsigned earlier = 1; earlier < number; ++earlier)
        remove_file(part_of(fid, earlier));
}

void Recorder::finish(const std::function<bool(Fid)>& is_whole) {
    files_.for_each([&](Fid fid, std::unique_ptr<File>& file) {
        if (!file->file) open(fid, *file);
        if (std::fflush(file->file.get()) != 0 || !sync_file(::fileno(file->file.get()))) {
            fail("cannot write " + part_of(fid, file->number));
        }
        file->file.reset();
        std::erase(open_, fid);
        give_name(fid, file->number, is_whole(fid) && !file->had_gap);
    });
    files_.clear();
    if (!sync_folder(folder_fd_)) fail(folder_);
}

namespace {

// Header of each message in the queue.
struct Head {
    netio::pubsub::Fid fid{};
    std::size_t bytes = 0;
};

std::size_t write_first(Recorder& recorder, std::span<const std::byte> queued) {
    Head head;
    std::memcpy(&head, queued.data(), sizeof head);
    recorder.write(head.fid, queued.subspan(sizeof head, head.bytes));
    return sizeof head + head.bytes;
}

} // namespace

BackgroundRecorder::BackgroundRecorder(netio::EventLoop& loop, std::unique_ptr<Recorder> recorder,
                                       Events events)
    : recorder_{std::make_shared<std::unique_ptr<Recorder>>(std::move(recorder))},
      writer_{[recorder = recorder_](std::span<const std::byte> queued) {
                  return write_first(**recorder, queued);
              },
              queue_limit_bytes},
      watch_{loop, writer_.event_descriptor(), netio::DescriptorWatch::Interest::readable,
             [this, events = std::move(events)] {
                 writer_.clear_event();
                 try {
                     if (const auto failure = writer_.failure()) std::rethrow_exception(failure);
                 } catch (const std::exception& error) {
                     return events.on_failure(error.what());
                 }
                 if (!writer_.is_full()) events.on_writable();
             }} {}

void BackgroundRecorder::write(netio::pubsub::Fid fid, std::span<const std::byte> message) {
    const Head head{.fid = fid, .bytes = message.size()};
    writer_.put(std::as_bytes(std::span{&head, 1}), message);
}

void BackgroundRecorder::finish(std::optional<std::set<netio::pubsub::Fid>> whole) {
    writer_.finish([recorder = recorder_, whole = std::move(whole)] {
        if (whole)
            (*recorder)->finish([&](netio::pubsub::Fid fid) { return whole->contains(fid); });
        recorder->reset();
    });
    if (!writer_.wait())
        throw std::runtime_error{
            "the recording is not finished: the disk is blocked, and a signal ended the wait"};
}

} // namespace apps::subscribe
