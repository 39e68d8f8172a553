// SPDX-License-Identifier: Apache-2.0
#pragma once

// The event queue of a fabric's active endpoints: established, refused, shut down. With some
// providers, connecting and accepting happens inside fi_eq_read, so the queue is read whenever its
// descriptor fires, although most reads find no event.

#include "netio/fabric/libfabric.hpp"
#include "netio/fabric/provider_queue.hpp"
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
    ::fid_t handle = nullptr; // may be null: not all providers report it
    int error = 0;
    std::span<const std::byte> data; // of a rejection
};

// A read of an event queue that returns no event has often made progress nevertheless: the provider
// accepts or continues one connection per read. So a queue counts as empty only after this many
// reads without an event.
inline constexpr unsigned empty_reads = 2;

// Number of consecutive errors without an endpoint after which the queue counts as failed.
inline constexpr std::size_t nameless_error_limit = 64;

// Reads one event; used by this queue and by listeners.
class CmReader {
  public:
    enum class Result : std::uint8_t { event, error, nothing };
    Result read(::fid_eq& queue);
    const CmEvent& event() const noexcept { return event_; }
    const CmError& error() const noexcept { return error_; }

  private:
    // Space for the largest connection data that a provider passes on (256 bytes on tcp).
    alignas(::fi_eq_cm_entry) std::array<std::byte, sizeof(::fi_eq_cm_entry) + 512> storage_{};
    CmEvent event_;
    CmError error_;
};

EventQueueHandle open_event_queue(::fid_fabric& fabric, int& wait_fd);

// An endpoint whose connection was destroyed before the answer to its fi_connect() or fi_accept().
// With iWARP, a call that disconnects or destroys it waits for that answer in the kernel (Linux,
// drivers/infiniband/core/iwcm.c: IWCM_F_CONNECT_WAIT), ten seconds with siw if the peer's process
// is stopped. So the endpoint is kept, with its entries in the completion queue, until it is
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
    // `asks`: before each read, asks its only connection whether the provider may read
    // (Connection::provider_may_read), because a read continues the connecting of all endpoints.
    EventQueue(EventLoop& loop, ::fid_fabric& fabric, bool asks = false);
    ~EventQueue();

    ::fid_eq& handle() noexcept { return *queue_; }
    // Breaks the connection off if the queue has failed, because it would never get an event.
    void join(::fid_t endpoint, Connection& connection);
    void leave(::fid_t endpoint) noexcept;
    // Whether the queue works and no attempt on it waits for an answer.
    bool takes_attempt() const;
    // Whether the queue will report the answer to an abandoned endpoint.
    bool tells_of_abandoned(bool accepting) const;
    // Keeps the endpoint until then.
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
    // Events name an endpoint by its handle. If it is not in this map, it was destroyed.
    std::unordered_map<::fid_t, Connection*> members_;
    std::vector<std::unique_ptr<AbandonedEndpoint>> abandoned_;
    std::size_t nameless_errors_ = 0; // consecutive errors that named no endpoint
    int failure_ = 0;                 // of the queue itself, permanently: it is not read any more
};

} // namespace netio::fabric
