// SPDX-License-Identifier: Apache-2.0
#include "apps/top/fetch.hpp"

#include "apps/common/descriptor.hpp"
#include "netio/base/time.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <stdexcept>
#include <system_error>
#include <utility>
#include <vector>

namespace apps::top {
namespace {

constexpr std::size_t address_limit = 8; // of a name

[[noreturn]] void fail(const std::string& why) {
    throw std::runtime_error{"no answer: " + why};
}

[[noreturn]] void fail_with_errno() {
    fail(std::generic_category().message(errno));
}

void wait_for(std::span<pollfd> any, netio::TimePoint until) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - netio::Clock::now());
    const auto time = static_cast<int>(std::max<std::int64_t>(0, left.count()));
    if (time == 0 || ::poll(any.data(), any.size(), time) == 0) fail("not in time");
}

// 0, or what keeps the socket from being connected.
int error_of(const Descriptor& socket) {
    int error = 0;
    socklen_t size = sizeof error;
    return ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size) == 0 ? error : errno;
}

// All at the same time, so that one that does not answer takes no time from the others. If none can
// be reached, the best one's error says why.
Descriptor connected_to(std::span<const SocketAddress> addresses, netio::TimePoint until) {
    // Of each address, in their order.
    std::vector<Descriptor> sockets;
    std::vector<pollfd> trying; // without a descriptor: it has failed, and poll() passes over it
    std::vector<int> errors;
    for (const SocketAddress& address :
         addresses.first(std::min(addresses.size(), address_limit))) {
        Descriptor socket{
            ::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
        const bool connected =
            socket.is_open() && ::connect(socket.get(), address.get(), address.size()) == 0;
        if (connected) return socket;
        const bool is_tried = socket.is_open() && errno == EINPROGRESS;
        errors.push_back(is_tried ? 0 : errno);
        trying.push_back({.fd = is_tried ? socket.get() : -1, .events = POLLOUT, .revents = 0});
        sockets.push_back(std::move(socket));
    }
    for (auto left = std::ranges::count(errors, 0); left > 0;) {
        wait_for(trying, until);
        for (std::size_t at = 0; at < sockets.size(); ++at) {
            if (trying[at].revents == 0) continue;
            errors[at] = error_of(sockets[at]);
            if (errors[at] == 0) return std::move(sockets[at]);
            trying[at] = {.fd = -1, .events = 0, .revents = 0};
            --left;
        }
    }
    fail(std::generic_category().message(errors.front()));
}

// Until the other side ends it.
void read_all(const Descriptor& socket, const FetchLimits& limits, Answer& answer) {
    std::vector<char> piece(65536);
    for (;;) {
        pollfd readable{.fd = socket.get(), .events = POLLIN, .revents = 0};
        wait_for({&readable, 1}, limits.until);
        const ssize_t got = ::recv(socket.get(), piece.data(), piece.size(), 0);
        if (got == 0) return;
        if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
        if (got < 0) fail_with_errno();
        const std::string_view news{piece.data(), static_cast<std::size_t>(got)};
        if (answer.text().size() + news.size() > limits.answer_bytes || !answer.append(news))
            fail("it is too long");
    }
}

} // namespace

void fetch_figures(std::span<const SocketAddress> addresses, const FetchLimits& limits,
                   const std::function<void(std::string_view text)>& show) {
    const Descriptor socket = connected_to(addresses, limits.until);
    // Of HTTP 1.0: so it answers in one piece, and ends the connection behind it.
    constexpr std::string_view request = "GET /metrics HTTP/1.0\r\n\r\n";
    if (::send(socket.get(), request.data(), request.size(), MSG_NOSIGNAL) !=
        static_cast<ssize_t>(request.size()))
        fail_with_errno();
    Answer answer{limits.room};
    read_all(socket, limits, answer);
    const std::string_view text = answer.text();
    const std::size_t head = text.find("\r\n\r\n");
    if (!text.starts_with("HTTP/1.") || head == std::string::npos) fail("it speaks no HTTP");
    const std::string status{text.substr(std::min<std::size_t>(head, 9), 3)};
    if (status != "200") {
        const bool is_number =
            std::ranges::all_of(status, [](char c) { return c >= '0' && c <= '9'; });
        throw std::runtime_error{"answers " + (is_number ? status : "nonsense")};
    }
    show(text.substr(head + 4));
}

} // namespace apps::top
