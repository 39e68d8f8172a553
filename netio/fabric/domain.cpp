// SPDX-License-Identifier: Apache-2.0
#include "netio/fabric/domain.hpp"

#include "netio/base/check.hpp"
#include "netio/fabric/connection.hpp"
#include "netio/fabric/kernel_socket.hpp"
#include "netio/fabric/provider.hpp"
#include "netio/random_number.hpp"

#include <rdma/fi_domain.h>
#include <rdma/fi_errno.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <new>
#include <string_view>
#include <utility>

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

bool EventQueue::reports_abandoned(bool accepting) const {
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

// --- memory ----------------------------------------------------------------------------------

namespace {

// For providers that need no registration of local memory.
class NoRegistration final : public Registration {
  public:
    void* descriptor() const noexcept override { return nullptr; }
    std::uint64_t key() const noexcept override { return 0; }
    std::uint64_t base() const noexcept override { return 0; }
};

// Keys are random, because a peer that guesses a key can use it.
std::uint64_t random_key(std::size_t key_bytes) {
    const std::uint64_t key = random_number();
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

class Registrar::Region final : public Registration {
  public:
    Region(Registrar& registrar, MemoryHandle handle, std::uint64_t base)
        : registrar_{registrar}, handle_{std::move(handle)}, base_{base} {
        ++registrar_.count_;
    }
    ~Region() override { --registrar_.count_; }
    Region(const Region&) = delete;
    Region& operator=(const Region&) = delete;
    void* descriptor() const noexcept override { return ::fi_mr_desc(handle_.get()); }
    std::uint64_t key() const noexcept override { return ::fi_mr_key(handle_.get()); }
    std::uint64_t base() const noexcept override { return base_; }

  private:
    Registrar& registrar_;
    MemoryHandle handle_;
    std::uint64_t base_;
};

Registrar::Registrar(const ::fi_info& info)
    : device_{info.domain_attr->name}, needs_local_{(info.domain_attr->mr_mode & FI_MR_LOCAL) != 0},
      virtual_addresses_{(info.domain_attr->mr_mode & FI_MR_VIRT_ADDR) != 0},
      provider_keys_{(info.domain_attr->mr_mode & FI_MR_PROV_KEY) != 0},
      key_bytes_{info.domain_attr->mr_key_size} {}

Registrar::~Registrar() {
    NETIO_CHECK_MSG(count_ == 0, "a registered buffer must be destroyed before the transport that "
                                 "it was used with");
}

std::unique_ptr<Registration> Registrar::make(::fid_domain& domain, std::span<std::byte> memory,
                                              Access access) {
    if (!needs_local_ && access != Access::remote_write) return std::make_unique<NoRegistration>();
    ::fid_mr* region = nullptr;
    const std::uint64_t key = provider_keys_ ? 0 : random_key(key_bytes_);
    const int result = ::fi_mr_reg(&domain, memory.data(), memory.size(), access_flags(access), 0,
                                   key, 0, &region, nullptr);
    require_memory(
        result, "cannot register " + std::to_string(memory.size()) + " bytes on '" + device_ + "'",
        needs_local_);
    MemoryHandle handle{region};
    const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
    return std::make_unique<Region>(*this, std::move(handle),
                                    virtual_addresses_ ? std::uint64_t{address} : 0);
}

// --- soft iWARP ------------------------------------------------------------------------------

bool is_soft_iwarp(const ::fi_info& info) {
    constexpr std::string_view siw_vendor = "0x626d74";
    return info.nic != nullptr && info.nic->device_attr != nullptr &&
           info.nic->device_attr->vendor_id != nullptr &&
           info.nic->device_attr->vendor_id == siw_vendor;
}

CompletionQueueHandle cover_ill_numbered_page(::fid_domain& domain) {
    constexpr std::size_t entries_of_257_pages = 32768; // 32 bytes each, followed by a word
    ::fi_cq_attr attributes{};
    attributes.size = entries_of_257_pages;
    attributes.format = FI_CQ_FORMAT_DATA;
    attributes.wait_obj = FI_WAIT_NONE;
    ::fid_cq* queue = nullptr;
    require_memory(::fi_cq_open(&domain, &attributes, &queue, nullptr),
                   "cannot open a completion queue that guards the others", true);
    return CompletionQueueHandle{queue};
}

std::size_t split_at_page(std::span<::iovec> pieces, std::span<void*> descriptors) {
    constexpr std::uintptr_t page_bytes = 4096;
    constexpr std::size_t longest_short_message = 256; // the limit is below a hundred
    ::iovec& first = pieces[0];
    const auto address = reinterpret_cast<std::uintptr_t>(first.iov_base);
    const std::size_t to_end = page_bytes - address % page_bytes;
    if (first.iov_len > longest_short_message || first.iov_len <= to_end) return 1;
    pieces[1] = {static_cast<std::byte*>(first.iov_base) + to_end, first.iov_len - to_end};
    descriptors[1] = descriptors[0];
    first.iov_len = to_end;
    return 2;
}

// --- a device --------------------------------------------------------------------------------

Domain::Domain(EventLoop& loop, const FabricOptions& options, Fabric& fabric, ::fi_info& info)
    : loop_{loop}, options_{options}, fabric_{fabric}, name_{info.domain_attr->name}, registrar_{
                                                                                          info} {
    const CloseOnExec close_on_exec;
    const Info own{library().dupinfo(&info)};
    if (!own) throw std::bad_alloc{};
    if (domain_limits_queues(info)) {
        // A first connection with short queues must not limit later ones. The device has the final
        // decision when an endpoint is enabled.
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

ProviderQueue& Domain::queue_for(std::size_t entry_count, bool alone) {
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
    queues_.push_back(std::make_unique<ProviderQueue>(
        *this,
        ProviderQueue::Limits{.entries = entry_limit, .endpoints = endpoints, .alone = alone}));
    return *queues_.back();
}

void Domain::release(ProviderQueue& queue) noexcept {
    const auto found = std::find_if(queues_.begin(), queues_.end(),
                                    [&](const auto& owned) { return owned.get() == &queue; });
    NETIO_CHECK(found != queues_.end());
    released_.push_back(std::move(*found));
    queues_.erase(found);
    close_released();
}

void Domain::close_released() noexcept {
    // A queue that is being read right now, and whose handler released it, is closed later.
    std::erase_if(released_, [](const auto& queue) { return !queue->draining(); });
}

std::unique_ptr<Registration> Domain::register_memory(std::span<std::byte> memory, Access access) {
    return registrar_.make(*domain_, memory, access);
}

// --- a provider on a network -----------------------------------------------------------------

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

// Its members belong to its domains, which are closed before the event queues.
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
    // A queue that is being read right now, and whose handler released it, is closed later.
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
