// SPDX-License-Identifier: Apache-2.0
#include "netio/fabric/kernel_socket.hpp"

#include "netio/base/status.hpp"
#include "netio/fabric/addresses.hpp"
#include "netio/loop/process.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <poll.h>
#include <rdma/fi_cm.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <memory>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

namespace netio::fabric {
namespace {

// Descriptors that new peers may not use.
constexpr rlim_t descriptor_reserve = 32;

struct DirectoryCloser {
    void operator()(DIR* directory) const noexcept { ::closedir(directory); }
};
using Directory = std::unique_ptr<DIR, DirectoryCloser>;

// The directory of open descriptors. Kept open, because it is needed most when no descriptor is
// free; shared by all threads. Not used by a child process: it lists the descriptors of the parent,
// and shares its position with the parent.
struct OpenDescriptors {
    std::mutex mutex;
    Directory directory{::opendir("/proc/self/fd")};
};

} // namespace

int lowest_free_descriptor() noexcept {
    const int fd = ::eventfd(0, EFD_CLOEXEC);
    if (fd >= 0) ::close(fd);
    return fd;
}

bool descriptors_are_short() noexcept {
    const int lowest_free = lowest_free_descriptor();
    if (lowest_free < 0) return true;
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return false;
    return static_cast<rlim_t>(lowest_free) + descriptor_reserve > limit.rlim_cur;
}

void for_each_descriptor(const std::function<void(int fd)>& visit) {
    static PerProcess<OpenDescriptors> of_the_process;
    OpenDescriptors& open = *of_the_process;
    const std::lock_guard lock{open.mutex};
    if (!open.directory) {
        throw FabricError{{ENOENT, std::system_category()},
                          "cannot list this process's descriptors (is /proc mounted?)"};
    }
    ::rewinddir(open.directory.get());
    while (const dirent* entry = ::readdir(open.directory.get())) {
        const std::string_view name{entry->d_name};
        int fd = -1;
        const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), fd);
        if (error == std::errc{}) visit(fd);
    }
}

CloseOnExec::CloseOnExec() {
    for_each_descriptor([this](int fd) { before_.push_back(fd); });
    std::ranges::sort(before_);
}

CloseOnExec::~CloseOnExec() {
    for_each_descriptor([this](int fd) {
        if (!std::ranges::binary_search(before_, fd)) set(fd);
    });
}

FewCloseOnExec::FewCloseOnExec() noexcept {
    next_.fill(-1);
    next_[0] = ::eventfd(0, EFD_CLOEXEC);
    for (std::size_t i = 1; i < next_.size() && next_[i - 1] >= 0; ++i)
        next_[i] = ::fcntl(next_[0], F_DUPFD_CLOEXEC, 0);
    for (const int fd : next_)
        if (fd >= 0) ::close(fd);
}

FewCloseOnExec::~FewCloseOnExec() {
    for (const int fd : next_)
        if (fd >= 0) CloseOnExec::set(fd);
}

void CloseOnExec::set(int fd) noexcept {
    const int flags = ::fcntl(fd, F_GETFD);
    if (flags >= 0) ::fcntl(fd, F_SETFD, flags | FD_CLOEXEC);
}

namespace {

// The sockets of the listeners and connections of this library, in all threads.
class SocketTable {
  public:
    void enter(int fd) {
        const std::lock_guard lock{mutex_};
        const auto place = static_cast<std::size_t>(fd);
        if (place >= known_.size()) known_.resize(place + 1);
        known_[place] = true;
    }
    void leave(int fd) {
        const std::lock_guard lock{mutex_};
        known_[static_cast<std::size_t>(fd)] = false;
    }
    bool knows(int fd) {
        const std::lock_guard lock{mutex_};
        const auto place = static_cast<std::size_t>(fd);
        return place < known_.size() && known_[place];
    }

  private:
    std::mutex mutex_;
    std::vector<bool> known_;
};

SocketTable& table() {
    static PerProcess<SocketTable> the_table;
    return *the_table;
}

using NameFunction = int (*)(int, sockaddr*, socklen_t*);

std::optional<access::AuthAddress> name_of(int fd, NameFunction function) {
    sockaddr_storage storage{};
    socklen_t size = sizeof storage;
    if (function(fd, reinterpret_cast<sockaddr*>(&storage), &size) != 0) return std::nullopt;
    if (storage.ss_family != AF_INET && storage.ss_family != AF_INET6) return std::nullopt;
    return to_auth_address(&storage);
}

std::optional<int> option_of(int fd, int level, int option) noexcept {
    int value = 0;
    socklen_t size = sizeof value;
    if (::getsockopt(fd, level, option, &value, &size) != 0) return std::nullopt;
    return value;
}

// If an unusual kernel refuses the option, only precision is lost.
bool set_option(int fd, int level, int option, int value) noexcept {
    return ::setsockopt(fd, level, option, &value, sizeof value) == 0;
}

bool connects(int fd, const access::AuthAddress& local, const access::AuthAddress& peer) {
    return fd >= 0 && name_of(fd, ::getpeername) == peer && name_of(fd, ::getsockname) == local;
}

} // namespace

// --- one socket -----------------------------------------------------------------------------

KernelSocket::KernelSocket(int fd) : fd_{fd} {
    if (fd_ < 0) return;
    table().enter(fd_);
    CloseOnExec::set(fd_);
}

KernelSocket::~KernelSocket() {
    if (fd_ >= 0) table().leave(fd_);
}

KernelSocket::KernelSocket(KernelSocket&& other) noexcept : fd_{std::exchange(other.fd_, -1)} {}

KernelSocket& KernelSocket::operator=(KernelSocket&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
}

access::AuthAddress KernelSocket::local() const noexcept {
    sockaddr_storage storage{};
    socklen_t size = sizeof storage;
    if (::getsockname(fd_, reinterpret_cast<sockaddr*>(&storage), &size) != 0) return {};
    return to_auth_address(&storage);
}

bool KernelSocket::report_from(std::size_t byte_count) const noexcept {
    return set_option(fd_, SOL_SOCKET, SO_RCVLOWAT, static_cast<int>(byte_count));
}

// If the peer's window is closed, bytes remain unsent; otherwise acknowledged bytes leave the
// queue. One of the two values shows whether bytes were sent.
bool KernelSocket::has_sent() const noexcept {
    int queued = 0;
    if (::ioctl(fd_, SIOCOUTQ, &queued) == 0 && queued > 0) return true;
    tcp_info info{};
    socklen_t size = sizeof info;
    constexpr auto needed = offsetof(tcp_info, tcpi_bytes_sent) + sizeof(std::uint64_t);
    return ::getsockopt(fd_, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 && size >= needed &&
           info.tcpi_bytes_sent > 0;
}

long KernelSocket::peek(std::span<std::byte> into) const noexcept {
    const auto size = ::recv(fd_, into.data(), into.size(), MSG_PEEK | MSG_DONTWAIT);
    return size < 0 ? -errno : size;
}

bool KernelSocket::is_at_end() const noexcept {
    ::pollfd look{.fd = fd_, .events = POLLRDHUP, .revents = 0};
    return ::poll(&look, 1, 0) > 0 && (look.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
}

void KernelSocket::probe_when_idle(Duration interval) const noexcept {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(interval).count();
    const int period = static_cast<int>(std::clamp<long>(seconds, 1, 3600));
    set_option(fd_, IPPROTO_TCP, TCP_KEEPIDLE, period);
    set_option(fd_, IPPROTO_TCP, TCP_KEEPINTVL, period);
    set_option(fd_, SOL_SOCKET, SO_KEEPALIVE, 1);
}

std::optional<std::uint64_t> KernelSocket::read_bytes() const noexcept {
    tcp_info info{};
    socklen_t size = sizeof info;
    constexpr auto needed = offsetof(tcp_info, tcpi_bytes_received) + sizeof(std::uint64_t);
    if (::getsockopt(fd_, IPPROTO_TCP, TCP_INFO, &info, &size) != 0 || size < needed)
        return std::nullopt;
    int waiting = 0; // read later, so it may be too large
    if (::ioctl(fd_, SIOCINQ, &waiting) != 0) return std::nullopt;
    const auto unread = static_cast<std::uint64_t>(waiting);
    return info.tcpi_bytes_received - std::min<std::uint64_t>(unread, info.tcpi_bytes_received);
}

Duration KernelSocket::silence() const noexcept {
    tcp_info info{};
    socklen_t size = sizeof info;
    if (::getsockopt(fd_, IPPROTO_TCP, TCP_INFO, &info, &size) != 0) return Duration::max() / 2;
    // A peer that does not read closes its window. The kernel then sends probes at growing
    // intervals, up to two minutes. As long as every probe was answered, the time since the last
    // answer says nothing: a stopped peer is not dead.
    int unsent = 0;
    const bool window_closed =
        info.tcpi_unacked == 0 && ::ioctl(fd_, SIOCOUTQNSD, &unsent) == 0 && unsent > 0;
    if (window_closed && info.tcpi_probes < 2) return Duration::zero();
    return std::chrono::milliseconds{std::min(info.tcpi_last_ack_recv, info.tcpi_last_data_recv)};
}

// --- finding one ----------------------------------------------------------------------------

bool may_be_new_socket(int fd) {
    return fd >= 0 && !table().knows(fd) && option_of(fd, SOL_SOCKET, SO_TYPE) == SOCK_STREAM;
}

KernelSocket find_connection(const access::AuthAddress& local, const access::AuthAddress& peer,
                             int guess) {
    if (connects(guess, local, peer)) return KernelSocket{guess};
    int found = -1;
    for_each_descriptor([&](int fd) {
        if (found < 0 && may_be_new_socket(fd) && connects(fd, local, peer)) found = fd;
    });
    return KernelSocket{found};
}

// It has no peer address before it is connected.
KernelSocket find_attempt(::fid_ep& endpoint, const void* remote, int guess) {
    sockaddr_storage name{};
    std::size_t size = sizeof name;
    if (::fi_getname(&endpoint.fid, &name, &size) != 0) return {};
    const access::AuthAddress local = to_auth_address(&name);
    const access::AuthAddress peer = to_auth_address(remote);
    const auto is_it = [&](int fd) {
        return may_be_new_socket(fd) && name_of(fd, ::getsockname) == local &&
               name_of(fd, ::getpeername).value_or(peer) == peer;
    };
    if (is_it(guess)) return KernelSocket{guess};
    int found = -1;
    for_each_descriptor([&](int fd) {
        if (found < 0 && is_it(fd)) found = fd;
    });
    return KernelSocket{found};
}

KernelSocket find_connection(::fid_ep& endpoint, int guess) {
    sockaddr_storage local{};
    sockaddr_storage peer{};
    std::size_t local_size = sizeof local;
    std::size_t peer_size = sizeof peer;
    if (::fi_getname(&endpoint.fid, &local, &local_size) != 0 ||
        ::fi_getpeer(&endpoint, &peer, &peer_size) != 0) {
        return {};
    }
    return find_connection(to_auth_address(&local), to_auth_address(&peer), guess);
}

// --- a listening one ------------------------------------------------------------------------

constexpr int whole_request = tcp_message_header_bytes + tcp_message_data_bytes;

ListeningSocket::ListeningSocket(const access::AuthAddress& local,
                                 std::chrono::milliseconds receive_limit)
    : local_{local}, mark_{next_mark()} {
    int found = -1;
    for_each_descriptor([&](int fd) {
        if (found < 0 && may_be_new_socket(fd) &&
            option_of(fd, SOL_SOCKET, SO_ACCEPTCONN).value_or(0) != 0 &&
            name_of(fd, ::getsockname) == local) {
            found = fd;
        }
    });
    if (found < 0) {
        throw FabricError{{ENOENT, std::system_category()},
                          "the provider's listening socket cannot be found"};
    }
    socket_ = KernelSocket{found};
    const timeval time{static_cast<time_t>(receive_limit.count() / 1000),
                       static_cast<suseconds_t>(receive_limit.count() % 1000 * 1000)};
    // An urgent byte would be counted as available, but not be read with the others.
    if (!set_option(found, SOL_SOCKET, SO_RCVLOWAT, whole_request) ||
        !set_option(found, SOL_SOCKET, SO_OOBINLINE, 1) ||
        ::setsockopt(found, SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time) != 0 ||
        !set_option(found, IPPROTO_TCP, TCP_KEEPIDLE, mark_.idle) ||
        !set_option(found, IPPROTO_TCP, TCP_KEEPINTVL, mark_.interval)) {
        throw FabricError{{errno, std::system_category()}, "cannot set up the listening socket"};
    }
}

ListeningSocket::Mark ListeningSocket::next_mark() noexcept {
    // Seconds up to 32767 (tcp(7)); no other program sets keepalive to nine hours.
    constexpr unsigned values = 4096;
    static std::atomic<unsigned> count{0};
    const unsigned number = count++;
    return {.idle = 32767 - static_cast<int>(number % values),
            .interval = 32767 - static_cast<int>(number / values % values)};
}

std::optional<ListeningSocket::Mark> ListeningSocket::mark_of(int fd) noexcept {
    const auto idle = option_of(fd, IPPROTO_TCP, TCP_KEEPIDLE);
    const auto interval = option_of(fd, IPPROTO_TCP, TCP_KEEPINTVL);
    if (!idle || !interval) return std::nullopt;
    return Mark{.idle = *idle, .interval = *interval};
}

bool ListeningSocket::has_accepted(int fd) const {
    if (!may_be_new_socket(fd) || mark_of(fd) != mark_) return false;
    const auto local = name_of(fd, ::getsockname);
    return local && local->port == local_.port &&
           (access::is_any(local_.host) || local->host == local_.host);
}

std::optional<access::AuthAddress> ListeningSocket::peer_of(int fd) {
    return name_of(fd, ::getpeername);
}

std::string ListeningSocket::name_of_peer(int fd) {
    sockaddr_storage storage{};
    socklen_t size = sizeof storage;
    if (::getpeername(fd, reinterpret_cast<sockaddr*>(&storage), &size) != 0) return "unknown peer";
    return to_string(to_address(&storage));
}

bool ListeningSocket::has_requested(int fd) {
    tcp_info info{};
    socklen_t size = sizeof info;
    constexpr auto needed = offsetof(tcp_info, tcpi_bytes_received) + sizeof(std::uint64_t);
    return ::getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &size) == 0 && size >= needed &&
           info.tcpi_bytes_received >= std::uint64_t{whole_request};
}

KernelSocket ListeningSocket::find_accepted(const access::AuthAddress& peer, int known) const {
    const auto is_it = [&](int fd) {
        return has_accepted(fd) && name_of(fd, ::getpeername) == peer;
    };
    if (known >= 0) return KernelSocket{is_it(known) ? known : -1};
    int found = -1;
    for_each_descriptor([&](int fd) {
        if (found < 0 && is_it(fd)) found = fd;
    });
    return KernelSocket{found};
}

void ListeningSocket::for_each_pending(
    const std::function<void(const access::AuthAddress& peer, int fd)>& visit) const {
    for_each_descriptor([&](int fd) {
        if (!has_accepted(fd)) return;
        if (const auto peer = name_of(fd, ::getpeername)) visit(*peer, fd);
    });
}

std::size_t ListeningSocket::cut_off_pending() const {
    std::size_t open = 0;
    for_each_descriptor([&](int fd) {
        if (!has_accepted(fd)) return;
        cut_off(fd); // a socket that was shut down before has no peer address any more
        ++open;
    });
    return open;
}

void cut_off(int fd) noexcept {
    ::shutdown(fd, SHUT_RDWR);
}

// --- the answer of a peer --------------------------------------------------------------------

namespace {

// The header of a connection message: version, type, and the size of its data, most significant
// byte first. Tested with libfabric 1.17; the source of 2.5 has the same layout.
constexpr auto protocol_version = std::byte{3};
constexpr auto accept_type = std::byte{1};

std::size_t data_bytes(std::span<const std::byte> header) noexcept {
    return std::to_integer<std::size_t>(header[2]) << 8U | std::to_integer<std::size_t>(header[3]);
}

} // namespace

AnswerCheck::AnswerCheck(const KernelSocket& socket) noexcept : socket_{socket} {
    static_cast<void>(socket_.report_from(tcp_message_header_bytes));
}

AnswerCheck::Next AnswerCheck::look() noexcept {
    if (state_ == State::open || state_ == State::passed) return Next::read;
    if (state_ == State::judging) return Next::judge;
    // After the request was sent, the next read of the provider takes the answer.
    if (state_ == State::asking && !socket_.has_sent()) return Next::read;
    state_ = State::waiting;
    return look_at_answer();
}

AnswerCheck::Next AnswerCheck::look_at_answer() noexcept {
    const long count = socket_.peek(bytes_);
    if (count == -EAGAIN || count == -EINTR) return Next::wait;
    const auto there = static_cast<std::size_t>(std::max(count, 0L));
    std::size_t needed = tcp_message_header_bytes;
    if (there >= needed) needed += std::min(data_bytes(bytes_), tcp_message_data_bytes);
    if (there < needed) {
        const bool is_over = count <= 0 || socket_.is_at_end();
        if (!is_over) static_cast<void>(socket_.report_from(needed));
        error_ = static_cast<int>(count < 0 ? -count : 0);
        return is_over ? Next::ended : Next::wait;
    }
    // The provider turns any other message into an error or a rejection, and reads no further.
    if (bytes_[0] != protocol_version || bytes_[1] != accept_type) {
        let_read(State::passed);
        return Next::read;
    }
    size_ = needed;
    state_ = State::judging;
    return Next::judge;
}

std::span<const std::byte> AnswerCheck::answer() const noexcept {
    return std::span{bytes_}.first(size_).subspan(tcp_message_header_bytes);
}

void AnswerCheck::let_read(State state) noexcept {
    state_ = state;
    static_cast<void>(socket_.report_all());
}

} // namespace netio::fabric
