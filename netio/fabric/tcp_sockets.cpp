// SPDX-License-Identifier: Apache-2.0
#include "netio/fabric/tcp_sockets.hpp"

#include "netio/fabric/handles.hpp"
#include "netio/fabric/provider.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <optional>
#include <string_view>
#include <sys/ioctl.h>
#include <sys/socket.h>

namespace netio::fabric {
namespace {

using NameFunction = int (*)(int, sockaddr*, socklen_t*);

std::optional<Address> name_of(int fd, NameFunction function) {
    sockaddr_storage storage{};
    socklen_t size = sizeof storage;
    if (function(fd, reinterpret_cast<sockaddr*>(&storage), &size) != 0) return std::nullopt;
    if (storage.ss_family != AF_INET && storage.ss_family != AF_INET6) return std::nullopt;
    return to_address(&storage);
}

bool is_listening(int fd) {
    int listening = 0;
    socklen_t size = sizeof listening;
    return ::getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listening, &size) == 0 && listening != 0;
}

bool is_stream(int fd) {
    int type = 0;
    socklen_t size = sizeof type;
    return ::getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_STREAM;
}

void set_option(int fd, int level, int option, int value) {
    // Refusal by an exotic kernel costs precision only: the default timing stays.
    [[maybe_unused]] const int result = ::setsockopt(fd, level, option, &value, sizeof value);
}

} // namespace

TcpSockets::TcpSockets() : descriptors_{::opendir("/proc/self/fd")} {
    if (!descriptors_) {
        throw FabricError{{errno, std::system_category()},
                          "cannot list this process's descriptors (is /proc mounted?)"};
    }
}

void TcpSockets::for_each_socket(const std::function<bool(int fd)>& visit) {
    ::rewinddir(descriptors_.get());
    while (const dirent* entry = ::readdir(descriptors_.get())) {
        const std::string_view name{entry->d_name};
        int fd = -1;
        const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), fd);
        if (error != std::errc{} || !is_stream(fd)) continue;
        if (visit(fd)) return;
    }
}

int TcpSockets::find_listener(const Address& local) {
    int found = -1;
    for_each_socket([&](int fd) {
        if (is_listening(fd) && name_of(fd, ::getsockname) == local) found = fd;
        return found >= 0;
    });
    return found;
}

void TcpSockets::limit_receive_time(int fd, std::chrono::milliseconds limit) {
    const timeval time{static_cast<time_t>(limit.count() / 1000),
                       static_cast<suseconds_t>(limit.count() % 1000 * 1000)};
    if (::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time) != 0) {
        throw FabricError{{errno, std::system_category()},
                          "cannot set a receive time-out on the listening socket"};
    }
}

int TcpSockets::find_connection(::fid_ep& endpoint) {
    sockaddr_storage local{};
    sockaddr_storage peer{};
    std::size_t local_size = sizeof local;
    std::size_t peer_size = sizeof peer;
    if (::fi_getname(&endpoint.fid, &local, &local_size) != 0 ||
        ::fi_getpeer(&endpoint, &peer, &peer_size) != 0) {
        return -1;
    }
    const Address local_address = to_address(&local);
    const Address peer_address = to_address(&peer);
    int found = -1;
    for_each_socket([&](int fd) {
        if (name_of(fd, ::getpeername) == peer_address &&
            name_of(fd, ::getsockname) == local_address) {
            found = fd;
        }
        return found >= 0;
    });
    return found;
}

void TcpSockets::probe_when_idle(int fd, Duration interval) {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(interval).count();
    const int period = static_cast<int>(std::clamp<long>(seconds, 1, 3600));
    set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, period);
    set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, period);
    set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
}

Duration TcpSockets::silence(int fd) {
    tcp_info info{};
    socklen_t size = sizeof info;
    if (::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return Duration::max() / 2;
    // A peer that does not read closes its window. Then the kernel asks less and less often, up to
    // every two minutes, so the time since the last answer says nothing as long as every question
    // was answered: a stopped peer is not a dead one.
    int unsent = 0;
    const bool window_closed =
        info.tcpi_unacked == 0 && ::ioctl(fd, SIOCOUTQNSD, &unsent) == 0 && unsent > 0;
    if (window_closed && info.tcpi_probes < 2) return Duration::zero();
    return std::chrono::milliseconds{std::min(info.tcpi_last_ack_recv, info.tcpi_last_data_recv)};
}

void TcpSockets::for_each_peer(std::uint16_t local_port,
                               const std::function<void(const std::string&, int)>& visit) {
    for_each_socket([&](int fd) {
        const auto local = name_of(fd, ::getsockname);
        if (!local || local->port != local_port || is_listening(fd)) return false;
        if (const auto peer = name_of(fd, ::getpeername)) visit(to_string(*peer), fd);
        return false;
    });
}

void TcpSockets::cut_off(int fd) noexcept {
    // Not close(): the descriptor is the provider's, which closes it when it reads the end.
    ::shutdown(fd, SHUT_RDWR);
}

} // namespace netio::fabric
