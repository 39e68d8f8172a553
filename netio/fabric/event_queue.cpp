// SPDX-License-Identifier: Apache-2.0
#include "netio/fabric/event_queue.hpp"

#include "netio/fabric/connection.hpp"

#include <algorithm>
#include <rdma/fi_errno.h>

namespace netio::fabric {

CmReader::Result CmReader::read(::fid_eq& queue) {
    std::uint32_t type = 0;
    const auto size = ::fi_eq_read(&queue, &type, storage_.data(), storage_.size(), 0);
    if (size >= static_cast<ssize_t>(sizeof(::fi_eq_cm_entry))) {
        const auto* entry = reinterpret_cast<const ::fi_eq_cm_entry*>(storage_.data());
        event_ = {.type = type,
                  .handle = entry->fid,
                  .info = type == FI_CONNREQ ? entry->info : nullptr,
                  .data = std::span<const std::byte>{storage_}.subspan(
                      sizeof(::fi_eq_cm_entry),
                      static_cast<std::size_t>(size) - sizeof(::fi_eq_cm_entry))};
        return Result::event;
    }
    if (size == -FI_EAVAIL) {
        ::fi_eq_err_entry entry{}; // zeroed: with err_data null the provider uses its own
        if (::fi_eq_readerr(&queue, &entry, 0) < 0) return Result::nothing;
        error_ = {.handle = entry.fid, .error = entry.err, .data = {}};
        if (entry.err_data != nullptr) {
            error_.data = {static_cast<const std::byte*>(entry.err_data), entry.err_data_size};
        }
        return Result::error;
    }
    if (size < 0 && size != -FI_EAGAIN) {
        // iWARP: a refused connection is reported as the result of the read, which names no
        // endpoint.
        error_ = {.handle = nullptr, .error = static_cast<int>(-size), .data = {}};
        return Result::error;
    }
    return Result::nothing;
}

EventQueueHandle open_event_queue(::fid_fabric& fabric, int& wait_fd) {
    ::fi_eq_attr attributes{};
    attributes.wait_obj = FI_WAIT_FD;
    ::fid_eq* queue = nullptr;
    require(::fi_eq_open(&fabric, &attributes, &queue, nullptr), "cannot open an event queue");
    EventQueueHandle handle{queue};
    require(::fi_control(&queue->fid, FI_GETWAIT, &wait_fd),
            "cannot get the descriptor of an event queue");
    return handle;
}

EventQueue::EventQueue(EventLoop& loop, ::fid_fabric& fabric, bool asks)
    : loop_{loop}, fabric_{fabric}, asks_{asks}, queue_{open_event_queue(fabric, wait_fd_)} {
    loop_.add(*this);
}

EventQueue::~EventQueue() {
    loop_.remove(*this);
}

void EventQueue::join(::fid_t endpoint, Connection& connection) {
    members_.emplace(endpoint, &connection);
    if (failure_ != 0) return break_off(connection);
    loop_.activate(*this);
}

void EventQueue::leave(::fid_t endpoint) noexcept {
    members_.erase(endpoint);
}

bool EventQueue::takes_attempt() const {
    return failure_ == 0 && abandoned_.empty() &&
           std::ranges::none_of(members_,
                                [](const auto& member) { return member.second->is_attempt(); });
}

bool EventQueue::tells_of_abandoned(bool accepting) const {
    return accepting ? failure_ == 0 : takes_attempt();
}

void EventQueue::abandon(std::unique_ptr<AbandonedEndpoint> endpoint) {
    abandoned_.push_back(std::move(endpoint));
}

void EventQueue::close_abandoned(::fid_t endpoint) noexcept {
    std::erase_if(abandoned_, [&](const auto& each) { return each->handle() == endpoint; });
}

void EventQueue::close_abandoned() noexcept {
    abandoned_.clear();
}

std::size_t EventQueue::drain(std::size_t budget) {
    draining_ = true;
    const std::size_t work = read(budget);
    draining_ = false;
    return work;
}

bool EventQueue::may_read() const {
    return !asks_ || members_.empty() || members_.begin()->second->provider_may_read();
}

std::size_t EventQueue::read(std::size_t budget) {
    std::size_t work = 0;
    unsigned empty = 0;
    while (failure_ == 0 && work < budget && empty < empty_reads && may_read()) {
        const auto result = reader_.read(*queue_);
        if (result == CmReader::Result::nothing) {
            ++empty;
            continue;
        }
        empty = 0;
        ++work;
        if (result == CmReader::Result::error) {
            deliver_error(reader_.error());
        } else {
            nameless_errors_ = 0;
            deliver(reader_.event());
        }
        if (loop_.time_is_up()) break;
    }
    return work;
}

void EventQueue::deliver(const CmEvent& event) {
    const auto found = members_.find(event.handle);
    if (found != members_.end()) return found->second->on_event(event);
    close_abandoned(event.handle);
}

void EventQueue::deliver_error(const CmError& error) {
    auto found = members_.find(error.handle);
    if (found == members_.end() && error.handle == nullptr) {
        // The error names no endpoint. It can only be one that is connecting, or was abandoned
        // while connecting.
        found = std::find_if(members_.begin(), members_.end(),
                             [](const auto& member) { return member.second->is_attempt(); });
        if (found == members_.end() && !abandoned_.empty()) return close_abandoned();
        if (found == members_.end() && ++nameless_errors_ > nameless_error_limit) {
            return fail(error);
        }
    }
    if (found != members_.end()) return found->second->on_event_error(error);
    close_abandoned(error.handle);
}

// The queue itself is broken and would report errors without end.
void EventQueue::fail(const CmError& error) {
    failure_ = error.error;
    for (const auto& [handle, connection] : members_)
        break_off(*connection);
}

void EventQueue::break_off(Connection& connection) const {
    connection.break_off(CloseReason::failed,
                         "the event queue failed: " + fabric_error_text(failure_));
}

bool EventQueue::may_sleep() {
    if (failure_ != 0) return true;
    ::fid* handle = &queue_->fid;
    return ::fi_trywait(&fabric_, &handle, 1) == 0;
}

} // namespace netio::fabric
