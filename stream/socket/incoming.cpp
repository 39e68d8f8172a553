// SPDX-License-Identifier: Apache-2.0
#include "stream/socket/incoming.hpp"

#include "stream/core/control.hpp"

#include "netio/base/check.hpp"

#include <cstring>
#include <exception>
#include <utility>

namespace netio::stream::inline v0_2 {

RemoteRing Incoming::open(const ReceiverOptions& options, MemoryDomain& domain) {
    receiver_.emplace(options);
    return options.ring_bytes > 0 ? rings_.add(options.ring_bytes, domain) : RemoteRing{};
}

Status Incoming::receive(const Slice& slice, Cookie cookie, Fill fill, MemoryDomain* domain) {
    if (receives_.is_full()) return Status::again;
    if (slice.size > 0 && domain != nullptr) {
        NETIO_CHECK_MSG(slice.buffer->access() == Access::remote_write,
                        "receive into a buffer with Access::remote_write");
        static_cast<void>(slice.buffer->registration(*domain));
    }
    receiver_->post(ReceiveId{receives_.push(slice, cookie)}, slice.size, fill == Fill::all);
    return Status::ok;
}

// A large copy must not keep the rest of the loop waiting, so it is done in steps.
bool Incoming::copy_out(std::uint64_t step_bytes) {
    if (!receiver_) return false;
    std::uint64_t left = step_bytes;
    while (left > 0) {
        const auto copy = receiver_->next_copy(left);
        if (!copy) break;
        // A completed receive leaves the queue of the state machine, not ours.
        const Slice to = receives_.slice(static_cast<std::uint64_t>(copy->id), copy->receive_offset,
                                         copy->bytes);
        std::memcpy(to.data, rings_.at(copy->ring) + copy->ring_offset, to.size);
        receiver_->on_copied();
        left -= copy->bytes;
    }
    if (const auto unused = receiver_->next_unused_ring()) rings_.drop(*unused);
    return left == 0;
}

void Incoming::collect(ControlMessage& message, MemoryDomain& domain) {
    collect_control(
        *receiver_, [&](const LocalAdvert& advert) { return complete(advert, domain); }, message);
}

Advert Incoming::complete(const LocalAdvert& advert, MemoryDomain& domain) const {
    const Slice& slice = receives_.at(static_cast<std::uint64_t>(advert.id));
    const Registration& registration = slice.buffer->registration(domain);
    return {.terms = advert.terms,
            .address = registration.base() +
                       static_cast<std::uint64_t>(slice.data - slice.buffer->data()) +
                       advert.offset,
            .key = registration.key()};
}

// Whatever is in the way of a larger ring, the stream goes on with the one it has.
std::optional<RemoteRing> Incoming::grow(std::optional<RingGauge>& gauge, Session& session) {
    const auto bytes = receiver_->wanted_ring();
    if (!bytes) return std::nullopt;
    const ReceiverCounters& counters = receiver_->counters();
    const auto now = session.loop().now().time_since_epoch();
    const bool is_worth_it =
        gauge && gauge->confirms(now, counters.indirect_bytes, counters.ring_bytes);
    if (!is_worth_it || !session.has_capacity()) {
        receiver_->postpone_ring(); // for the time being
        return std::nullopt;
    }
    try {
        const RemoteRing ring = rings_.add(*bytes, session.domain());
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
