// SPDX-License-Identifier: Apache-2.0
#include "pubsub/core/reassembly.hpp"

namespace netio::pubsub::inline v0_2 {

Reassembly::Outcome Reassembly::take(const FragmentExtension& fragment,
                                     std::span<const std::byte> bytes) {
    const bool first = !bytes_.in_progress();
    const bool same = first || (fragment.fid == current_.fid &&
                                fragment.message_number == current_.message_number &&
                                fragment.status == current_.status);
    if (!same) return Outcome::out_of_order;
    if (first) current_ = fragment;
    return bytes_.take({.offset = fragment.offset, .total = fragment.total}, bytes);
}

} // namespace netio::pubsub::inline v0_2
