// SPDX-License-Identifier: Apache-2.0
#include "tests/support/sim_connection.hpp"

#include "netio/destruction_watch.hpp"
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
    if (state_ == State::established || (state_ == State::opening && !remote_)) peer_ended();
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
            self->end(
                {.reason = CloseReason::refused,
                 .detail = "connecting to " + to_string(*self->remote_) + ": Connection refused"});
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

// --- operations -----------------------------------------------------------------------------

bool SimConnection::good_slices(std::span<const Slice> slices) {
    if (slices.size() > capabilities().segment_limit) transport_.violation("too many segments");
    bool good = true;
    for (const Slice& slice : slices) {
        if (slice.buffer == nullptr || !slice.buffer->contains(slice.data, slice.size)) {
            transport_.violation("a slice outside its buffer");
            good = false;
            continue;
        }
        slice.buffer->registration(*transport_.domain_); // may throw, as on any device
    }
    return good;
}

SimConnection::Bytes SimConnection::collect(std::span<const Slice> slices) const {
    Bytes bytes;
    for (const Slice& slice : slices)
        bytes.insert(bytes.end(), slice.data, slice.data + slice.size);
    return bytes;
}

Status SimConnection::post_send(std::span<const Slice> slices, Cookie cookie) {
    if (capabilities().connector_speaks_first && !remote_ && !received_ &&
        state_ == State::established) {
        transport_.violation("the accepting side sent first");
    }
    const auto breaks = transport_.break_at_.find(number_);
    if (breaks != transport_.break_at_.end() && ++sends_ == breaks->second) {
        transport_.sever(number_);
    }
    return post_outgoing(slices, cookie, Completion::Kind::send,
                         [](SimConnection& peer, const Bytes& bytes) { peer.take_message(bytes); });
}

Status SimConnection::post_write(std::span<const Slice> slices, const RemoteSlice& target,
                                 std::optional<std::uint32_t> immediate, Cookie cookie) {
    if (immediate && capabilities().immediate_bytes < sizeof *immediate) {
        transport_.violation("immediate data on a connection that carries none");
    }
    return post_outgoing(slices, cookie, Completion::Kind::write,
                         [target, immediate](SimConnection& peer, const Bytes& bytes) {
                             peer.take_write(bytes, target, immediate);
                         });
}

Status SimConnection::post_outgoing(std::span<const Slice> slices, Cookie cookie,
                                    Completion::Kind kind,
                                    std::function<void(SimConnection&, const Bytes&)> at_peer) {
    if (state_ != State::established || !good_slices(slices)) return Status::closed;
    if (outgoing_.size() >= limits_.send_count) transport_.violation("more sends than announced");
    Bytes bytes = collect(slices);
    if (bytes.size() > capabilities().message_bytes) transport_.violation("message too large");
    const bool fresh = outgoing_
                           .emplace(cookie, Outstanding{.kind = kind,
                                                        .slices = {slices.begin(), slices.end()},
                                                        .copy = bytes})
                           .second;
    if (!fresh) transport_.violation("a cookie used twice at a time");
    SimTransport& transport = transport_;
    last_arrival_ = transport.arrival(last_arrival_);
    transport.world_.at(last_arrival_, [&transport, from = number_, to = peer_,
                                        bytes = std::move(bytes), at_peer = std::move(at_peer)] {
        SimConnection* const peer = transport.find(to);
        if (peer == nullptr || peer->cut_ || peer->peer_ != from) return;
        if (peer->state_ == State::established) at_peer(*peer, bytes);
    });
    const TimePoint completion = transport.profile_.completes_at_peer
                                     ? last_arrival_ + transport.profile_.latency
                                     : transport.world_.now() + transport.profile_.latency / 4;
    transport.world_.at(completion, [&transport, number = number_, cookie] {
        SimConnection* const self = transport.find(number);
        if (self != nullptr && !self->cut_) self->complete_outgoing(cookie);
    });
    return Status::ok;
}

void SimConnection::complete_outgoing(Cookie cookie) {
    const auto node = outgoing_.extract(cookie);
    if (node.empty()) return; // ended with its connection
    if (collect(node.mapped().slices) != node.mapped().copy) {
        transport_.violation("memory was changed while it was lent");
    }
    tell(Completion{.kind = node.mapped().kind, .cookie = cookie});
}

Status SimConnection::post_receive(std::span<const Slice> slices, Cookie cookie) {
    if (state_ == State::ending || state_ == State::ended || !good_slices(slices)) {
        return Status::closed;
    }
    if (receives_.size() >= limits_.receive_count) {
        transport_.violation("more receives than announced");
    }
    receives_.emplace_back(cookie, std::vector<Slice>{slices.begin(), slices.end()});
    return Status::ok;
}

// The receive that a message of so many bytes uses up; its content is copied there.
std::optional<Cookie> SimConnection::take_receive(std::size_t bytes, const Bytes* content) {
    if (receives_.empty()) {
        transport_.violation("a message without a posted receive");
        return std::nullopt;
    }
    const auto [cookie, slices] = std::move(receives_.front());
    receives_.pop_front();
    if (content == nullptr) return cookie;
    std::size_t done = 0;
    for (const Slice& slice : slices) {
        const std::size_t part = std::min(slice.size, bytes - done);
        std::copy_n(content->begin() + static_cast<std::ptrdiff_t>(done), part, slice.data);
        done += part;
    }
    if (done == bytes) return cookie;
    transport_.violation("a message larger than its receive");
    return std::nullopt;
}

void SimConnection::take_message(const Bytes& bytes) {
    received_ = true;
    if (const auto cookie = take_receive(bytes.size(), &bytes)) {
        return tell(Completion{
            .kind = Completion::Kind::receive, .cookie = *cookie, .bytes = bytes.size()});
    }
    transport_.sever(number_);
}

void SimConnection::take_write(const Bytes& bytes, const RemoteSlice& target,
                               std::optional<std::uint32_t> immediate) {
    received_ = true;
    std::byte* const place = transport_.domain_->writable(target, bytes.size());
    if (place == nullptr) {
        transport_.violation("a write outside what the peer offered");
        return transport_.sever(number_);
    }
    std::ranges::copy(bytes, place);
    if (!immediate) return;
    Completion completion{
        .kind = Completion::Kind::remote_write, .bytes = bytes.size(), .immediate = *immediate};
    if (capabilities().write_consumes_receive) {
        const auto cookie = take_receive(0, nullptr);
        if (!cookie) return transport_.sever(number_);
        completion.cookie = *cookie;
        completion.consumed_receive = true;
    }
    tell(completion);
}

// --- the end --------------------------------------------------------------------------------

void SimConnection::close() {
    if (state_ == State::ending || state_ == State::ended) return;
    if (state_ == State::established) peer_ended();
    end({.reason = CloseReason::local});
}

// The peer is told behind everything that was sent to it.
void SimConnection::peer_ended() {
    SimTransport& transport = transport_;
    if (cut_) return;
    last_arrival_ = transport.arrival(last_arrival_);
    transport.world_.at(last_arrival_, [&transport, to = peer_] {
        if (SimConnection* const peer = transport.find(to)) {
            peer->end({.reason = CloseReason::lost, .detail = "the peer is gone"});
        }
    });
}

// Everything outstanding ends, then comes the last word.
void SimConnection::end(Closed closed) {
    if (state_ == State::ending || state_ == State::ended) return;
    state_ = State::ending;
    for (const auto& [cookie, operation] : std::exchange(outgoing_, {})) {
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

std::size_t SimConnection::drain(std::size_t budget) {
    const DestructionWatch watch{destroyed_};
    std::size_t done = 0;
    while (done < budget && !watch.destroyed() && !inbox_.empty()) {
        const Event event = std::move(inbox_.front());
        inbox_.pop_front();
        ++done;
        if (const auto* connected = std::get_if<Connected>(&event)) {
            handler_.on_connected(connected->data);
        } else if (const auto* rejected = std::get_if<Rejected>(&event)) {
            handler_.on_rejected(rejected->data);
        } else if (const auto* completion = std::get_if<Completion>(&event)) {
            handler_.on_completion(*completion);
        } else {
            state_ = State::ended;
            handler_.on_closed(std::get<Closed>(event));
        }
    }
    return done;
}

} // namespace netio::test
