// SPDX-License-Identifier: Apache-2.0
#include "netio/fabric/domain.hpp"

#include "netio/fabric/descriptors.hpp"
#include "netio/fabric/provider.hpp"
#include "netio/fabric/soft_iwarp.hpp"

#include <algorithm>
#include <iterator>
#include <new>

namespace netio::fabric {
Domain::Domain(EventLoop& loop, const FabricOptions& options, Fabric& fabric, ::fi_info& info)
    : loop_{loop}, options_{options}, fabric_{fabric}, name_{info.domain_attr->name}, registrar_{
                                                                                          info} {
    const CloseOnExec close_on_exec;
    const Info own{library().dupinfo(&info)};
    if (!own) throw std::bad_alloc{};
    if (domain_limits_queues(info)) {
        // A first connection with short queues must not keep out all others. The device has the
        // last word when an endpoint is enabled.
        own->tx_attr->size = SIZE_MAX;
        own->rx_attr->size = SIZE_MAX;
    }
    ::fid_domain* domain = nullptr;
    require(::fi_domain(&fabric.handle(), own.get(), &domain, nullptr),
            "cannot open device '" + name_ + "'");
    domain_.reset(domain);
    if (is_soft_iwarp(info)) {
        mapping_guard_ = cover_ill_numbered_page(*domain);
        splits_at_pages_ = true;
    }
}

bool Domain::serves(const ::fi_info& info) const {
    return name_ == info.domain_attr->name;
}

CompletionQueue& Domain::queue_for(std::size_t entry_count, bool alone) {
    close_released();
    if (!alone) {
        for (const auto& queue : queues_) {
            if (queue->has_capacity(entry_count)) return *queue;
        }
    }
    const CloseOnExec close_on_exec;
    const std::size_t entry_limit =
        alone ? entry_count : std::max(entry_count, options_.queue_entry_limit);
    const std::size_t endpoints = alone ? 1 : options_.queue_endpoint_limit;
    queues_.push_back(std::make_unique<CompletionQueue>(
        *this,
        CompletionQueue::Limits{.entries = entry_limit, .endpoints = endpoints, .alone = alone}));
    return *queues_.back();
}

void Domain::release(CompletionQueue& queue) noexcept {
    const auto found = std::find_if(queues_.begin(), queues_.end(),
                                    [&](const auto& owned) { return owned.get() == &queue; });
    NETIO_CHECK(found != queues_.end());
    released_.push_back(std::move(*found));
    queues_.erase(found);
    close_released();
}

void Domain::close_released() noexcept {
    // One that is being read right now, and whose handler gave it up, is closed later.
    std::erase_if(released_, [](const auto& queue) { return !queue->draining(); });
}

std::unique_ptr<Registration> Domain::register_memory(std::span<std::byte> memory, Access access) {
    return registrar_.make(*domain_, memory, access);
}

Fabric::Fabric(EventLoop& loop, const FabricOptions& options, ::fi_info& info)
    : loop_{loop}, options_{options}, provider_{info.fabric_attr->prov_name},
      name_{info.fabric_attr->name}, uses_kernel_sockets_{fabric::uses_kernel_sockets(info)},
      reads_all_sockets_{fabric::reads_all_sockets(info)} {
    const CloseOnExec close_on_exec;
    ::fid_fabric* fabric = nullptr;
    require(library().fabric(info.fabric_attr, &fabric, nullptr),
            "cannot open the fabric '" + name_ + "' of provider '" + provider_ + "'");
    fabric_.reset(fabric);
    events_.push_back(std::make_unique<EventQueue>(loop_, *fabric_));
}

// They are of its domains, which go before the event queues.
Fabric::~Fabric() {
    for (const auto& queue : events_)
        queue->close_abandoned();
}

EventQueue& Fabric::events_for(bool accepting) {
    if (accepting || uses_kernel_sockets_) return *events_.front();
    const auto free = std::find_if(std::next(events_.begin()), events_.end(),
                                   [](const auto& queue) { return queue->takes_attempt(); });
    if (free != events_.end()) return **free;
    if (events_.size() > attempt_queue_limit) return *events_.front();
    return *events_.emplace_back(std::make_unique<EventQueue>(loop_, *fabric_));
}

EventQueue& Fabric::own_events() {
    close_released();
    const FewCloseOnExec close_on_exec;
    return *own_events_.emplace_back(std::make_unique<EventQueue>(loop_, *fabric_, true));
}

void Fabric::release(EventQueue& events) noexcept {
    const auto found = std::find_if(own_events_.begin(), own_events_.end(),
                                    [&](const auto& owned) { return owned.get() == &events; });
    NETIO_CHECK(found != own_events_.end());
    released_.push_back(std::move(*found));
    own_events_.erase(found);
    close_released();
}

void Fabric::close_released() noexcept {
    // One that is being read right now, and whose handler gave it up, is closed later.
    std::erase_if(released_, [](const auto& queue) { return !queue->draining(); });
}

bool Fabric::serves(const ::fi_info& info) const {
    return provider_ == info.fabric_attr->prov_name && name_ == info.fabric_attr->name;
}

Domain& Fabric::domain_for(::fi_info& info) {
    for (const auto& domain : domains_) {
        if (domain->serves(info)) return *domain;
    }
    domains_.push_back(std::make_unique<Domain>(loop_, options_, *this, info));
    return *domains_.back();
}

} // namespace netio::fabric
