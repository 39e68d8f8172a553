// SPDX-License-Identifier: Apache-2.0
#pragma once

// What lies between simulated processes: connections in memory, in virtual time, the same every
// time for a seed. It is stricter than any provider: what would break on RDMA hardware, or corrupt
// data, is noted as a violation, and a test bed fails the test for it.
//
// Faults of one connection are asked for by its number: 1, 2, ... in the order of their making, the
// connecting and the accepting side each. Those of processes by theirs (SimTransport::process).

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

// Calls that can fail, each counted for each process.
enum class SimCall : std::uint8_t {
    register_memory, // no memory, or more than may be locked
    make_connection, // no descriptor, no endpoint: for who connects
    accept,          // the same for who accepts
    listen,
    post,   // of a send, a write or a receive: the connection breaks
    search, // for a way to a peer: no thread, no descriptor
};
inline constexpr std::size_t sim_call_count = 6;

// How one process reaches another.
struct SimPath {
    bool blocked = false;        // what is sent waits
    Duration delay{};            // longer than usual
    double bytes_per_second = 0; // 0: no limit
};

class SimNetwork {
  public:
    SimNetwork(SimClock& clock, std::uint64_t seed) : clock_{clock}, random_{seed} {}

    SimClock& clock() noexcept { return clock_; }
    // What a test has to answer for.
    const std::vector<std::string>& violations() const noexcept { return violations_; }
    void violation(const std::string& what) { violations_.push_back(what); }
    // That exist now.
    std::size_t registration_count() const noexcept { return registrations_; }
    std::size_t connection_count() const noexcept { return connections_.size(); }
    std::size_t listener_count() const noexcept { return listeners_.size(); }
    std::uint64_t next_connection() const noexcept { return next_connection_; }
    // Who has made it, also once it is gone.
    std::uint32_t process_of(std::uint64_t connection) const {
        const auto found = makers_.find(connection);
        return found == makers_.end() ? UINT32_MAX : found->second;
    }
    // Of a process: each is a machine. And of an address; a host that is not numeric gets a number.
    static access::Host host_of(std::uint32_t process);
    static access::AuthAddress auth_address_of(const Address& address);
    // The last that this process has asked for; 0: none.
    std::uint64_t newest_connection(std::uint32_t process) const {
        const auto found = newest_.find(process);
        return found == newest_.end() ? 0 : found->second;
    }
    // The same, at this address.
    std::uint64_t newest_connection(std::uint32_t process, const Address& address) const {
        const auto found = newest_at_.find({process, to_string(address)});
        return found == newest_at_.end() ? 0 : found->second;
    }

    // The same in every run, whatever its seed.
    std::uint64_t draw_number() {
        std::uint64_t number = ++drawn_ * 0x9e3779b97f4a7c15;
        number = (number ^ (number >> 30)) * 0xbf58476d1ce4e5b9;
        return number ^ (number >> 31);
    }

    // --- faults of a connection ---
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
    void heal_breaks() { break_at_.clear(); }
    // Nobody answers at any address.
    void ignore_connects(bool ignore) noexcept { ignore_connects_ = ignore; }
    // All connections that are established, either end.
    std::vector<std::uint64_t> established() const;

    // --- faults of a process ---
    // The calls number first, first + 1, ..., count of them, of this kind fail; counted from the
    // next one, which is 1.
    void fail_calls(std::uint32_t process, SimCall call, std::uint64_t first,
                    std::uint64_t count = UINT64_MAX);
    void heal_calls(std::uint32_t process);
    // So many have.
    std::uint64_t failed_calls(std::uint32_t process, SimCall call) const {
        const auto found = failed_.find({process, call});
        return found == failed_.end() ? 0 : found->second;
    }
    // What the one sends to the other. Blocked is told nobody: it arrives when this is over,
    // unless an end has given up (SimProfile::retransmission).
    const SimPath& path(std::uint32_t from, std::uint32_t to) const;
    void set_path(std::uint32_t from, std::uint32_t to, const SimPath& path);
    // Its sockets are closed by its kernel: peers hear of it. With `host` nobody does. What it
    // still calls has no effect; destroy what it had.
    void kill(std::uint32_t process, bool host);
    // How often a kill resets connections, so that what is under way is lost as well.
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

    // What was sent by an end that does not exist any more, and waits for a path.
    struct Orphan {
        std::uint32_t from = 0;
        std::uint32_t to = 0;
        TimePoint not_before; // behind what has left before it
        std::function<void()> arrive;
    };

    bool fails(std::uint32_t process, SimCall call);
    TimePoint arrival(TimePoint not_before, Duration latency, std::uint64_t jitter);
    SimConnection* find(std::uint64_t connection) const;
    SimListener* listener_at(const Place& place) const;
    // What a connecting end hears instead of being accepted: rejected, with data; refused, if there
    // is no listener any more; lost.
    void turn_away(std::uint64_t connection, CloseReason how, std::span<const std::byte> data);
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
