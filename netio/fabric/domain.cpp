// SPDX-License-Identifier: Apache-2.0
#include "netio/fabric/domain.hpp"

#include "netio/fabric/descriptors.hpp"
#include "netio/fabric/provider.hpp"
#include "netio/fabric/soft_iwarp.hpp"

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <new>
#include <rdma/fi_errno.h>
#include <sys/random.h>

namespace netio::fabric {
namespace {

class MemoryRegion final : public Registration {
  public:
    MemoryRegion(MemoryHandle handle, std::uint64_t base)
        : handle_{std::move(handle)}, base_{base} {}
    void* descriptor() const noexcept override { return ::fi_mr_desc(handle_.get()); }
    std::uint64_t key() const noexcept override { return ::fi_mr_key(handle_.get()); }
    std::uint64_t base() const noexcept override { return base_; }

  private:
    MemoryHandle handle_;
    std::uint64_t base_;
};

// Where the provider reads and writes local memory without being told of it first.
class NoRegistration final : public Registration {
  public:
    void* descriptor() const noexcept override { return nullptr; }
    std::uint64_t key() const noexcept override { return 0; }
    std::uint64_t base() const noexcept override { return 0; }
};

// A peer that can guess a key can use it, so keys are random, not counted.
std::uint64_t random_key(std::size_t key_bytes) {
    std::uint64_t key = 0;
    NETIO_CHECK(::getrandom(&key, sizeof key, 0) == sizeof key);
    return key_bytes >= sizeof key ? key : key & ((std::uint64_t{1} << (8 * key_bytes)) - 1);
}

std::uint64_t access_flags(Access access) {
    switch (access) {
    case Access::send:
        return FI_SEND | FI_WRITE;
    case Access::local:
        return FI_SEND | FI_RECV | FI_WRITE;
    case Access::remote_write:
        return FI_SEND | FI_RECV | FI_WRITE | FI_REMOTE_WRITE;
    }
    return 0;
}

} // namespace

Domain::Domain(EventLoop& loop, const FabricOptions& options, Fabric& fabric, ::fi_info& info)
    : loop_{loop}, options_{options}, fabric_{fabric}, name_{info.domain_attr->name},
      needs_registration_{(info.domain_attr->mr_mode & FI_MR_LOCAL) != 0},
      virtual_addresses_{(info.domain_attr->mr_mode & FI_MR_VIRT_ADDR) != 0},
      provider_keys_{(info.domain_attr->mr_mode & FI_MR_PROV_KEY) != 0},
      key_bytes_{info.domain_attr->mr_key_size} {
    const CloseOnExec close_on_exec;
    const Info own{::fi_dupinfo(&info)};
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
    queues_.push_back(std::make_unique<CompletionQueue>(*this, entry_limit,
                                                        alone ? 1 : options_.queue_endpoint_limit));
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
    if (!needs_registration_ && access != Access::remote_write) {
        return std::make_unique<NoRegistration>();
    }
    ::fid_mr* region = nullptr;
    const std::uint64_t key = provider_keys_ ? 0 : random_key(key_bytes_);
    const int result = ::fi_mr_reg(domain_.get(), memory.data(), memory.size(),
                                   access_flags(access), 0, key, 0, &region, nullptr);
    require_memory(result,
                   "cannot register " + std::to_string(memory.size()) + " bytes on '" + name_ + "'",
                   needs_registration_);
    const auto base =
        virtual_addresses_
            ? static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(memory.data()))
            : 0;
    return std::make_unique<MemoryRegion>(MemoryHandle{region}, base);
}

Fabric::Fabric(EventLoop& loop, const FabricOptions& options, ::fi_info& info)
    : loop_{loop}, options_{options}, provider_{info.fabric_attr->prov_name},
      name_{info.fabric_attr->name}, uses_kernel_sockets_{fabric::uses_kernel_sockets(info)} {
    const CloseOnExec close_on_exec;
    ::fid_fabric* fabric = nullptr;
    require(::fi_fabric(info.fabric_attr, &fabric, nullptr),
            "cannot open the fabric '" + name_ + "' of provider '" + provider_ + "'");
    fabric_.reset(fabric);
    events_ = std::make_unique<EventQueue>(loop_, *fabric_);
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
