// SPDX-License-Identifier: Apache-2.0
#include "netio/fabric/registrar.hpp"

#include "netio/base/check.hpp"
#include "netio/random_number.hpp"

#include <cstdint>
#include <rdma/fi_domain.h>
#include <utility>

namespace netio::fabric {
namespace {

// Where the provider reads and writes local memory without being told of it first.
class NoRegistration final : public Registration {
  public:
    void* descriptor() const noexcept override { return nullptr; }
    std::uint64_t key() const noexcept override { return 0; }
    std::uint64_t base() const noexcept override { return 0; }
};

// A peer that can guess a key can use it, so keys are random, not counted.
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

} // namespace netio::fabric
