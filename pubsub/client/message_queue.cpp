// SPDX-License-Identifier: Apache-2.0
#include "pubsub/client/message_queue.hpp"

#include "netio/base/check.hpp"
#include "netio/base/descriptor_error.hpp"
#include "netio/base/option_check.hpp"
#include "netio/base/status.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace netio::pubsub::inline v0_3 {

MessageQueue::MessageQueue(const BatchFiller::Options& options, std::function<void()> resume)
    : filler_{options}, mailbox_{options.limit}, resume_{std::move(resume)},
      fd_{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)} {
    if (fd_ < 0) throw descriptor_error("cannot create an eventfd");
}

MessageQueue::~MessageQueue() {
    ::close(fd_);
}

// --- the loop's thread --------------------------------------------------------------------

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
        set_readable(true);
        changed_.notify_all();
    }
    if (filler_.keeps() || (filler_.is_full() && filler_.blocks())) stopped_ = true;
    return !(stopped_ && filler_.blocks());
}

std::uint64_t MessageQueue::end() {
    const std::uint64_t lost = filler_.put_rest();
    hand_over();
    const std::lock_guard lock{mutex_};
    ended_ = true;
    changed_.notify_all();
    return lost;
}

// --- any thread -----------------------------------------------------------------------------

void MessageQueue::wake() {
    const std::lock_guard lock{mutex_};
    woken_ = true;
    set_readable(true);
    changed_.notify_all();
}

// mutex_ is held.
void MessageQueue::set_readable(bool readable) {
    if (std::exchange(readable_, readable) == readable) return;
    eventfd_t count = 1;
    static_cast<void>(readable ? ::eventfd_write(fd_, count) : ::eventfd_read(fd_, &count));
}

void MessageQueue::resume_if_space() {
    if (stopped_ && mailbox_.has_room()) {
        stopped_ = false;
        resume_();
    }
}

std::size_t MessageQueue::poll(MessageBatch& batch, std::chrono::milliseconds timeout) {
    batch.clear(); // what it keeps may be what the wait is for
    std::unique_lock lock{mutex_};
    resume_if_space();
    if (timeout.count() > 0) {
        changed_.wait_for(lock, std::min(timeout, longest_time),
                          [this] { return ended_ || woken_ || !mailbox_.empty(); });
    }
    woken_ = false;
    const std::size_t taken = mailbox_.take(batch);
    if (mailbox_.empty()) set_readable(false);
    resume_if_space();
    return taken;
}

} // namespace netio::pubsub::inline v0_3
