// SPDX-License-Identifier: Apache-2.0

// Sends, writes and receives of a simulated connection, and the violations that it detects.

#include "tests/support/sim_connection.hpp"
#include "tests/support/sim_memory.hpp"

#include <algorithm>
#include <utility>

namespace netio::test {
namespace {

// A device may write to a posted receive at any time, so its old content is overwritten.
// Overwriting the first page shows a reader of stale memory as well as overwriting all, and costs
// less.
constexpr std::size_t spoiled_bytes = 4096;
constexpr std::byte spoiled{0xa5};

} // namespace

// --- posting --------------------------------------------------------------------------------

bool SimConnection::good_slices(std::span<const Slice> slices, bool for_receiving) {
    if (slices.size() > capabilities().segment_limit) network_.violation("too many segments");
    bool good = true;
    for (const Slice& slice : slices) {
        if (slice.buffer == nullptr || !slice.buffer->contains(slice.data, slice.size)) {
            network_.violation("a slice outside its buffer");
            good = false;
            continue;
        }
        // May throw, as registration does on any device.
        const auto& region =
            static_cast<const SimTransport::Region&>(slice.buffer->registration(domain_));
        if (for_receiving && !region.may_receive()) {
            network_.violation("a receive into memory that may only be sent from");
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
    transport_.charge(transport_.costs_.post);
    return post_outgoing(slices, cookie, Completion::Kind::send,
                         [](SimConnection& peer, const Bytes& bytes) { peer.take_message(bytes); });
}

Status SimConnection::post_write(std::span<const Slice> slices, const RemoteSlice& target,
                                 std::optional<std::uint32_t> immediate, Cookie cookie) {
    transport_.charge(transport_.costs_.post);
    if (immediate && capabilities().immediate_bytes < sizeof *immediate) {
        network_.violation("immediate data on a connection that carries none");
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
        network_.violation("the accepting side sent first");
    }
    const auto breaks = network_.break_at_.find(number_);
    if ((breaks != network_.break_at_.end() && ++posted_count_ == breaks->second) ||
        transport_.fails(SimCall::post)) {
        network_.sever(number_);
    }
    if (state_ != State::established || !good_slices(slices, false)) return Status::closed;
    if (outgoing_.size() >= limits_.send_count) network_.violation("more sends than announced");
    Bytes bytes = collect(slices);
    if (bytes.size() > capabilities().message_bytes) network_.violation("message too large");
    const bool fresh = outgoing_
                           .emplace(cookie, Outstanding{.kind = kind,
                                                        .slices = {slices.begin(), slices.end()},
                                                        .copy = bytes})
                           .second;
    if (!fresh) network_.violation("a cookie used twice at a time");
    const bool at_once = !profile_.completes_at_peer;
    depart(bytes.size(), [this_end = number_, cookie, at_once, bytes,
                          at_peer = std::move(at_peer)](SimConnection& peer) {
        if (peer.state_ != State::established) return;
        SimNetwork& network = peer.network_;
        at_peer(peer, bytes);
        SimConnection* const self = at_once ? nullptr : network.find(this_end);
        if (self != nullptr) self->complete_later(cookie, self->profile_.latency);
    });
    if (!at_once) return Status::ok;
    SimConnection* const peer = network_.find(peer_);
    if (peer != nullptr && profile_.window_bytes != SIZE_MAX) {
        peer->unread_bytes_ += bytes.size();
        if (peer->unread_bytes_ > profile_.window_bytes || !not_left_.empty()) {
            not_left_.push_back(cookie);
            return Status::ok;
        }
    }
    complete_later(cookie, profile_.latency / 4);
    return Status::ok;
}

bool SimConnection::reserve_receives(std::size_t receive_count) {
    if (!profile_.receives_may_grow) return false;
    limits_.receive_count = std::max(limits_.receive_count, receive_count);
    return true;
}

Status SimConnection::post_receive(std::span<const Slice> slices, Cookie cookie) {
    transport_.charge(transport_.costs_.post);
    if (state_ == State::ending || state_ == State::ended || !good_slices(slices, true)) {
        return Status::closed;
    }
    if (state_ != State::made && transport_.fails(SimCall::post)) {
        network_.sever(number_);
        return Status::closed;
    }
    if (receives_outstanding_ >= limits_.receive_count) {
        network_.violation("more receives than announced");
    }
    for (const Slice& slice : slices)
        std::fill_n(slice.data, std::min(slice.size, spoiled_bytes), spoiled);
    receives_.emplace_back(cookie, std::vector<Slice>{slices.begin(), slices.end()});
    ++receives_outstanding_;
    return Status::ok;
}

// --- arriving -------------------------------------------------------------------------------

// Takes the receive that a message of this size uses and copies the content into it.
std::optional<Cookie> SimConnection::take_receive(std::size_t bytes, const Bytes* content) {
    if (receives_.empty()) {
        network_.violation("a message without a posted receive");
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
    network_.violation("a message larger than its receive");
    return std::nullopt;
}

void SimConnection::take_message(const Bytes& bytes) {
    received_ = true;
    if (const auto cookie = take_receive(bytes.size(), &bytes)) {
        return tell(Completion{
            .kind = Completion::Kind::receive, .cookie = *cookie, .bytes = bytes.size()});
    }
    network_.sever(number_);
}

void SimConnection::take_write(const Bytes& bytes, const RemoteSlice& target,
                               std::optional<std::uint32_t> immediate) {
    received_ = true;
    std::byte* const place = domain_.writable(target, bytes.size());
    if (place == nullptr) {
        network_.violation("a write outside what the peer offered");
        return network_.sever(number_);
    }
    std::ranges::copy(bytes, place);
    if (!immediate) {
        unread_bytes_ -= std::min(unread_bytes_, bytes.size());
        return;
    }
    Completion completion{
        .kind = Completion::Kind::remote_write, .bytes = bytes.size(), .immediate = *immediate};
    if (capabilities().write_consumes_receive) {
        const auto cookie = take_receive(0, nullptr);
        if (!cookie) return network_.sever(number_);
        completion.cookie = *cookie;
        completion.consumed_receive = true;
    }
    tell(completion);
}

} // namespace netio::test
