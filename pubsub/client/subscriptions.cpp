// SPDX-License-Identifier: Apache-2.0
#include "pubsub/client/subscriptions.hpp"

#include "pubsub/client/subscriptions_core.hpp"

#include <utility>

namespace netio::pubsub::inline v0_2 {

Subscriptions::Subscriptions(Transport& transport, Options options, Handler& handler)
    : core_{std::make_unique<SubscriptionsCore>(transport, std::move(options), handler, *this)} {}

Subscriptions::~Subscriptions() = default;

void Subscriptions::subscribe(const FidRange& range, std::optional<SlowPolicy> policy) {
    core_->subscribe({&range, 1}, policy);
}

void Subscriptions::subscribe(std::span<const FidRange> ranges, std::optional<SlowPolicy> policy) {
    core_->subscribe(ranges, policy);
}

void Subscriptions::unsubscribe(const FidRange& range) {
    core_->unsubscribe(range);
}

void Subscriptions::pause() {
    core_->set_paused(true);
}

void Subscriptions::resume() {
    core_->set_paused(false);
}

void Subscriptions::close() {
    core_->close();
}

std::vector<Subscriptions::Told> Subscriptions::told() const {
    return core_->told();
}

Subscriptions::Sums Subscriptions::sums() const {
    return core_->sums();
}

void Subscriptions::for_each(const std::function<void(const Source&, SubscribeSocket&)>& visit) {
    core_->for_each(visit);
}

std::size_t Subscriptions::connected_count() const noexcept {
    return core_->connected_count();
}

} // namespace netio::pubsub::inline v0_2
