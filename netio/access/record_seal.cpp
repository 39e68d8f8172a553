// SPDX-License-Identifier: Apache-2.0
#include "netio/access/record_seal.hpp"

namespace netio::access::inline v0_2 {
namespace {

std::uint64_t bytes_of(std::span<const Bytes> parts) {
    std::uint64_t bytes = 0;
    for (const Bytes part : parts)
        bytes += part.size();
    return bytes;
}

} // namespace

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

} // namespace netio::access::inline v0_2
