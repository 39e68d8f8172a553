// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a hostile peer with a key needs: it passes the authentication, takes part in the key
// exchange, and seals its frames like a correct client, or nearly so.

#include "netio/access/auth.hpp"
#include "netio/access/frame_seal.hpp"
#include "netio/base/check.hpp"
#include "netio/session/handshake.hpp"

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

namespace netio::fuzz {

class KeyHolder {
  public:
    using Message = std::vector<std::byte>;

    KeyHolder(const access::Key& key, access::Protection level, const access::AuthAddress& dialled,
              std::uint64_t key_bytes)
        : level_{level}, key_bytes_{key_bytes}, gate_{std::in_place, key,
                                                      access::AuthClient::Options{.protection =
                                                                                      level},
                                                      dialled} {}
    // The accepting side, which has admitted a peer and answers with this.
    KeyHolder(const access::AuthResult& admission,
              std::span<const std::byte, access::auth_answer_bytes> answer, std::uint64_t key_bytes)
        : level_{admission.protection()}, key_bytes_{key_bytes} {
        begin(admission.keys(answer), admission.cipher());
    }

    // The hello, followed by the data for the authentication.
    Message request(const Message& hello) {
        ConnectionData data{};
        std::ranges::copy(hello, data.begin());
        access::ClientNonce nonce{};
        nonce[0] = std::byte{1};
        const std::size_t size = gate_->request(data, nonce);
        return {data.begin(), data.begin() + static_cast<std::ptrdiff_t>(size)};
    }
    void take_rejection(std::span<const std::byte> data) {
        static_cast<void>(gate_->take_challenge(data));
    }
    void take_answer(std::span<const std::byte> data) {
        if (gate_ && gate_->take_answer(data) == access::AuthClient::Answer::genuine)
            begin(*gate_->keys(), gate_->cipher());
    }
    // The message of the connecting side, sent before the open frame.
    access::KeyExchange::Message part_of_keys() { return exchange_->say(); }
    bool awaits_keys() const noexcept { return exchange_ && !sealer_; }
    // The accepting side returns a message, which must be sent before any frame is sealed.
    std::optional<access::KeyExchange::Message> take_keys(std::span<const std::byte> body) {
        if (!exchange_->hear(body) || gate_) return std::nullopt;
        return exchange_->say();
    }
    void begin_to_seal() {
        if (exchange_->is_complete()) sealer_.emplace(exchange_->sealer());
    }

    // The next frame, or its tag, gets a wrong byte.
    void spoil(std::uint8_t what) noexcept { spoiled_ = what; }
    // The bytes to send in place of this frame.
    Message sealed(std::span<const std::byte> frame) {
        Message message{frame.begin(), frame.end()};
        if (sealer_ && frame.size() >= frame_header_bytes) {
            const std::size_t behind =
                sealer_->bytes_behind(std::to_integer<std::uint8_t>(frame[0]));
            const std::array parts{frame.first(frame_header_bytes),
                                   frame.subspan(frame_header_bytes)};
            message.resize(frame.size() + behind);
            const std::size_t from = sealer_->encrypts() ? frame_header_bytes : frame.size();
            if (behind > 0) NETIO_CHECK(sealer_->seal(parts, std::span{message}.subspan(from)));
        }
        if (const std::uint8_t what = std::exchange(spoiled_, std::uint8_t{0});
            what != 0 && !message.empty()) {
            message[what % message.size()] ^= std::byte{what};
        }
        return message;
    }

  private:
    void begin(const access::AuthKeys& keys, access::Cipher cipher) {
        using Side = access::KeyExchange::Side;
        if (level_ == access::Protection::peers)
            sealer_.emplace(access::Tagger{gate_ ? keys.tags_up : keys.tags_down});
        if (!access::seals_all(level_)) return;
        exchange_.emplace(
            gate_ ? Side::initiator : Side::responder,
            access::KeyExchange::Terms{.level = level_, .cipher = cipher, .key_bytes = key_bytes_},
            keys);
    }

    access::Protection level_;
    std::uint64_t key_bytes_;
    std::optional<access::AuthClient> gate_; // of the connecting side
    std::optional<access::KeyExchange> exchange_;
    std::optional<access::FrameSealer> sealer_;
    std::uint8_t spoiled_ = 0;
};

} // namespace netio::fuzz
