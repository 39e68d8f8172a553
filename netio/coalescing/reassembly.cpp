// SPDX-License-Identifier: Apache-2.0
#include "netio/coalescing/reassembly.hpp"

#include <algorithm>

namespace netio::inline v0_2 {

Reassembly::Outcome Reassembly::take(const FragmentPlace& place, std::span<const std::byte> bytes) {
    if (place.total > largest_bytes_) return Outcome::too_large;
    const std::size_t filled = in_progress_ ? buffer_.size() : 0;
    const bool same = !in_progress_ || place.total == total_;
    if (!same || place.offset != filled || bytes.empty() || bytes.size() > place.total - filled) {
        return Outcome::out_of_order;
    }
    if (bytes.size() == place.total) { // whole as it came
        message_ = bytes;
        return Outcome::complete;
    }
    if (!in_progress_) buffer_.clear();
    const std::size_t needed = filled + bytes.size();
    if (needed > buffer_.capacity()) {
        buffer_.reserve(
            std::min<std::size_t>(place.total, std::max(needed, 2 * buffer_.capacity())));
    }
    buffer_.insert(buffer_.end(), bytes.begin(), bytes.end());
    total_ = place.total;
    in_progress_ = buffer_.size() < total_;
    if (!in_progress_) message_ = buffer_;
    return in_progress_ ? Outcome::incomplete : Outcome::complete;
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
    }
    return "unknown";
}

} // namespace netio::inline v0_2
