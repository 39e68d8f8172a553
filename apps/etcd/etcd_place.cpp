// SPDX-License-Identifier: Apache-2.0
#include "apps/etcd/etcd_place.hpp"

#include "netio/access/host.hpp"

#include <algorithm>
#include <cctype>
#include <stdexcept>

namespace apps {
namespace {

constexpr std::string_view plain = "etcd://";
constexpr std::string_view with_tls = "etcds://";

[[noreturn]] void refuse(std::string_view text, const std::string& problem) {
    throw std::invalid_argument{
        "'" + std::string{text} + "' " + problem +
        "; allowed: etcd://HOST:PORT[/PREFIX][?user=FILE&ca=FILE], etcds:// with TLS"};
}

void read_parameters(std::string_view parameters, std::string_view text, EtcdPlace& place) {
    while (!parameters.empty()) {
        const std::size_t end = std::min(parameters.find('&'), parameters.size());
        const std::string_view one = parameters.substr(0, end);
        parameters.remove_prefix(std::min(end + 1, parameters.size()));
        const std::size_t equals = one.find('=');
        const std::string_view key = one.substr(0, equals);
        if (equals == std::string_view::npos || equals + 1 == one.size())
            refuse(text, "has a parameter without a value");
        if (key == "user") {
            place.user_file = one.substr(equals + 1);
        } else if (key == "ca") {
            place.ca_file = one.substr(equals + 1);
        } else {
            refuse(text, "has a parameter '" + std::string{key} + "'");
        }
    }
}

} // namespace

bool is_etcd_place(std::string_view text) noexcept {
    return text.starts_with(plain) || text.starts_with(with_tls);
}

std::string warning_about(const EtcdPlace& place) {
    if (place.user_file.empty() || place.tls || place.address.host == "localhost") return {};
    const auto host = netio::access::parse_host(place.address.host);
    if (host && netio::access::is_loopback(*host)) return {};
    return "the password in '" + place.user_file + "' travels unencrypted to etcd at " +
           to_string(place.address) + "; use etcds://, which is TLS";
}

EtcdPlace parse_etcd_place(std::string_view text) {
    if (!is_etcd_place(text)) refuse(text, "is no etcd");
    EtcdPlace place;
    place.tls = text.starts_with(with_tls);
    std::string_view rest = text.substr(place.tls ? with_tls.size() : plain.size());
    const std::size_t question = rest.find('?');
    if (question != std::string_view::npos) {
        read_parameters(rest.substr(question + 1), text, place);
        rest = rest.substr(0, question);
    }
    const std::size_t slash = rest.find('/');
    if (slash != std::string_view::npos) {
        const std::string_view prefix = rest.substr(slash + 1);
        const auto fits = [](char c) {
            return std::isalnum(static_cast<unsigned char>(c)) != 0 ||
                   std::string_view{"._-/"}.find(c) != std::string_view::npos;
        };
        if (prefix.size() > 128 || !std::ranges::all_of(prefix, fits))
            refuse(text, "has a prefix that is not up to 128 letters, digits and ._-/");
        if (!prefix.empty()) place.prefix = prefix;
        rest = rest.substr(0, slash);
    }
    try {
        place.address = netio::parse_address(rest);
    } catch (const std::invalid_argument&) {
        refuse(text, "has no HOST:PORT");
    }
    if (place.address.port == 0) refuse(text, "has no port");
    return place;
}

} // namespace apps
