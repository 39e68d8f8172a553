// SPDX-License-Identifier: Apache-2.0
#pragma once

// The search for routes of the transport that open_fabric() makes.

// Looks for routes in its own threads: resolving a name takes as long as its servers need, and
// querying verbs for a peer blocks for up to two seconds (libfabric 1.17, rdma_resolve_addr). The
// results return to the loop through a descriptor. A search cannot be interrupted, so when the
// finder is destroyed, the thread of a search in progress continues alone; the other threads are
// joined.

#include "netio/loop/event_loop.hpp"
#include "netio/transport.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace netio::fabric {

class RouteFinder final : private EventSource {
  public:
    // Does the search; blocks; called in any thread, also after this finder was destroyed.
    using Search = std::function<FoundRoutes(const Address& remote, const std::string& local_host)>;
    // Names that are resolved at the same time; further names wait in a queue.
    static constexpr std::size_t thread_limit = 4;

    // Throws FabricError.
    RouteFinder(EventLoop& loop, Search search);
    ~RouteFinder() override;

    // Throws std::system_error if there is no thread, and the process may not create one.
    std::unique_ptr<RouteSearch> find(const Address& remote, const std::string& local_host,
                                      std::function<void(FoundRoutes)> found);

  private:
    struct Job;
    struct Shared;
    class Ticket;

    int wait_fd() const noexcept override;
    std::size_t drain(std::size_t budget) override;
    bool may_sleep() override { return true; }

    EventLoop& loop_;
    std::shared_ptr<Shared> shared_;
};

} // namespace netio::fabric
