// SPDX-License-Identifier: Apache-2.0
#pragma once

// The only device of the simulator, where memory is registered. Keys are never reused.

#include "tests/support/sim_transport.hpp"

#include <cerrno>

namespace netio::test {

struct SimTransport::Region final : Registration {
    Region(Domain& domain, std::span<std::byte> memory, Access access);
    ~Region() override;
    void* descriptor() const noexcept override { return nullptr; }
    std::uint64_t key() const noexcept override { return key_; }
    std::uint64_t base() const noexcept override {
        return reinterpret_cast<std::uint64_t>(memory_.data());
    }

    bool may_receive() const noexcept { return access_ != Access::send; }

    Domain& domain_;
    std::span<std::byte> memory_;
    Access access_;
    std::uint64_t key_;
};

struct SimTransport::Domain final : MemoryDomain {
    explicit Domain(SimTransport& transport) : transport_{transport} {}
    std::unique_ptr<Registration> register_memory(std::span<std::byte> memory,
                                                  Access access) override {
        if (transport_.fails(SimCall::register_memory)) {
            throw FabricError{{ENOMEM, std::system_category()},
                              "cannot register memory; raise the locked-memory limit (ulimit -l)"};
        }
        return std::make_unique<Region>(*this, memory, access);
    }
    // The memory of a key, if the peer may write there.
    std::byte* writable(const RemoteSlice& target, std::size_t size) {
        const auto found = regions_.find(target.key);
        if (found == regions_.end()) return nullptr;
        const Region& region = *found->second;
        if (region.access_ != Access::remote_write || target.address < region.base() ||
            size > region.memory_.size() ||
            target.address - region.base() > region.memory_.size() - size) {
            return nullptr;
        }
        return region.memory_.data() + (target.address - region.base());
    }

    SimTransport& transport_;
    std::map<std::uint64_t, Region*> regions_;
    std::uint64_t next_key_ = 1000;
};

inline SimTransport::Region::Region(Domain& domain, std::span<std::byte> memory, Access access)
    : domain_{domain}, memory_{memory}, access_{access}, key_{domain.next_key_++} {
    domain.regions_.emplace(key_, this);
    ++domain.transport_.network_.registrations_;
}
inline SimTransport::Region::~Region() {
    domain_.regions_.erase(key_);
    --domain_.transport_.network_.registrations_;
}

} // namespace netio::test
