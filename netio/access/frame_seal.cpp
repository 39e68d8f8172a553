// SPDX-License-Identifier: Apache-2.0
#include "netio/access/frame_seal.hpp"

#include "netio/base/check.hpp"
#include "netio/base/wire.hpp"

#include <algorithm>

namespace netio::access::inline v0_3 {
namespace {

std::uint64_t bytes_of(std::span<const Bytes> parts) {
    std::uint64_t bytes = 0;
    for (const Bytes part : parts)
        bytes += part.size();
    return bytes;
}

// With `peers`: frames that change the state of the session, or what its service does for the peer.
bool carries_tag(std::uint8_t kind) noexcept {
    const auto own = static_cast<FrameKind>(kind);
    return own == FrameKind::open || own == FrameKind::shutdown || own == FrameKind::shutdown_ack ||
           own == FrameKind::window || kind >= first_state_kind;
}

} // namespace

// --- tags of single frames ------------------------------------------------------------------

FrameTag Tagger::next(std::span<const Bytes> parts) {
    std::array<std::byte, 8> number{};
    wire::store(number.data(), next_++);
    std::array<Bytes, parts_limit + 1> all{number};
    NETIO_CHECK(parts.size() <= parts_limit);
    std::ranges::copy(parts, all.begin() + 1);
    const Digest digest =
        hmac_sha256(key_.bytes(), std::span<const Bytes>{all}.first(parts.size() + 1));
    FrameTag tag;
    std::copy_n(digest.begin(), tag.size(), tag.begin());
    return tag;
}

// --- numbered records -----------------------------------------------------------------------

void RecordCount::advance(std::uint64_t bytes) {
    ++next_;
    ++records_;
    bytes_ += bytes;
    if (bytes_ < life_.bytes && records_ < life_.records) return;
    aead_ = Aead{aead_.cipher(), aead_.next_key()};
    bytes_ = records_ = 0;
    ++keys_;
}

bool Sealer::seal(Bytes header, std::span<const Bytes> plain, std::span<std::byte> out) {
    if (count_.is_used_up()) return false;
    count_.aead().seal(count_.number(), {&header, 1}, plain, out);
    count_.advance(header.size() + bytes_of(plain));
    return true;
}

bool Sealer::tag(std::span<const Bytes> parts, std::span<std::byte, seal_tag_bytes> tag) {
    if (count_.is_used_up()) return false;
    count_.aead().seal(count_.number(), parts, {}, tag);
    count_.advance(bytes_of(parts));
    return true;
}

bool Opener::open(Bytes header, Bytes sealed, std::span<std::byte> out) {
    failed_ = failed_ || count_.is_used_up() ||
              !count_.aead().open(count_.number(), {&header, 1}, sealed, out);
    if (failed_) {
        wipe(out);
    } else {
        count_.advance(header.size() + out.size());
    }
    return !failed_;
}

bool Opener::check(std::span<const Bytes> parts, Bytes tag) {
    failed_ = failed_ || count_.is_used_up() || tag.size() != seal_tag_bytes ||
              !count_.aead().open(count_.number(), parts, tag, {});
    if (!failed_) count_.advance(bytes_of(parts));
    return !failed_;
}

// --- frames ---------------------------------------------------------------------------------

std::size_t FrameSealer::bytes_behind(std::uint8_t kind) const noexcept {
    if (std::holds_alternative<Sealer>(how_)) return seal_tag_bytes;
    return carries_tag(kind) ? frame_tag_bytes : 0;
}

bool FrameSealer::seal(std::span<const Bytes> header_and_body, std::span<std::byte> out) {
    if (auto* const tags = std::get_if<Tagger>(&how_)) {
        std::ranges::copy(tags->next(header_and_body), out.begin());
        return true;
    }
    Sealer& sealer = std::get<Sealer>(how_);
    if (!encrypts_) return sealer.tag(header_and_body, out.first<seal_tag_bytes>());
    return sealer.seal(header_and_body.front(), header_and_body.subspan(1), out);
}

bool FrameOpener::open(std::span<std::byte>& frame) {
    const auto header = frame.first(frame_header_bytes);
    if (auto* const tags = std::get_if<TagChecker>(&how_)) {
        if (!carries_tag(std::to_integer<std::uint8_t>(frame[0]))) return true;
        if (frame.size() < frame_header_bytes + frame_tag_bytes) return false;
        const auto tag = frame.last(frame_tag_bytes);
        frame = frame.first(frame.size() - tag.size());
        return tags->check(header, frame.subspan(frame_header_bytes), tag);
    }
    if (frame.size() < frame_header_bytes + seal_tag_bytes) return false;
    Opener& opener = std::get<Opener>(how_);
    const auto tag = frame.last(seal_tag_bytes);
    const auto sealed = frame.subspan(frame_header_bytes);
    frame = frame.first(frame.size() - tag.size());
    if (decrypts_) return opener.open(header, sealed, frame.subspan(frame_header_bytes));
    const Bytes all{frame};
    return opener.check({&all, 1}, tag);
}

// --- the exchange of session keys -----------------------------------------------------------

KeyExchange::KeyExchange(Side side, const Terms& terms, const AuthKeys& keys)
    : side_{side}, terms_{terms}, noise_{side, terms.cipher, keys.prologue, keys.psk,
                                         Secret::random()} {}

KeyExchange::Message KeyExchange::say() {
    std::array<std::byte, sizeof(std::uint64_t)> payload{};
    wire::store(payload.data(), terms_.key_bytes);
    Message message{};
    noise_.write(payload, message);
    return message;
}

bool KeyExchange::hear(std::span<const std::byte> message) {
    if (!noise_.may_read() || message.size() != message_bytes) return false;
    std::array<std::byte, sizeof(std::uint64_t)> payload{};
    if (!noise_.read(message, payload)) return false;
    peer_key_bytes_ = wire::load<std::uint64_t>(payload.data());
    return peer_key_bytes_ > 0 && peer_key_bytes_ <= most_key_bytes;
}

FrameSealer KeyExchange::sealer() const {
    NETIO_CHECK(noise_.result());
    const auto& key = side_ == Side::initiator ? noise_.result()->up : noise_.result()->down;
    return {terms_.level, Sealer{terms_.cipher, key, {.bytes = terms_.key_bytes}}};
}

FrameOpener KeyExchange::opener() const {
    NETIO_CHECK(noise_.result());
    const auto& key = side_ == Side::initiator ? noise_.result()->down : noise_.result()->up;
    return {terms_.level, Opener{terms_.cipher, key, {.bytes = peer_key_bytes_}}};
}

} // namespace netio::access::inline v0_3
