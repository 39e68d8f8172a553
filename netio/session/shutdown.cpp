// SPDX-License-Identifier: Apache-2.0
#include "netio/session/shutdown.hpp"

#include "netio/base/check.hpp"
#include "netio/base/wire.hpp"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

namespace netio::inline v0_3 {
namespace {

std::string frames(std::uint64_t count) {
    return std::to_string(count) + (count == 1 ? " frame" : " frames");
}

} // namespace

bool Shutdown::close(TimePoint limit) noexcept {
    if (std::exchange(closed_here_, true)) return false;
    if (ours_ == Ours::open) ours_ = Ours::due;
    limit_ = limit;
    return true;
}

bool Shutdown::on_shutdown() noexcept {
    if (theirs_ != Theirs::open) return false;
    theirs_ = Theirs::ended;
    if (ours_ == Ours::open) ours_ = Ours::due;
    return true;
}

bool Shutdown::on_ack(std::uint32_t unread) noexcept {
    if (ours_ != Ours::sent) return false;
    ours_ = Ours::confirmed;
    unread_by_peer_ = unread;
    return true;
}

void Shutdown::add_unread(std::uint32_t count) noexcept {
    const std::uint32_t room = std::numeric_limits<std::uint32_t>::max() - unread_;
    unread_ += count < room ? count : room;
}

void Shutdown::confirm() noexcept {
    NETIO_CHECK(awaits_user());
    theirs_ = Theirs::taken;
}

std::optional<FrameKind> Shutdown::next() const noexcept {
    if (ours_ == Ours::due) return FrameKind::shutdown;
    if (theirs_ == Theirs::taken) return FrameKind::shutdown_ack;
    return std::nullopt;
}

void Shutdown::on_sent(FrameKind kind) noexcept {
    NETIO_CHECK(next() == kind);
    if (kind == FrameKind::shutdown) {
        ours_ = Ours::sent;
    } else {
        theirs_ = Theirs::confirmed;
    }
}

Closed Shutdown::judge(const Closed& cause, std::uint64_t sent, std::uint64_t outstanding) const {
    Closed closed = cause;
    const bool heard = ours_ == Ours::confirmed;
    closed.unconfirmed_frames = heard ? unread_by_peer_ : outstanding;
    const std::string count = frames(closed.unconfirmed_frames);
    if (cause.reason == CloseReason::local) {
        if (closed.unconfirmed_frames > 0) closed.detail = count + " unconfirmed";
        return closed;
    }
    const bool broken = cause.reason == CloseReason::lost || cause.reason == CloseReason::silent ||
                        cause.reason == CloseReason::unconfirmed;
    const bool done_here = closed_here_ || theirs_ == Theirs::confirmed;
    if (!broken || may_send() || !done_here) return closed; // another end came first
    if (heard ? unread_by_peer_ == 0 : sent == 0 && theirs_ == Theirs::confirmed) {
        closed.reason = CloseReason::orderly;
        closed.detail.clear();
    } else if (heard) {
        closed.reason = CloseReason::unconfirmed;
        closed.detail = "the peer has left " + count + " unread";
    } else {
        closed.reason = CloseReason::unconfirmed;
        closed.detail = to_string(cause) + "; " + count + " unconfirmed";
    }
    return closed;
}

// --- aborts ---------------------------------------------------------------------------------

std::array<std::byte, abort_reason_bytes> encode(const AbortReason& reason) noexcept {
    std::array<std::byte, abort_reason_bytes> out{};
    out[0] = std::byte{reason.why};
    wire::store(out.data() + 4, reason.value);
    return out;
}

std::optional<AbortReason> decode_abort_reason(std::span<const std::byte> in) noexcept {
    const auto is_zero = [](std::byte byte) { return byte == std::byte{0}; };
    if (in.size() < abort_reason_bytes || is_zero(in[0]) ||
        !std::ranges::all_of(in.subspan(1, 3), is_zero)) {
        return std::nullopt;
    }
    return AbortReason{.why = std::to_integer<std::uint8_t>(in[0]),
                       .value = wire::load<std::uint32_t>(in.data() + 4)};
}

Closed closed_by(const AbortReason& reason, const std::string& peer_address) {
    if (reason.why == AbortReason::unknown_option) {
        return {.reason = CloseReason::rejected,
                .detail = peer_address + " does not serve option " + std::to_string(reason.value) +
                          " of the connection, which this side requires; it is of an older version "
                          "of netio, or does not allow it"};
    }
    if (reason.why != AbortReason::too_slow) {
        return {.reason = CloseReason::lost,
                .detail = peer_address + " has ended it for a reason that is not known here (" +
                          std::to_string(reason.why) + ")"};
    }
    return {.reason = CloseReason::too_slow,
            .detail = peer_address + " has ended it: this side received nothing for " +
                      std::to_string(reason.value) + " ms"};
}

} // namespace netio::inline v0_3
