// SPDX-License-Identifier: Apache-2.0
#pragma once

// The seam without a network: connections in memory, in virtual time, deterministic for a seed. It
// is stricter than any provider: what would break on RDMA hardware, or corrupt data, is noted as a
// violation, and a test bed fails the test for it.
//
// Faults are asked for by the number of a connection: 1, 2, ... in the order of their making, the
// connecting and the accepting side each.

#include "netio/transport.hpp"
#include "tests/support/sim_world.hpp"

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace netio::test {

struct SimProfile {
    Capabilities capabilities;
    // Messages arrive this much later; each direction of a connection keeps its order.
    Duration latency = std::chrono::microseconds{20};
    Duration jitter = std::chrono::microseconds{15};
    // A send completes when the peer has the message (verbs), or as soon as it has left (tcp).
    bool completes_at_peer = false;
};
SimProfile tcp_profile();
SimProfile verbs_profile();

class SimConnection;
class SimListener;

class SimTransport final : public Transport {
  public:
    SimTransport(EventLoop& loop, SimWorld& world, SimProfile profile, std::uint64_t seed);
    ~SimTransport() override;

    EventLoop& loop() noexcept override { return loop_; }
    std::vector<std::string> providers_to(const Address& remote) override;
    std::vector<std::string> providers_at(const Address& local) override;
    std::unique_ptr<Connection> make_connection(const std::string& provider, const Address& remote,
                                                const std::string& local_host,
                                                const QueueLimits& limits,
                                                Connection::Handler& handler) override;
    std::unique_ptr<Listener> listen(const std::string& provider, const Address& local,
                                     Listener::Handler& handler) override;

    // What a test has to answer for.
    const std::vector<std::string>& violations() const noexcept { return violations_; }
    // That exist now.
    std::size_t registration_count() const noexcept;

    // --- faults ---
    // Both sides are told that the connection is lost.
    void sever(std::uint64_t connection);
    // Nothing passes any more, and nobody is told.
    void cut(std::uint64_t connection);
    // Nothing arrives at this end until release(): its process, or the way to it, has stopped. Its
    // host still shows signs of life.
    void hold(std::uint64_t connection);
    void release(std::uint64_t connection);
    // What this end sends takes so much longer from now on.
    void delay(std::uint64_t connection, Duration by) { delays_[connection] = by; }
    // The connection breaks at the posting of its nth send or write.
    void break_at_send(std::uint64_t connection, std::size_t nth) { break_at_[connection] = nth; }
    // Nobody answers at any address.
    void ignore_connects(bool ignore) noexcept { ignore_connects_ = ignore; }
    // Registrations fail from now on.
    void refuse_registrations(bool refuse) noexcept { refuse_registrations_ = refuse; }
    // No endpoint can be made for who asks to be connected.
    void refuse_endpoints(bool refuse) noexcept { refuse_endpoints_ = refuse; }
    // The number that the next connection will have.
    std::uint64_t next_connection() const noexcept { return next_connection_; }

  private:
    friend class SimConnection;
    friend class SimListener;
    struct Domain;
    struct Region;

    void violation(const std::string& what) { violations_.push_back(what); }
    TimePoint arrival(TimePoint not_before, Duration delay = {});
    // What a connecting end hears instead of being accepted: rejected, with data; refused, if there
    // is no listener any more; lost.
    void turn_away(std::uint64_t connection, CloseReason how, std::span<const std::byte> data);
    void complete_later(std::uint64_t connection, Cookie cookie, Duration delay);
    SimConnection* find(std::uint64_t connection);
    SimListener* listener_at(std::uint16_t port);

    EventLoop& loop_;
    SimWorld& world_;
    SimProfile profile_;
    std::mt19937_64 random_;
    std::vector<std::string> violations_;
    std::unique_ptr<Domain> domain_;
    std::map<std::uint64_t, SimConnection*> connections_;
    std::map<std::uint16_t, SimListener*> listeners_;
    std::map<std::uint64_t, std::size_t> break_at_;
    std::map<std::uint64_t, Duration> delays_;
    std::uint64_t next_connection_ = 1;
    std::uint16_t next_port_ = 40000;
    bool ignore_connects_ = false;
    bool refuse_registrations_ = false;
    bool refuse_endpoints_ = false;
};

} // namespace netio::test
