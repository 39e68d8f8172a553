// SPDX-License-Identifier: Apache-2.0

// How data of a simulated connection reaches the other end, and the signs of life of this end.

#include "tests/support/sim_connection.hpp"

#include <algorithm>
#include <utility>

namespace netio::test {

TimePoint SimConnection::arrival(TimePoint not_before, Duration delay) {
    return network_.arrival(not_before, profile_.latency + delay,
                            static_cast<std::uint64_t>(profile_.jitter.count()));
}

void SimConnection::depart(std::size_t bytes, std::function<void(SimConnection&)> event) {
    const bool blocked = network_.path(process(), network_.process_of(peer_)).blocked;
    if (!blocked && stuck_.empty()) return travel(bytes, std::move(event));
    stuck_.push_back({.bytes = bytes, .event = std::move(event)});
    network_.clock().at(now() + profile_.retransmission,
                        [&network = network_, number = number_, since = ++stuck_count_] {
                            SimConnection* const self = network.find(number);
                            if (self != nullptr) self->give_up_if_stuck(since);
                        });
}

void SimConnection::give_up_if_stuck(std::uint64_t since) {
    // The number of the oldest blocked message.
    if (stuck_.empty() || stuck_count_ - stuck_.size() + 1 > since) return;
    stuck_.clear();
    end({.reason = CloseReason::lost, .detail = "no acknowledgement"});
}

void SimConnection::depart_again() {
    for (Stuck& stuck : std::exchange(stuck_, {}))
        travel(stuck.bytes, std::move(stuck.event));
}

// The kernel keeps trying.
void SimConnection::leave_stuck_behind() {
    for (Stuck& stuck : std::exchange(stuck_, {})) {
        network_.orphans_.push_back({.from = process(),
                                     .to = network_.process_of(peer_),
                                     .not_before = last_arrival_,
                                     .arrive = [&network = network_, from = number_, to = peer_,
                                                event = std::move(stuck.event)]() mutable {
                                         if (SimConnection* const end = network.find(to)) {
                                             end->arrive(from, std::move(event));
                                         }
                                     }});
    }
}

void SimConnection::travel(std::size_t bytes, std::function<void(SimConnection&)> event) {
    SimPath path = network_.path(process(), network_.process_of(peer_));
    if (const auto more = network_.delays_.find(number_); more != network_.delays_.end()) {
        path.delay += more->second;
    }
    last_arrival_ = arrival(last_arrival_, path.delay);
    if (path.bytes_per_second > 0) {
        last_arrival_ += std::chrono::duration_cast<Duration>(
            std::chrono::duration<double>(static_cast<double>(bytes) / path.bytes_per_second));
    }
    network_.clock().at(last_arrival_, [&network = network_, from = number_, to = peer_,
                                        event = std::move(event)]() mutable {
        if (SimConnection* const end = network.find(to)) end->arrive(from, std::move(event));
    });
}

void SimConnection::arrive(std::uint64_t from, std::function<void(SimConnection&)> event) {
    if (cut_ || peer_ != from || dead_) return;
    if (held_) return waiting_.push_back(std::move(event));
    heard(now());
    if (SimConnection* const peer = network_.find(from); peer && !peer->unanswered_since()) {
        peer->heard(now() + profile_.latency);
    }
    event(*this);
}

void SimConnection::release() {
    held_ = false;
    for (const auto& event : std::exchange(waiting_, {}))
        event(*this);
}

// --- completions ----------------------------------------------------------------------------

void SimConnection::complete_outgoing(Cookie cookie) {
    const auto found = outgoing_.find(cookie);
    if (found == outgoing_.end() || found->second.completed) return; // ended with its connection
    found->second.completed = true;
    tell(Completion{.kind = found->second.kind, .cookie = cookie});
}

void SimConnection::complete_later(Cookie cookie, Duration delay) {
    network_.clock().at(now() + delay, [&network = network_, number = number_, cookie] {
        SimConnection* const end = network.find(number);
        if (end != nullptr && !end->cut_) end->complete_outgoing(cookie);
    });
}

// Sends that waited for space in the peer's kernel leave in their order.
void SimConnection::complete_left() {
    const SimConnection* const peer = network_.find(peer_);
    while (!not_left_.empty() && peer != nullptr && peer->unread_bytes_ <= profile_.window_bytes) {
        complete_later(not_left_.front(), profile_.latency);
        not_left_.pop_front();
    }
}

// --- signs of life --------------------------------------------------------------------------

std::optional<TimePoint> SimConnection::unanswered_since() const {
    std::optional<TimePoint> since = cut_;
    const std::uint32_t there = network_.process_of(peer_);
    for (const auto& [from, to] : {std::pair{process(), there}, std::pair{there, process()}}) {
        const SimNetwork::Way* const way = network_.way(from, to);
        if (way == nullptr || !way->path.blocked) continue;
        since = since ? std::min(*since, way->blocked_since) : way->blocked_since;
    }
    return since;
}

TimePoint SimConnection::last_sign_of_life(Duration interval) {
    transport_.charge(transport_.costs_.post);
    if (profile_.sign == SimProfile::Sign::none) return TimePoint::min();
    if (profile_.sign == SimProfile::Sign::device) {
        ask_device();
    } else {
        const Duration every = std::max<Duration>(interval, std::chrono::seconds{1});
        if (!signs_wanted_since_) signs_wanted_since_ = now();
        // The kernel sends a keepalive after each silence of this length, and gets an answer if one
        // can arrive.
        const TimePoint answered = std::min(now(), unanswered_since().value_or(now()));
        if (answered > *signs_wanted_since_) {
            heard(*signs_wanted_since_ + (answered - *signs_wanted_since_) / every * every);
        }
    }
    if (network_.find(peer_) == nullptr && !unanswered_since()) reset_later();
    // Converted to the time of this process.
    return transport_.process_.now() - (now() - std::min(last_heard_, now()));
}

// A host that does not know the connection any more answers a query with a reset.
void SimConnection::reset_later() {
    network_.clock().at(now() + 2 * profile_.latency, [&network = network_, number = number_] {
        SimConnection* const end = network.find(number);
        if (end != nullptr && end->state_ == State::established) {
            end->end({.reason = CloseReason::lost, .detail = "reset by the peer"});
        }
    });
}

// Posts an empty write, which the peer's device acknowledges independently of its process.
void SimConnection::ask_device() {
    if (state_ != State::established || sign_asked_for_ || !outgoing_.empty()) return;
    sign_asked_for_ = true;
    depart(0, [number = number_](SimConnection& peer) {
        SimNetwork& network = peer.network_;
        if (SimConnection* const asking = network.find(number)) {
            asking->sign_asked_for_ = false;
        }
    });
}

} // namespace netio::test
