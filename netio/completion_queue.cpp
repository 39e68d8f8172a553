// SPDX-License-Identifier: Apache-2.0
#include "netio/completion_queue.hpp"

#include "netio/base/check.hpp"
#include "netio/base/descriptor_error.hpp"
#include "netio/base/option_check.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace netio::inline v0_3 {

CompletionQueue::CompletionQueue(const Options& options) : options_{options} {
    require_option(options.queue_limit_events > 0, "queue_limit_events must be at least 1");
    require_option(options.queue_limit_bytes > 0, "queue_limit_bytes must be at least 1");
}

CompletionQueue::~CompletionQueue() {
    NETIO_CHECK_MSG(writers_ == 0 && dequeuing_ == 0,
                    "destroy the sockets of a completion queue before it, and end dequeue()");
    if (fd_ >= 0) ::close(fd_);
}

// Functions without lock: the mutex is held.

bool CompletionQueue::is_full() const noexcept {
    return events_.size() + reserved_ >= options_.queue_limit_events ||
           bytes_ >= options_.queue_limit_bytes;
}

void CompletionQueue::set_readable(bool readable) noexcept {
    if (fd_ < 0 || std::exchange(is_readable_, readable) == readable) return;
    eventfd_t count = 1;
    static_cast<void>(readable ? ::eventfd_write(fd_, count) : ::eventfd_read(fd_, &count));
}

// With half of the queue free, so that a socket does not stop and continue with each message.
void CompletionQueue::notify_waiting() {
    const bool has_space = !is_full() && events_.size() <= options_.queue_limit_events / 2 &&
                           bytes_ <= options_.queue_limit_bytes / 2;
    if (waiting_.empty() || !has_space) return;
    // With the lock, so that no writer can end before its task is posted.
    for (QueueWriter* const writer : waiting_) {
        writer->is_waiting_ = false;
        writer->loop_.post_always([weak = std::weak_ptr{writer->self_}] {
            if (const auto self = weak.lock()) (*self)->on_writable_();
        });
    }
    waiting_.clear();
}

std::size_t CompletionQueue::dequeue(std::span<QueueEvent> events,
                                     std::chrono::milliseconds timeout) {
    // What they keep may be what a connection waits for.
    std::ranges::fill(events, QueueEvent{});
    std::unique_lock lock{mutex_};
    if (events_.empty() && !is_closed_ && timeout.count() > 0) {
        ++dequeuing_;
        changed_.wait_for(lock, std::min(timeout, longest_time),
                          [this] { return is_closed_ || !events_.empty(); });
        --dequeuing_;
    }
    const std::size_t count = std::min(events.size(), events_.size());
    for (QueueEvent& event : events.first(count)) {
        event = std::move(events_.front());
        bytes_ -= event.bytes.size();
        events_.pop_front();
    }
    if (events_.empty() && !is_closed_) set_readable(false);
    if (count > 0) notify_waiting();
    return count;
}

int CompletionQueue::pollable_fd() {
    const std::lock_guard lock{mutex_};
    if (fd_ < 0) {
        fd_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (fd_ < 0) throw descriptor_error("cannot create an eventfd");
        set_readable(is_closed_ || !events_.empty());
    }
    return fd_;
}

std::size_t CompletionQueue::size() const {
    const std::lock_guard lock{mutex_};
    return events_.size();
}

void CompletionQueue::close() {
    const std::lock_guard lock{mutex_};
    is_closed_ = true;
    set_readable(true);
    changed_.notify_all();
}

bool CompletionQueue::is_closed() const {
    const std::lock_guard lock{mutex_};
    return is_closed_;
}

// --- writers --------------------------------------------------------------------------------

QueueWriter::QueueWriter(CompletionQueue& queue, EventLoop& loop, std::uint64_t tag,
                         std::function<void()> on_writable)
    : queue_{queue}, loop_{loop}, tag_{tag},
      on_writable_{std::move(on_writable)}, self_{std::make_shared<QueueWriter*>(this)} {
    const std::lock_guard lock{queue_.mutex_};
    ++queue_.writers_;
}

QueueWriter::~QueueWriter() {
    const std::lock_guard lock{queue_.mutex_};
    std::erase(queue_.waiting_, this);
    queue_.reserved_ -= reserved_; // their completions do not come
    --queue_.writers_;
    queue_.notify_waiting();
}

void QueueWriter::await_space() {
    if (!std::exchange(is_waiting_, true)) queue_.waiting_.push_back(this);
}

void QueueWriter::add(QueueEvent&& event) {
    event.tag = tag_;
    queue_.bytes_ += event.bytes.size();
    queue_.events_.emplace_back() = std::move(event);
    queue_.set_readable(true);
    if (queue_.dequeuing_ > 0) queue_.changed_.notify_one();
}

bool QueueWriter::push(QueueEvent&& event) {
    const std::lock_guard lock{queue_.mutex_};
    add(std::move(event));
    if (!queue_.is_full()) return true;
    await_space();
    return false;
}

bool QueueWriter::reserve() {
    const std::lock_guard lock{queue_.mutex_};
    if (queue_.is_full()) {
        await_space();
        return false;
    }
    ++reserved_;
    ++queue_.reserved_;
    return true;
}

void QueueWriter::cancel() {
    const std::lock_guard lock{queue_.mutex_};
    --reserved_;
    --queue_.reserved_;
    queue_.notify_waiting();
}

void QueueWriter::complete(QueueEvent&& event) {
    const std::lock_guard lock{queue_.mutex_};
    if (reserved_ > 0) {
        --reserved_;
        --queue_.reserved_;
    }
    add(std::move(event));
}

void QueueWriter::closed(const Closed& closed, std::uint64_t peer, bool retrying) {
    push({.kind = QueueEvent::Kind::closed,
          .retrying = retrying,
          .peer = peer,
          .closed = std::make_shared<const Closed>(closed)});
}

} // namespace netio::inline v0_3
