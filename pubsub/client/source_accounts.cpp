// SPDX-License-Identifier: Apache-2.0
#include "pubsub/client/source_accounts.hpp"

#include <algorithm>

namespace netio::pubsub::inline v0_2 {

std::vector<Subscriptions::Told> SourceAccounts::told() const {
    std::vector<Subscriptions::Told> all;
    for (const auto& [id, connection] : sources_)
        all.push_back(connection->told());
    former.add_to(all);
    return all;
}

Subscriptions::Sums SourceAccounts::sums() const {
    Subscriptions::Sums sums;
    former.add_to(sums);
    for (const auto& [id, connection] : sources_) {
        const SourceFigures figures = connection->figures();
        sums.messages += figures.messages;
        sums.bytes += figures.bytes;
    }
    return sums;
}

SubscriptionsSnapshot SourceAccounts::snapshot(std::size_t fids) {
    SubscriptionsSnapshot snapshot;
    shown_.begin_look(fids);
    for (const auto& [id, connection] : sources_)
        connection->add_to(snapshot, shown_);
    former.add_to(snapshot, shown_);
    snapshot.fids = shown_.figures();
    snapshot.fid_count = shown_.is_full() ? std::max(snapshot.fid_count, snapshot.fids.size())
                                          : snapshot.fids.size(); // each once
    return snapshot;
}

} // namespace netio::pubsub::inline v0_2
