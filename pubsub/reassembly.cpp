// SPDX-License-Identifier: Apache-2.0
#include "pubsub/reassembly.hpp"

#include <algorithm>

namespace pubsub {

Reassembly::Outcome Reassembly::take(const FragmentExtension& fragment,
                                     std::span<const std::byte> bytes) {
    if (fragment.total > largest_bytes_) return Outcome::too_large;
    const bool first = filled_ == 0;
    const bool fits =
        fragment.offset == filled_ && !bytes.empty() && bytes.size() <= fragment.total - filled_;
    const bool same =
        first ||
        (fragment.fid == current_.fid && fragment.message_number == current_.message_number &&
         fragment.total == current_.total && fragment.status == current_.status);
    if (!fits || !same) return Outcome::out_of_order;
    if (first) {
        current_ = fragment;
        buffer_.resize(fragment.total);
    }
    std::ranges::copy(bytes, buffer_.begin() + static_cast<std::ptrdiff_t>(filled_));
    filled_ += bytes.size();
    if (filled_ < fragment.total) return Outcome::incomplete;
    filled_ = 0;
    return Outcome::complete;
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

} // namespace pubsub
