// SPDX-License-Identifier: Apache-2.0
#pragma once

// The libfabric objects that connections share: a Fabric per provider and network, with the event
// queue of its endpoints, and in it a Domain per device, with its completion queues and memory.

#include "netio/fabric.hpp"
#include "netio/fabric/completion_queue.hpp"
#include "netio/fabric/event_queue.hpp"
#include "netio/fabric/handles.hpp"
#include "netio/fabric/registrar.hpp"

#include <memory>
#include <string>
#include <vector>

namespace netio::fabric {

class Fabric;

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

    // A queue with room for so many outstanding operations; `alone`: shared with nobody.
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

class Fabric {
  public:
    Fabric(EventLoop& loop, const FabricOptions& options, ::fi_info& info);
    ~Fabric();

    bool serves(const ::fi_info& info) const;
    ::fid_fabric& handle() noexcept { return *fabric_; }
    // For a connection that is accepted, or an attempt. With iWARP the error of one that is refused
    // names nobody (rdma_connect() fails within a read of the queue), so over devices each attempt
    // is the only one on its queue, as long as there are no more of them than this.
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

} // namespace netio::fabric
