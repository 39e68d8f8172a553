// SPDX-License-Identifier: Apache-2.0
#include "netio/coalescing/reassembly.hpp"

#include "netio/base/copy.hpp"

#include <algorithm>
#include <new>

namespace netio::inline v0_3 {

Reassembly::Outcome Reassembly::take(const FragmentPlace& place, std::span<const std::byte> bytes) {
    if (place.total > largest_bytes_) return Outcome::too_large;
    const std::size_t filled = in_progress_ ? buffer_.size() : 0;
    const bool same = !in_progress_ || place.total == total_;
    if (!same || place.offset != filled || bytes.empty() || bytes.size() > place.total - filled) {
        return Outcome::out_of_order;
    }
    if (bytes.size() == place.total) { // arrived in one fragment
        message_ = bytes;
        return Outcome::complete;
    }
    if (!in_progress_) buffer_.clear();
    const std::size_t needed = filled + bytes.size();
    if (!reserve(needed, place.total)) {
        abandon();
        return Outcome::no_memory;
    }
    append(bytes);
    total_ = place.total;
    in_progress_ = buffer_.size() < total_;
    if (!in_progress_) message_ = buffer_;
    return in_progress_ ? Outcome::incomplete : Outcome::complete;
}

// Reserves memory for `needed` bytes of a message of `total` bytes. Returns false if there is none.
bool Reassembly::reserve(std::size_t needed, std::size_t total) noexcept {
    if (needed <= buffer_.capacity()) return true;
    try {
        buffer_.reserve(std::min(total, std::max(needed, 2 * buffer_.capacity())));
        return true;
    } catch (const std::bad_alloc&) {
        return false;
    }
}

// With reserved memory. In pieces if one copy would be slow (netio/base/copy.hpp).
void Reassembly::append(std::span<const std::byte> bytes) {
    const bool in_pieces =
        detail::is_slow_for_strings(buffer_.data() + buffer_.size(), bytes.data());
    const std::size_t piece_bytes =
        in_pieces ? std::size_t{detail::copy_piece_bytes} : bytes.size();
    while (!bytes.empty()) {
        const auto piece = bytes.first(std::min(piece_bytes, bytes.size()));
        buffer_.insert(buffer_.end(), piece.begin(), piece.end());
        bytes = bytes.subspan(piece.size());
    }
}

std::string_view to_string(Reassembly::Outcome outcome) noexcept {
    switch (outcome) {
    case Reassembly::Outcome::incomplete:
        return "incomplete";
    case Reassembly::Outcome::complete:
        return "complete";
    case Reassembly::Outcome::too_large:
        return "a message that is larger than agreed";
    case Reassembly::Outcome::out_of_order:
        return "a fragment that does not follow the one before";
    case Reassembly::Outcome::no_memory:
        return "a message for which there is no memory";
    }
    return "unknown";
}

} // namespace netio::inline v0_3
