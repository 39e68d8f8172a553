// SPDX-License-Identifier: Apache-2.0
#pragma once

// The event queue of a fabric's active endpoints: established, refused, shut down. It also drives
// their connecting and accepting, which happens inside fi_eq_read on some providers, so it is read
// whenever its descriptor fires, although most reads find no event.

#include "netio/fabric/completion_queue.hpp"
#include "netio/fabric/libfabric.hpp"
#include "netio/loop/event_loop.hpp"

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

namespace netio::fabric {

class Connection;

// A connection-management event with its data. `entry` points into the reader's storage.
struct CmEvent {
    std::uint32_t type = 0; // FI_CONNREQ, FI_CONNECTED, FI_SHUTDOWN
    ::fid_t handle = nullptr;
    ::fi_info* info = nullptr; // FI_CONNREQ: to be freed
    std::span<const std::byte> data;
};
struct CmError {
    ::fid_t handle = nullptr; // may be null: some providers do not say
    int error = 0;
    std::span<const std::byte> data; // of a rejection
};

// A read of an event queue that returns no event has often made progress all the same: the provider
// accepts or continues one connection each time. So a queue counts as empty after this many reads.
inline constexpr unsigned empty_reads = 2;

// Successive errors that name no endpoint, after which the queue itself counts as broken.
inline constexpr std::size_t nameless_error_limit = 64;

// Reads one event; used by this queue and by listeners.
class CmReader {
  public:
    enum class Result : std::uint8_t { event, error, nothing };
    Result read(::fid_eq& queue);
    const CmEvent& event() const noexcept { return event_; }
    const CmError& error() const noexcept { return error_; }

  private:
    // Room for the largest connection data that a provider passes on (256 bytes on tcp).
    alignas(::fi_eq_cm_entry) std::array<std::byte, sizeof(::fi_eq_cm_entry) + 512> storage_{};
    CmEvent event_;
    CmError error_;
};

EventQueueHandle open_event_queue(::fid_fabric& fabric, int& wait_fd);

// An endpoint whose connection is gone while the answer to its fi_connect() or fi_accept() was due.
// With iWARP a call that disconnects or destroys it waits for that answer in the kernel (Linux,
// drivers/infiniband/core/iwcm.c: IWCM_F_CONNECT_WAIT), ten seconds with siw where the peer's
// process has stopped. So it is kept, with its entries in the completion queue, until it is
// answered.
class AbandonedEndpoint {
  public:
    AbandonedEndpoint(std::shared_ptr<QueueReservation> reservation, EndpointHandle endpoint)
        : reservation_{std::move(reservation)}, endpoint_{std::move(endpoint)} {}
    ~AbandonedEndpoint() { ::fi_shutdown(endpoint_.get(), 0); }
    AbandonedEndpoint(const AbandonedEndpoint&) = delete;
    AbandonedEndpoint& operator=(const AbandonedEndpoint&) = delete;

    ::fid_t handle() const noexcept { return &endpoint_->fid; }

  private:
    std::shared_ptr<QueueReservation> reservation_;
    EndpointHandle endpoint_; // is closed before its reservation ends
};

class EventQueue final : public EventSource {
  public:
    // `asks`: before each read it asks its connection, the only one, whether the provider may read
    // (Connection::provider_may_read), since a read drives the connecting of all of them.
    EventQueue(EventLoop& loop, ::fid_fabric& fabric, bool asks = false);
    ~EventQueue();

    ::fid_eq& handle() noexcept { return *queue_; }
    // Breaks the connection off if the queue has failed, since it would never get an event.
    void join(::fid_t endpoint, Connection& connection);
    void leave(::fid_t endpoint) noexcept;
    // The queue works, and no attempt on it waits for an answer.
    bool takes_attempt() const;
    // The queue will get the answer to an abandoned endpoint.
    bool tells_of_abandoned(bool accepting) const;
    // Keeps it until then.
    void abandon(std::unique_ptr<AbandonedEndpoint> endpoint);
    // Waits for the answers, as long as the kernel does.
    void close_abandoned() noexcept;

    bool draining() const noexcept { return draining_; }

    int wait_fd() const noexcept override { return wait_fd_; }
    std::size_t drain(std::size_t budget) override;
    bool may_sleep() override;

  private:
    std::size_t read(std::size_t budget);
    bool may_read() const;
    void deliver(const CmEvent& event);
    void deliver_error(const CmError& error);
    void close_abandoned(::fid_t endpoint) noexcept;
    void fail(const CmError& error);
    void break_off(Connection& connection) const;

    EventLoop& loop_;
    ::fid_fabric& fabric_;
    const bool asks_;
    bool draining_ = false;
    int wait_fd_ = -1;
    EventQueueHandle queue_;
    CmReader reader_;
    // Events name an endpoint by its handle; one that is not here any more was destroyed.
    std::unordered_map<::fid_t, Connection*> members_;
    std::vector<std::unique_ptr<AbandonedEndpoint>> abandoned_;
    std::size_t nameless_errors_ = 0; // in a row, that named no endpoint
    int failure_ = 0;                 // of the queue itself, for good: it is not read any more
};

} // namespace netio::fabric
