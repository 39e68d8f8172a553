// SPDX-License-Identifier: Apache-2.0
#include "apps/copy/disk_thread.hpp"

#include "netio/base/check.hpp"
#include "netio/base/status.hpp"

#include <exception>
#include <system_error>
#include <utility>

namespace apps {

DiskThread::DiskThread(netio::EventLoop& loop) : loop_{loop} {
    try {
        thread_ = std::jthread{[this](const std::stop_token& ending) { serve(ending); }};
    } catch (const std::system_error& error) {
        throw netio::FabricError{error.code(), "cannot begin a thread for the disk; the limit of "
                                               "threads may be too low (ulimit -u, or TasksMax= of "
                                               "a systemd unit)"};
    }
}

DiskThread::~DiskThread() {
    drop();
}

void DiskThread::run(Task task, Then then) {
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
        const bool posted =
            loop_.post([this, then = std::move(work.then), problem = std::move(problem)] {
                --outstanding_;
                then(problem); // may destroy this
            });
        NETIO_CHECK_MSG(posted, "more work was given to a disk than the loop takes back");
    }
}

} // namespace apps
