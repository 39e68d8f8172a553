// SPDX-License-Identifier: Apache-2.0
#include "netio/fabric/name_addresses.hpp"

#include "netio/base/never_destroyed.hpp"

#include <array>
#include <cerrno>
#include <system_error>

namespace netio::fabric {
namespace {

const std::error_category& resolver_category() {
    struct Category final : std::error_category {
        const char* name() const noexcept override { return "resolver"; }
        std::string message(int code) const override { return ::gai_strerror(code); }
    };
    static NeverDestroyed<Category> category;
    return *category;
}

} // namespace

AddressList resolve(const Address& address, bool passive) {
    addrinfo hints{};
    hints.ai_family = AF_UNSPEC;
    hints.ai_socktype = SOCK_STREAM;
    hints.ai_flags = passive ? AI_PASSIVE : 0;
    addrinfo* found = nullptr;
    const std::string port = std::to_string(address.port);
    const int result = ::getaddrinfo(address.host.c_str(), port.c_str(), &hints, &found);
    if (result != 0) {
        const std::error_code code = result == EAI_SYSTEM
                                         ? std::error_code{errno, std::system_category()}
                                         : std::error_code{result, resolver_category()};
        throw FabricError{code, "cannot resolve '" + address.host + "'"};
    }
    return AddressList{found};
}

std::string numeric_host(const addrinfo& entry) {
    std::array<char, NI_MAXHOST> host{};
    const int result = ::getnameinfo(entry.ai_addr, entry.ai_addrlen, host.data(), host.size(),
                                     nullptr, 0, NI_NUMERICHOST);
    return result == 0 ? std::string{host.data()} : std::string{};
}

} // namespace netio::fabric
