// SPDX-License-Identifier: Apache-2.0
#include "netio/fabric/provider_queue.hpp"

#include "netio/fabric/connection.hpp"
#include "netio/fabric/domain.hpp"
#include "netio/fabric/provider.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <memory>
#include <rdma/fi_errno.h>
#include <sys/epoll.h>

namespace netio::fabric {

// --- the signal pipe -------------------------------------------------------------------------

namespace {

struct FileCloser {
    void operator()(std::FILE* file) const noexcept { std::fclose(file); }
};

// The only descriptor that this epoll instance waits for; -1: none, several, or not an epoll.
int only_target_of(int epoll) noexcept {
    std::array<char, 64> path{};
    std::snprintf(path.data(), path.size(), "/proc/self/fdinfo/%d", epoll);
    const std::unique_ptr<std::FILE, FileCloser> file{std::fopen(path.data(), "re")};
    if (!file) return -1;
    int found = -1;
    std::array<char, 256> line{};
    while (std::fgets(line.data(), static_cast<int>(line.size()), file.get()) != nullptr) {
        int target = -1;
        if (std::sscanf(line.data(), "tfd: %d", &target) != 1) continue;
        if (found >= 0) return -1;
        found = target;
    }
    return found;
}

} // namespace

bool take_out_signal_pipe(int wait_fd) noexcept {
    const int pipe = only_target_of(wait_fd);
    return pipe >= 0 && ::epoll_ctl(wait_fd, EPOLL_CTL_DEL, pipe, nullptr) == 0;
}

// --- the queue -------------------------------------------------------------------------------

namespace {

// Each audit costs two system calls, half a microsecond. Between two audits, unreported packets can
// grow by about ten megabytes at most.
constexpr std::chrono::milliseconds audit_interval{10};
constexpr std::size_t audits_at_once = 64;

// Later versions signal in another way, and less often.
bool has_signal_pipe(const Fabric& fabric) {
    return fabric.uses_kernel_sockets() && !has_unified_tcp();
}

} // namespace

ProviderQueue::ProviderQueue(Domain& domain, const Limits& limits)
    : loop_{domain.loop()}, fabric_{domain.fabric().handle()}, limits_{limits} {
    ::fi_cq_attr attributes{};
    attributes.size = limits.entries;
    attributes.format = FI_CQ_FORMAT_DATA;
    attributes.wait_obj = FI_WAIT_FD;
    ::fid_cq* queue = nullptr;
    require_memory(::fi_cq_open(&domain.handle(), &attributes, &queue, nullptr),
                   "cannot open a completion queue of " + std::to_string(limits.entries) +
                       " entries",
                   domain.needs_registration());
    queue_.reset(queue);
    require(::fi_control(&queue_->fid, FI_GETWAIT, &wait_fd_),
            "cannot get the descriptor of a completion queue");
    unsignalled_ = has_signal_pipe(domain.fabric()) && take_out_signal_pipe(wait_fd_);
    loop_.add(*this);
}

ProviderQueue::~ProviderQueue() {
    NETIO_CHECK_MSG(members_.empty(), "connections must be destroyed before their transport");
    loop_.remove(*this);
}

bool ProviderQueue::has_capacity(std::size_t entry_count) const noexcept {
    return !failed_ && members_.size() < limits_.endpoints &&
           entries_reserved_ + entry_count <= limits_.entries;
}

void ProviderQueue::join(Connection& connection) {
    members_.push_back(&connection);
}

void ProviderQueue::leave(Connection& connection) noexcept {
    std::erase(members_, &connection);
    for (Closing& closing : closing_) {
        if (closing.connection == &connection) closing.connection = nullptr;
    }
}

bool ProviderQueue::reserve(std::size_t entry_count) noexcept {
    if (failed_ || entries_reserved_ + entry_count > limits_.entries) return false;
    entries_reserved_ += entry_count;
    return true;
}

void ProviderQueue::give_back(std::size_t entry_count) noexcept {
    entries_reserved_ -= entry_count;
}

void ProviderQueue::settle_connection(Connection& connection) {
    closing_.push_back({.connection = &connection, .due = delivered_ + entries_reserved_});
    activate();
}

std::size_t ProviderQueue::drain(std::size_t budget) {
    draining_ = true;
    const std::size_t work = read_and_settle(budget);
    // After reading: if the queue is empty, bytes that were not reported belong to no message.
    if (loop_.now() >= audits_.due) audit_some();
    draining_ = false;
    return work;
}

std::size_t ProviderQueue::read_and_settle(std::size_t budget) {
    std::size_t work = 0;
    while (refill()) {
        if (batch_.next == batch_.filled) {
            deliver_error(); // an error entry blocks the head of the queue until it is read
        } else {
            deliver(batch_.entries[batch_.next++]);
        }
        ++delivered_;
        ++work;
        if (!closing_.empty() && work < budget && !loop_.time_is_up())
            work += settle(false, budget - work);
        if (work >= budget || loop_.time_is_up()) return work;
    }
    return work + settle(true, budget - work);
}

bool ProviderQueue::refill() {
    if (batch_.next < batch_.filled) return true;
    if (failed_ || held_) return false;
    batch_.next = batch_.filled = 0;
    batch_.is_last = false;
    const auto count = ::fi_cq_read(queue_.get(), batch_.entries.data(), batch_.entries.size());
    if (count > 0) {
        batch_.filled = static_cast<std::size_t>(count);
        return true;
    }
    if (count == -FI_EAVAIL) return true;
    if (count != -FI_EAGAIN) fail_all(count);
    batch_.is_last = true;
    return false;
}

bool ProviderQueue::may_sleep() {
    if (!closing_.empty() || batch_.next < batch_.filled) return false;
    if (failed_ || held_) return true;
    // Every further completion comes from a socket.
    if (unsignalled_) return !refill();
    ::fid* handle = &queue_->fid;
    return ::fi_trywait(&fabric_, &handle, 1) == 0;
}

void ProviderQueue::deliver(const ::fi_cq_data_entry& entry) {
    Completion completion{};
    const bool written = (entry.flags & FI_REMOTE_WRITE) != 0;
    if (written) {
        completion.kind = Completion::Kind::remote_write;
        completion.immediate = static_cast<std::uint32_t>(entry.data);
    }
    if (entry.op_context == nullptr) {
        // A provider whose writes use up no receive does not report which endpoint was written to,
        // so connections that announced such writes have their own queues. In another queue it is a
        // forged write, perhaps of a connection that is gone, so it is not attributed to a member.
        if (written && limits_.alone && !members_.empty())
            members_.front()->complete_remote_write(completion);
        return;
    }
    const std::uint32_t index = operations_.find(entry.op_context);
    if (index == OperationTable::none) return;
    Connection* const owner = operations_[index].owner;
    completion.cookie = operations_[index].cookie;
    completion.bytes = entry.len;
    if (written) {
        completion.consumed_receive = true;
    } else {
        completion.kind = operations_[index].kind;
    }
    owner->complete(index, completion);
}

void ProviderQueue::deliver_error() {
    ::fi_cq_err_entry error{};
    if (::fi_cq_readerr(queue_.get(), &error, 0) != 1) return;
    const std::uint32_t index = operations_.find(error.op_context);
    if (index == OperationTable::none) return;
    operations_[index].owner->complete_with_error(index, error.err);
}

// One member after the other, so that a long list costs no more than a short one.
void ProviderQueue::audit_some() {
    audits_.due = loop_.now() + audit_interval;
    for (std::size_t i = std::min(audits_at_once, members_.size()); i > 0; --i) {
        if (audits_.next >= members_.size()) audits_.next = 0;
        members_[audits_.next++]->audit(batch_.is_last);
    }
}

std::size_t ProviderQueue::settle(bool empty, std::size_t budget) {
    std::size_t work = 0;
    // By index: a handler may close or destroy any connection of this queue.
    for (std::size_t i = 0; i < closing_.size() && work < budget; ++i) {
        const Closing closing = closing_[i];
        if (closing.connection == nullptr) continue;
        if (!empty && delivered_ < closing.due && !closing.connection->is_settled()) continue;
        closing_[i].due = 0; // repeated in the next turn
        work += finish(i, budget - work);
        if (loop_.time_is_up()) break;
    }
    std::erase_if(closing_, [](const Closing& closing) { return closing.connection == nullptr; });
    return work;
}

std::size_t ProviderQueue::finish(std::size_t place, std::size_t budget) {
    std::size_t work = 0;
    while (work < budget && closing_[place].connection != nullptr) {
        Connection& connection = *closing_[place].connection;
        ++work;
        if (connection.finish_close()) closing_[place].connection = nullptr;
        if (loop_.time_is_up()) break;
    }
    return work;
}

// The queue has failed, so it is not read again.
void ProviderQueue::fail_all(long error) {
    failed_ = true;
    for (Connection* const connection : members_) {
        connection->break_off(CloseReason::failed,
                              "the completion queue failed: " + fabric_error_text(error));
    }
}

// --- the share of a connection ---------------------------------------------------------------

QueueReservation::QueueReservation(Domain& domain, std::size_t entry_count, bool alone)
    : domain_{domain}, entry_count_{entry_count}, alone_{alone}, queue_{domain.queue_for(
                                                                     entry_count, alone)} {
    NETIO_CHECK(queue_.reserve(entry_count));
}

QueueReservation::~QueueReservation() {
    queue_.give_back(entry_count_);
    if (alone_) domain_.release(queue_);
}

} // namespace netio::fabric
