// SPDX-License-Identifier: Apache-2.0
#include "netio/base/status.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>

namespace netio::inline v0_3 {

std::string_view to_string(Status status) noexcept {
    switch (status) {
    case Status::ok:
        return "ok";
    case Status::no_subscribers:
        return "no subscribers";
    case Status::again:
        return "again";
    case Status::partial:
        return "partial";
    case Status::too_many_segments:
        return "too many segments";
    case Status::too_large:
        return "too large";
    case Status::closed:
        return "closed";
    case Status::stale_ticket:
        return "stale ticket";
    case Status::not_owned:
        return "not owned";
    }
    return "unknown status";
}

std::string_view to_string(CloseReason reason) noexcept {
    switch (reason) {
    case CloseReason::local:
        return "ended here";
    case CloseReason::orderly:
        return "closed in order";
    case CloseReason::unconfirmed:
        return "closed, and not confirmed";
    case CloseReason::lost:
        return "connection lost";
    case CloseReason::refused:
        return "connection refused";
    case CloseReason::unreachable:
        return "unreachable";
    case CloseReason::rejected:
        return "rejected by the listener";
    case CloseReason::connect_timeout:
        return "connect time-out";
    case CloseReason::handshake_timeout:
        return "handshake time-out";
    case CloseReason::too_slow:
        return "peer too slow";
    case CloseReason::silent:
        return "peer silent";
    case CloseReason::protocol_error:
        return "protocol error";
    case CloseReason::not_admitted:
        return "not admitted";
    case CloseReason::failed:
        return "failed";
    }
    return "unknown reason";
}

std::string to_string(const Closed& closed) {
    return closed.detail.empty() ? std::string{to_string(closed.reason)} : closed.detail;
}

std::string explain(const Closed& closed) {
    const std::string reason{to_string(closed.reason)};
    if (closed.detail.empty()) return reason;
    const auto same_letter = [](unsigned char one, unsigned char other) {
        return std::tolower(one) == std::tolower(other);
    };
    const bool has_reason = !std::ranges::search(closed.detail, reason, same_letter).empty();
    return has_reason ? closed.detail : reason + ": " + closed.detail;
}

Address parse_address(std::string_view text) {
    const auto fail = [&](std::string_view why) -> std::invalid_argument {
        return std::invalid_argument{"'" + std::string{text} + "' is not an address: " +
                                     std::string{why} + "; expected HOST:PORT or [IPV6]:PORT"};
    };
    if (text.find("://") != std::string_view::npos) {
        throw fail("there is no scheme here, such as tcp://");
    }
    const auto colon = text.rfind(':');
    if (colon == std::string_view::npos) throw fail("the port is missing");
    std::string_view host = text.substr(0, colon);
    const std::string_view port = text.substr(colon + 1);
    if (host.size() >= 2 && host.front() == '[' && host.back() == ']') {
        host = host.substr(1, host.size() - 2);
    } else if (host.find(':') != std::string_view::npos) {
        throw fail("an IPv6 address needs brackets");
    }
    if (host.empty()) throw fail("the host is missing");
    if (host == "*") throw fail("any address is 0.0.0.0:PORT");
    unsigned number = 0;
    const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), number);
    if (error != std::errc{} || end != port.data() + port.size() || number > 65535) {
        throw fail("the port must be a number from 0 to 65535");
    }
    return {std::string{host}, static_cast<std::uint16_t>(number)};
}

std::string to_string(const Address& address) {
    const bool ipv6 = address.host.find(':') != std::string::npos;
    return (ipv6 ? "[" + address.host + "]" : address.host) + ":" + std::to_string(address.port);
}

} // namespace netio::inline v0_3
