// SPDX-License-Identifier: Apache-2.0
#include "pubsub/subscriber/subscribe_socket.hpp"

#include "netio/loop/check_caller.hpp"
#include "pubsub/subscriber/subscriber_core.hpp"

#include <utility>

namespace netio::pubsub::inline v0_2 {

SubscribeSocket::SubscribeSocket(Transport& transport, Options options, Handler& handler)
    : core_{std::make_unique<SubscriberCore>(transport, std::move(options), handler, *this)} {}

SubscribeSocket::~SubscribeSocket() {
    check_destructor(core_->loop(), "SubscribeSocket", core_);
}

void SubscribeSocket::subscribe(const FidRange& range, std::optional<SlowPolicy> policy) {
    NETIO_CHECK_CALLER(core_->loop(), "SubscribeSocket");
    core_->subscribe({&range, 1}, policy);
}

void SubscribeSocket::subscribe(std::span<const FidRange> ranges,
                                std::optional<SlowPolicy> policy) {
    NETIO_CHECK_CALLER(core_->loop(), "SubscribeSocket");
    core_->subscribe(ranges, policy);
}

void SubscribeSocket::unsubscribe(const FidRange& range) {
    NETIO_CHECK_CALLER(core_->loop(), "SubscribeSocket");
    core_->unsubscribe(range);
}

void SubscribeSocket::release(const FidRange& range) {
    NETIO_CHECK_CALLER(core_->loop(), "SubscribeSocket");
    core_->release(range);
}

void SubscribeSocket::close() {
    NETIO_CHECK_CALLER(core_->loop(), "SubscribeSocket");
    core_->close();
}

void SubscribeSocket::abort() {
    NETIO_CHECK_CALLER(core_->loop(), "SubscribeSocket");
    core_->abort();
}

void SubscribeSocket::pause() {
    NETIO_CHECK_CALLER(core_->loop(), "SubscribeSocket");
    core_->pause();
}

void SubscribeSocket::resume() {
    NETIO_CHECK_CALLER(core_->loop(), "SubscribeSocket");
    core_->resume();
}

bool SubscribeSocket::is_paused() const noexcept {
    NETIO_CHECK_CALLER(core_->loop(), "SubscribeSocket");
    return core_->is_paused();
}

const SubscribeSocket::Counters& SubscribeSocket::counters() noexcept {
    NETIO_CHECK_CALLER(core_->loop(), "SubscribeSocket");
    return core_->counters();
}

std::vector<FidRange> SubscribeSocket::wanted() const {
    NETIO_CHECK_CALLER(core_->loop(), "SubscribeSocket");
    return core_->wanted();
}

bool SubscribeSocket::is_connected() const noexcept {
    NETIO_CHECK_CALLER(core_->loop(), "SubscribeSocket");
    return core_->is_connected();
}

const std::string& SubscribeSocket::provider() const noexcept {
    NETIO_CHECK_CALLER(core_->loop(), "SubscribeSocket");
    return core_->provider();
}

std::uint64_t SubscribeSocket::publisher_instance() const noexcept {
    NETIO_CHECK_CALLER(core_->loop(), "SubscribeSocket");
    return core_->intake().instance();
}

std::shared_ptr<Continuity> SubscribeSocket::continuity() const {
    NETIO_CHECK_CALLER(core_->loop(), "SubscribeSocket");
    return core_->intake().continuity();
}

const FramesSeen& SubscribeSocket::seen() const noexcept {
    NETIO_CHECK_CALLER(core_->loop(), "SubscribeSocket");
    return core_->intake().seen();
}

const ArrivalCounter& SubscribeSocket::arrivals() const noexcept {
    NETIO_CHECK_CALLER(core_->loop(), "SubscribeSocket");
    return core_->intake().arrivals();
}

} // namespace netio::pubsub::inline v0_2
