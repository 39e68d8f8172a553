// SPDX-License-Identifier: Apache-2.0
#include "apps/copy/disk.hpp"

#include "netio/base/check.hpp"
#include "netio/base/destruction_watch.hpp"
#include "netio/base/signals_blocked.hpp"
#include "netio/base/status.hpp"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <exception>
#include <system_error>
#include <utility>

namespace apps::copy {

Extent find_data(int fd, std::uint64_t from, std::uint64_t end) noexcept {
    if (from >= end) return {.position = end};
    const off_t data = ::lseek(fd, static_cast<off_t>(from), SEEK_DATA);
    if (data < 0 && errno == ENXIO) return {.position = end}; // a hole up to the end of the file
    if (data < 0) return {.position = from, .bytes = end - from};
    const std::uint64_t position = std::clamp(static_cast<std::uint64_t>(data), from, end);
    const off_t hole = ::lseek(fd, static_cast<off_t>(position), SEEK_HOLE);
    const std::uint64_t stop = hole < 0 ? end : static_cast<std::uint64_t>(hole);
    return {.position = position, .bytes = std::clamp(stop, position, end) - position};
}

namespace {

// Bytes written through the cache before the disk is asked to begin writing them.
constexpr std::uint64_t flush_bytes = std::uint64_t{8} << 20;

bool is_aligned(std::uint64_t value) {
    return value % BulkWriter::alignment_bytes == 0;
}

} // namespace

void BulkWriter::write(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
        const std::size_t whole = bytes.size() - bytes.size() % alignment_bytes;
        const bool past_cache = set_bypass(may_bypass_ && whole > 0 && is_aligned(position_) &&
                                           is_aligned(std::bit_cast<std::uintptr_t>(bytes.data())));
        const ssize_t count = ::pwrite(fd_, bytes.data(), past_cache ? whole : bytes.size(),
                                       static_cast<off_t>(position_));
        if (count < 0) {
            if (errno == EINTR) continue;
            if (errno == EINVAL && past_cache) { // not supported here, or larger blocks are needed
                may_bypass_ = false;
                continue;
            }
            throw std::system_error{errno, std::generic_category()};
        }
        const auto written = static_cast<std::size_t>(count);
        position_ += written;
        if (past_cache) bypassed_ += written;
        bytes = bytes.subspan(written);
    }
    if (bypasses_) {
        flushed_ = position_;
    } else if (position_ - flushed_ >= flush_bytes) {
        flush();
    }
}

void BulkWriter::flush() {
    // Starts writing early, so that the final fsync is short. Failure only makes it longer.
    static_cast<void>(::sync_file_range(fd_, static_cast<off_t>(flushed_),
                                        static_cast<off_t>(position_ - flushed_),
                                        SYNC_FILE_RANGE_WRITE));
    flushed_ = position_;
}

// Returns the actual state: some file systems refuse the flag.
bool BulkWriter::set_bypass(bool on) noexcept {
    if (on == bypasses_) return on;
    const int flags = ::fcntl(fd_, F_GETFL);
    const int wanted = on ? flags | O_DIRECT : flags & ~O_DIRECT;
    if (flags < 0 || ::fcntl(fd_, F_SETFL, wanted) != 0) {
        may_bypass_ = false;
        return bypasses_;
    }
    bypasses_ = on;
    return on;
}

void DiskThread::start() {
    if (is_started()) return;
    wake_ = Descriptor{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)};
    if (!wake_.is_open()) {
        throw netio::FabricError{std::error_code{errno, std::generic_category()},
                                 "cannot start a thread for the disk; the limit of descriptors may "
                                 "be too low (ulimit -n, or LimitNOFILE= of a systemd unit)"};
    }
    watch_.emplace(loop_, wake_.get(), netio::DescriptorWatch::Interest::readable,
                   [this] { tell(); });
    try {
        const netio::AllSignalsBlocked blocked;
        thread_ = std::jthread{[this](const std::stop_token& ending) { serve(ending); }};
    } catch (const std::system_error& error) {
        throw netio::FabricError{error.code(),
                                 "cannot start a thread for the disk; the limit of threads may be "
                                 "too low (ulimit -u, or TasksMax= of a systemd unit)"};
    }
}

DiskThread::~DiskThread() {
    if (destroyed_ != nullptr) *destroyed_ = true;
    drop();
}

void DiskThread::run(Task task, Then then) {
    NETIO_CHECK(is_started());
    ++outstanding_;
    {
        const std::lock_guard lock{mutex_};
        queue_.push_back({std::move(task), std::move(then)});
    }
    changed_.notify_one();
}

void DiskThread::drop() {
    const std::lock_guard lock{mutex_};
    outstanding_ -= queue_.size();
    queue_.clear();
    stop_task_.request_stop();
    stop_task_ = std::stop_source{};
}

void DiskThread::serve(const std::stop_token& ending) {
    for (;;) {
        Work work;
        std::stop_token stop;
        {
            std::unique_lock lock{mutex_};
            if (!changed_.wait(lock, ending, [this] { return !queue_.empty(); })) return;
            work = std::move(queue_.front());
            queue_.pop_front();
            stop = stop_task_.get_token();
        }
        std::string problem;
        try {
            work.task(stop);
        } catch (const std::exception& error) {
            problem = error.what();
        }
        const std::lock_guard lock{mutex_};
        outcomes_.push_back({std::move(work.then), std::move(problem)});
        ::eventfd_write(wake_.get(), 1);
    }
}

void DiskThread::tell() {
    eventfd_t count = 0;
    ::eventfd_read(wake_.get(), &count);
    const netio::DestructionWatch watch{destroyed_};
    while (!watch.destroyed()) {
        Outcome outcome;
        {
            const std::lock_guard lock{mutex_};
            if (outcomes_.empty()) return;
            outcome = std::move(outcomes_.front());
            outcomes_.pop_front();
        }
        --outstanding_;
        outcome.then(outcome.problem); // may destroy this object
    }
}

} // namespace apps::copy
