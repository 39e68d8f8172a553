// SPDX-License-Identifier: Apache-2.0
#include "tests/support/sim_transport.hpp"

#include "netio/base/check.hpp"
#include "tests/support/sim_connection.hpp"
#include "tests/support/sim_listener.hpp"
#include "tests/support/sim_memory.hpp"

#include <algorithm>
#include <cerrno>

namespace netio::test {

SimProfile tcp_profile() {
    return {.capabilities = {.provider = "sim-tcp",
                             .segment_limit = 4,
                             .inject_bytes = 128,
                             .immediate_bytes = 8,
                             .message_bytes = SIZE_MAX,
                             .write_consumes_receive = false,
                             .connector_speaks_first = false},
            .receives_may_grow = true};
}

SimProfile verbs_profile() {
    return {.capabilities = {.provider = "sim-verbs",
                             .segment_limit = 4,
                             .inject_bytes = 2,
                             .immediate_bytes = 4,
                             .message_bytes = std::size_t{1} << 30,
                             .write_consumes_receive = true,
                             .connector_speaks_first = true},
            .guards_memory = true,
            .completes_at_peer = true,
            .sign = SimProfile::Sign::device,
            .retransmission = std::chrono::seconds{4}};
}

SimProfile iwarp_profile() {
    SimProfile profile = verbs_profile();
    profile.capabilities.provider = "sim-iwarp";
    profile.capabilities.immediate_bytes = 0;
    profile.completes_at_peer = false; // it reports only that the peer's host has it
    profile.sign = SimProfile::Sign::none;
    profile.retransmission = std::chrono::minutes{2};
    return profile;
}

SimTransport::SimTransport(EventLoop& loop, SimProcess& process, SimProfile profile,
                           std::uint64_t seed)
    : loop_{loop}, process_{process}, own_network_{std::make_unique<SimNetwork>(process.clock(),
                                                                                seed)},
      network_{*own_network_}, number_{0} {
    providers_.push_back({.profile = std::move(profile), .domain = nullptr});
    providers_.back().domain = std::make_unique<Domain>(*this);
}

SimTransport::SimTransport(EventLoop& loop, SimProcess& process, SimNetwork& network,
                           std::vector<SimProfile> profiles, std::uint32_t number)
    : loop_{loop}, process_{process}, network_{network}, number_{number} {
    for (SimProfile& profile : profiles) {
        providers_.push_back(
            {.profile = std::move(profile), .domain = std::make_unique<Domain>(*this)});
    }
}

SimTransport::~SimTransport() {
    require_unused();
    NETIO_CHECK_MSG(users_ == 0, "connections and listeners must be destroyed before their "
                                 "transport");
}

SimTransport::Provider& SimTransport::provider(const std::string& name) {
    for (Provider& provider : providers_)
        if (provider.profile.capabilities.provider == name) return provider;
    throw FabricError{{ENODEV, std::system_category()}, "there is no provider " + name};
}

bool SimTransport::guards_memory(const std::string& name) const {
    return std::ranges::any_of(providers_, [&](const Provider& provider) {
        return provider.profile.guards_memory && provider.profile.capabilities.provider == name;
    });
}

namespace {

class SimSearch final : public RouteSearch {
  public:
    SimSearch(EventLoop& loop, Duration delay, std::function<void()> tell)
        : timer_{loop, std::move(tell)} {
        timer_.start(delay);
    }

  private:
    Timer timer_;
};

} // namespace

std::unique_ptr<RouteSearch> SimTransport::find_routes(const Address& remote,
                                                       const std::string& local_host,
                                                       std::function<void(FoundRoutes)> found) {
    if (fails(SimCall::search)) throw FabricError{{EAGAIN, std::system_category()}, "no thread"};
    const auto named = names_.find(remote.host);
    const std::vector<std::string> hosts =
        named == names_.end() ? std::vector{remote.host} : named->second;
    FoundRoutes answer;
    if (hosts.empty()) answer.problem = "cannot resolve '" + remote.host + "'";
    for (const std::string& provider : providers_to(remote)) {
        for (const std::string& host : hosts) {
            answer.routes.push_back(
                {.provider = provider,
                 .remote = {.host = host, .port = remote.port},
                 .local_host = local_host,
                 .dialled = SimNetwork::auth_address_of({.host = host, .port = remote.port})});
        }
    }
    return std::make_unique<SimSearch>(
        loop_, resolution_,
        [found = std::move(found), answer = std::move(answer)] { found(answer); });
}

std::vector<std::string> SimTransport::providers_to(const Address&) {
    std::vector<std::string> names;
    for (const Provider& provider : providers_)
        names.push_back(provider.profile.capabilities.provider);
    return names;
}
std::vector<std::string> SimTransport::providers_at(const Address& local) {
    return providers_to(local);
}

std::unique_ptr<Connection> SimTransport::make_connection(const std::string& provider_name,
                                                          const Address& remote, const std::string&,
                                                          const QueueLimits& limits,
                                                          Connection::Handler& handler) {
    Provider& chosen = provider(provider_name);
    if (fails(SimCall::make_connection)) {
        throw FabricError{{EMFILE, std::system_category()}, "cannot open an endpoint"};
    }
    return std::make_unique<SimConnection>(*this, chosen.profile, *chosen.domain, remote, 0, limits,
                                           handler);
}

std::unique_ptr<Listener> SimTransport::listen(const std::string& provider_name,
                                               const Address& local, const ListenOptions& options,
                                               Listener::Handler& handler) {
    Provider& chosen = provider(provider_name);
    require_reach(SimNetwork::auth_address_of(local).host, local, options);
    Address address = local;
    if (address.port == 0) address.port = network_.next_port_++;
    if (fails(SimCall::listen) ||
        network_.listeners_.contains({provider_name, address.host, address.port})) {
        throw FabricError{{EADDRINUSE, std::system_category()},
                          "cannot listen at " + to_string(address)};
    }
    return std::make_unique<SimListener>(*this, address, chosen.profile, *chosen.domain, handler);
}

} // namespace netio::test
