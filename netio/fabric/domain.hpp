// SPDX-License-Identifier: Apache-2.0
#pragma once

// The objects of libfabric that connections share: fabrics, their event queues, and domains.

// The event queue of a fabric's active endpoints: established, refused, shut down. With some
// providers, connecting and accepting happens inside fi_eq_read, so the queue is read whenever its
// descriptor fires, although most reads find no event.

#include "netio/fabric.hpp"
#include "netio/fabric/libfabric.hpp"
#include "netio/fabric/provider_queue.hpp"
#include "netio/loop/event_loop.hpp"
#include "netio/memory/buffer.hpp"

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
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
    bool reports_abandoned(bool accepting) const;
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

// The libfabric objects that connections share: a Fabric for each provider and network, with the
// event queues of its endpoints, and in it a Domain for each device, with its completion queues and
// memory.

class Fabric;

// How one device registers memory. It must outlive its registrations (checked).
class Registrar {
  public:
    explicit Registrar(const ::fi_info& info);
    ~Registrar();
    Registrar(const Registrar&) = delete;
    Registrar& operator=(const Registrar&) = delete;

    // Whether sends and receives need registered memory here.
    bool needs_local() const noexcept { return needs_local_; }
    // Throws FabricError, which names the remedy.
    std::unique_ptr<Registration> make(::fid_domain& domain, std::span<std::byte> memory,
                                       Access access);

  private:
    class Region;

    std::string device_;
    bool needs_local_;
    bool virtual_addresses_;
    bool provider_keys_;
    std::size_t key_bytes_;
    std::size_t count_ = 0; // existing registrations
};

// A device, with its completion queues and its registered memory.
class Domain final : public MemoryDomain {
  public:
    Domain(EventLoop& loop, const FabricOptions& options, Fabric& fabric, ::fi_info& info);

    bool serves(const ::fi_info& info) const;
    ::fid_domain& handle() noexcept { return *domain_; }
    Fabric& fabric() const noexcept { return fabric_; }
    EventLoop& loop() noexcept { return loop_; }
    // Whether sends and receives need registered memory here.
    bool needs_registration() const noexcept { return registrar_.needs_local(); }

    // Whether a short message must not be a single piece if it lies in two pages (soft iWARP).
    bool splits_at_pages() const noexcept { return splits_at_pages_; }

    // Returns a queue with this many free entries; `alone`: a separate queue.
    ProviderQueue& queue_for(std::size_t entry_count, bool alone);
    // A separate queue is closed with its connection.
    void release(ProviderQueue& queue) noexcept;

    std::unique_ptr<Registration> register_memory(std::span<std::byte> memory,
                                                  Access access) override;

  private:
    void close_released() noexcept;

    EventLoop& loop_;
    const FabricOptions& options_;
    Fabric& fabric_;
    std::string name_;
    bool splits_at_pages_ = false;
    DomainHandle domain_;
    Registrar registrar_;
    CompletionQueueHandle mapping_guard_; // only for soft iWARP
    std::vector<std::unique_ptr<ProviderQueue>> queues_;
    std::vector<std::unique_ptr<ProviderQueue>> released_;
};

// A provider on a network, with the event queues of its endpoints and the domains of its devices.
class Fabric {
  public:
    Fabric(EventLoop& loop, const FabricOptions& options, ::fi_info& info);
    ~Fabric();

    bool serves(const ::fi_info& info) const;
    ::fid_fabric& handle() noexcept { return *fabric_; }
    // The event queue for an accepted connection or for an attempt to connect. With iWARP, the
    // error of a refused attempt names no endpoint (rdma_connect() fails during a read of the
    // queue), so over devices each attempt gets its own queue, up to attempt_queue_limit attempts.
    EventQueue& events_for(bool accepting);
    static constexpr std::size_t attempt_queue_limit = 64;
    // A separate event queue for one attempt to connect whose answer is checked before the provider
    // reads it. The attempt uses it until release().
    EventQueue& own_events();
    void release(EventQueue& events) noexcept;
    // Whether no attempt uses its queues.
    bool is_unused() const noexcept { return own_events_.empty(); }
    // The domain of an endpoint with this info, opened at first use.
    Domain& domain_for(::fi_info& info);
    bool uses_kernel_sockets() const noexcept { return uses_kernel_sockets_; }
    bool reads_all_sockets() const noexcept { return reads_all_sockets_; }

  private:
    void close_released() noexcept;

    EventLoop& loop_;
    const FabricOptions& options_;
    std::string provider_;
    std::string name_;
    FabricHandle fabric_;
    bool uses_kernel_sockets_;
    bool reads_all_sockets_;
    // The first queue is for all connections; the others are for attempts and their connections.
    std::vector<std::unique_ptr<EventQueue>> events_;
    std::vector<std::unique_ptr<EventQueue>> own_events_; // of one attempt each
    std::vector<std::unique_ptr<EventQueue>> released_;
    std::vector<std::unique_ptr<Domain>> domains_;
};

// --- soft iWARP ------------------------------------------------------------------------------

// Workarounds for two bugs of Linux's soft iWARP (siw). A Domain knows whether its device is one.

bool is_soft_iwarp(const ::fi_info& info);

// The library of soft iWARP (siw, up to rdma-core 44 and later) takes 0x90000 as the value of a
// failed mapping. Since Linux 5.5, mappings are numbered by their place, and this number is the
// 144th page: any queue that begins there cannot be opened, and no later attempt succeeds, because
// the place is free again. A mapping takes the first place where it fits. So a mapping that begins
// below that page and ends after it, made before all others, prevents that another mapping begins
// there. It covers all domains of the process while this one is open. Throws FabricError.
CompletionQueueHandle cover_ill_numbered_page(::fid_domain& domain);

// siw (Linux up to 6.1 at least, siw_try_1seg) copies a short message that is one piece and lies in
// two pages from wrong addresses, unless it is sent during the call. It sends two pieces correctly,
// so this function splits such a message at the page boundary. The first piece must contain the
// whole message, and the span must have room for another piece. Returns the new number of pieces.
std::size_t split_at_page(std::span<::iovec> pieces, std::span<void*> descriptors);

} // namespace netio::fabric
