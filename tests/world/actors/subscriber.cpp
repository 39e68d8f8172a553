// SPDX-License-Identifier: Apache-2.0

// A process that subscribes to one publisher.

#include "pubsub/subscriber/subscribe_socket.hpp"
#include "tests/world/actors/actor.hpp"
#include "tests/world/actors/keeping.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace netio::world {
namespace {

using pubsub::Fid;
using pubsub::FidRange;
using pubsub::SubscribeSocket;

FidRange range_of(const Step& step) {
    // An unlimited range, or fids of this world.
    const std::int64_t last = step.with.get("last", step.with.get("first"));
    return {.first = Fid{static_cast<std::uint64_t>(step.with.get("first"))},
            .last = Fid{last < 0 ? UINT64_MAX : static_cast<std::uint64_t>(last)}};
}
bool touches(const std::set<std::uint64_t>& some, const std::set<std::uint64_t>& others) {
    return std::ranges::any_of(others, [&](std::uint64_t fid) { return some.contains(fid); });
}

class SubscribeActor final : public Actor, public SubscribeSocket::Handler {
  public:
    SubscribeActor(World& world, Process& process);

    void behave() override;
    void check_served() override;
    void close() override;
    bool is_closed() const override { return socket_ == nullptr || closed_; }
    std::string feature() const override { return "subscriber"; }
    std::string state() const override;

  private:
    void carry_out(const Step& step) override;
    void destroy() override;
    void abort() override { destroy(); }
    void unsubscribe_all() override;
    void pause(Duration time) override;
    void resume();
    void expect_awake(const char* what);
    void subscribe(const Step& step);
    void unsubscribe(const FidRange& range);

    void on_connected(SubscribeSocket&) override;
    void on_subscribed(SubscribeSocket&, const FidRange& range) override;
    void on_unsubscribed(SubscribeSocket&, const FidRange& range) override;
    void on_subscription_refused(SubscribeSocket&, const FidRange& range) override;
    void on_message(SubscribeSocket&, Fid fid, std::span<const std::byte> message,
                    std::uint8_t status) override;
    void on_page(SubscribeSocket& socket, const PageView& page) override;
    void on_gap(SubscribeSocket&, Fid fid, std::uint64_t count) override;
    void on_totals(SubscribeSocket& socket) override;
    void on_closed(SubscribeSocket&, const Closed& closed, bool retrying) override;

    std::uint32_t publisher_;
    Duration slow_{}; // processing time per message
    std::set<std::uint64_t> wanted_;
    std::set<std::uint64_t> left_; // has ever unsubscribed
    std::optional<TimePoint> connected_since_;
    bool asking_ = false; // a request is pending
    bool closing_ = false;
    bool closed_ = false; // permanently
    bool let_go_ = false; // until it subscribes again
    Timer resume_;
    OwnMemory own_memory_;
    KeptMessages kept_;
    std::unique_ptr<SubscribeSocket> socket_;
};

SubscribeActor::SubscribeActor(World& world, Process& process)
    : Actor{world, process}, publisher_{static_cast<std::uint32_t>(option("of"))},
      slow_{std::chrono::microseconds{option("slow_us")}},
      resume_{process.loop, [this] { resume(); }}, own_memory_{process}, kept_{world, process} {
    SubscribeSocket::Options options;
    options.publisher = World::address_of(publisher_, option("via"));
    options.session = {.receive_buffer_bytes = 4096, .receive_count = 8, .send_count = 16};
    options.key = world_.key_of(number_);
    options.session = session_options(options.session);
    options.session.receive_memory = own_memory_.memory();
    options.whole_pages = option("whole_pages") != 0;
    options.history = option("history") != 0;
    if (options.history) world_.pubsub().asks_for_history(number_);
    options.largest_message_bytes = static_cast<std::size_t>(option("largest", 64 * 1024 * 1024));
    options.reconnect = option("reconnect", 1) != 0;
    options.retry_interval = std::chrono::milliseconds{option("retry_ms", 250)};
    options.retry_limit = options.retry_interval;
    socket_ = std::make_unique<SubscribeSocket>(process.transport, options, *this);
}

std::string SubscribeActor::state() const {
    if (is_closed()) return "ended";
    if (closing_) return "closing";
    if (let_go_) return "let-go";
    if (!connected_since_) return wanted_.empty() ? "idle" : "connecting";
    if (socket_->is_paused()) return "paused";
    if (asking_) return "asking";
    return slow_ > Duration{} ? "slow" : "connected";
}

// --- actions --------------------------------------------------------------------------------

void SubscribeActor::carry_out(const Step& step) {
    if (is_closed()) return;
    if (step.what == "subscribe") return subscribe(step);
    if (step.what == "unsubscribe") return unsubscribe(range_of(step));
    if (step.what == "slow") {
        slow_ = std::chrono::microseconds{step.with.get("us")};
        return;
    }
    if (step.what == "close") return close();
    if (step.what == "pause") return pause(std::chrono::microseconds{step.with.get("us")});
    if (step.what == "busy") return dawdle(std::chrono::microseconds{step.with.get("us")});
    if (step.what == "destroy" || step.what == "abort") {
        world_.oracle().happens(Trouble::gone, number_);
        destroy();
    }
}

void SubscribeActor::subscribe(const Step& step) {
    if (closing_) return;
    const FidRange range = range_of(step);
    // With history it would begin again, or not, if the requests meet on their way.
    if (option("history") != 0 && touches(left_, fids_of(range))) return;
    let_go_ = false;
    const std::int64_t policy = step.with.get("policy", -1);
    note("subscribe", to_integer(range.first), to_integer(range.last));
    const std::set<std::uint64_t> fids = fids_of(range);
    wanted_.insert(fids.begin(), fids.end());
    world_.pubsub().asks(number_, fids,
                         policy < 0 ? std::nullopt : std::optional{static_cast<Policy>(policy)});
    asking_ = true;
    if (policy < 0) return socket_->subscribe(range);
    socket_->subscribe(range, static_cast<pubsub::SlowPolicy>(policy));
}

void SubscribeActor::unsubscribe(const FidRange& range) {
    if (closing_) return;
    note("unsubscribe", to_integer(range.first), to_integer(range.last));
    for (const std::uint64_t fid : fids_of(range)) {
        wanted_.erase(fid);
        left_.insert(fid);
    }
    asking_ = !let_go_;
    socket_->unsubscribe(range);
}

// The pause that ends first ends the waiting.
void SubscribeActor::pause(Duration time) {
    process_.has_paused = true;
    if (is_closed() || closing_ || resume_.armed()) return;
    note("pause");
    world_.oracle().lasts(Trouble::busy, number_, time);
    socket_->pause();
    resume_.start(time);
}

void SubscribeActor::resume() {
    resume_.cancel();
    if (socket_ == nullptr) return;
    note("resume");
    socket_->resume();
}

void SubscribeActor::expect_awake(const char* what) {
    if (!resume_.armed() || closing_) return;
    world_.oracle().violate(RuleId::paused_takes_nothing, "process " + std::to_string(number_) +
                                                              " has paused, and got reports of " +
                                                              what);
}

void SubscribeActor::unsubscribe_all() {
    unsubscribe({.first = Fid{0}, .last = Fid{UINT64_MAX}});
}

// --- callbacks ------------------------------------------------------------------------------

void SubscribeActor::on_connected(SubscribeSocket&) {
    const std::uint64_t connection = newest_connection();
    note("connected", connection);
    connected_since_ = world_.oracle().now();
    world_.pubsub().connected(number_, publisher_, connection);
    react(Event::connected);
}

void SubscribeActor::on_subscribed(SubscribeSocket&, const FidRange& range) {
    note("subscribed", to_integer(range.first), to_integer(range.last));
    asking_ = false;
    world_.pubsub().subscribed(number_, fids_of(range));
    react(Event::subscribed);
}

void SubscribeActor::on_unsubscribed(SubscribeSocket&, const FidRange& range) {
    note("unsubscribed", to_integer(range.first), to_integer(range.last));
    asking_ = false;
    world_.pubsub().unsubscribed(number_, fids_of(range));
    react(Event::unsubscribed);
}

void SubscribeActor::on_subscription_refused(SubscribeSocket&, const FidRange& range) {
    note("refused", to_integer(range.first), to_integer(range.last));
    asking_ = false;
    for (const std::uint64_t fid : fids_of(range))
        wanted_.erase(fid);
}

void SubscribeActor::on_message(SubscribeSocket& socket, Fid fid,
                                std::span<const std::byte> message, std::uint8_t status) {
    note("message", to_integer(fid), message.size());
    expect_awake("a message");
    if (closed_) {
        world_.oracle().violate(RuleId::last_word, "a message after the last word");
    }
    const auto stamp = time_stamp::of(message, socket.stamps());
    world_.pubsub().message(number_, to_integer(fid), message, status,
                            stamp ? std::optional{stamp->time} : std::nullopt);
    kept_.offer(message, [&](std::span<const std::byte> part) { return socket.keep(part); });
    dawdle(slow_);
    react(Event::message);
}

void SubscribeActor::on_page(SubscribeSocket& socket, const PageView& page) {
    note("page", page.size());
    expect_awake("a page");
    for (const MessageView& message : page)
        world_.pubsub().message(
            number_, to_integer(message.fid()), message.bytes(), message.status(),
            message.time() ? std::optional{message.time()->time} : std::nullopt);
    kept_.offer(page.bytes(), [&](std::span<const std::byte> part) { return socket.keep(part); });
    dawdle(slow_);
    react(Event::message);
}

void SubscribeActor::on_gap(SubscribeSocket&, Fid fid, std::uint64_t count) {
    note("gap", to_integer(fid), count);
    expect_awake("a gap");
    world_.pubsub().gap(number_, to_integer(fid), count);
    react(Event::gap);
}

void SubscribeActor::on_totals(SubscribeSocket& socket) {
    const pubsub::ArrivalCounter::Difference difference = socket.arrivals().difference().value();
    note("totals", difference.lost);
    world_.pubsub().totals(number_, difference.lost, difference.surplus);
    react(Event::totals);
}

void SubscribeActor::on_closed(SubscribeSocket&, const Closed& closed, bool retrying) {
    note("closed", static_cast<std::uint64_t>(closed.reason), retrying);
    if (closed_) {
        world_.oracle().violate(RuleId::last_word, "the end of a subscriber was reported twice");
    }
    // A running publisher closes the connection of a subscriber that has unsubscribed from all
    // fids.
    let_go_ = !retrying && !closing_ && closed.reason == CloseReason::orderly && wanted_.empty() &&
              !socket_->arrivals().complete();
    closed_ = !retrying && !let_go_;
    world_.pubsub().ended(number_, closed.reason == CloseReason::orderly, closing_);
    const TimePoint since = connected_since_.value_or(TimePoint::max());
    if (std::exchange(connected_since_, std::nullopt)) {
        world_.judge_end(number_, publisher_, since, closed, dead_after());
    }
    react(Event::closed);
}

// --- the end --------------------------------------------------------------------------------

void SubscribeActor::behave() {
    Actor::behave();
    slow_ = Duration{};
    kept_.stop();
    resume();
}

void SubscribeActor::check_served() {
    if (is_closed() || closing_ || wanted_.empty() || !world_.serves(publisher_)) return;
    world_.pubsub().served(number_, publisher_, wanted_);
}

void SubscribeActor::close() {
    if (is_closed() || std::exchange(closing_, true)) return;
    note("close");
    // A publisher that ends now gets no confirmation that its subscriber has everything.
    world_.oracle().happens(Trouble::gone, number_);
    socket_->close();
    react(Event::closing);
}

void SubscribeActor::destroy() {
    note("destroy");
    world_.pubsub().ended(number_, false, true);
    socket_.reset();
}

} // namespace

std::unique_ptr<Actor> make_subscriber(World& world, Process& process) {
    return std::make_unique<SubscribeActor>(world, process);
}

} // namespace netio::world
