// SPDX-License-Identifier: Apache-2.0
#include "tests/support/sim_listener.hpp"

#include "netio/base/destruction_watch.hpp"
#include "tests/support/sim_connection.hpp"
#include "tests/support/sim_memory.hpp"

#include <cerrno>
#include <utility>

namespace netio::test {

// A request while its handler examines it.
class SimListener::Request final : public ConnectionRequest {
  public:
    Request(SimListener& listener, const Asking& asking)
        : transport_{listener.transport_}, profile_{listener.profile_}, domain_{listener.domain_},
          connection_{asking.connection}, asking_{asking} {}

    std::span<const std::byte> data() const noexcept override { return asking_.data; }
    std::string peer_address() const override { return "sim#" + std::to_string(connection_); }
    access::Host source() const override {
        return SimNetwork::host_of(transport_.network().process_of(connection_));
    }
    access::AuthAddress dialled() const override {
        return SimNetwork::auth_address_of(asking_.dialled);
    }
    std::unique_ptr<Connection> make_connection(const QueueLimits& limits,
                                                Connection::Handler& handler) override {
        if (answered_) transport_.network().violation("a request was answered twice");
        if (transport_.fails(SimCall::accept)) {
            throw FabricError{{EMFILE, std::system_category()}, "cannot open an endpoint"};
        }
        answered_ = true;
        transport_.charge(transport_.costs_.connection);
        return std::make_unique<SimConnection>(transport_, profile_, domain_, std::nullopt,
                                               connection_, limits, handler);
    }
    void reject(std::span<const std::byte> data) override {
        if (answered_) return transport_.network().violation("a request was answered twice");
        answered_ = true;
        if (data.size() > connection_data_limit) {
            transport_.network().violation("rejection data too long");
        }
        transport_.network().reject_client(connection_, CloseReason::rejected, data);
    }
    MemoryDomain& domain() override { return domain_; }
    bool guards_memory() const noexcept override { return profile_.guards_memory; }
    bool is_answered() const noexcept override { return answered_; }
    // The listener is destroyed, and the request with it.
    void abandon() {
        if (!answered_) reject({});
    }

  private:
    // Does not refer to the listener, because the handler may destroy it.
    SimTransport& transport_;
    const SimProfile& profile_;
    SimTransport::Domain& domain_;
    std::uint64_t connection_;
    const Asking& asking_;
    bool answered_ = false;
};

SimListener::SimListener(SimTransport& transport, Address address, const SimProfile& profile,
                         SimTransport::Domain& domain, Listener::Handler& handler)
    : transport_{transport}, network_{transport.network()}, address_{std::move(address)},
      profile_{profile}, domain_{domain}, handler_{handler} {
    network_.listeners_.emplace(
        SimNetwork::Place{profile.capabilities.provider, address_.host, address_.port}, this);
    transport_.loop_.add(*this);
    ++transport_.users_;
}

SimListener::~SimListener() {
    if (destroyed_ != nullptr) *destroyed_ = true;
    if (pending_ != nullptr) pending_->abandon();
    for (const Asking& asking : requests_)
        network_.reject_client(asking.connection, CloseReason::refused, {});
    transport_.loop_.remove(*this);
    std::erase_if(network_.listeners_, [&](const auto& entry) { return entry.second == this; });
    --transport_.users_;
}

void SimListener::die(bool host) {
    for (const Asking& asking : std::exchange(requests_, {}))
        if (!host) network_.reject_client(asking.connection, CloseReason::refused, {});
}

void SimListener::request(Asking asking) {
    requests_.push_back(std::move(asking));
    transport_.process_.ready(*this);
}

void SimListener::prepare(RegisteredBuffer& buffer) {
    static_cast<void>(buffer.registration(domain_));
}

std::size_t SimListener::drain(std::size_t budget) {
    const DestructionWatch watch{destroyed_};
    std::size_t done = 0;
    EventLoop& loop = transport_.loop_;
    while (done < budget && !watch.destroyed() && !requests_.empty()) {
        if (done > 0 && loop.time_is_up()) break;
        const Asking asking = std::move(requests_.front());
        requests_.pop_front();
        ++done;
        Request request{*this, asking};
        pending_ = &request;
        handler_.on_request(request);
        if (watch.destroyed()) break;
        pending_ = nullptr;
        if (!request.is_answered()) request.reject({});
    }
    return done;
}

} // namespace netio::test
