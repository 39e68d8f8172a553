// SPDX-License-Identifier: Apache-2.0
#pragma once

// From where an address that is listened at can be reached, and whether that was meant.

#include "netio/access/host.hpp"

#include <algorithm>
#include <string>

namespace netio::access::inline v0_2 {

// Only from this machine: 127.0.0.0/8, in either notation, and ::1.
constexpr bool is_loopback(const Host& host) noexcept {
    Host loopback{};
    loopback[15] = std::byte{1};
    const Host ipv4 = host_of_ipv4(std::array<std::byte, 4>{});
    const bool is_ipv4 = std::equal(host.begin(), host.begin() + 12, ipv4.begin());
    return host == loopback || (is_ipv4 && host[12] == std::byte{127});
}

// What keeps a server from listening there: "problem; remedy". Empty: nothing. `shown` is the
// address as its user wrote it, `option` what says that an open door is meant.
inline std::string refuse_listening(const Host& host, const std::string& shown, bool has_keys,
                                    bool open, const std::string& option) {
    if (has_keys || open || is_loopback(host)) return {};
    return shown +
           " can be reached from other machines, and whoever reaches it would be let in; "
           "name a key file that has no line `0 anyone`, listen at 127.0.0.1, or say " +
           option + " if that is meant";
}

} // namespace netio::access::inline v0_2
