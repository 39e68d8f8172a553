// SPDX-License-Identifier: Apache-2.0
#include "tests/support/sim_network.hpp"

#include "netio/access/host.hpp"
#include "tests/support/sim_connection.hpp"
#include "tests/support/sim_listener.hpp"

#include <algorithm>
#include <cstring>

namespace netio::test {

TimePoint SimNetwork::arrival(TimePoint not_before, Duration latency, std::uint64_t jitter) {
    const Duration late{static_cast<Duration::rep>(jitter == 0 ? 0 : random_() % jitter)};
    return std::max(not_before, clock_.now() + latency + late);
}

access::Host SimNetwork::host_of(std::uint32_t process) {
    constexpr auto byte = [](std::uint32_t value) { return static_cast<std::byte>(value); };
    return access::host_of_ipv4(
        std::array{std::byte{10}, byte(process >> 16), byte(process >> 8), byte(process)});
}

access::AuthAddress SimNetwork::auth_address_of(const Address& address) {
    access::AuthAddress result{.host = {}, .port = address.port};
    if (const auto host = access::parse_host(address.host)) {
        result.host = *host;
    } else {
        const std::uint64_t number = std::hash<std::string>{}(address.host);
        std::memcpy(result.host.data() + 8, &number, sizeof number);
        result.host[0] = std::byte{0xfd};
    }
    return result;
}

SimConnection* SimNetwork::find(std::uint64_t connection) const {
    const auto found = connections_.find(connection);
    return found == connections_.end() ? nullptr : found->second;
}

SimListener* SimNetwork::listener_at(const Place& place) const {
    const auto& [provider, host, port] = place;
    for (const std::string& listening : {host, std::string{"0.0.0.0"}, std::string{"::"}}) {
        const auto found = listeners_.find({provider, listening, port});
        if (found != listeners_.end() && !ignore_connects_) return found->second;
    }
    return nullptr;
}

void SimNetwork::reject_client(std::uint64_t connection, CloseReason how,
                               std::span<const std::byte> data) {
    const SimConnection* const asking = find(connection);
    if (asking == nullptr) return;
    const SimProfile& profile = asking->profile();
    const auto jitter = static_cast<std::uint64_t>(profile.jitter.count());
    clock_.at(arrival({}, profile.latency, jitter),
              [this, connection, how, copy = std::vector(data.begin(), data.end())] {
                  if (SimConnection* const peer = find(connection)) peer->turned_away(how, copy);
              });
}

// --- faults of a connection -----------------------------------------------------------------

void SimNetwork::sever(std::uint64_t connection) {
    SimConnection* const one = find(connection);
    if (one == nullptr) return;
    SimConnection* const other = find(one->peer_);
    one->end({.reason = CloseReason::lost, .detail = "severed"});
    if (other != nullptr) other->end({.reason = CloseReason::lost, .detail = "severed"});
}

void SimNetwork::cut(std::uint64_t connection) {
    SimConnection* const one = find(connection);
    if (one == nullptr) return;
    one->cut_ = clock_.now();
    if (SimConnection* const other = find(one->peer_)) other->cut_ = clock_.now();
}

void SimNetwork::hold(std::uint64_t connection) {
    if (SimConnection* const end = find(connection)) end->held_ = true;
}

void SimNetwork::release(std::uint64_t connection) {
    if (SimConnection* const end = find(connection)) end->release();
}

std::vector<std::uint64_t> SimNetwork::established() const {
    std::vector<std::uint64_t> list;
    for (const auto& [number, connection] : connections_) {
        if (connection->state_ == SimConnection::State::established) list.push_back(number);
    }
    return list;
}

// --- faults of a process --------------------------------------------------------------------

void SimNetwork::fail_calls(std::uint32_t process, SimCall call, std::uint64_t first,
                            std::uint64_t count) {
    planned_[{process, call}] = {.calls = 0, .first = first, .count = count};
}

void SimNetwork::heal_calls(std::uint32_t process) {
    std::erase_if(planned_, [&](const auto& entry) { return entry.first.first == process; });
}

bool SimNetwork::fails(std::uint32_t process, SimCall call) {
    const auto found = planned_.find({process, call});
    if (found == planned_.end()) return false;
    Planned& planned = found->second;
    ++planned.calls;
    const bool fails =
        planned.calls >= planned.first && planned.calls - planned.first < planned.count;
    if (fails) ++failed_[{process, call}];
    return fails;
}

const SimNetwork::Way* SimNetwork::way(std::uint32_t from, std::uint32_t to) const {
    const auto found = ways_.find({from, to});
    return found == ways_.end() ? nullptr : &found->second;
}

const SimPath& SimNetwork::path(std::uint32_t from, std::uint32_t to) const {
    static const SimPath usual;
    const Way* const known = way(from, to);
    return known == nullptr ? usual : known->path;
}

void SimNetwork::set_path(std::uint32_t from, std::uint32_t to, const SimPath& path) {
    Way& known = ways_[{from, to}];
    if (path.blocked && !known.path.blocked) known.blocked_since = clock_.now();
    known.path = path;
    if (path.blocked) return;
    for (const auto& [number, connection] : connections_) {
        if (connection->process() == from && process_of(connection->peer_) == to) {
            connection->depart_again();
        }
    }
    const auto stays = [&](const Orphan& each) { return each.from != from || each.to != to; };
    const auto gone = std::stable_partition(orphans_.begin(), orphans_.end(), stays);
    const TimePoint soon = clock_.now() + std::chrono::microseconds{50};
    for (auto orphan = gone; orphan != orphans_.end(); ++orphan)
        clock_.at(std::max(orphan->not_before, soon), std::move(orphan->arrive));
    orphans_.erase(gone, orphans_.end());
}

void SimNetwork::kill(std::uint32_t process, bool host) {
    for (const auto& [place, listener] : listeners_)
        if (listener->process() == process) listener->die(host);
    std::erase_if(listeners_,
                  [&](const auto& entry) { return entry.second->process() == process; });
    std::vector<SimConnection*> dying;
    for (const auto& [number, connection] : connections_)
        if (connection->process() == process) dying.push_back(connection);
    for (SimConnection* const connection : dying)
        connection->die(host);
}

} // namespace netio::test
