// SPDX-License-Identifier: Apache-2.0

// What a simulated connection does with sends, writes and receives, and what it does not forgive.

#include "tests/support/sim_connection.hpp"
#include "tests/support/sim_memory.hpp"

#include <algorithm>
#include <utility>

namespace netio::test {
namespace {

// A device may write to a posted receive at any time, so its old content is gone. The first page
// shows a reader of stale memory as well as all of it would, and costs less.
constexpr std::size_t spoiled_bytes = 4096;
constexpr std::byte spoiled{0xa5};

} // namespace

// --- posting --------------------------------------------------------------------------------

bool SimConnection::good_slices(std::span<const Slice> slices, bool for_receiving) {
    if (slices.size() > capabilities().segment_limit) transport_.violation("too many segments");
    bool good = true;
    for (const Slice& slice : slices) {
        if (slice.buffer == nullptr || !slice.buffer->contains(slice.data, slice.size)) {
            transport_.violation("a slice outside its buffer");
            good = false;
            continue;
        }
        // May throw, as on any device.
        const auto& region = static_cast<const SimTransport::Region&>(
            slice.buffer->registration(*transport_.domain_));
        if (for_receiving && !region.may_receive()) {
            transport_.violation("a receive into memory that may only be sent from");
            good = false;
        }
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
    if (capabilities().connector_speaks_first && !remote_ && !received_ &&
        state_ == State::established) {
        transport_.violation("the accepting side sent first");
    }
    const auto breaks = transport_.break_at_.find(number_);
    if (breaks != transport_.break_at_.end() && ++posted_count_ == breaks->second) {
        transport_.sever(number_);
    }
    if (state_ != State::established || !good_slices(slices, false)) return Status::closed;
    if (outgoing_.size() >= limits_.send_count) transport_.violation("more sends than announced");
    Bytes bytes = collect(slices);
    if (bytes.size() > capabilities().message_bytes) transport_.violation("message too large");
    const bool fresh = outgoing_
                           .emplace(cookie, Outstanding{.kind = kind,
                                                        .slices = {slices.begin(), slices.end()},
                                                        .copy = bytes})
                           .second;
    if (!fresh) transport_.violation("a cookie used twice at a time");
    const bool at_once = !transport_.profile_.completes_at_peer;
    depart([this_end = number_, cookie, at_once, bytes = std::move(bytes),
            at_peer = std::move(at_peer)](SimConnection& peer) {
        if (peer.state_ != State::established) return;
        SimTransport& transport = peer.transport_;
        at_peer(peer, bytes);
        if (!at_once) transport.complete_later(this_end, cookie, transport.profile_.latency);
    });
    if (at_once) transport_.complete_later(number_, cookie, transport_.profile_.latency / 4);
    return Status::ok;
}

Status SimConnection::post_receive(std::span<const Slice> slices, Cookie cookie) {
    if (state_ == State::ending || state_ == State::ended || !good_slices(slices, true)) {
        return Status::closed;
    }
    if (receives_outstanding_ >= limits_.receive_count) {
        transport_.violation("more receives than announced");
    }
    for (const Slice& slice : slices)
        std::fill_n(slice.data, std::min(slice.size, spoiled_bytes), spoiled);
    receives_.emplace_back(cookie, std::vector<Slice>{slices.begin(), slices.end()});
    ++receives_outstanding_;
    return Status::ok;
}

// --- on the way -----------------------------------------------------------------------------

// The event happens at the peer, behind everything that this end has sent before.
void SimConnection::depart(std::function<void(SimConnection&)> event) {
    SimTransport& transport = transport_;
    const auto delay = transport.delays_.find(number_);
    last_arrival_ = transport.arrival(
        last_arrival_, delay == transport.delays_.end() ? Duration{} : delay->second);
    transport.world_.at(last_arrival_, [&transport, from = number_, to = peer_,
                                        event = std::move(event)]() mutable {
        SimConnection* const peer = transport.find(to);
        if (peer == nullptr || peer->cut_ || peer->peer_ != from) return;
        if (peer->held_) return peer->waiting_.push_back(std::move(event));
        event(*peer);
    });
}

void SimConnection::release() {
    held_ = false;
    for (const auto& event : std::exchange(waiting_, {}))
        event(*this);
}

void SimConnection::complete_outgoing(Cookie cookie) {
    const auto found = outgoing_.find(cookie);
    if (found == outgoing_.end() || found->second.completed) return; // ended with its connection
    found->second.completed = true;
    tell(Completion{.kind = found->second.kind, .cookie = cookie});
}

// --- arriving -------------------------------------------------------------------------------

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

} // namespace netio::test
