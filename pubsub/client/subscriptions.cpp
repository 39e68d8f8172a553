// SPDX-License-Identifier: Apache-2.0
#include "pubsub/client/subscriptions.hpp"

#include "netio/loop/check_caller.hpp"
#include "pubsub/client/subscriptions_core.hpp"

#include <utility>

namespace netio::pubsub::inline v0_2 {

Subscriptions::Subscriptions(Transport& transport, Options options, Handler& handler)
    : core_{std::make_unique<SubscriptionsCore>(transport, std::move(options), handler, *this)} {}

Subscriptions::~Subscriptions() {
    check_destructor(core_->loop(), "Subscriptions", core_);
}

void Subscriptions::subscribe(const FidRange& range, std::optional<SlowPolicy> policy) {
    NETIO_CHECK_CALLER(core_->loop(), "Subscriptions");
    core_->subscribe({&range, 1}, policy);
}

void Subscriptions::subscribe(std::span<const FidRange> ranges, std::optional<SlowPolicy> policy) {
    NETIO_CHECK_CALLER(core_->loop(), "Subscriptions");
    core_->subscribe(ranges, policy);
}

void Subscriptions::unsubscribe(const FidRange& range) {
    NETIO_CHECK_CALLER(core_->loop(), "Subscriptions");
    core_->unsubscribe(range);
}

void Subscriptions::pause() {
    NETIO_CHECK_CALLER(core_->loop(), "Subscriptions");
    core_->set_paused(true);
}

void Subscriptions::resume() {
    NETIO_CHECK_CALLER(core_->loop(), "Subscriptions");
    core_->set_paused(false);
}

void Subscriptions::close() {
    NETIO_CHECK_CALLER(core_->loop(), "Subscriptions");
    core_->close();
}

std::vector<Subscriptions::Told> Subscriptions::told() const {
    NETIO_CHECK_CALLER(core_->loop(), "Subscriptions");
    return core_->accounts().told();
}

Subscriptions::Sums Subscriptions::sums() const {
    NETIO_CHECK_CALLER(core_->loop(), "Subscriptions");
    return core_->accounts().sums();
}

SubscriptionsSnapshot Subscriptions::snapshot(std::size_t fids) {
    NETIO_CHECK_CALLER(core_->loop(), "Subscriptions");
    return core_->accounts().snapshot(fids);
}

void Subscriptions::for_each(const std::function<void(const Source&, SubscribeSocket&)>& visit) {
    NETIO_CHECK_CALLER(core_->loop(), "Subscriptions");
    core_->for_each(visit);
}

std::size_t Subscriptions::connected_count() const noexcept {
    NETIO_CHECK_CALLER(core_->loop(), "Subscriptions");
    std::size_t count = 0;
    core_->for_each([&count](const Source&, const SubscribeSocket& socket) {
        if (socket.is_connected()) ++count;
    });
    return count;
}

} // namespace netio::pubsub::inline v0_2
