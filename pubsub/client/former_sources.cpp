// SPDX-License-Identifier: Apache-2.0
#include "pubsub/client/former_sources.hpp"

#include <algorithm>
#include <utility>

namespace netio::pubsub::inline v0_2 {
namespace {

void add(Subscriptions::Told& sum, const Subscriptions::Told& told) {
    told.fids.for_each([&](Fid fid, const Account::Row& row) {
        Account::Row& all = sum.fids[fid];
        all.messages += row.messages;
        all.bytes += row.bytes;
        all.lost += row.lost;
        all.surplus += row.surplus;
    });
    sum.connections += told.connections;
    sum.changes += told.changes;
    sum.unknown_tails += told.unknown_tails;
    if (!told.provider.empty()) sum.provider = told.provider;
    merge(sum.seen, told.seen);
}

} // namespace

void FormerSources::keep(std::unique_ptr<SourceConnection> source) {
    if (!source->was_connected()) return;
    source->leave();
    fids_ += source->known_fids();
    kept_.push_back(std::move(source));
    while (!kept_.empty() && (kept_.size() > limits_.publishers || fids_ > limits_.fids))
        forget_oldest();
}

void FormerSources::forget_oldest() {
    const std::unique_ptr<SourceConnection> oldest = std::move(kept_.front());
    kept_.erase(kept_.begin());
    fids_ -= oldest->known_fids();
    add(forgotten_, oldest->told());
    oldest->add_to(forgotten_sums_);
}

std::unique_ptr<SourceConnection> FormerSources::take(const std::string& name) {
    const auto found =
        std::ranges::find_if(kept_, [&](const auto& each) { return each->source().name == name; });
    if (found == kept_.end()) return nullptr;
    std::unique_ptr<SourceConnection> source = std::move(*found);
    kept_.erase(found);
    fids_ -= source->known_fids();
    return source;
}

void FormerSources::forget(const FidRange& range) {
    for (const auto& source : kept_) {
        fids_ -= source->known_fids();
        source->forget(range);
        fids_ += source->known_fids();
    }
}

void FormerSources::add_to(std::vector<Subscriptions::Told>& all) const {
    for (const auto& source : kept_)
        all.push_back(source->told());
    if (forgotten_.connections > 0) all.push_back(forgotten_);
}

void FormerSources::add_to(Subscriptions::Sums& sums) const {
    sums.messages += forgotten_sums_.messages;
    sums.bytes += forgotten_sums_.bytes;
    for (const auto& source : kept_)
        source->add_to(sums);
}

} // namespace netio::pubsub::inline v0_2
