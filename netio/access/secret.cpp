// SPDX-License-Identifier: Apache-2.0
#include "netio/access/secret.hpp"

#include "netio/access/digest.hpp"

#include <openssl/crypto.h>
#include <openssl/rand.h>

#include <algorithm>
#include <system_error>

namespace netio::access::inline v0_2 {
namespace {

constexpr std::string_view prefix = "nk1-";
constexpr std::size_t check_bytes = 4;
constexpr std::size_t text_bytes = prefix.size() + 2 * (secret_bytes + check_bytes);

Digest check_of(Bytes secret) {
    return sha256({as_bytes("netio key checksum 1"), secret});
}

void append_hex(std::string& text, Bytes bytes) {
    constexpr std::string_view digits = "0123456789abcdef";
    for (const std::byte byte : bytes) {
        text += digits[std::to_integer<std::size_t>(byte >> 4)];
        text += digits[std::to_integer<std::size_t>(byte & std::byte{15})];
    }
}

// -1: it is none. In lower case only, so that a secret has one text.
int digit(char each) {
    if (each >= '0' && each <= '9') return each - '0';
    return each >= 'a' && each <= 'f' ? each - 'a' + 10 : -1;
}

bool read_hex(std::string_view text, std::span<std::byte> bytes) {
    for (std::size_t at = 0; at < bytes.size(); ++at) {
        const int high = digit(text[2 * at]);
        const int low = digit(text[2 * at + 1]);
        if (high < 0 || low < 0) return false;
        bytes[at] = static_cast<std::byte>(high * 16 + low);
    }
    return true;
}

} // namespace

Secret::Secret(std::span<const std::byte, secret_bytes> bytes) noexcept {
    std::ranges::copy(bytes, bytes_.begin());
}

Secret::~Secret() {
    wipe(bytes_);
}

Secret Secret::random() {
    Secret secret;
    fill_randomly(secret.bytes_);
    return secret;
}

std::optional<Secret> Secret::parse(std::string_view text) {
    if (text.size() != text_bytes || !text.starts_with(prefix)) return std::nullopt;
    text.remove_prefix(prefix.size());
    Secret secret;
    std::array<std::byte, check_bytes> check{};
    if (!read_hex(text, secret.bytes_) || !read_hex(text.substr(2 * secret_bytes), check))
        return std::nullopt;
    const Digest expected = check_of(secret.bytes_);
    if (!same_bytes(check, Bytes{expected}.first(check_bytes))) return std::nullopt;
    return secret;
}

std::string Secret::text() const {
    std::string text{prefix};
    text.reserve(text_bytes);
    append_hex(text, bytes_);
    append_hex(text, Bytes{check_of(bytes_)}.first(check_bytes));
    return text;
}

std::string Secret::fingerprint() const {
    std::string text;
    append_hex(text, Bytes{sha256({as_bytes("netio key fingerprint 1"), bytes_})}.first(4));
    return text;
}

bool operator==(const Secret& one, const Secret& other) noexcept {
    return same_bytes(one.bytes_, other.bytes_);
}

bool same_bytes(Bytes one, Bytes other) noexcept {
    return one.size() == other.size() && CRYPTO_memcmp(one.data(), other.data(), one.size()) == 0;
}

void wipe(std::span<std::byte> bytes) noexcept {
    OPENSSL_cleanse(bytes.data(), bytes.size());
}

void fill_randomly(std::span<std::byte> bytes) {
    const int done = ::RAND_bytes(reinterpret_cast<unsigned char*>(bytes.data()),
                                  static_cast<int>(bytes.size()));
    if (done != 1) {
        throw std::system_error{std::make_error_code(std::errc::resource_unavailable_try_again),
                                "the system gives no random bytes"};
    }
}

} // namespace netio::access::inline v0_2
