// SPDX-License-Identifier: Apache-2.0
#include "stream/socket/incoming.hpp"

#include "netio/base/check.hpp"

#include <cstring>
#include <exception>
#include <utility>

namespace netio::stream::inline v0_3 {
namespace {

// If a frame has at least this many bytes for a waiting receive, they are copied to it directly and
// not through the ring. Fewer bytes are collected in the ring for one receive.
constexpr std::size_t worth_a_receive_bytes = 16 * 1024;

} // namespace

// --- rings ----------------------------------------------------------------------------------

RemoteRing RingSet::add(std::uint64_t bytes, const RemoteWriteMode& mode, MemoryDomain& domain) {
    auto ring =
        std::make_unique<RegisteredBuffer>(static_cast<std::size_t>(bytes), Access::remote_write);
    const RemoteSlice place = mode.place(ring->slice(), domain);
    rings_.push_back(std::move(ring));
    return {.address = place.address, .key = place.key, .bytes = bytes};
}

void RingSet::drop(std::uint32_t number) {
    NETIO_CHECK_MSG(number == first_, "rings are released in the order of their making");
    rings_.pop_front();
    ++first_;
}

std::byte* RingSet::at(std::uint32_t number) const {
    NETIO_CHECK(number >= first_);
    return rings_[number - first_]->data();
}

// --- the direction --------------------------------------------------------------------------

RemoteRing Incoming::open(const ReceiverOptions& options, MemoryDomain& domain) {
    receiver_.emplace(options);
    return options.ring_bytes > 0 ? rings_.add(options.ring_bytes, mode_, domain) : RemoteRing{};
}

Status Incoming::receive(const Slice& slice, Cookie cookie, Fill fill, MemoryDomain* domain) {
    if (receives_.is_full()) return Status::again;
    if (slice.size > 0 && domain != nullptr) {
        NETIO_CHECK_MSG(slice.buffer->access() == Access::remote_write,
                        "receive into a buffer with Access::remote_write");
        mode_.prepare(slice, *domain);
    }
    receiver_->post(ReceiveId{receives_.push(slice, cookie)}, slice.size, fill == Fill::all);
    return Status::ok;
}

bool Incoming::move_front(const Slice& to) {
    if (mode_.enabled() || receives_.empty()) return false;
    const Slice& from = receives_.front();
    std::memcpy(to.data, from.data, is_front_open() ? filled_bytes() : from.size);
    receives_.replace_front(to);
    return true;
}

// A large copy is done in steps, so that it does not delay the rest of the loop.
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

std::span<const std::byte> Incoming::peek() const {
    const auto part = receiver_ ? receiver_->peek() : std::nullopt;
    if (!part) return {};
    return {rings_.at(part->ring) + part->offset, static_cast<std::size_t>(part->bytes)};
}

void Incoming::consume(std::size_t bytes) {
    NETIO_CHECK_MSG(receiver_ || bytes == 0, "consume() without a connection");
    if (receiver_) receiver_->consume(bytes);
}

bool Incoming::take_news() noexcept {
    if (!receiver_ || !receives_.empty() || unread_bytes() == 0) return false;
    const std::uint64_t arrived = receiver_->counters().indirect_bytes;
    return std::exchange(reported_bytes_, arrived) != arrived;
}

void Incoming::copy(const Copy& copy, const std::byte* from) {
    // A completed receive has left the queue of the state machine, but not receives_.
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
    const RemoteSlice place = mode_.place(open, domain);
    return {.terms = advert.terms, .address = place.address, .key = place.key};
}

// If the ring cannot grow, the stream continues with the present one.
std::optional<RemoteRing> Incoming::grow(std::optional<RingGauge>& gauge, Session& session) {
    const auto bytes = receiver_->wanted_ring();
    if (!bytes) return std::nullopt;
    const ReceiverCounters& counters = receiver_->counters();
    const auto now = session.loop().now().time_since_epoch();
    // Direct bytes count as well: they show what the path carries.
    const std::uint64_t bytes_so_far = counters.direct_bytes + counters.indirect_bytes;
    const bool is_worth_it = gauge && gauge->confirms(now, bytes_so_far, counters.ring_bytes);
    if (!is_worth_it || !session.has_capacity()) {
        receiver_->postpone_ring();
        return std::nullopt;
    }
    try {
        const RemoteRing ring = rings_.add(*bytes, mode_, session.domain());
        receiver_->announce_ring();
        return ring;
    } catch (const std::exception&) { // counted in ReceiverCounters::ring_refusals
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
    // Only the receive at the front may hold bytes.
    const std::uint64_t bytes =
        std::exchange(has_canceled_, true) || !receiver_ ? 0 : receiver_->front_filled_bytes();
    return Received{.cookie = receives_.pop_front(),
                    .bytes = bytes,
                    .outcome = Completion::Outcome::canceled,
                    .end_of_stream = false};
}

} // namespace netio::stream::inline v0_3
