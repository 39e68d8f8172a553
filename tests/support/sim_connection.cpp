// SPDX-License-Identifier: Apache-2.0

// The life of a simulated connection. What it carries is in sim_operations.cpp.

#include "tests/support/sim_connection.hpp"

#include "netio/base/destruction_watch.hpp"
#include "tests/support/sim_memory.hpp"

#include <algorithm>
#include <utility>
#include <variant>

namespace netio::test {

SimConnection::SimConnection(SimTransport& transport, std::optional<Address> remote,
                             std::uint64_t peer, const QueueLimits& limits, Handler& handler)
    : transport_{transport}, number_{transport.next_connection_++}, peer_{peer},
      remote_{std::move(remote)}, limits_{limits}, handler_{handler} {
    transport_.connections_.emplace(number_, this);
    transport_.loop_.add(*this);
}

SimConnection::~SimConnection() {
    if (destroyed_ != nullptr) *destroyed_ = true;
    if (state_ != State::ending && state_ != State::ended) tell_peer_of_end();
    transport_.loop_.remove(*this);
    transport_.connections_.erase(number_);
}

MemoryDomain& SimConnection::domain() noexcept {
    return *transport_.domain_;
}

TimePoint SimConnection::last_sign_of_life(Duration) {
    return cut_ ? *cut_ : transport_.world_.now();
}

std::string SimConnection::peer_address() const {
    return remote_ ? to_string(*remote_) : "sim#" + std::to_string(peer_);
}

// --- opening --------------------------------------------------------------------------------

void SimConnection::open(std::span<const std::byte> data) {
    if (state_ != State::made) transport_.violation("a connection was opened twice");
    if (data.size() > connection_data_limit) transport_.violation("connection data too long");
    state_ = State::opening;
    SimTransport& transport = transport_;
    const Bytes copy{data.begin(), data.end()};
    if (remote_) {
        transport.world_.at(transport.arrival({}), [&transport, number = number_, copy] {
            SimConnection* const self = transport.find(number);
            if (self == nullptr || self->state_ != State::opening) return;
            SimListener* const listener = transport.listener_at(self->remote_->port);
            if (listener != nullptr) return listener->request(number, copy);
            if (transport.ignore_connects_) return;
            transport.turn_away(number, CloseReason::refused, {});
        });
        return;
    }
    transport.world_.at(transport.arrival({}), [&transport, number = number_, copy] {
        SimConnection* const self = transport.find(number);
        if (self == nullptr || self->state_ != State::opening) return;
        SimConnection* const peer = transport.find(self->peer_);
        if (peer == nullptr || peer->state_ != State::opening) {
            return self->end({.reason = CloseReason::lost, .detail = "the peer gave up"});
        }
        for (SimConnection* const side : {self, peer})
            side->state_ = State::established;
        peer->peer_ = number;
        self->tell(Connected{});
        peer->tell(Connected{copy});
    });
}

// --- the end --------------------------------------------------------------------------------

void SimConnection::close() {
    if (state_ == State::ending || state_ == State::ended) return;
    closed_here_ = true;
    tell_peer_of_end();
    end({.reason = CloseReason::local});
}

void SimConnection::tell_peer_of_end() {
    if (cut_) return;
    if (state_ == State::established) {
        // Behind everything that was sent to it.
        depart([](SimConnection& peer) {
            peer.end({.reason = CloseReason::lost, .detail = "the peer is gone"});
        });
    } else if (!remote_) {
        // An endpoint that was made for a request and not opened does not accept it.
        transport_.turn_away(peer_,
                             state_ == State::made ? CloseReason::rejected : CloseReason::lost, {});
    }
}

// Everything outstanding ends, then comes the last word.
void SimConnection::end(Closed closed) {
    if (state_ == State::ending || state_ == State::ended) return;
    state_ = State::ending;
    for (auto& [cookie, operation] : outgoing_) {
        if (std::exchange(operation.completed, true)) continue; // it waits to be told
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

// --- telling the handler --------------------------------------------------------------------

void SimConnection::tell(Event event) {
    inbox_.push_back(std::move(event));
    transport_.world_.ready(*this);
}

void SimConnection::hand_over(const Completion& completion) {
    if (completion.kind == Completion::Kind::receive || completion.consumed_receive) {
        --receives_outstanding_;
    } else if (completion.kind != Completion::Kind::remote_write) {
        const auto node = outgoing_.extract(completion.cookie);
        if (collect(node.mapped().slices) != node.mapped().copy) {
            transport_.violation("memory was changed while it was lent");
        }
    }
    handler_.on_completion(completion); // may destroy this connection
}

std::size_t SimConnection::drain(std::size_t budget) {
    const DestructionWatch watch{destroyed_};
    std::size_t done = 0;
    while (done < budget && !watch.destroyed() && !inbox_.empty()) {
        const Event event = std::move(inbox_.front());
        inbox_.pop_front();
        ++done;
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
