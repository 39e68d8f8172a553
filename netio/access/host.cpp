// SPDX-License-Identifier: Apache-2.0
#include "netio/access/host.hpp"

#include <arpa/inet.h>

namespace netio::access::inline v0_3 {

std::optional<Host> parse_host(const std::string& text) {
    std::array<std::byte, 4> ipv4{};
    if (::inet_pton(AF_INET, text.c_str(), ipv4.data()) == 1) return host_of_ipv4(ipv4);
    const std::size_t percent = text.find('%');
    if (percent != std::string::npos && percent + 1 == text.size()) return std::nullopt;
    Host ipv6{};
    if (::inet_pton(AF_INET6, text.substr(0, percent).c_str(), ipv6.data()) != 1)
        return std::nullopt;
    return ipv6;
}

std::string refuse_listening(const Host& host, const std::string& shown, bool has_keys, bool open,
                             const std::string& option) {
    if (has_keys || open || is_loopback(host)) return {};
    return shown +
           " can be reached from other machines, and any peer there could connect; "
           "name a key file without the line `0 anyone`, listen at 127.0.0.1, or set " +
           option + " if this is intended";
}

} // namespace netio::access::inline v0_3
