// SPDX-License-Identifier: Apache-2.0
#include "pubsub/subscriber/subscribe_socket.hpp"

#include "netio/base/option_check.hpp"
#include "netio/fabric.hpp"
#include "netio/loop/check_caller.hpp"
#include "pubsub/core/fid_map.hpp"
#include "pubsub/subscriber/subscriber_core.hpp"

#include <utility>

namespace netio::pubsub::inline v0_2 {

// Destroyed by the loop after the socket: a function may be running that destroys it.
class SubscribeSocket::FunctionHandler final : public Handler, public Retired {
  public:
    explicit FunctionHandler(Functions functions) : functions_{std::move(functions)} {}

    void on_connected(SubscribeSocket&) override { call(functions_.on_connected); }
    void on_subscribed(SubscribeSocket&, const FidRange& fids) override {
        call(functions_.on_subscribed, fids);
    }
    void on_subscription_refused(SubscribeSocket&, const FidRange& fids) override {
        call(functions_.on_refused, fids);
    }
    void on_message(SubscribeSocket&, Fid fid, std::span<const std::byte> message,
                    std::uint8_t status) override {
        std::uint64_t lost_before = 0;
        if (const std::uint64_t* const lost = lost_.empty() ? nullptr : lost_.find(fid)) {
            lost_before = *lost;
            lost_.erase(fid);
        }
        call(functions_.on_message, netio::MessageView{fid, message, status, lost_before});
    }
    void on_gap(SubscribeSocket&, Fid fid, std::uint64_t count) override { lose(fid, count); }
    void on_missed(SubscribeSocket&, Fid fid, std::uint64_t count) override { lose(fid, count); }
    void on_publisher_changed(SubscribeSocket&, const PublisherChange& change) override {
        call(functions_.on_publisher_changed, change);
    }
    void on_closed(SubscribeSocket&, const Closed& closed, bool retrying) override {
        call(functions_.on_closed, closed, retrying);
    }

  private:
    template <typename Function, typename... Arguments>
    static void call(const Function& function, const Arguments&... arguments) {
        if (function) function(arguments...);
    }
    void lose(Fid fid, std::uint64_t count) {
        lost_[fid] += count;
        call(functions_.on_lost, fid, count);
    }

    const Functions functions_;
    FidMap<std::uint64_t> lost_; // since the last message of the fid
};

SubscribeSocket::SubscribeSocket(EventLoop& loop, AddressList publisher, Functions functions)
    : SubscribeSocket{loop, std::move(publisher), std::move(functions),
                      Options{.reconnect = true, .reconnect_after_end = false}} {}

SubscribeSocket::SubscribeSocket(EventLoop& loop, AddressList publisher, Functions functions,
                                 Options options)
    : functions_{std::make_unique<FunctionHandler>(std::move(functions))} {
    require_option(!publisher.empty(), "a subscriber needs the address of its publisher");
    options.publisher = publisher.front();
    options.other_addresses = std::vector<Address>{publisher.begin() + 1, publisher.end()};
    core_ = std::make_unique<SubscriberCore>(network_of(loop), std::move(options),
                                             static_cast<Handler&>(*functions_), *this);
}

SubscribeSocket::SubscribeSocket(Transport& transport, Options options, Handler& handler)
    : core_{std::make_unique<SubscriberCore>(transport, std::move(options), handler, *this)} {}

SubscribeSocket::~SubscribeSocket() {
    EventLoop& loop = core_->loop();
    check_destructor(loop, "SubscribeSocket", core_);
    if (!core_) {
        static_cast<void>(functions_.release()); // in a child process
        return;
    }
    core_.reset();
    if (functions_) loop.retire(std::move(functions_));
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
