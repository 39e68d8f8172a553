// SPDX-License-Identifier: Apache-2.0
#pragma once

// Resolves the name of a host to addresses for the kernel's sockets.

#include "netio/base/status.hpp"

#include <netinet/in.h>
#include <sys/socket.h>

#include <cstdint>
#include <string>
#include <vector>

namespace apps {

class SocketAddress {
  public:
    SocketAddress(const sockaddr& address, socklen_t size) noexcept;

    const sockaddr* get() const noexcept { return reinterpret_cast<const sockaddr*>(&storage_); }
    socklen_t size() const noexcept { return size_; }
    int family() const noexcept { return storage_.ss_family; }
    std::uint16_t port() const noexcept;
    void set_port(std::uint16_t port) noexcept;

  private:
    sockaddr_storage storage_{};
    socklen_t size_;
};

enum class Lookup : std::uint8_t {
    by_name, // asks name servers, which may take long
    numeric, // immediate; finds only numeric addresses
};
// Returns at least one address, the best first. Throws std::runtime_error with the reason if there
// is none.
std::vector<SocketAddress> addresses_of(const netio::Address& address,
                                        Lookup lookup = Lookup::by_name);

} // namespace apps
