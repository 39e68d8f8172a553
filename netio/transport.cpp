// SPDX-License-Identifier: Apache-2.0
#include "netio/transport.hpp"

#include "netio/access/host.hpp"
#include "netio/random_number.hpp"

#include <stdexcept>
#include <utility>

namespace netio::inline v0_3 {
namespace {

// The result is already known, but it is reported from the loop, as for any search.
class KnownRoutes final : public RouteSearch {
  public:
    KnownRoutes(EventLoop& loop, FoundRoutes routes, std::function<void(FoundRoutes)> found)
        : timer_{loop, [found = std::move(found), routes = std::move(routes)] { found(routes); }} {
        timer_.start(Duration::zero());
    }

  private:
    Timer timer_;
};

} // namespace

std::uint64_t Transport::draw_number() {
    return random_number();
}

std::unique_ptr<RouteSearch> Transport::find_routes(const Address& remote,
                                                    const std::string& local_host,
                                                    std::function<void(FoundRoutes)> found) {
    FoundRoutes answer;
    try {
        for (const std::string& provider : providers_to(remote)) {
            answer.routes.push_back(
                {.provider = provider, .remote = remote, .local_host = local_host});
        }
    } catch (const FabricError& error) {
        answer.problem = error.what();
    }
    return std::make_unique<KnownRoutes>(loop(), std::move(answer), std::move(found));
}

std::unique_ptr<Connection> Transport::connect_over(const Route& route, const QueueLimits& limits,
                                                    Connection::Handler& handler) {
    return make_connection(route.provider, route.remote, route.local_host, limits, handler);
}

bool Transport::guards_memory(const std::string&) const {
    return false;
}

void Transport::require_reach(const access::Host& host, const Address& shown,
                              const ListenOptions& options) {
    const std::string problem = access::refuse_listening(
        host, to_string(shown), options.has_keys, options.allow_remote_anonymous,
        "allow_remote_anonymous (--allow-remote-anonymous)");
    if (!problem.empty()) throw std::invalid_argument{problem};
}

} // namespace netio::inline v0_3
