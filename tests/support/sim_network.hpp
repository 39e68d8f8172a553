// SPDX-License-Identifier: Apache-2.0
#pragma once

// The network between simulated processes: connections in memory and in virtual time, reproducible
// for each seed. It is stricter than any provider: it records as a violation whatever would break
// on RDMA hardware or corrupt data, and a test bed then fails the test.
//
// Connection faults address a connection by its number: 1, 2, ... in the order of creation; the
// connecting and the accepting side each have one. Process faults use the process number
// (SimTransport::process).

#include "netio/access/host.hpp"
#include "netio/base/status.hpp"
#include "tests/support/sim_clock.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <random>
#include <span>
#include <string>
#include <tuple>
#include <vector>

namespace netio::test {

class SimConnection;
class SimListener;

// Calls that can fail, counted separately for each process.
enum class SimCall : std::uint8_t {
    register_memory, // no memory, or above the limit of locked memory
    make_connection, // no descriptor, no endpoint: connecting side
    accept,          // the same on the accepting side
    listen,
    post,   // a send, a write or a receive: the connection breaks
    search, // route lookup: no thread, no descriptor
};
inline constexpr std::size_t sim_call_count = 6;

// The path from one process to another.
struct SimPath {
    bool blocked = false;        // sent data waits
    Duration delay{};            // added to the usual latency
    double bytes_per_second = 0; // 0: no limit
};

class SimNetwork {
  public:
    SimNetwork(SimClock& clock, std::uint64_t seed) : clock_{clock}, random_{seed} {}

    SimClock& clock() noexcept { return clock_; }
    // Violations that the test caused.
    const std::vector<std::string>& violations() const noexcept { return violations_; }
    void violation(const std::string& what) { violations_.push_back(what); }
    // Registrations that exist now.
    std::size_t registration_count() const noexcept { return registrations_; }
    std::size_t connection_count() const noexcept { return connections_.size(); }
    std::size_t listener_count() const noexcept { return listeners_.size(); }
    std::uint64_t next_connection() const noexcept { return next_connection_; }
    // The process that created the connection, also after the connection is destroyed.
    std::uint32_t process_of(std::uint64_t connection) const {
        const auto found = makers_.find(connection);
        return found == makers_.end() ? UINT32_MAX : found->second;
    }
    // The host of a process (each process has its own machine) or of an address; a host name that
    // is not numeric gets a number.
    static access::Host host_of(std::uint32_t process);
    static access::AuthAddress auth_address_of(const Address& address);
    // The latest connection that this process has requested, or 0.
    std::uint64_t newest_connection(std::uint32_t process) const {
        const auto found = newest_.find(process);
        return found == newest_.end() ? 0 : found->second;
    }
    // The same, at this address.
    std::uint64_t newest_connection(std::uint32_t process, const Address& address) const {
        const auto found = newest_at_.find({process, to_string(address)});
        return found == newest_at_.end() ? 0 : found->second;
    }

    // The same in every run, independent of the seed.
    std::uint64_t draw_number() {
        std::uint64_t number = ++drawn_ * 0x9e3779b97f4a7c15;
        number = (number ^ (number >> 30)) * 0xbf58476d1ce4e5b9;
        return number ^ (number >> 31);
    }

    // --- faults of a connection ---
    // Both sides are notified that the connection is lost.
    void sever(std::uint64_t connection);
    // Stops all traffic without notifying either side.
    void cut(std::uint64_t connection);
    // Nothing arrives at this end until release(), because its process or the path to it has
    // stopped. Its host still shows signs of life.
    void hold(std::uint64_t connection);
    void release(std::uint64_t connection);
    // Data that this end sends from now on takes longer by this duration.
    void delay(std::uint64_t connection, Duration by) { delays_[connection] = by; }
    // The connection breaks when its nth send or write is posted.
    void break_at_send(std::uint64_t connection, std::size_t nth) { break_at_[connection] = nth; }
    void heal_breaks() { break_at_.clear(); }
    // No connection request is answered, at any address.
    void ignore_connects(bool ignore) noexcept { ignore_connects_ = ignore; }
    // All established connections, counting either end.
    std::vector<std::uint64_t> established() const;

    // --- faults of a process ---
    // Calls number `first`, `first` + 1, ... of this kind fail, `count` in total; the next call has
    // number 1.
    void fail_calls(std::uint32_t process, SimCall call, std::uint64_t first,
                    std::uint64_t count = UINT64_MAX);
    void heal_calls(std::uint32_t process);
    // The number of calls that have failed.
    std::uint64_t failed_calls(std::uint32_t process, SimCall call) const {
        const auto found = failed_.find({process, call});
        return found == failed_.end() ? 0 : found->second;
    }
    // The path from one process to the other. Senders get no notification that it is blocked: data
    // arrives when the block ends, unless an end has given up (SimProfile::retransmission).
    const SimPath& path(std::uint32_t from, std::uint32_t to) const;
    void set_path(std::uint32_t from, std::uint32_t to, const SimPath& path);
    // Kills a process. Its kernel closes the sockets, so peers are notified; with `host` they are
    // not. Later calls of the process have no effect; destroy its objects.
    void kill(std::uint32_t process, bool host);
    // How often a kill resets connections, so that data in transit is lost as well.
    void reset_percent(unsigned percent) noexcept { reset_percent_ = percent; }

  private:
    friend class SimConnection;
    friend class SimListener;
    friend class SimTransport;

    using Place = std::tuple<std::string, std::string, std::uint16_t>; // provider, host, port
    struct Planned {
        std::uint64_t calls = 0;
        std::uint64_t first = UINT64_MAX;
        std::uint64_t count = 0;
    };
    struct Way {
        SimPath path;
        TimePoint blocked_since;
    };

    // Data of an end that no longer exists, waiting for a path.
    struct Orphan {
        std::uint32_t from = 0;
        std::uint32_t to = 0;
        TimePoint not_before; // after what has left before it
        std::function<void()> arrive;
    };

    bool fails(std::uint32_t process, SimCall call);
    TimePoint arrival(TimePoint not_before, Duration latency, std::uint64_t jitter);
    SimConnection* find(std::uint64_t connection) const;
    SimListener* listener_at(const Place& place) const;
    // The answer to a connecting end that is not accepted: rejected (with data), refused (no
    // listener any more) or lost.
    void reject_client(std::uint64_t connection, CloseReason how, std::span<const std::byte> data);
    const Way* way(std::uint32_t from, std::uint32_t to) const;

    SimClock& clock_;
    std::mt19937_64 random_;
    std::vector<std::string> violations_;
    std::map<std::uint64_t, SimConnection*> connections_;
    std::map<Place, SimListener*> listeners_;
    std::map<std::uint64_t, std::size_t> break_at_;
    std::map<std::uint64_t, Duration> delays_;
    std::map<std::pair<std::uint32_t, SimCall>, Planned> planned_;
    std::map<std::pair<std::uint32_t, SimCall>, std::uint64_t> failed_;
    std::map<std::pair<std::uint32_t, std::uint32_t>, Way> ways_;
    std::map<std::uint64_t, std::uint32_t> makers_;
    std::map<std::uint32_t, std::uint64_t> newest_;
    std::map<std::pair<std::uint32_t, std::string>, std::uint64_t> newest_at_;
    std::vector<Orphan> orphans_;
    std::size_t registrations_ = 0;
    unsigned reset_percent_ = 50;
    std::uint64_t next_connection_ = 1;
    std::uint16_t next_port_ = 40000;
    std::uint64_t drawn_ = 0;
    bool ignore_connects_ = false;
};

} // namespace netio::test
