// SPDX-License-Identifier: Apache-2.0
#include "apps/common/fabric_faults.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <iterator>

namespace apps {
namespace {

// 2.6 is the newest that was looked at.
constexpr std::array<FabricFault, 4> faults{{
    {"end the process by an acknowledgement that nobody asked for", "unasked-ack", {1, 17}, {2, 6}},
    {"end the process by a tagged message", "tagged-without-srx", {1, 17}, {2, 6}},
    {"write beyond memory that was registered for it", "mr-bounds", {1, 17}, {2, 6}},
    {"write beyond an entry of the provider's, if it has keys of memory",
     "rma-iov-count",
     {1, 17},
     {2, 6}},
}};

bool is_reached_from_elsewhere(const netio::Endpoint& endpoint) {
    const std::string& host = endpoint.address.host;
    return endpoint.provider == "tcp" && !host.starts_with("127.") && host != "::1";
}

} // namespace

std::vector<FabricFault> faults_of(const Version& libfabric) {
    std::vector<FabricFault> found;
    std::ranges::copy_if(faults, std::back_inserter(found), [&](const FabricFault& fault) {
        return fault.first <= libfabric && libfabric <= fault.last;
    });
    return found;
}

std::string fault_warning(const std::vector<netio::Endpoint>& endpoints, const Version& libfabric) {
    if (faults_of(libfabric).empty() || std::ranges::none_of(endpoints, is_reached_from_elsewhere))
        return {};
    return fmt::format("whoever is let in over tcp can end this process by faults of libfabric {} "
                       "(netio doctor names them)",
                       to_string(libfabric));
}

void tell_listening(const std::vector<netio::Endpoint>& endpoints) {
    for (const netio::Endpoint& endpoint : endpoints)
        spdlog::info("listening at {} ({})", to_string(endpoint.address), endpoint.provider);
    const std::string warning = fault_warning(endpoints, parse_version(netio::fabric_version()));
    if (!warning.empty()) spdlog::warn("{}", warning);
}

} // namespace apps
