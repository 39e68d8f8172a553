// SPDX-License-Identifier: Apache-2.0
#include "apps/metrics/http_door.hpp"

#include <fmt/format.h>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <stdexcept>
#include <system_error>
#include <utility>

namespace apps {
namespace {

std::string_view reason(unsigned status) {
    switch (status) {
    case 200:
        return "OK";
    case 400:
        return "Bad Request";
    case 404:
        return "Not Found";
    case 405:
        return "Method Not Allowed";
    case 431:
        return "Request Header Fields Too Large";
    default:
        return "Service Unavailable";
    }
}

constexpr std::string_view method = "GET ";

// Returns PATH of "GET PATH HTTP/1.x"; empty if the line is not such a request.
std::string_view path_of(std::string_view line) {
    line.remove_prefix(method.size());
    const std::size_t end = line.find(' ');
    if (end == std::string_view::npos || !line.substr(end).starts_with(" HTTP/1.")) return {};
    const std::string_view target = line.substr(0, end);
    return target.starts_with('/') ? target.substr(0, target.find('?')) : std::string_view{};
}

} // namespace

void HttpExchange::take(std::string_view bytes) {
    if (answered_ || !path_.empty()) return;
    request_ += bytes.substr(0, request_limit_bytes - request_.size());
    const std::string_view request = request_;
    if (!method.starts_with(request.substr(0, method.size()))) return refuse(405);
    const std::size_t end = request.find("\r\n\r\n");
    if (end == std::string_view::npos) {
        if (request.size() == request_limit_bytes) refuse(431);
        return;
    }
    path_ = path_of(request.substr(0, request.find("\r\n")));
    if (path_.empty()) return refuse(400);
    request_ = {};
}

void HttpExchange::answer(const HttpAnswer& answer) {
    text_ = answer.text;
    head_ = fmt::format("HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n"
                        "Connection: close\r\n\r\n",
                        answer.status, reason(answer.status), answer.type, text_->size());
    path_.clear();
    answered_ = true;
}

std::string_view HttpExchange::rest() const noexcept {
    if (!answered_) return {};
    if (sent_ < head_.size()) return std::string_view{head_}.substr(sent_);
    return std::string_view{*text_}.substr(std::min(sent_ - head_.size(), text_->size()));
}

void HttpExchange::refuse(unsigned status) {
    request_ = {};
    answer({.status = status,
            .text = std::make_shared<const std::string>(std::string{reason(status)} + "\n")});
}

namespace {

constexpr int queue_length = 64;                   // in the kernel
constexpr std::chrono::milliseconds rest_time{50}; // pause when no descriptor is available

[[noreturn]] void fail(int error) {
    throw std::runtime_error{std::generic_category().message(error)};
}

std::uint16_t port_of(int socket) {
    sockaddr_storage bound{};
    socklen_t size = sizeof bound;
    if (::getsockname(socket, reinterpret_cast<sockaddr*>(&bound), &size) != 0) return 0;
    return SocketAddress{*reinterpret_cast<const sockaddr*>(&bound), size}.port();
}

} // namespace

HttpDoor::HttpDoor(const Options& options)
    : options_{options}, end_{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)} {
    if (!end_.is_open()) fail(errno);
    listen();
}

// Listens at the first address that this machine has. If the port is in use there, no other address
// is tried, because requests to the host's name would reach the other program.
void HttpDoor::listen() {
    int error = EADDRNOTAVAIL;
    for (const SocketAddress& address : options_.addresses) {
        error = listen_at(address);
        if (error == 0) return;
        if (error == EADDRINUSE) break;
    }
    fail(error);
}

int HttpDoor::listen_at(const SocketAddress& address) {
    listening_ =
        Descriptor{::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
    const int yes = 1;
    if (!listening_.is_open() ||
        // Not SO_REUSEPORT: another program would receive half of the requests.
        ::setsockopt(listening_.get(), SOL_SOCKET, SO_REUSEADDR, &yes, sizeof yes) != 0 ||
        ::bind(listening_.get(), address.get(), address.size()) != 0 ||
        ::listen(listening_.get(), queue_length) != 0)
        return errno;
    port_ = port_of(listening_.get());
    return 0;
}

void HttpDoor::stop() noexcept {
    const std::uint64_t one = 1;
    [[maybe_unused]] const auto written = ::write(end_.get(), &one, sizeof one);
}

void HttpDoor::run(const Respond& respond_to) {
    std::vector<pollfd> watched;
    std::vector<short> events;
    for (;;) {
        watched.assign({{.fd = end_.get(), .events = POLLIN, .revents = 0},
                        {.fd = listening_.get(), .events = POLLIN, .revents = 0}});
        for (const Visitor& each : visitors_) {
            const bool answered = each.exchange.is_answered();
            watched.push_back({.fd = each.socket.get(),
                               .events = static_cast<short>(answered ? POLLOUT : POLLIN),
                               .revents = 0});
        }
        ::poll(watched.data(), watched.size(), time_left());
        if (watched[0].revents != 0) return;
        events.clear();
        for (const pollfd& each : std::span{watched}.subspan(2))
            events.push_back(each.revents);
        look(watched[1].revents != 0, events);
        respond(respond_to);
    }
}

int HttpDoor::time_left() const {
    if (visitors_.empty()) return -1;
    const auto first = std::ranges::min_element(visitors_, {}, &Visitor::until);
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(first->until - netio::Clock::now());
    return static_cast<int>(std::max<std::int64_t>(0, left.count()));
}

void HttpDoor::look(bool somebody_is_new, std::span<const short> events) {
    const netio::TimePoint now = netio::Clock::now();
    for (std::size_t at = 0; at < events.size(); ++at) {
        Visitor& visitor = visitors_[at];
        if (events[at] != 0) visitor.exchange.is_answered() ? send_to(visitor) : take(visitor);
        visitor.is_gone = visitor.is_gone || now >= visitor.until;
    }
    std::erase_if(visitors_, [](const Visitor& each) { return each.is_gone; });
    if (somebody_is_new) let_in();
}

void HttpDoor::let_in() {
    const int socket = ::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (socket < 0) {
        // A client that stays in the queue would be reported again immediately.
        const bool lacking = errno != EAGAIN && errno != EINTR && errno != ECONNABORTED;
        if (lacking) ::poll(nullptr, 0, static_cast<int>(rest_time.count()));
        return;
    }
    if (visitors_.size() >= options_.place_limit) visitors_.pop_front();
    visitors_.push_back({.socket = Descriptor{socket},
                         .until = netio::Clock::now() + options_.asking_limit,
                         .exchange = {}});
}

void HttpDoor::take(Visitor& visitor) const {
    std::array<char, HttpExchange::request_limit_bytes> bytes{};
    const ssize_t got = ::recv(visitor.socket.get(), bytes.data(), bytes.size(), 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) {
        visitor.is_gone = true;
        return;
    }
    visitor.exchange.take({bytes.data(), static_cast<std::size_t>(got)});
}

void HttpDoor::respond(const Respond& respond) {
    std::vector<std::string> paths;
    std::vector<Visitor*> asking;
    for (Visitor& each : visitors_) {
        if (each.exchange.path().empty()) continue;
        paths.push_back(each.exchange.path());
        asking.push_back(&each);
    }
    if (paths.empty()) return;
    const std::vector<HttpAnswer> answers = respond(paths);
    for (std::size_t at = 0; at < asking.size(); ++at) {
        asking[at]->exchange.answer(answers[at]);
        asking[at]->until = netio::Clock::now() + options_.taking_limit;
    }
}

void HttpDoor::send_to(Visitor& visitor) const {
    const std::string_view rest = visitor.exchange.rest();
    const ssize_t sent = ::send(visitor.socket.get(), rest.data(), rest.size(), MSG_NOSIGNAL);
    if (sent > 0) visitor.exchange.sent(static_cast<std::size_t>(sent));
    const bool failed = sent < 0 && errno != EAGAIN && errno != EINTR;
    visitor.is_gone = failed || visitor.exchange.rest().empty();
}

} // namespace apps
