// SPDX-License-Identifier: Apache-2.0

// A process that knows only fids: it finds their publishers in the registry and reconnects to them.
// It uses the same implementation as the thread-safe client.

#include "pubsub/client/subscriptions.hpp"
#include "tests/world/actors/actor.hpp"

#include <algorithm>
#include <utility>

namespace netio::world {
namespace {

using pubsub::Fid;
using pubsub::FidRange;
using pubsub::Subscriptions;

class FinderActor final : public Actor, public Subscriptions::Handler {
  public:
    FinderActor(World& world, Process& process)
        : Actor{world, process}, view_{world.bus()}, healed_{process.loop,
                                                             [this] { view_.cut(false); }},
          resume_{process.loop, [this] { resume(); }}, bus_{process.loop, view_} {
        Subscriptions::Options options;
        options.bus = &bus_;
        options.socket.session =
            session_options({.receive_buffer_bytes = 4096, .receive_count = 8});
        options.socket.retry_interval = std::chrono::milliseconds{option("retry_ms", 250)};
        options.socket.retry_limit = std::chrono::milliseconds{1000};
        all_ = std::make_unique<Subscriptions>(process.transport, options, *this);
        world.found().begins(number_);
    }

    void behave() override {
        Actor::behave();
        view_.cut(false);
        resume();
    }
    void check_served() override;
    void close() override {
        if (all_ == nullptr || std::exchange(closing_, true)) return;
        note("close");
        all_->close();
        react(Event::closing);
    }
    bool is_closed() const override { return all_ == nullptr || ended_; }
    std::string feature() const override { return "finder"; }
    std::string state() const override {
        if (is_closed()) return "ended";
        return all_->connected_count() > 0 ? "connected" : "looking";
    }

  private:
    void carry_out(const Step& step) override;
    void destroy() override {
        note("destroy");
        all_.reset();
    }
    void abort() override { destroy(); }
    void unsubscribe_all() override { unsubscribe({.first = Fid{0}, .last = Fid{fid_count - 1}}); }
    void unsubscribe(const FidRange& range);
    void pause(Duration time) override {
        process_.has_paused = true;
        if (is_closed() || closing_ || resume_.armed()) return;
        world_.oracle().lasts(Trouble::busy, number_, time);
        all_->pause();
        resume_.start(time);
    }
    void resume() {
        resume_.cancel();
        if (all_ != nullptr && !closing_) all_->resume();
    }

    void on_connected(Subscriptions&, const Subscriptions::Source& source,
                      const std::string&) override {
        connections_[source.name] =
            world_.network().newest_connection(number_, parse_address(source.address));
        note("connected", connections_[source.name]);
        if (!open_.insert(source.name).second) unreported_end(source.name);
        react(Event::connected);
    }
    void on_subscribed(Subscriptions&, const Subscriptions::Source& source,
                       const FidRange& range) override {
        note("subscribed", to_integer(range.first), to_integer(range.last));
        world_.found().subscribed(number_, connections_[source.name], to_integer(range.first),
                                  to_integer(range.last));
        react(Event::subscribed);
    }
    // The answer to a subscription that was then withdrawn may have arrived before.
    void on_unsubscribed(Subscriptions&, const Subscriptions::Source&,
                         const FidRange& range) override {
        note("unsubscribed", to_integer(range.first), to_integer(range.last));
        world_.found().unsubscribed(number_, to_integer(range.first), to_integer(range.last));
    }
    void on_message(Subscriptions&, const Subscriptions::Source&, Fid fid,
                    std::span<const std::byte> message, std::uint8_t) override {
        note("message", to_integer(fid), message.size());
        world_.found().message(number_, to_integer(fid), message);
        react(Event::message);
    }
    void on_gap(Subscriptions&, const Subscriptions::Source&, Fid fid,
                std::uint64_t count) override {
        note("gap", to_integer(fid), count);
        world_.oracle().violate(RuleId::gap_by_policy,
                                "messages for a finder were dropped, and its "
                                "publisher's policy is to wait");
    }
    void on_lost_while_disconnected(Subscriptions&, const Subscriptions::Source&, Fid fid,
                                    std::uint64_t count) override {
        note("lost", to_integer(fid), count);
        world_.found().missing(number_, to_integer(fid), count);
        react(Event::gap);
    }
    void on_publisher_changed(Subscriptions&, const Subscriptions::Source& source,
                              const pubsub::PublisherChange& change) override {
        note("changed", change.tail_known);
        world_.found().changed(number_, process_of(source), change.tail_known);
    }
    void on_closed(Subscriptions&, const Subscriptions::Source& source,
                   const Subscriptions::Ending& ending) override {
        note("closed", static_cast<std::uint64_t>(ending.closed.reason), ending.retrying);
        open_.erase(source.name);
        world_.found().closed(number_, process_of(source));
        if (ending.closed.reason == CloseReason::protocol_error) {
            world_.oracle().violate(RuleId::no_protocol_error, ending.closed.detail);
        }
        react(Event::closed);
    }
    void on_ended(Subscriptions&) override {
        note("ended");
        if (std::exchange(ended_, true)) {
            world_.oracle().violate(RuleId::last_word, "the end of a finder was reported twice");
        }
    }

    void unreported_end(const std::string& name) {
        world_.oracle().violate(RuleId::last_word,
                                "a finder was not notified that its connection to " + name +
                                    " ended");
    }
    static std::uint32_t process_of(const Subscriptions::Source& source) {
        return static_cast<std::uint32_t>(std::stoul(source.name.substr(1)));
    }

    std::set<std::uint64_t> wanted_;
    std::set<std::string> open_;                       // connections whose end was not reported
    std::map<std::string, std::uint64_t> connections_; // the last connection of each publisher name
    bool closing_ = false;
    bool ended_ = false;
    BusView view_;
    Timer healed_;
    Timer resume_;
    BusWatch bus_;
    std::unique_ptr<Subscriptions> all_; // last member: destroyed first
};

void FinderActor::carry_out(const Step& step) {
    if (is_closed() || closing_) return;
    const FidRange range{
        .first = Fid{static_cast<std::uint64_t>(step.with.get("first"))},
        .last = Fid{static_cast<std::uint64_t>(step.with.get("last", step.with.get("first")))}};
    if (step.what == "subscribe") {
        for (const std::uint64_t fid :
             fids_between(to_integer(range.first), to_integer(range.last)))
            wanted_.insert(fid);
        return all_->subscribe(range);
    }
    if (step.what == "unsubscribe") return unsubscribe(range);
    if (step.what == "bus_cut") {
        view_.cut(true);
        return healed_.start(std::chrono::microseconds{step.with.get("us")});
    }
    if (step.what == "close") return close();
    if (step.what == "pause") return pause(std::chrono::microseconds{step.with.get("us")});
    if (step.what == "busy") return dawdle(std::chrono::microseconds{step.with.get("us")});
    if (step.what == "destroy" || step.what == "abort") destroy();
}

void FinderActor::unsubscribe(const FidRange& range) {
    if (is_closed() || closing_) return;
    for (const std::uint64_t fid : fids_between(to_integer(range.first), to_integer(range.last)))
        wanted_.erase(fid);
    world_.found().unsubscribes(number_, to_integer(range.first), to_integer(range.last));
    all_->unsubscribe(range);
}

void FinderActor::check_served() {
    if (is_closed() || closing_) return;
    std::uint64_t gone = 0;
    world_.for_each_announced([&](const ProcessPlan& plan) {
        if (!world_.serves(plan.number)) {
            gone += plan.options.get("loops", 1) == 2 ? 2U : 1U;
            return;
        }
        const auto first = static_cast<std::uint64_t>(plan.options.get("first"));
        for (const std::uint64_t fid : {first, first + 1})
            if (wanted_.contains(fid)) world_.found().served(number_, fid);
    });
    std::uint64_t unknown_tails = 0;
    std::set<std::string> connected;
    for (const Subscriptions::PublisherStats& stats : all_->publisher_stats()) {
        unknown_tails += stats.unknown_tails;
        if (stats.connected) connected.insert(stats.source.name);
    }
    for (const std::string& name : open_)
        if (!connected.contains(name)) unreported_end(name);
    world_.found().unknown_tails(number_, unknown_tails, gone);
}

} // namespace

std::unique_ptr<Actor> make_finder(World& world, Process& process) {
    return std::make_unique<FinderActor>(world, process);
}

} // namespace netio::world
