// SPDX-License-Identifier: Apache-2.0
#include "stream/socket/incoming.hpp"

#include "stream/core/control.hpp"

#include "netio/base/check.hpp"

#include <cstring>
#include <exception>
#include <utility>

namespace netio::stream::inline v0_2 {
namespace {

// Bytes of a frame that a receive waits for spare the way through the ring; fewer gather there for
// one receive.
constexpr std::size_t worth_a_receive_bytes = 16 * 1024;

} // namespace

RemoteRing Incoming::open(const ReceiverOptions& options, MemoryDomain& domain) {
    receiver_.emplace(options);
    return options.ring_bytes > 0 ? rings_.add(options.ring_bytes, lending_, domain) : RemoteRing{};
}

Status Incoming::receive(const Slice& slice, Cookie cookie, Fill fill, MemoryDomain* domain) {
    if (receives_.is_full()) return Status::again;
    if (slice.size > 0 && domain != nullptr) {
        NETIO_CHECK_MSG(slice.buffer->access() == Access::remote_write,
                        "receive into a buffer with Access::remote_write");
        lending_.prepare(slice, *domain);
    }
    receiver_->post(ReceiveId{receives_.push(slice, cookie)}, slice.size, fill == Fill::all);
    return Status::ok;
}

bool Incoming::move_front(const Slice& to) {
    if (lends() || receives_.empty()) return false;
    const Slice& from = receives_.front();
    std::memcpy(to.data, from.data, is_front_open() ? filled_bytes() : from.size);
    receives_.replace_front(to);
    return true;
}

// A large copy must not keep the rest of the loop waiting, so it is done in steps.
bool Incoming::copy_out(std::uint64_t step_bytes) {
    if (!receiver_) return false;
    std::uint64_t left = step_bytes;
    while (left > 0) {
        const auto copy = receiver_->next_copy(left);
        if (!copy) break;
        this->copy(*copy, rings_.at(copy->ring) + copy->ring_offset);
        left -= copy->bytes;
    }
    if (const auto unused = receiver_->next_unused_ring()) rings_.drop(*unused);
    return left == 0;
}

void Incoming::copy(const Copy& copy, const std::byte* from) {
    // A completed receive leaves the queue of the state machine, not ours.
    const Slice to =
        receives_.slice(static_cast<std::uint64_t>(copy.id), copy.receive_offset, copy.bytes);
    std::memcpy(to.data, from, to.size);
    receiver_->on_copied();
}

ProtocolError Incoming::on_frame(const FrameNotice& notice, std::span<const std::byte> bytes) {
    const bool is_first = receiver_->ring_used_bytes() == 0;
    Place place;
    const ProtocolError error =
        receiver_->on_frame(notice, static_cast<std::uint32_t>(bytes.size()), place);
    if (error != ProtocolError::none) return error;
    if (notice.kind == TransferKind::direct) {
        const Slice to =
            receives_.slice(static_cast<std::uint64_t>(place.id), place.offset, bytes.size());
        std::memcpy(to.data, bytes.data(), to.size);
        return error;
    }
    std::byte* const ring = rings_.at(place.ring) + place.offset;
    std::size_t done = 0;
    while (is_first && bytes.size() - done >= worth_a_receive_bytes) {
        const auto copy = receiver_->next_copy(bytes.size() - done);
        if (!copy) break;
        this->copy(*copy, bytes.data() + done);
        done += static_cast<std::size_t>(copy->bytes);
    }
    std::memcpy(ring + done, bytes.data() + done, bytes.size() - done);
    return error;
}

void Incoming::collect(ControlMessage& message, MemoryDomain& domain) {
    collect_control(
        *receiver_, [&](const LocalAdvert& advert) { return complete(advert, domain); }, message);
}

Advert Incoming::complete(const LocalAdvert& advert, MemoryDomain& domain) const {
    const Slice open =
        receives_.slice(static_cast<std::uint64_t>(advert.id), advert.offset, advert.terms.bytes);
    const RemoteSlice place = lending_.place(open, domain);
    return {.terms = advert.terms, .address = place.address, .key = place.key};
}

// Whatever is in the way of a larger ring, the stream goes on with the one it has.
std::optional<RemoteRing> Incoming::grow(std::optional<RingGauge>& gauge, Session& session) {
    const auto bytes = receiver_->wanted_ring();
    if (!bytes) return std::nullopt;
    const ReceiverCounters& counters = receiver_->counters();
    const auto now = session.loop().now().time_since_epoch();
    // All that comes shows what the way carries.
    const std::uint64_t bytes_so_far = counters.direct_bytes + counters.indirect_bytes;
    const bool is_worth_it = gauge && gauge->confirms(now, bytes_so_far, counters.ring_bytes);
    if (!is_worth_it || !session.has_capacity()) {
        receiver_->postpone_ring(); // for the time being
        return std::nullopt;
    }
    try {
        const RemoteRing ring = rings_.add(*bytes, lending_, session.domain());
        receiver_->announce_ring();
        return ring;
    } catch (const std::exception&) { // ReceiverCounters::ring_refusals tells
        receiver_->refuse_ring();
        return std::nullopt;
    }
}

std::optional<Received> Incoming::next_done() {
    if (!receiver_) return std::nullopt;
    const auto completion = receiver_->next_completion();
    if (!completion) return std::nullopt;
    return Received{.cookie = receives_.pop_front(),
                    .bytes = completion->bytes,
                    .outcome = Completion::Outcome::done,
                    .end_of_stream = completion->end_of_stream};
}

std::optional<Received> Incoming::next_canceled() {
    if (receives_.empty()) return std::nullopt;
    // Only the one at the front may hold bytes already.
    const std::uint64_t bytes =
        std::exchange(has_canceled_, true) || !receiver_ ? 0 : receiver_->front_filled_bytes();
    return Received{.cookie = receives_.pop_front(),
                    .bytes = bytes,
                    .outcome = Completion::Outcome::canceled,
                    .end_of_stream = false};
}

} // namespace netio::stream::inline v0_2
