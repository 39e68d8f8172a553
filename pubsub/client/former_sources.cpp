// SPDX-License-Identifier: Apache-2.0
#include "pubsub/client/former_sources.hpp"

#include <algorithm>
#include <utility>

namespace netio::pubsub::inline v0_2 {
namespace {

void add(Subscriptions::Told& sum, const Subscriptions::Told& told, std::size_t fid_limit) {
    Account::Rows rows{.fids = std::move(sum.fids), .others = sum.others};
    told.fids.for_each([&](Fid fid, const Account::Row& row) { rows.of(fid, fid_limit) += row; });
    rows.others += told.others;
    sum.fids = std::move(rows.fids);
    sum.others = rows.others;
    sum.connections += told.connections;
    sum.changes += told.changes;
    sum.unknown_tails += told.unknown_tails;
    if (!told.provider.empty()) sum.provider = told.provider;
    merge(sum.seen, told.seen);
}

void add(SourceFigures& sum, const SourceFigures& figures) {
    sum.messages += figures.messages;
    sum.bytes += figures.bytes;
    sum.missed += figures.missed;
    sum.connections += figures.connections;
    sum.pauses += figures.pauses;
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
    add(forgotten_, oldest->told(), limits_.forgotten_fids);
    add(forgotten_figures_, oldest->figures());
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
    SourceFigures all = forgotten_figures_;
    for (const auto& source : kept_)
        add(all, source->figures());
    sums.messages += all.messages;
    sums.bytes += all.bytes;
}

void FormerSources::add_to(SubscriptionsSnapshot& snapshot,
                           ShownFids<ArrivedFigures>& shown) const {
    for (const auto& source : kept_)
        source->add_to(snapshot, shown);
    if (forgotten_.connections == 0) return;
    snapshot.sources.push_back(forgotten_figures_);
    snapshot.fid_count += forgotten_.fids.size();
    shown.add(forgotten_.fids, add_row);
}

} // namespace netio::pubsub::inline v0_2
