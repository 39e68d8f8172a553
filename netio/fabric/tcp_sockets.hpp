// SPDX-License-Identifier: Apache-2.0
#pragma once

// What libfabric's tcp provider does not offer, done on its kernel sockets, which are found among
// the descriptors of this process by their addresses:
//   - a receive time-out on a listening socket. Accepted sockets inherit it, and it bounds the
//     blocking read by which the provider takes the second half of a handshake: without it a
//     stranger who sends the first half freezes the event loop (measured, libfabric 1.17 and 2.5).
//   - cutting off strangers that connected and never finished the handshake; the provider keeps
//     them for ever, until descriptors run out.
//   - the kernel's acknowledgements as signs of life (tcp(7), TCP_INFO and keepalive).
// Newer providers hand out the descriptor (FI_GET_FD); the version that is supported here does not.

#include "netio/base/status.hpp"
#include "netio/loop/event_loop.hpp"

#include <chrono>
#include <dirent.h>
#include <functional>
#include <memory>
#include <rdma/fi_endpoint.h>
#include <set>
#include <string>

namespace netio::fabric {

class TcpSockets {
  public:
    TcpSockets();

    // The listening socket bound to this address, or -1.
    int find_listener(const Address& local);
    static void limit_receive_time(int fd, std::chrono::milliseconds limit);

    // The socket of a connected endpoint, or -1.
    int find_connection(::fid_ep& endpoint);
    // Lets the kernel ask an idle peer's kernel about once an interval whether it is there.
    static void probe_when_idle(int fd, Duration interval);
    // How long ago the peer's kernel last acknowledged or sent anything.
    static Duration silence(int fd);

    // The peers connected to a local port, as "HOST:PORT", each with its descriptor.
    void for_each_peer(std::uint16_t local_port,
                       const std::function<void(const std::string& peer, int fd)>& visit);
    static void cut_off(int fd) noexcept;

  private:
    struct DirectoryCloser {
        void operator()(DIR* directory) const noexcept { ::closedir(directory); }
    };
    void for_each_socket(const std::function<bool(int fd)>& visit);

    // Held open, since it is needed most when no descriptor is free.
    std::unique_ptr<DIR, DirectoryCloser> descriptors_;
};

} // namespace netio::fabric
