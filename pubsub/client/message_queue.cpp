// SPDX-License-Identifier: Apache-2.0
#include "pubsub/client/message_queue.hpp"

#include "netio/base/check.hpp"
#include "netio/base/option_check.hpp"
#include "netio/base/status.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>
#include <utility>

namespace netio::pubsub::inline v0_3 {

MessageQueue::MessageQueue(const BatchFiller::Options& options, std::function<void()> resume)
    : filler_{options}, mailbox_{options.limit}, resume_{std::move(resume)},
      fd_{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)} {
    if (fd_ < 0) throw FabricError{{errno, std::system_category()}, "cannot create an eventfd"};
}

MessageQueue::~MessageQueue() {
    ::close(fd_);
}

// --- the client's thread --------------------------------------------------------------------

bool MessageQueue::hand_over() {
    has_looked_ = false;
    if (filler_.batch().empty() && !filler_.keeps()) return true;
    const std::lock_guard lock{mutex_};
    const bool was_empty = mailbox_.empty();
    do {
        if (!filler_.batch().empty()) mailbox_.exchange(filler_.batch());
        filler_.look(mailbox_.load()); // which may append conflated messages
    } while (!filler_.batch().empty());
    if (was_empty && !mailbox_.empty()) {
        static_cast<void>(::eventfd_write(fd_, 1));
        changed_.notify_all();
    }
    if (filler_.keeps() || (filler_.is_full() && filler_.blocks())) stopped_ = true;
    return !(stopped_ && filler_.blocks());
}

void MessageQueue::put_mark() {
    filler_.batch().append({.is_gap = true, .bytes = {}});
    hand_over();
}

void MessageQueue::end() {
    filler_.put_rest();
    hand_over();
    const std::lock_guard lock{mutex_};
    ended_ = true;
    changed_.notify_all();
}

// --- any thread -----------------------------------------------------------------------------

void MessageQueue::wait_for_end() {
    std::unique_lock lock{mutex_};
    changed_.wait(lock, [this] { return ended_; });
}

void MessageQueue::resume_if_space() {
    if (stopped_ && mailbox_.has_room()) {
        stopped_ = false;
        resume_();
    }
}

template <typename Take>
std::size_t MessageQueue::poll(Take take, std::chrono::milliseconds timeout) {
    std::unique_lock lock{mutex_};
    resume_if_space();
    if (timeout.count() > 0) {
        changed_.wait_for(lock, std::min(timeout, longest_time),
                          [this] { return ended_ || !mailbox_.empty(); });
    }
    const bool was_empty = mailbox_.empty();
    const std::size_t taken = take();
    if (mailbox_.empty() && !was_empty) {
        eventfd_t count = 0;
        static_cast<void>(::eventfd_read(fd_, &count));
    }
    resume_if_space();
    return taken;
}

std::size_t MessageQueue::poll(MessageBatch& batch, std::chrono::milliseconds timeout) {
    return poll([&] { return mailbox_.take(batch); }, timeout);
}

std::size_t MessageQueue::poll(std::vector<Message>& out, std::size_t at_most,
                               std::chrono::milliseconds timeout) {
    return poll([&] { return mailbox_.take(out, at_most); }, timeout);
}

} // namespace netio::pubsub::inline v0_3
