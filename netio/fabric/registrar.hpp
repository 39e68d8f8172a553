// SPDX-License-Identifier: Apache-2.0
#pragma once

// How one device registers memory. The registrations must be gone before it is (checked).

#include "netio/fabric/handles.hpp"
#include "netio/memory/buffer.hpp"

#include <cstddef>
#include <memory>
#include <span>
#include <string>

namespace netio::fabric {

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

} // namespace netio::fabric
