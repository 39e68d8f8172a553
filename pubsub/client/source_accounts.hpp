// SPDX-License-Identifier: Apache-2.0
#pragma once

// What all publishers of a Subscriptions have brought, those that are followed and those that are
// gone.

#include "pubsub/client/former_sources.hpp"
#include "pubsub/client/source_connection.hpp"
#include "pubsub/core/shown_fids.hpp"

#include <cstddef>
#include <map>
#include <memory>
#include <vector>

namespace netio::pubsub::inline v0_2 {

using Sources = std::map<SourceId, std::unique_ptr<SourceConnection>>;

class SourceAccounts {
  public:
    // The sources must outlive it.
    SourceAccounts(const Sources& sources, FormerSources::Limits limits) noexcept
        : former{limits}, sources_{sources} {}

    std::vector<Subscriptions::Told> told() const;
    Subscriptions::Sums sums() const;
    SubscriptionsSnapshot snapshot(std::size_t fids);

    FormerSources former; // that were dropped

  private:
    const Sources& sources_;
    ShownFids<ArrivedFigures> shown_;
};

} // namespace netio::pubsub::inline v0_2
