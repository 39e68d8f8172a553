// SPDX-License-Identifier: Apache-2.0
#include "stream/socket/directions.hpp"

#include "netio/base/check.hpp"
#include "netio/base/copy.hpp"

#include <algorithm>
#include <array>
#include <exception>
#include <utility>

namespace netio::stream::inline v0_3 {
namespace {

// --- remote writes --------------------------------------------------------------------------

// Each transfer is one remote write, into the receive or the ring that the peer announced.
class WriteChannel final : public TransferChannel {
  public:
    ProtocolError on_ring(const RemoteRing& ring) override {
        ring_ = ring;
        return ProtocolError::none;
    }
    // The transfer itself carries the address.
    ProtocolError on_advert(const Advert&) override { return ProtocolError::none; }
    void prepare(const Slice& slice, MemoryDomain& domain) override {
        static_cast<void>(slice.buffer->registration(domain));
    }
    std::size_t piece_count(const Session& session) const override {
        return std::min(piece_limit, session.capabilities().segment_limit);
    }
    std::size_t joined_count(const Session&) const override { return 0; } // a write for each send
    bool is_ready(Session& session) override { return session.request_write_capacity(); }
    bool take(const Transfer& transfer, std::span<const Slice> pieces, Session& session) override;
    std::uint64_t waiting_bytes() const override { return 0; }
    bool on_sent(std::uint64_t) override { return true; }

  private:
    RemoteRing ring_;
};

bool WriteChannel::take(const Transfer& transfer, std::span<const Slice> pieces, Session& session) {
    const RemoteSlice target = transfer.kind == TransferKind::direct
                                   ? RemoteSlice{transfer.address, transfer.key}
                                   : RemoteSlice{ring_.address + transfer.ring_offset, ring_.key};
    const OutgoingWrite write{
        .slices = pieces,
        .target = target,
        .notice = encode_immediate({transfer.kind, transfer.bytes, transfer.notice})};
    return session.write(write, Cookie{transfer.number}) == Status::ok;
}

// --- frames ---------------------------------------------------------------------------------

// Transfers are sent in frames of the session; a direct transfer that is longer than a frame needs
// several (R16). Used for a peer whose memory this side does not write to, so the peer must not
// announce addresses or keys.
class FrameChannel final : public TransferChannel {
  public:
    ProtocolError on_ring(const RemoteRing& ring) override {
        const bool is_named = ring.address != 0 || ring.key != 0;
        return is_named ? ProtocolError::memory_named : ProtocolError::none;
    }
    ProtocolError on_advert(const Advert& advert) override {
        const bool is_named = advert.address != 0 || advert.key != 0;
        return is_named ? ProtocolError::memory_named : ProtocolError::none;
    }
    void prepare(const Slice&, MemoryDomain&) override {} // the session registers it if necessary
    // The session copies more pieces than the provider takes; those are short (P4).
    std::size_t piece_count(const Session&) const override { return piece_limit; }
    // A frame uses one receive of the peer, whatever its size. So queued sends share a frame;
    // otherwise half of the peer's memory would stay empty over a long distance.
    std::size_t joined_count(const Session& session) const override {
        return session.segment_limit();
    }
    bool is_ready(Session& session) override {
        return send_frames(session) && left_bytes_ == 0 && session.request_capacity();
    }
    bool take(const Transfer& transfer, std::span<const Slice> pieces, Session& session) override;
    std::uint64_t waiting_bytes() const override { return left_bytes_; }
    bool on_sent(std::uint64_t transfer) override;

  private:
    // Sends the rest of the present transfer as far as there is capacity. Returns false if the
    // connection has broken.
    bool send_frames(Session& session);
    Status send_frame(std::uint64_t bytes, Session& session);
    void drop(std::uint64_t bytes);

    Transfer transfer_;
    std::array<Slice, piece_limit> rest_{}; // memory of the transfer that was not sent yet
    std::size_t rest_begin_ = 0;
    std::uint64_t left_bytes_ = 0;

    // For each transfer: the number of its frames in flight, plus one while a part of it waits
    // here.
    Fifo<std::uint32_t> open_frames_;
    std::uint64_t first_open_ = 0; // number of the front
};

bool FrameChannel::take(const Transfer& transfer, std::span<const Slice> pieces, Session& session) {
    NETIO_CHECK_MSG(left_bytes_ == 0, "one transfer after the other");
    transfer_ = transfer;
    std::ranges::copy(pieces, rest_.begin());
    rest_begin_ = 0;
    left_bytes_ = transfer.bytes;
    NETIO_CHECK(transfer.number == first_open_ + open_frames_.size());
    open_frames_.push_back(1);
    return send_frames(session);
}

bool FrameChannel::send_frames(Session& session) {
    while (left_bytes_ > 0) {
        if (!session.request_capacity()) return true;
        const std::uint64_t bytes = std::min<std::uint64_t>(left_bytes_, session.body_limit());
        const Status status = send_frame(bytes, session);
        if (status == Status::again) return true; // the provider takes no more now
        if (status != Status::ok) return false;
        left_bytes_ -= bytes;
        // take() has counted the last frame already.
        if (left_bytes_ > 0) ++open_frames_[transfer_.number - first_open_];
        drop(bytes);
    }
    return true;
}

Status FrameChannel::send_frame(std::uint64_t bytes, Session& session) {
    std::array<Slice, piece_limit> slices;
    std::size_t count = 0;
    for (std::uint64_t taken = 0; taken < bytes; taken += slices[count++].size) {
        slices[count] = rest_[rest_begin_ + count];
        slices[count].size =
            static_cast<std::size_t>(std::min<std::uint64_t>(slices[count].size, bytes - taken));
    }
    const FrameNotice notice{
        .kind = transfer_.kind, .ring = transfer_.notice, .more = bytes < left_bytes_};
    return session.send({.kind = bytes_kind,
                         .flags = encode_frame_flags(notice),
                         .extension = {},
                         .slices = std::span{slices}.first(count)},
                        Cookie{transfer_.number});
}

void FrameChannel::drop(std::uint64_t bytes) {
    while (bytes > 0) {
        Slice& rest = rest_[rest_begin_];
        const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(bytes, rest.size));
        rest.data += size;
        rest.size -= size;
        if (rest.size == 0) ++rest_begin_;
        bytes -= size;
    }
}

bool FrameChannel::on_sent(std::uint64_t transfer) {
    std::uint32_t& open = open_frames_[transfer - first_open_];
    const bool is_last = --open == 0;
    while (!open_frames_.empty() && open_frames_.front() == 0) {
        open_frames_.pop_front();
        ++first_open_;
    }
    return is_last;
}

} // namespace

// --- the direction --------------------------------------------------------------------------

ProtocolError Outgoing::open(const SenderOptions& options, const RemoteRing& ring, bool writes) {
    if (writes) {
        channel_ = std::make_unique<WriteChannel>();
    } else {
        channel_ = std::make_unique<FrameChannel>();
    }
    sender_.emplace(options);
    if (shut_down_) sender_->finish();
    return channel_->on_ring(ring);
}

Status Outgoing::send(const Slice& slice, Cookie cookie, MemoryDomain& domain, TimePoint now) {
    if (shut_down_) return Status::closed;
    if (sends_.is_full()) return Status::again;
    if (slice.size > 0) channel_->prepare(slice, domain);
    sender_->submit(SendId{sends_.push(slice, cookie)}, slice.size);
    times_.on_posted(now);
    return Status::ok;
}

void Outgoing::shutdown() {
    if (shut_down_) return;
    shut_down_ = true;
    if (sender_) sender_->finish();
}

ProtocolError Outgoing::on_advert(const Advert& advert) {
    const ProtocolError error = channel_->on_advert(advert);
    return error == ProtocolError::none ? sender_->on_advert(advert) : error;
}

ProtocolError Outgoing::on_ring(const RemoteRing& ring) {
    const ProtocolError error = sender_->on_ring(ring.bytes);
    // R15: all transfers after this one use the new ring.
    return error == ProtocolError::none ? channel_->on_ring(ring) : error;
}

void Outgoing::move(Session& session) {
    std::array<Piece, TransferChannel::piece_limit> pieces;
    const auto usable = std::span{pieces}.first(channel_->piece_count(session));
    while (queued_bytes() > 0) {
        if (!channel_->is_ready(session)) {
            if (!waiting_for_capacity_) ++waits_for_capacity_;
            waiting_for_capacity_ = true;
            return;
        }
        const auto transfer = sender_->next_transfer(usable, channel_->joined_count(session));
        if (!transfer) return;
        waiting_for_capacity_ = false;
        if (!take(*transfer, usable.first(transfer->piece_count), session)) return;
    }
}

bool Outgoing::take(const Transfer& transfer, std::span<const Piece> pieces, Session& session) {
    std::array<Slice, TransferChannel::piece_limit> slices;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
        const Piece& piece = pieces[i];
        slices[i] = sends_.slice(static_cast<std::uint64_t>(piece.id), piece.offset, piece.bytes);
    }
    return channel_->take(transfer, std::span{slices}.first(pieces.size()), session);
}

std::optional<Cookie> Outgoing::next_done(TimePoint now) {
    if (!sender_ || !sender_->next_completion()) return std::nullopt;
    times_.on_sent(now);
    return sends_.pop_front();
}

std::optional<Cookie> Outgoing::next_canceled() {
    if (sends_.empty()) return std::nullopt;
    times_.on_canceled();
    return sends_.pop_front();
}

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
    copy_bytes(to.data, {from.data, is_front_open() ? filled_bytes() : from.size});
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
    copy_bytes(to.data, {from, to.size});
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
        copy_bytes(to.data, bytes.first(to.size));
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
    copy_bytes(ring + done, bytes.subspan(done));
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
