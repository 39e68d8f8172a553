// SPDX-License-Identifier: Apache-2.0
#include "pubsub/client/message_queue.hpp"

#include "netio/base/check.hpp"
#include "netio/base/status.hpp"

#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <system_error>
#include <utility>

namespace netio::pubsub::inline v0_2 {

MessageQueue::MessageQueue(const Mailbox::Options& options, std::function<bool()> go_on)
    : mailbox_{options}, go_on_{std::move(go_on)}, fd_{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)} {
    if (fd_ < 0) throw FabricError{{errno, std::system_category()}, "cannot create an eventfd"};
}

MessageQueue::~MessageQueue() {
    ::close(fd_);
}

bool MessageQueue::put(Fid fid, std::span<const std::byte> bytes, std::uint8_t status) {
    const std::lock_guard lock{mutex_};
    const bool was_empty = mailbox_.empty();
    const Mailbox::Put put = mailbox_.put(fid, bytes, status);
    if (put == Mailbox::Put::dropped) return true;
    if (was_empty) {
        static_cast<void>(::eventfd_write(fd_, 1));
        something_.notify_all();
    }
    if (put == Mailbox::Put::full && mailbox_.blocks()) stopped_ = true;
    return !stopped_;
}

void MessageQueue::end() {
    const std::lock_guard lock{mutex_};
    ended_ = true;
    something_.notify_all();
}

void MessageQueue::wait_for_end() {
    std::unique_lock lock{mutex_};
    something_.wait(lock, [this] { return ended_; });
}

std::size_t MessageQueue::poll(std::vector<Message>& out, std::size_t at_most,
                               std::chrono::milliseconds timeout) {
    std::unique_lock lock{mutex_};
    if (stopped_ && mailbox_.has_room() && go_on_()) stopped_ = false;
    if (timeout.count() > 0) {
        something_.wait_for(lock, timeout, [this] { return ended_ || !mailbox_.empty(); });
    }
    const bool was_empty = mailbox_.empty();
    const std::size_t taken = mailbox_.take(out, at_most);
    if (mailbox_.empty() && !was_empty) {
        eventfd_t count = 0;
        static_cast<void>(::eventfd_read(fd_, &count));
    }
    if (stopped_ && mailbox_.has_room() && go_on_()) stopped_ = false;
    return taken;
}

std::uint64_t MessageQueue::dropped() const {
    const std::lock_guard lock{mutex_};
    return mailbox_.dropped();
}

} // namespace netio::pubsub::inline v0_2
