// SPDX-License-Identifier: Apache-2.0
#include "apps/common/fabric_faults.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <iterator>

namespace apps {
namespace {

constexpr std::string_view trust = "let in only whom you trust";

constexpr std::array<FabricFault, 6> faults{{
    {"a peer can end the process by an acknowledgement that nobody asked for",
     trust,
     "unasked-ack",
     {1, 17}},
    {"a peer can end the process by a tagged message", trust, "tagged-without-srx", {1, 17}},
    {"a peer can write beyond memory that was registered for it", trust, "mr-bounds", {1, 17}},
    {"a peer can write beyond an entry of the provider's, if it has keys of memory",
     trust,
     "rma-iov-count",
     {1, 17}},
    {"a peer can make the provider take memory by packets of no bytes",
     "such a connection is ended for it",
     "",
     {1, 17}},
    {"what the provider opens is inherited by programs that are started",
     "the flag against it is set here",
     "close-on-exec",
     {1, 17}},
}};

bool is_reached_from_elsewhere(const netio::Endpoint& endpoint) {
    const std::string& host = endpoint.address.host;
    return endpoint.provider == "tcp" && !host.starts_with("127.") && host != "::1";
}

} // namespace

std::vector<FabricFault> faults_of(const Version& libfabric) {
    std::vector<FabricFault> found;
    std::ranges::copy_if(faults, std::back_inserter(found),
                         [&](const FabricFault& fault) { return fault.first <= libfabric; });
    return found;
}

std::string named_with_doubt(const Version& libfabric) {
    std::string name = "libfabric " + to_string(libfabric);
    if (libfabric <= newest_looked_at) return name;
    return fmt::format("{} (newer than {}, the newest that was looked at: it may be mended)", name,
                       to_string(newest_looked_at));
}

std::string fault_warning(const std::vector<netio::Endpoint>& endpoints, const Version& libfabric) {
    if (faults_of(libfabric).empty() || std::ranges::none_of(endpoints, is_reached_from_elsewhere))
        return {};
    return fmt::format("whoever is let in over tcp can end this process by faults of {} (netio "
                       "doctor names them)",
                       named_with_doubt(libfabric));
}

void tell_listening(const std::vector<netio::Endpoint>& endpoints) {
    for (const netio::Endpoint& endpoint : endpoints)
        spdlog::info("listening at {} ({})", to_string(endpoint.address), endpoint.provider);
    const std::string warning = fault_warning(endpoints, parse_version(netio::fabric_version()));
    if (!warning.empty()) spdlog::warn("{}", warning);
}

} // namespace apps
