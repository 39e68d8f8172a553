// SPDX-License-Identifier: Apache-2.0
#pragma once

// The addresses that a host's name stands for, as the kernel's sockets take them.

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
    by_name, // asks name servers, which may take as long as they like
    numeric, // at once: what is no address in digits is not found
};
// One at least, the best first. Throws std::runtime_error: why there is none.
std::vector<SocketAddress> addresses_of(const netio::Address& address,
                                        Lookup lookup = Lookup::by_name);

} // namespace apps
