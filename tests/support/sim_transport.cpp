// SPDX-License-Identifier: Apache-2.0
#include "tests/support/sim_transport.hpp"

#include "netio/base/check.hpp"
#include "netio/base/destruction_watch.hpp"
#include "tests/support/sim_connection.hpp"
#include "tests/support/sim_memory.hpp"

#include <cerrno>

namespace netio::test {

SimProfile tcp_profile() {
    return {.capabilities = {.provider = "sim-tcp",
                             .segment_limit = 4,
                             .inject_bytes = 128,
                             .immediate_bytes = 8,
                             .message_bytes = SIZE_MAX,
                             .write_consumes_receive = false,
                             .connector_speaks_first = false}};
}

SimProfile verbs_profile() {
    return {.capabilities = {.provider = "sim-verbs",
                             .segment_limit = 4,
                             .inject_bytes = 2,
                             .immediate_bytes = 4,
                             .message_bytes = std::size_t{1} << 30,
                             .write_consumes_receive = true,
                             .connector_speaks_first = true},
            .completes_at_peer = true};
}

SimTransport::SimTransport(EventLoop& loop, SimWorld& world, SimProfile profile, std::uint64_t seed)
    : loop_{loop}, world_{world}, profile_{std::move(profile)}, random_{seed},
      domain_{std::make_unique<Domain>(*this)} {}

SimTransport::~SimTransport() {
    NETIO_CHECK_MSG(connections_.empty() && listeners_.empty(),
                    "connections and listeners must be destroyed before their transport");
}

std::size_t SimTransport::registration_count() const noexcept {
    return domain_->regions_.size();
}

TimePoint SimTransport::arrival(TimePoint not_before, Duration delay) {
    const auto jitter = static_cast<std::uint64_t>(profile_.jitter.count());
    const Duration late{static_cast<Duration::rep>(jitter == 0 ? 0 : random_() % jitter)};
    return std::max(not_before, world_.now() + profile_.latency + delay + late);
}

SimConnection* SimTransport::find(std::uint64_t connection) {
    const auto found = connections_.find(connection);
    return found == connections_.end() ? nullptr : found->second;
}

SimListener* SimTransport::listener_at(std::uint16_t port) {
    const auto found = listeners_.find(port);
    return found == listeners_.end() || ignore_connects_ ? nullptr : found->second;
}

std::vector<std::string> SimTransport::providers_to(const Address&) {
    return {profile_.capabilities.provider};
}
std::vector<std::string> SimTransport::providers_at(const Address&) {
    return {profile_.capabilities.provider};
}

std::unique_ptr<Connection> SimTransport::make_connection(const std::string&, const Address& remote,
                                                          const std::string&,
                                                          const QueueLimits& limits,
                                                          Connection::Handler& handler) {
    return std::make_unique<SimConnection>(*this, remote, 0, limits, handler);
}

std::unique_ptr<Listener> SimTransport::listen(const std::string& provider, const Address& local,
                                               Listener::Handler& handler) {
    Address address = local;
    if (address.port == 0) address.port = next_port_++;
    if (listeners_.contains(address.port)) {
        throw FabricError{{EADDRINUSE, std::system_category()},
                          "cannot listen at " + to_string(address)};
    }
    return std::make_unique<SimListener>(*this, address, provider, handler);
}

void SimTransport::sever(std::uint64_t connection) {
    SimConnection* const one = find(connection);
    if (one == nullptr) return;
    SimConnection* const other = find(one->peer_);
    one->end({.reason = CloseReason::lost, .detail = "severed"});
    if (other != nullptr) other->end({.reason = CloseReason::lost, .detail = "severed"});
}

void SimTransport::cut(std::uint64_t connection) {
    SimConnection* const one = find(connection);
    if (one == nullptr) return;
    one->cut_ = world_.now();
    if (SimConnection* const other = find(one->peer_)) other->cut_ = world_.now();
}

void SimTransport::hold(std::uint64_t connection) {
    if (SimConnection* const end = find(connection)) end->held_ = true;
}

void SimTransport::release(std::uint64_t connection) {
    if (SimConnection* const end = find(connection)) end->release();
}

void SimTransport::complete_later(std::uint64_t connection, Cookie cookie, Duration delay) {
    world_.at(world_.now() + delay, [this, connection, cookie] {
        SimConnection* const end = find(connection);
        if (end != nullptr && !end->cut_) end->complete_outgoing(cookie);
    });
}

void SimTransport::turn_away(std::uint64_t connection, CloseReason how,
                             std::span<const std::byte> data) {
    world_.at(arrival({}), [this, connection, how, copy = std::vector(data.begin(), data.end())] {
        SimConnection* const peer = find(connection);
        if (peer == nullptr || peer->state_ != SimConnection::State::opening) return;
        if (how == CloseReason::rejected) peer->tell(SimConnection::Rejected{copy});
        const char* const why = how == CloseReason::rejected  ? "rejected by the listener"
                                : how == CloseReason::refused ? "Connection refused"
                                                              : "the peer gave up";
        peer->end({.reason = how, .detail = "connecting to " + peer->peer_address() + ": " + why});
    });
}

// --- listening ------------------------------------------------------------------------------

class SimListener::Request final : public ConnectionRequest {
  public:
    Request(SimTransport& transport, std::uint64_t connection, const std::vector<std::byte>& data)
        : transport_{transport}, connection_{connection}, data_{data} {}

    std::span<const std::byte> data() const noexcept override { return data_; }
    std::string peer_address() const override { return "sim#" + std::to_string(connection_); }
    std::unique_ptr<Connection> make_connection(const QueueLimits& limits,
                                                Connection::Handler& handler) override {
        if (answered_) transport_.violation("a request was answered twice");
        if (transport_.refuse_endpoints_) {
            throw FabricError{{EMFILE, std::system_category()}, "cannot open an endpoint"};
        }
        answered_ = true;
        return std::make_unique<SimConnection>(transport_, std::nullopt, connection_, limits,
                                               handler);
    }
    void reject(std::span<const std::byte> data) override {
        if (answered_) return transport_.violation("a request was answered twice");
        answered_ = true;
        if (data.size() > connection_data_limit) transport_.violation("rejection data too long");
        transport_.turn_away(connection_, CloseReason::rejected, data);
    }
    MemoryDomain& domain() override { return *transport_.domain_; }
    bool is_answered() const noexcept override { return answered_; }

  private:
    SimTransport& transport_;
    std::uint64_t connection_;
    const std::vector<std::byte>& data_;
    bool answered_ = false;
};

SimListener::SimListener(SimTransport& transport, Address address, std::string provider,
                         Listener::Handler& handler)
    : transport_{transport}, address_{std::move(address)}, provider_{std::move(provider)},
      handler_{handler} {
    transport_.listeners_.emplace(address_.port, this);
    transport_.loop_.add(*this);
}

SimListener::~SimListener() {
    if (destroyed_ != nullptr) *destroyed_ = true;
    for (const auto& [connection, data] : requests_)
        transport_.turn_away(connection, CloseReason::refused, {});
    transport_.loop_.remove(*this);
    transport_.listeners_.erase(address_.port);
}

void SimListener::request(std::uint64_t connection, std::vector<std::byte> data) {
    requests_.emplace_back(connection, std::move(data));
    transport_.world_.ready(*this);
}

std::size_t SimListener::drain(std::size_t budget) {
    const DestructionWatch watch{destroyed_};
    std::size_t done = 0;
    while (done < budget && !watch.destroyed() && !requests_.empty()) {
        const auto [connection, data] = std::move(requests_.front());
        requests_.pop_front();
        ++done;
        Request request{transport_, connection, data};
        handler_.on_request(request);
        if (!request.is_answered()) request.reject({});
    }
    return done;
}

} // namespace netio::test
