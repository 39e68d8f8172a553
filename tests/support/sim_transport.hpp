// SPDX-License-Identifier: Apache-2.0
#pragma once

// The transport of one simulated process, without a network. The logic is in SimNetwork, which
// several transports may share.

#include "netio/transport.hpp"
#include "tests/support/sim_network.hpp"
#include "tests/support/sim_world.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace netio::test {

struct SimProfile {
    // What a provider knows about a silent peer.
    enum class Sign : std::uint8_t {
        kernel, // acknowledgements of its host, about one per second once requested
        device, // when its device last acknowledged our data
        none,
    };

    Capabilities capabilities;
    bool guards_memory = false; // see Transport::guards_memory
    // Latency of messages; each direction of a connection keeps its order.
    Duration latency = std::chrono::microseconds{20};
    Duration jitter = std::chrono::microseconds{15};
    // A send completes when the peer has the message (verbs) or as soon as it has left (tcp).
    bool completes_at_peer = false;
    bool receives_may_grow = false; // receives may be added after the connection was made
    // tcp: bytes that a peer's kernel stores while its process does not read. Beyond this limit
    // nothing leaves.
    std::size_t window_bytes = SIZE_MAX;
    Sign sign = Sign::kernel;
    // The connection breaks after this time without an answer; each side detects it separately.
    Duration retransmission = std::chrono::minutes{15};
};
SimProfile tcp_profile();
SimProfile verbs_profile();
// iWARP: no immediate data, and no way to find out whether a silent peer is alive.
SimProfile iwarp_profile();

class SimTransport final : public Transport {
  public:
    // A single process with a network of its own.
    SimTransport(EventLoop& loop, SimProcess& process, SimProfile profile, std::uint64_t seed);
    // One of several processes; it reaches and serves every address with these providers, best
    // first. `process`: its number, for faults.
    SimTransport(EventLoop& loop, SimProcess& process, SimNetwork& network,
                 std::vector<SimProfile> profiles, std::uint32_t number);
    ~SimTransport() override;

    EventLoop& loop() noexcept override { return loop_; }
    std::unique_ptr<RouteSearch> find_routes(const Address& remote, const std::string& local_host,
                                             std::function<void(FoundRoutes)> found) override;
    bool guards_memory(const std::string& name) const override;
    std::uint64_t draw_number() override { return network_.draw_number(); }
    std::vector<std::string> providers_to(const Address& remote) override;
    std::vector<std::string> providers_at(const Address& local) override;
    std::unique_ptr<Connection> make_connection(const std::string& provider, const Address& remote,
                                                const std::string& local_host,
                                                const QueueLimits& limits,
                                                Connection::Handler& handler) override;
    std::unique_ptr<Listener> listen(const std::string& provider, const Address& local,
                                     const ListenOptions& options,
                                     Listener::Handler& handler) override;

    // Makes a host name stand for several hosts, or for none: then it does not resolve. Any other
    // name stands for itself.
    void name(const std::string& host, std::vector<std::string> hosts) {
        names_[host] = std::move(hosts);
    }
    // Sets how long a route lookup takes from now on.
    void delay_resolution(Duration by) noexcept { resolution_ = by; }

    // Sets how long calls take from now on, so that a test can count them by the time of a turn.
    struct Costs {
        Duration post{};       // a send, a write, a receive or a query for signs of life
        Duration connection{}; // creating, opening, closing or destroying a connection
    };
    void set_costs(const Costs& costs) noexcept { costs_ = costs; }
    // New connections have no signs of life below the messages, as on an iWARP device.
    void give_no_signs_of_life() noexcept {
        for (Provider& provider : providers_)
            provider.profile.sign = SimProfile::Sign::none;
    }

    SimNetwork& network() noexcept { return network_; }
    SimProcess& process() noexcept { return process_; }
    std::uint32_t number() const noexcept { return number_; }

    // --- of the network, for a test with one transport ---
    const std::vector<std::string>& violations() const noexcept { return network_.violations(); }
    std::size_t registration_count() const noexcept { return network_.registration_count(); }
    std::uint64_t next_connection() const noexcept { return network_.next_connection(); }
    void sever(std::uint64_t connection) { network_.sever(connection); }
    void cut(std::uint64_t connection) { network_.cut(connection); }
    void hold(std::uint64_t connection) { network_.hold(connection); }
    void release(std::uint64_t connection) { network_.release(connection); }
    void delay(std::uint64_t connection, Duration by) { network_.delay(connection, by); }
    void break_at_send(std::uint64_t connection, std::size_t nth) {
        network_.break_at_send(connection, nth);
    }
    void ignore_connects(bool ignore) noexcept { network_.ignore_connects(ignore); }
    // Registrations fail from now on.
    void refuse_registrations(bool refuse) { this->refuse(SimCall::register_memory, refuse); }
    // No endpoint can be created to connect.
    void refuse_connecting(bool refuse) { this->refuse(SimCall::make_connection, refuse); }
    // No route lookup can start.
    void refuse_searching(bool refuse) { this->refuse(SimCall::search, refuse); }
    // No endpoint can be created for an incoming request.
    void refuse_endpoints(bool refuse) { this->refuse(SimCall::accept, refuse); }

  private:
    friend class SimConnection;
    friend class SimListener;
    struct Domain;
    struct Region;
    struct Provider {
        SimProfile profile;
        std::unique_ptr<Domain> domain;
    };

    void refuse(SimCall call, bool refuse) {
        network_.fail_calls(number_, call, refuse ? 1 : UINT64_MAX);
    }
    Provider& provider(const std::string& name);
    void charge(Duration cost) {
        if (cost > Duration{}) process_.spend(cost);
    }
    bool fails(SimCall call) { return network_.fails(number_, call); }

    EventLoop& loop_;
    SimProcess& process_;
    std::unique_ptr<SimNetwork> own_network_;
    SimNetwork& network_;
    std::uint32_t number_;
    std::vector<Provider> providers_;
    std::map<std::string, std::vector<std::string>> names_;
    Duration resolution_{0};
    Costs costs_;
    std::size_t users_ = 0; // existing connections and listeners
};

} // namespace netio::test
