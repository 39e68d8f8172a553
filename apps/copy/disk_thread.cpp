// SPDX-License-Identifier: Apache-2.0
#include "apps/copy/disk_thread.hpp"

#include "netio/base/check.hpp"
#include "netio/base/destruction_watch.hpp"
#include "netio/base/signals_blocked.hpp"
#include "netio/base/status.hpp"

#include <sys/eventfd.h>

#include <cerrno>
#include <exception>
#include <system_error>
#include <utility>

namespace apps::copy {

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
