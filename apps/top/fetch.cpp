// SPDX-License-Identifier: Apache-2.0
#include "apps/top/fetch.hpp"

#include "apps/common/descriptor.hpp"
#include "netio/base/time.hpp"

#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <system_error>
#include <vector>

namespace apps::top {
namespace {

[[noreturn]] void fail(const std::string& why) {
    throw std::runtime_error{"no answer: " + why};
}

[[noreturn]] void fail_with_errno() {
    fail(std::generic_category().message(errno));
}

void wait_for(const Descriptor& socket, short what, netio::TimePoint until) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - netio::Clock::now());
    pollfd watched{.fd = socket.get(), .events = what, .revents = 0};
    const auto time = static_cast<int>(std::max<std::int64_t>(0, left.count()));
    if (time == 0 || ::poll(&watched, 1, time) == 0) fail("not in time");
}

Descriptor connected_to(const netio::Address& address, netio::TimePoint until) {
    addrinfo hints{};
    hints.ai_socktype = SOCK_STREAM;
    addrinfo* found = nullptr;
    const std::string port = std::to_string(address.port);
    const int failure = ::getaddrinfo(address.host.c_str(), port.c_str(), &hints, &found);
    if (failure != 0) fail(::gai_strerror(failure));
    const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> list{found, ::freeaddrinfo};
    Descriptor socket{::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
    if (!socket.is_open()) fail_with_errno();
    if (::connect(socket.get(), found->ai_addr, found->ai_addrlen) == 0) return socket;
    if (errno != EINPROGRESS) fail_with_errno();
    wait_for(socket, POLLOUT, until);
    int error = 0;
    socklen_t size = sizeof error;
    if (::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &size) != 0) fail_with_errno();
    if (error != 0) fail(std::generic_category().message(error));
    return socket;
}

// Until the other side ends it.
void read_all(const Descriptor& socket, const FetchLimits& limits, Answer& answer) {
    std::vector<char> piece(65536);
    for (;;) {
        wait_for(socket, POLLIN, limits.until);
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

void fetch_figures(const netio::Address& address, const FetchLimits& limits,
                   const std::function<void(std::string_view text)>& show) {
    const Descriptor socket = connected_to(address, limits.until);
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
