// SPDX-License-Identifier: Apache-2.0
#pragma once

// The libfabric objects that connections share: a Fabric per provider and network, with the event
// queue of its endpoints, and in it a Domain per device, with its completion queues and memory.

#include "netio/fabric.hpp"
#include "netio/fabric/completion_queue.hpp"
#include "netio/fabric/event_queue.hpp"
#include "netio/fabric/libfabric.hpp"
#include "netio/memory/buffer.hpp"

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <sys/uio.h>
#include <vector>

namespace netio::fabric {

class Fabric;

// How one device registers memory. The registrations must be gone before it is (checked).
class Registrar {
  public:
    explicit Registrar(const ::fi_info& info);
    ~Registrar();
    Registrar(const Registrar&) = delete;
    Registrar& operator=(const Registrar&) = delete;

    // Sends and receives need registered memory here.
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
    std::size_t count_ = 0; // of the registrations that exist
};

// A device, with its completion queues and its registered memory.
class Domain final : public MemoryDomain {
  public:
    Domain(EventLoop& loop, const FabricOptions& options, Fabric& fabric, ::fi_info& info);

    bool serves(const ::fi_info& info) const;
    ::fid_domain& handle() noexcept { return *domain_; }
    Fabric& fabric() const noexcept { return fabric_; }
    EventLoop& loop() noexcept { return loop_; }
    // Sends and receives need registered memory here.
    bool needs_registration() const noexcept { return registrar_.needs_local(); }

    // A short piece must not be the only one of a post if it lies in two pages (soft iWARP).
    bool splits_at_pages() const noexcept { return splits_at_pages_; }

    // A queue with this many free entries; `alone`: a queue of its own.
    CompletionQueue& queue_for(std::size_t entry_count, bool alone);
    // A queue that was taken alone is closed with its connection.
    void release(CompletionQueue& queue) noexcept;

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
    CompletionQueueHandle mapping_guard_; // soft iWARP alone needs it
    std::vector<std::unique_ptr<CompletionQueue>> queues_;
    std::vector<std::unique_ptr<CompletionQueue>> released_;
};

// A provider on a network, with the event queues of its endpoints and the domains of its devices.
class Fabric {
  public:
    Fabric(EventLoop& loop, const FabricOptions& options, ::fi_info& info);
    ~Fabric();

    bool serves(const ::fi_info& info) const;
    ::fid_fabric& handle() noexcept { return *fabric_; }
    // For an accepted connection, or an attempt to connect. With iWARP the error of a refused
    // attempt names no endpoint (rdma_connect() fails within a read of the queue), so over devices
    // each attempt is the only one on its queue, for at most attempt_queue_limit attempts.
    EventQueue& events_for(bool accepting);
    static constexpr std::size_t attempt_queue_limit = 64;
    // For one attempt whose answer is judged before the provider reads it, until release().
    EventQueue& own_events();
    void release(EventQueue& events) noexcept;
    // No attempt has any of its queues.
    bool is_unused() const noexcept { return own_events_.empty(); }
    // The domain that an endpoint of this info belongs to, opened at first use.
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
    // The first is for all; the others are for attempts, and for what comes of them.
    std::vector<std::unique_ptr<EventQueue>> events_;
    std::vector<std::unique_ptr<EventQueue>> own_events_; // of one attempt each
    std::vector<std::unique_ptr<EventQueue>> released_;
    std::vector<std::unique_ptr<Domain>> domains_;
};

// --- soft iWARP ------------------------------------------------------------------------------

// Two faults of Linux's soft iWARP (siw), and how to avoid them. A Domain knows whether its device
// is one.

bool is_soft_iwarp(const ::fi_info& info);

// The library of soft iWARP (siw, up to rdma-core 44 and later) takes 0x90000 for the mark of a
// mapping that failed, while Linux since 5.5 numbers mappings by their place, where it is the 144th
// page: any queue that begins there cannot be opened, now and at every further try, since the place
// is free again. Mappings take the first place they fit in, so one that begins below that page and
// ends behind it, made before all others, keeps it from being anybody's beginning. It holds for all
// domains of the process while this one is open. Throws FabricError.
CompletionQueueHandle cover_ill_numbered_page(::fid_domain& domain);

// siw (Linux up to 6.1 at least, siw_try_1seg) copies a short message that is one piece and lies in
// two pages from the wrong places, unless it happens to be sent within the call. Two pieces it
// sends as they are, so such a message becomes two where the pages meet. The first piece is all of
// it, and there is room for another; returns how many it is now.
std::size_t split_at_page(std::span<::iovec> pieces, std::span<void*> descriptors);

} // namespace netio::fabric
