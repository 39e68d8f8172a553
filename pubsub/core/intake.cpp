// SPDX-License-Identifier: Apache-2.0
#include "pubsub/core/intake.hpp"

namespace netio::pubsub::inline v0_2 {

Intake::Outcome Intake::take_totals(std::uint8_t flags, std::span<const std::byte> body,
                                    const SubscriptionBook& book) {
    const auto totals = decode_counts(body);
    if (!totals || flags > more_flag || arrivals_.complete()) return Outcome::malformed;
    for (const FidCount& total : *totals) {
        if (account_of(total.fid, book) == nullptr) return refused(total.fid, book);
        arrivals_.expect(total);
    }
    if (flags == more_flag) return Outcome::taken;
    arrivals_.complete_books();
    return Outcome::totals;
}

} // namespace netio::pubsub::inline v0_2
