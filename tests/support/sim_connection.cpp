// SPDX-License-Identifier: Apache-2.0

// Opening and closing of a simulated connection. Its operations are in sim_operations.cpp, the
// transfer to the peer is in sim_travel.cpp.

#include "tests/support/sim_connection.hpp"

#include "netio/base/destruction_watch.hpp"
#include "tests/support/sim_listener.hpp"
#include "tests/support/sim_memory.hpp"

#include <algorithm>
#include <utility>
#include <variant>

namespace netio::test {

SimConnection::SimConnection(SimTransport& transport, const SimProfile& profile,
                             SimTransport::Domain& domain, std::optional<Address> remote,
                             std::uint64_t peer, const QueueLimits& limits, Handler& handler)
    : transport_{transport}, network_{transport.network()}, profile_{profile}, domain_{domain},
      number_{network_.next_connection_++}, peer_{peer}, remote_{std::move(remote)},
      limits_{limits}, handler_{handler} {
    network_.connections_.emplace(number_, this);
    network_.makers_[number_] = transport_.number();
    if (remote_) {
        network_.newest_[transport_.number()] = number_;
        network_.newest_at_[{transport_.number(), to_string(*remote_)}] = number_;
    }
    transport_.loop_.add(*this);
    ++transport_.users_;
}

SimConnection::~SimConnection() {
    transport_.charge(transport_.costs_.connection);
    if (destroyed_ != nullptr) *destroyed_ = true;
    if (state_ != State::ending && state_ != State::ended) tell_peer_of_end();
    leave_stuck_behind();
    transport_.loop_.remove(*this);
    network_.connections_.erase(number_);
    --transport_.users_;
}

MemoryDomain& SimConnection::domain() noexcept {
    return domain_;
}

std::string SimConnection::peer_address() const {
    return remote_ ? to_string(*remote_) : "sim#" + std::to_string(peer_);
}

// --- opening --------------------------------------------------------------------------------

void SimConnection::open(std::span<const std::byte> data) {
    transport_.charge(transport_.costs_.connection);
    if (state_ != State::made) network_.violation("a connection was opened twice");
    if (data.size() > connection_data_limit) network_.violation("connection data too long");
    if (dead_) return;
    state_ = State::opening;
    SimNetwork& network = network_;
    network.clock().at(arrival({}),
                       [&network, number = number_, copy = Bytes{data.begin(), data.end()}] {
                           SimConnection* const self = network.find(number);
                           if (self == nullptr || self->state_ != State::opening) return;
                           self->remote_ ? self->request(copy) : self->accept(copy);
                       });
}

void SimConnection::request(const Bytes& data) {
    SimListener* const listener =
        network_.listener_at({profile_.capabilities.provider, remote_->host, remote_->port});
    if (listener == nullptr) {
        if (!network_.ignore_connects_) network_.reject_client(number_, CloseReason::refused, {});
        return;
    }
    const std::uint32_t there = listener->process();
    if (!network_.path(process(), there).blocked && !network_.path(there, process()).blocked) {
        return listener->request({.connection = number_, .data = data, .dialled = *remote_});
    }
    // The request is sent again until an answer arrives.
    network_.clock().at(now() + std::chrono::seconds{1},
                        [&network = network_, number = number_, data] {
                            SimConnection* const self = network.find(number);
                            if (self != nullptr && self->state_ == State::opening) {
                                self->request(data);
                            }
                        });
}

void SimConnection::accept(const Bytes& answer) {
    SimConnection* const peer = network_.find(peer_);
    if (peer == nullptr || peer->state_ != State::opening) {
        return end({.reason = CloseReason::lost, .detail = "the peer gave up"});
    }
    for (SimConnection* const side : {this, peer}) {
        side->state_ = State::established;
        side->last_heard_ = now();
    }
    peer->peer_ = number_;
    tell(Connected{});
    peer->tell(Connected{answer});
}

void SimConnection::turned_away(CloseReason how, const Bytes& data) {
    if (state_ != State::opening) return;
    if (how == CloseReason::rejected) tell(Rejected{data});
    const char* const why = how == CloseReason::rejected  ? "rejected by the listener"
                            : how == CloseReason::refused ? "Connection refused"
                                                          : "the peer gave up";
    end({.reason = how, .detail = "connecting to " + peer_address() + ": " + why});
}

// --- the end --------------------------------------------------------------------------------

void SimConnection::close() {
    transport_.charge(transport_.costs_.connection);
    if (state_ == State::ending || state_ == State::ended) return;
    closed_here_ = true;
    tell_peer_of_end();
    end({.reason = CloseReason::local});
}

void SimConnection::tell_peer_of_end() {
    if (cut_ || dead_) return;
    if (state_ == State::established) {
        depart(0, [](SimConnection& peer) {
            peer.end({.reason = CloseReason::lost, .detail = "the peer is gone"});
        });
    } else if (!remote_) {
        // An endpoint that was created for a request but not opened rejects it.
        network_.reject_client(
            peer_, state_ == State::made ? CloseReason::rejected : CloseReason::lost, {});
    }
}

void SimConnection::die(bool host) {
    SimConnection* const peer = network_.find(peer_);
    if (host) {
        if (peer != nullptr) peer->cut_ = now();
        stuck_.clear();
    } else if (state_ == State::established && network_.random_() % 100 < network_.reset_percent_) {
        // A reset overtakes messages that are still in transit.
        const auto jitter = static_cast<std::uint64_t>(profile_.latency.count());
        network_.clock().at(network_.arrival({}, {}, jitter), [&network = network_, to = peer_] {
            SimConnection* const end = network.find(to);
            if (end != nullptr && !end->cut_) {
                end->end({.reason = CloseReason::lost, .detail = "reset by the peer"});
            }
        });
    } else if (state_ != State::ending && state_ != State::ended) {
        tell_peer_of_end();
    }
    dead_ = true;
    end({.reason = CloseReason::lost, .detail = "killed"});
}

// All outstanding operations complete, then on_closed is called.
void SimConnection::end(Closed closed) {
    if (state_ == State::ending || state_ == State::ended) return;
    state_ = State::ending;
    not_left_.clear();
    for (auto& [cookie, operation] : outgoing_) {
        if (std::exchange(operation.completed, true)) continue; // its completion is already queued
        tell(Completion{
            .kind = operation.kind, .outcome = Completion::Outcome::canceled, .cookie = cookie});
    }
    for (const auto& [cookie, slices] : std::exchange(receives_, {})) {
        tell(Completion{.kind = Completion::Kind::receive,
                        .outcome = Completion::Outcome::canceled,
                        .cookie = cookie});
    }
    tell(std::move(closed));
}

// --- callbacks ------------------------------------------------------------------------------

void SimConnection::tell(Event event) {
    inbox_.push_back(std::move(event));
    transport_.process_.ready(*this);
}

void SimConnection::hand_over(const Completion& completion) {
    if (completion.kind == Completion::Kind::receive || completion.consumed_receive) {
        --receives_outstanding_;
    } else if (completion.kind != Completion::Kind::remote_write) {
        const auto node = outgoing_.extract(completion.cookie);
        if (collect(node.mapped().slices) != node.mapped().copy) {
            network_.violation("memory was changed while it was lent");
        }
    }
    if (completion.kind == Completion::Kind::receive ||
        completion.kind == Completion::Kind::remote_write) {
        unread_bytes_ -= std::min(unread_bytes_, completion.bytes);
        if (SimConnection* const peer = network_.find(peer_)) peer->complete_left();
    }
    handler_.on_completion(completion); // may destroy this connection
}

std::size_t SimConnection::drain(std::size_t budget) {
    const DestructionWatch watch{destroyed_};
    std::size_t done = 0;
    EventLoop& loop = transport_.loop_;
    SimProcess& process = transport_.process_;
    while (done < budget && !watch.destroyed() && !inbox_.empty()) {
        if (done > 0 && loop.time_is_up()) break;
        const Event event = std::move(inbox_.front());
        inbox_.pop_front();
        ++done;
        const SimProcess::Piece piece{process};
        if (const auto* connected = std::get_if<Connected>(&event)) {
            if (!closed_here_) handler_.on_connected(connected->data);
        } else if (const auto* rejected = std::get_if<Rejected>(&event)) {
            if (!closed_here_) handler_.on_rejected(rejected->data);
        } else if (const auto* completion = std::get_if<Completion>(&event)) {
            hand_over(*completion);
        } else {
            state_ = State::ended;
            handler_.on_closed(std::get<Closed>(event));
        }
    }
    return done;
}

} // namespace netio::test
