// SPDX-License-Identifier: Apache-2.0
#include "apps/publish/publish_run.hpp"

#include "apps/common/fabric_faults.hpp"
#include "apps/common/fid_spec.hpp"
#include "apps/common/pattern.hpp"
#include "apps/common/wall_clock.hpp"
#include "apps/metrics/gate_metrics.hpp"
#include "apps/metrics/publisher_metrics.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <system_error>
#include <utility>

namespace apps {
namespace {

using netio::Status;

// What nobody wants costs time too, in which nobody could come.
constexpr std::size_t messages_per_turn = 4096;
constexpr std::size_t bytes_per_turn = std::size_t{1} << 20;

// Whoever sets no pace is paced by its subscribers, so it waits for the first one.
std::uint64_t subscribers_to_wait_for(const PublisherConfig& config) {
    if (config.wait_subscribers) return *config.wait_subscribers;
    const bool unpaced = std::ranges::any_of(
        config.streams, [](const StreamConfig& stream) { return !stream.rate && !stream.trigger; });
    return unpaced ? 1 : 0;
}

bool makes_faults(const StreamConfig& stream) {
    const auto* const pattern = std::get_if<PatternConfig>(&stream.source);
    return pattern != nullptr && pattern->faults.any();
}

std::string providers_of(const netio::pubsub::Publisher& publisher) {
    std::string providers;
    for (const auto& endpoint : publisher.endpoints()) {
        if (providers.find(endpoint.provider) != std::string::npos) continue;
        providers += (providers.empty() ? "" : "+") + endpoint.provider;
    }
    return providers;
}

} // namespace

PublishRun::PublishRun(netio::EventLoop& loop, netio::Transport& transport,
                       const PublisherConfig& config, const PublishArguments& arguments,
                       PublishBudget& budget, std::function<void()> on_ended)
    : loop_{loop}, config_{config}, feed_{config.streams, config.triggers}, budget_{budget},
      subscribers_{loop}, continue_timer_{loop, [this] { pump(); }},
      duration_timer_{loop, [this] { end("duration"); }}, outlet_{make_outlet(transport, config,
                                                                              feed_.largest_bytes(),
                                                                              *this)},
      metrics_{told_at(config, "metrics",
                       [&] {
                           return show_metrics(loop, config.metrics,
                                               with_gate(config.buffered_options.publisher.keys,
                                                         [this] { return figures(); }));
                       })},
      on_ended_{std::move(on_ended)} {
    subscribers_.decode_by(find_layout(arguments.decode));
    if (arguments.duration) duration_timer_.start(*arguments.duration);
    if (!config.name.empty()) spdlog::info("publisher {}:", config.name);
    tell_listening(outlet_->publisher().endpoints());
    const std::uint64_t wait_for = subscribers_to_wait_for(config);
    if (wait_for > 0) spdlog::info("waiting for {} subscriber(s)", wait_for);
}

std::string PublishRun::metrics_address() const {
    if (!metrics_) return {};
    netio::Address address = netio::parse_address(config_.metrics.listen);
    address.port = metrics_->port();
    return to_string(address);
}

void PublishRun::start_when_ready() {
    if (begin_ || !end_.empty() ||
        subscribers_.subscriber_count() < subscribers_to_wait_for(config_))
        return;
    begin_ = netio::Clock::now();
    feed_.begin(*begin_);
    continue_timer_.start(netio::Duration::zero());
}

// Publishes until nothing more is accepted, or due, or a turn is long enough.
void PublishRun::pump() {
    if (!begin_ || !end_.empty()) return;
    try {
        std::size_t bytes = 0;
        for (std::size_t i = 0; i < messages_per_turn && bytes < bytes_per_turn; ++i) {
            if (!publish_one()) return;
            bytes += feed_.message().bytes;
        }
        continue_timer_.start(netio::Duration::zero());
    } catch (const std::system_error& error) {
        spdlog::error("{}", error.what());
        failed_ = true;
        end("failed");
    }
}

// False: nothing more for the moment, or for good.
bool PublishRun::publish_one() {
    if (budget_.messages_left == 0) return end("finished"), false;
    const std::span<std::byte> place = outlet_->place();
    if (place.empty()) return false; // a completion goes on
    const MessageFeed::Outcome outcome = feed_.next(place, loop_.now());
    if (outcome == MessageFeed::Outcome::ended) return end("finished"), false;
    if (outcome == MessageFeed::Outcome::waiting) return wait_for_feed(), false;
    if (feed_.message().timed) stamp_pattern(place.first(feed_.message().bytes), wall_clock());
    const Status status = outlet_->offer(feed_.message());
    if (status == Status::again) {
        feed_.refuse(); // the others go on
        return true;
    }
    if (status == Status::no_subscribers) ++unwanted_;
    feed_.accept();
    --budget_.messages_left;
    return true;
}

void PublishRun::wait_for_feed() {
    if (feed_.next_due() != netio::TimePoint::max()) continue_timer_.start_at(feed_.next_due());
    if (feed_.wait_fds().empty()) return;
    // Only standard input can be waited for, and it belongs to one stream.
    input_watch_ = std::make_unique<netio::DescriptorWatch>(
        loop_, feed_.wait_fds().front(), netio::DescriptorWatch::Interest::readable, [this] {
            input_watch_.reset();
            pump();
        });
}

void PublishRun::end(std::string_view why) {
    if (!end_.empty()) return;
    end_ = why;
    continue_timer_.cancel();
    duration_timer_.cancel();
    input_watch_.reset();
    subscribers_.begin_end();
    outlet_->publisher().close();
}

PublishReport PublishRun::report() const {
    const netio::pubsub::Publisher::Counters& sums = outlet_->publisher().counters();
    const auto seconds = [&] {
        return std::chrono::duration<double>(netio::Clock::now() - *begin_).count();
    };
    return {.name = config_.name,
            .provider = providers_of(outlet_->publisher()),
            .mode = config_.buffered ? "buffered" : "unbuffered",
            .end = end_,
            .throughput = {.messages = sums.messages,
                           .bytes = sums.bytes,
                           .seconds = begin_ ? seconds() : 0.0},
            .without_subscribers = unwanted_,
            .again = sums.again,
            .dropped = sums.dropped,
            .pages = sums.pages,
            .disconnected = subscribers_.disconnected(),
            .unconfirmed = subscribers_.unconfirmed(),
            .triggers = feed_.triggers(),
            .faults = std::ranges::any_of(config_.streams, makes_faults)
                          ? std::optional{feed_.faults()}
                          : std::nullopt,
            .fids = feed_.published()};
}

std::function<void(Exposition&)> PublishRun::figures() {
    netio::pubsub::Publisher& publisher = outlet_->publisher();
    PublisherFigures figures{.unit = config_.buffered ? "bytes" : "publications",
                             .counters = publisher.counters(),
                             .snapshot = publisher.snapshot({.fids = config_.metrics.fid_limit()}),
                             .disconnected = subscribers_.disconnected(),
                             .outcomes = outcomes_};
    return [figures = std::move(figures)](Exposition& text) { write(figures, text); };
}

void PublishRun::on_subscribed(netio::pubsub::Publisher&, const netio::pubsub::SubscriberPeer& peer,
                               const netio::pubsub::FidRange& range) {
    subscribers_.subscribed(peer, range);
    start_when_ready();
}

void PublishRun::on_subscriber_closed(netio::pubsub::Publisher&,
                                      const netio::pubsub::SubscriberPeer& peer,
                                      const netio::Closed& closed) {
    subscribers_.closed(peer, closed);
}

void PublishRun::on_writable(netio::pubsub::Publisher&) {
    feed_.retry();
    pump();
}

void PublishRun::on_closed(netio::pubsub::Publisher&, const netio::Closed&) {
    on_ended_();
}

void PublishRun::on_publish_completed(netio::pubsub::PublishSocket&, netio::Cookie cookie,
                                      const netio::pubsub::PublicationOutcome& outcome) {
    outcomes_.add(outcome);
    if (outlet_->release(cookie)) pump();
}

} // namespace apps
