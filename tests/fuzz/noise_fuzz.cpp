// SPDX-License-Identifier: Apache-2.0

// Either side of the Noise handshake, and the opener of the records after it, with a peer that has
// no key.

#include "netio/access/crypto.hpp"
#include "netio/access/frame_seal.hpp"
#include "tests/fuzz/target.hpp"

#include <algorithm>

namespace netio::fuzz::noise_fuzz {
namespace {

using namespace netio::access;
using Message = std::vector<std::byte>;

Secret secret_of(int seed) {
    std::array<std::byte, secret_bytes> bytes{};
    bytes.fill(static_cast<std::byte>(seed));
    return Secret{bytes};
}

// The correct message with some bytes overwritten by the peer, shortened or extended.
Message spoiled(Message message, Input& input) {
    message.resize(input.below(160));
    const Bytes bytes = input.take(input.below(message.size() + 1));
    const std::size_t at = input.below(message.size() - bytes.size() + 1);
    std::ranges::copy(bytes, message.begin() + static_cast<std::ptrdiff_t>(at));
    return message;
}

bool takes(NoiseHandshake& side, const Message& message) {
    const std::size_t overhead = NoiseHandshake::overhead;
    Message payload(message.size() < overhead ? 0 : message.size() - overhead);
    return side.read(message, payload);
}

const Target noise{
    "noise", [](Bytes bytes) {
        Input input{bytes};
        const Cipher cipher = input.flag() ? Cipher::aes_256_gcm : Cipher::chacha20_poly1305;
        const auto made = [&](NoiseHandshake::Side side, int ephemeral) {
            return NoiseHandshake{side, cipher, {}, secret_of(1), secret_of(ephemeral)};
        };
        NoiseHandshake initiator = made(NoiseHandshake::Side::initiator, 2);
        NoiseHandshake responder = made(NoiseHandshake::Side::responder, 3);
        Message first(NoiseHandshake::overhead);
        initiator.write({}, first);
        const Message wrong_first = spoiled(first, input);
        NETIO_CHECK(takes(responder, wrong_first) == (wrong_first == first));
        NoiseHandshake other = made(NoiseHandshake::Side::responder, 3);
        NETIO_CHECK(takes(other, first));
        Message second(NoiseHandshake::overhead);
        other.write({}, second);
        const Message wrong_second = spoiled(second, input);
        NETIO_CHECK(takes(initiator, wrong_second) == (wrong_second == second));

        Sealer sealer{cipher, secret_of(4)};
        Opener opener{cipher, secret_of(4)};
        Message record(40 + seal_tag_bytes);
        NETIO_CHECK(sealer.seal({}, Message(40), record));
        const Message wrong = spoiled(record, input);
        Message out(wrong.size() < seal_tag_bytes ? 0 : wrong.size() - seal_tag_bytes);
        NETIO_CHECK(opener.open({}, wrong, out) == (wrong == record));
        TagChecker checker{secret_of(5)};
        const FrameTag tag = Tagger{secret_of(5)}.next({}, record);
        const Message wrong_tag = spoiled({tag.begin(), tag.end()}, input);
        NETIO_CHECK(checker.check({}, record, wrong_tag) == std::ranges::equal(tag, wrong_tag));
    }};

} // namespace
} // namespace netio::fuzz::noise_fuzz
