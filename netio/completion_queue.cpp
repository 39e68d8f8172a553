// SPDX-License-Identifier: Apache-2.0
#include "netio/completion_queue.hpp"

#include "netio/base/check.hpp"
#include "netio/base/descriptor_error.hpp"
#include "netio/base/option_check.hpp"
#include "netio/base/ring_queue.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <utility>
#include <vector>

namespace netio::inline v0_3 {

struct CompletionQueue::Impl {
    explicit Impl(const Options& its_options) : options{its_options} {
        require_option(options.queue_limit_events > 0, "queue_limit_events must be at least 1");
        require_option(options.queue_limit_bytes > 0, "queue_limit_bytes must be at least 1");
    }
    ~Impl() {
        {
            std::unique_lock lock{mutex};
            NETIO_CHECK_MSG(writers == 0, "destroy the sockets of a completion queue before it");
            is_closed = true;
            changed.notify_all();
            left.wait(lock, [this] { return dequeuing == 0; });
        }
        if (fd >= 0) ::close(fd);
    }
    Impl(const Impl&) = delete;
    Impl& operator=(const Impl&) = delete;

    // The functions below require the mutex.
    bool is_full() const noexcept;
    void set_readable(bool readable) noexcept;
    // Notifies the writers that wait for space, if there is some.
    void notify_waiting();

    const Options options;
    mutable std::mutex mutex; // of what follows
    std::condition_variable changed;
    std::condition_variable left; // for the destructor: no thread waits
    RingQueue<QueueEvent> events;
    std::size_t bytes = 0;
    std::size_t reserved = 0;  // outstanding operations
    std::size_t dequeuing = 0; // threads that wait
    std::vector<QueueWriter*> waiting;
    std::size_t writers = 0;
    bool is_closed = false;
    bool is_readable = false;
    int fd = -1; // made when it is asked for
};

bool CompletionQueue::Impl::is_full() const noexcept {
    return events.size() + reserved >= options.queue_limit_events ||
           bytes >= options.queue_limit_bytes;
}

void CompletionQueue::Impl::set_readable(bool readable) noexcept {
    if (fd < 0 || std::exchange(is_readable, readable) == readable) return;
    eventfd_t count = 1;
    static_cast<void>(readable ? ::eventfd_write(fd, count) : ::eventfd_read(fd, &count));
}

// With half of the queue free, so that a socket does not stop and continue with each message.
void CompletionQueue::Impl::notify_waiting() {
    const bool has_space = !is_full() && events.size() <= options.queue_limit_events / 2 &&
                           bytes <= options.queue_limit_bytes / 2;
    if (waiting.empty() || !has_space) return;
    // With the lock, so that no writer can end before its task is posted.
    for (QueueWriter* const writer : waiting) {
        writer->is_waiting_ = false;
        writer->loop_.post_always([weak = std::weak_ptr{writer->self_}] {
            if (const auto self = weak.lock()) (*self)->on_writable_();
        });
    }
    waiting.clear();
}

CompletionQueue::CompletionQueue(const Options& options) : impl_{new Impl{options}} {}

CompletionQueue::~CompletionQueue() = default;

std::size_t CompletionQueue::dequeue(std::span<QueueEvent> events,
                                     std::chrono::milliseconds timeout) {
    Impl& impl = *impl_;
    // A connection may wait for memory that the former events keep.
    std::ranges::fill(events, QueueEvent{});
    std::unique_lock lock{impl.mutex};
    if (impl.events.empty() && !impl.is_closed && timeout.count() > 0) {
        ++impl.dequeuing;
        impl.changed.wait_for(lock, std::min(timeout, longest_time),
                              [&] { return impl.is_closed || !impl.events.empty(); });
        if (--impl.dequeuing == 0 && impl.is_closed) impl.left.notify_all();
    }
    const std::size_t count = std::min(events.size(), impl.events.size());
    for (QueueEvent& event : events.first(count)) {
        event = std::move(impl.events.front());
        impl.bytes -= event.bytes.size();
        impl.events.pop_front();
    }
    if (impl.events.empty() && !impl.is_closed) impl.set_readable(false);
    if (count > 0) impl.notify_waiting();
    return count;
}

int CompletionQueue::pollable_fd() {
    Impl& impl = *impl_;
    const std::lock_guard lock{impl.mutex};
    if (impl.fd < 0) {
        impl.fd = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
        if (impl.fd < 0) throw descriptor_error("cannot create an eventfd");
        impl.set_readable(impl.is_closed || !impl.events.empty());
    }
    return impl.fd;
}

std::size_t CompletionQueue::size() const {
    const std::lock_guard lock{impl_->mutex};
    return impl_->events.size();
}

void CompletionQueue::close() {
    const std::lock_guard lock{impl_->mutex};
    impl_->is_closed = true;
    impl_->set_readable(true);
    impl_->changed.notify_all();
}

bool CompletionQueue::is_closed() const {
    const std::lock_guard lock{impl_->mutex};
    return impl_->is_closed;
}

// --- writers --------------------------------------------------------------------------------

QueueWriter::QueueWriter(CompletionQueue& queue, EventLoop& loop, std::uint64_t tag,
                         std::function<void()> on_writable)
    : queue_{*queue.impl_}, loop_{loop}, tag_{tag},
      on_writable_{std::move(on_writable)}, self_{std::make_shared<QueueWriter*>(this)} {
    const std::lock_guard lock{queue_.mutex};
    ++queue_.writers;
}

// Does nothing in a child process, where the queue is not destroyed either.
QueueWriter::~QueueWriter() {
    if (process_.is_inherited()) return;
    const std::lock_guard lock{queue_.mutex};
    std::erase(queue_.waiting, this);
    queue_.reserved -= reserved_; // their completions do not come
    --queue_.writers;
    queue_.notify_waiting();
}

void QueueWriter::await_space() {
    if (!std::exchange(is_waiting_, true)) queue_.waiting.push_back(this);
}

void QueueWriter::add(QueueEvent&& event) {
    event.tag = tag_;
    queue_.bytes += event.bytes.size();
    queue_.events.emplace_back() = std::move(event);
    queue_.set_readable(true);
    if (queue_.dequeuing > 0) queue_.changed.notify_one();
}

bool QueueWriter::push(QueueEvent&& event) {
    const std::lock_guard lock{queue_.mutex};
    add(std::move(event));
    if (!queue_.is_full()) return true;
    await_space();
    return false;
}

bool QueueWriter::reserve() {
    const std::lock_guard lock{queue_.mutex};
    if (queue_.is_full()) {
        await_space();
        return false;
    }
    ++reserved_;
    ++queue_.reserved;
    return true;
}

void QueueWriter::cancel() {
    const std::lock_guard lock{queue_.mutex};
    --reserved_;
    --queue_.reserved;
    queue_.notify_waiting();
}

void QueueWriter::complete(QueueEvent&& event) {
    const std::lock_guard lock{queue_.mutex};
    if (reserved_ > 0) {
        --reserved_;
        --queue_.reserved;
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
