// SPDX-License-Identifier: Apache-2.0
#include "apps/subscribe/subscribe.hpp"

#include "apps/common/cli.hpp"
#include "apps/common/fid_text.hpp"
#include "apps/common/io.hpp"
#include "apps/common/logging.hpp"
#include "apps/common/parse.hpp"
#include "apps/common/pattern.hpp"
#include "apps/common/report.hpp"
#include "apps/metrics/families.hpp"
#include "apps/metrics/metrics.hpp"
#include "apps/program/commands.hpp"
#include "netio/device_watch.hpp"
#include "netio/fabric.hpp"
#include "netio/loop/signal_watch.hpp"
#include "pubsub/client/subscriptions.hpp"
#include "pubsub/core/slow_policy.hpp"
#include "pubsub/discovery/bus.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace apps::subscribe {
namespace {

bool is_sound(const SubscribeReport& report) {
    const PatternCounts& counts = report.pattern;
    return counts.corrupt == 0 && counts.truncated == 0 && counts.lost == 0 &&
           counts.reordered == 0 && counts.duplicates == 0 && report.lost.value_or(0) == 0 &&
           report.surplus == 0;
}

bool ended_early(const std::string& end, const Asked& asked) {
    if (end == "lost") return true;
    if (end == "interrupted") return asked.messages || asked.duration;
    return asked.messages && end != "messages";
}

} // namespace

// The worst result has priority.
ExitStatus outcome(const SubscribeReport& report, const Asked& asked) {
    if (report.end == "failed" || report.end == "refused") return ExitStatus::failed;
    if (!report.reached.any) return ExitStatus::unreached;
    if (asked.sound && !is_sound(report)) return ExitStatus::unsound;
    const bool is_missing =
        report.lost.value_or(0) > 0 || report.unknown_tails > 0 || report.reached.unreached > 0;
    if (is_missing || ended_early(report.end, asked)) return ExitStatus::incomplete;
    return report.throughput.messages == 0 ? ExitStatus::nothing : ExitStatus::done;
}

bool parse_pause(std::string_view text, Slowness& slowness) {
    const std::size_t at = text.find('@');
    if (at == std::string_view::npos) return false;
    const auto pause = parse_duration(text.substr(0, at));
    const auto every = parse_duration(text.substr(at + 1));
    if (!pause || !every || *pause >= *every) return false;
    slowness.pause = *pause;
    slowness.every = *every;
    return true;
}

SlowReader::SlowReader(const Slowness& slowness, netio::TimePoint start)
    : slowness_{slowness}, next_pause_{slowness.pause.count() > 0 ? start + slowness.every
                                                                  : netio::TimePoint::max()} {}

// Pauses during which no message arrived are skipped.
netio::Duration SlowReader::hold(netio::TimePoint now) {
    netio::Duration time = slowness_.think;
    if (now < next_pause_) return time;
    const auto periods = (now - next_pause_) / slowness_.every;
    const netio::TimePoint begin = next_pause_ + periods * slowness_.every;
    next_pause_ = begin + slowness_.every;
    if (now < begin + slowness_.pause) time += begin + slowness_.pause - now;
    return time;
}

void Verifier::check(std::string_view publisher, netio::pubsub::Fid fid,
                     std::span<const std::byte> message) {
    const std::size_t header = std::min(header_bytes_, message.size());
    pattern_.check(fid, message.subspan(header), number_of(publisher));
}

void Verifier::begin_anew(std::string_view publisher) {
    publishers_.insert_or_assign(std::string{publisher}, ++numbers_given_);
    last_publisher_.clear();
}

std::uint32_t Verifier::number_of(std::string_view publisher) {
    if (publisher == last_publisher_) return last_number_;
    auto known = publishers_.find(publisher);
    if (known == publishers_.end()) known = publishers_.emplace(publisher, ++numbers_given_).first;
    last_publisher_ = publisher;
    last_number_ = known->second;
    return last_number_;
}

namespace {

// A publisher may send any number.
netio::Duration difference(std::int64_t published, std::int64_t arrived) noexcept {
    constexpr std::int64_t latest = std::numeric_limits<std::int64_t>::max() / 2;
    return netio::Duration{arrived - std::clamp<std::int64_t>(published, 0, latest)};
}

} // namespace

void Latency::add(std::int64_t published, std::int64_t arrived) {
    const netio::Duration taken = difference(published, arrived);
    if (taken < netio::Duration::zero()) ++ahead_;
    histogram_.add(taken);
}

void OneWayLatency::round_trip(netio::Duration time) noexcept {
    round_trip_ = std::min(round_trip_, std::max(time, netio::Duration::zero()));
}

void OneWayLatency::add(std::int64_t published, std::int64_t arrived) noexcept {
    const netio::Duration taken = difference(published, arrived);
    smallest_ = std::min(smallest_, taken);
    if (round_trip_ == netio::Duration::max()) return;
    const Offset now = offset();
    const bool is_certain = now.value > now.error || now.value < -now.error;
    histogram_.add(is_certain ? taken - now.value : taken);
}

OneWayLatency::Offset OneWayLatency::offset() const noexcept {
    return {.value = smallest_ - round_trip_ / 2, .error = round_trip_ / 2};
}

std::optional<OneWayMetrics> OneWayLatency::metrics(std::string publisher) const {
    if (histogram_.count() == 0) return std::nullopt;
    return OneWayMetrics{.publisher = std::move(publisher),
                         .median = histogram_.quantile(0.5),
                         .p99 = histogram_.quantile(0.99),
                         .clock_offset = offset().value,
                         .clock_offset_error = offset().error};
}

std::optional<LatencyReport> Latency::report() const {
    if (histogram_.count() == 0) return {};
    const auto us = [](netio::Duration time) {
        return std::chrono::duration<double, std::micro>(time).count();
    };
    return LatencyReport{.messages = histogram_.count(),
                         .ahead = ahead_,
                         .p50_us = us(histogram_.quantile(0.5)),
                         .p90_us = us(histogram_.quantile(0.9)),
                         .p99_us = us(histogram_.quantile(0.99)),
                         .p99_9_us = us(histogram_.quantile(0.999)),
                         .longest_us = us(histogram_.longest())};
}

} // namespace apps::subscribe

namespace apps {

// netio subscribe: receives fids, counts, verifies or records them.

namespace subscribe {
namespace {

// The values of --policy.

// In the order of SlowPolicy.
inline constexpr std::array<std::string_view, 4> policy_words{"block", "drop", "disconnect",
                                                              "newest"};

// Returns nullopt for an empty word, which means the publisher's own policy.
inline std::optional<netio::pubsub::SlowPolicy> policy_named(std::string_view word) {
    const auto* const found = std::ranges::find(policy_words, word);
    if (found == policy_words.end()) return std::nullopt;
    return static_cast<netio::pubsub::SlowPolicy>(found - policy_words.begin());
}

// One run of `netio subscribe`, from the connection to the report.

using netio::pubsub::Fid;
using netio::pubsub::FidRange;
using netio::pubsub::SubscribeSocket;
using netio::pubsub::Subscriptions;

struct Arguments {
    struct From {
        std::vector<std::string> publishers;
        std::string bus; // empty: none
        bool reconnect = false;
    };
    From from;
    struct Fids {
        std::vector<std::string> wanted;
        std::string decode; // layout of fids in the log; may be empty
    };
    Fids fids;
    std::optional<std::uint64_t> messages;
    std::optional<netio::Duration> duration;
    std::string local;
    KeyArguments key;
    MetricsArguments metrics;
    std::string provider = "auto";
    netio::LoopMode loop = netio::LoopMode::blocking;
    std::string policy;              // empty: the publisher's own
    SubscribeSocket::Options socket; // except the options above
    struct Reading {
        bool verify = false;
        std::size_t header_bytes = 0;         // before the verified part
        std::optional<netio::Duration> think; // over each message
        std::uint64_t prescale = 1;           // every N-th message is processed
        Slowness slowness;                    // simulated pauses
    };
    Reading reading;
    bool json = false;
    bool progress = false;
};

class Run final : public Subscriptions::Handler {
  public:
    Run(netio::EventLoop& loop, netio::Transport& transport, const Arguments& arguments);

    ExitStatus run();

  private:
    // State of the log.
    struct Logged {
        Logged(netio::EventLoop& loop, const std::string& decode);
        const netio::pubsub::FidLayout* layout; // layout for showing fids; null: numbers
        std::set<std::string> waiting; // publishers that the log already reported as awaited
        std::uint64_t missing = 0;
        OutageLog outage;
        netio::Timer end_outage; // lost messages within this time are one outage
        ContestLog contests;
        PeerLog peers;        // connections, and problems with the bus
        RangeLine subscribed; // not logged yet
        netio::Timer tell_subscribed;
    };
    struct Ended { // the reason; empty: not yet
        std::string how;
        std::string detail;
        std::string lost; // how a publisher ended, if not in order
    };
    struct PublisherTimes {
        std::optional<netio::TimePoint> requested; // the first subscription of a connection
        OneWayLatency one_way;
    };
    struct Times { // receive times of messages
        netio::TimePoint first = netio::TimePoint::max();
        netio::TimePoint last;
    };

    void end(std::string_view why);
    void duration_has_passed();
    bool may_get_an_answer();
    void refuse(std::string why);
    void hold();
    SubscribeReport report() const;
    std::function<void(Exposition&)> metrics();

    void on_connected(Subscriptions& all, const Subscriptions::Source& source,
                      const std::string& provider) override;
    void on_subscribed(Subscriptions& all, const Subscriptions::Source& source,
                       const FidRange& range) override;
    void on_refused(Subscriptions& all, const Subscriptions::Source& source, const FidRange& range,
                    Subscriptions::Refusal why) override;
    void on_message(Subscriptions& all, const Subscriptions::Source& source, Fid fid,
                    std::span<const std::byte> message, std::uint8_t status) override;
    void on_gap(Subscriptions& all, const Subscriptions::Source& source, Fid fid,
                std::uint64_t count) override;
    void on_lost_while_disconnected(Subscriptions& all, const Subscriptions::Source& source,
                                    Fid fid, std::uint64_t count) override;
    void on_publisher_changed(Subscriptions& all, const Subscriptions::Source& source,
                              const netio::pubsub::PublisherChange& change) override;
    void on_nothing_published(Subscriptions&, const Subscriptions::Source& source,
                              const netio::pubsub::FidQuery::Near& near) override;
    void on_closed(Subscriptions& all, const Subscriptions::Source& source,
                   const Subscriptions::Ending& ending) override;
    void on_contest(Subscriptions& all, const Subscriptions::Contest& contest) override;
    void on_warning(Subscriptions& all, const std::string& what) override;
    void on_ended(Subscriptions& all) override;

    const Arguments& arguments_;
    netio::EventLoop& loop_;
    Verifier verifier_;
    Latency latency_;
    std::map<std::string, PublisherTimes, std::less<>> publisher_times_; // by name
    Prescale prescale_;
    SlowReader slow_reader_;
    std::uint64_t messages_left_;
    Ended ended_;
    Logged logged_;
    Answers answers_;
    Times times_;
    netio::Timer duration_timer_;
    std::unique_ptr<netio::pubsub::Discovery> bus_; // null: none
    Subscriptions all_;
    std::unique_ptr<MetricsServer> metrics_;
    netio::SignalWatch signals_;
};

constexpr std::chrono::milliseconds longest_sleep{20};

// Returns whether a signal to end is pending that the loop has not handled yet.
bool is_to_end() {
    sigset_t pending;
    if (::sigpending(&pending) != 0) return false;
    return std::ranges::any_of(end_signals(),
                               [&](int number) { return ::sigismember(&pending, number) == 1; });
}

Slowness slowness_of(const Arguments::Reading& reading) {
    Slowness slowness = reading.slowness;
    slowness.think = reading.think.value_or(netio::Duration::zero());
    return slowness;
}

// This long after the first report of an outage, its fids are summarised, because the publishers
// report lost messages range by range.
constexpr std::chrono::seconds outage_told{1};

std::string shown(const Subscriptions::Source& source) {
    return source.name == source.address ? source.name
                                         : fmt::format("{} at {}", source.name, source.address);
}

Subscriptions::Options options_of(const Arguments& arguments, netio::pubsub::Discovery* bus) {
    Subscriptions::Options options;
    for (const std::string& publisher : arguments.from.publishers)
        options.publishers.push_back(peer_address(publisher));
    options.bus = bus;
    options.socket = arguments.socket;
    options.socket.local_host = arguments.local;
    options.socket.key = client_key(arguments.key);
    options.socket.silence_hint = silence_hint;
    // A publisher found on the bus is removed when its lease ends, not when its connection ends.
    options.socket.reconnect = arguments.from.reconnect || bus != nullptr;
    return options;
}

std::set<std::string> given_publishers(const Arguments& arguments) {
    std::set<std::string> given;
    for (const std::string& publisher : arguments.from.publishers)
        given.insert(to_string(peer_address(publisher)));
    return given;
}

Run::Logged::Logged(netio::EventLoop& loop, const std::string& decode)
    : layout{find_layout(decode)}, outage{layout}, end_outage{loop,
                                                              [this] {
                                                                  if (const auto line =
                                                                          outage.end())
                                                                      spdlog::warn("{}", *line);
                                                              }},
      contests{loop, [](const std::string& line) { spdlog::warn("{}", line); }}, peers{loop},
      tell_subscribed{loop, [this] { spdlog::info("subscribed to {}", subscribed.take()); }} {
    subscribed.decode_by(layout);
}

Run::Run(netio::EventLoop& loop, netio::Transport& transport, const Arguments& arguments)
    : arguments_{arguments}, loop_{loop}, verifier_{arguments.reading.header_bytes},
      prescale_{arguments.reading.prescale}, slow_reader_{slowness_of(arguments.reading),
                                                          loop.now()},
      messages_left_{arguments.messages.value_or(UINT64_MAX)}, logged_{loop, arguments.fids.decode},
      answers_{given_publishers(arguments)}, times_{.last = loop.now()},
      duration_timer_{loop, [this] { duration_has_passed(); }},
      bus_{arguments.from.bus.empty() ? nullptr
                                      : netio::pubsub::open_bus(loop, arguments.from.bus)},
      all_{transport, options_of(arguments, bus_.get()), *this}, metrics_{show_metrics(
                                                                     loop, arguments.metrics,
                                                                     [this] { return metrics(); })},
      signals_{loop, end_signals(), [this](int) {
                   if (!ended_.how.empty()) return loop_.stop(); // the second signal does not wait
                   end("interrupted");
               }} {
    const std::vector<FidRange> fids = parse_fids(arguments.fids.wanted);
    all_.subscribe(fids, policy_named(arguments.policy));
    if (arguments.duration) duration_timer_.start(*arguments.duration);
}

ExitStatus Run::run() {
    {
        const LiveDisplay display{
            loop_, live_form(arguments_.json, arguments_.progress), [this] {
                const Subscriptions::Sums sums = all_.sums();
                const std::uint64_t seen =
                    arguments_.reading.verify ? verifier_.pattern().total().lost : 0;
                return LiveDisplay::Sums{.messages = sums.messages,
                                         .bytes = sums.bytes,
                                         .lost = std::max(logged_.missing, seen)};
            }};
        loop_.run();
    }
    if (const auto line = logged_.outage.end()) spdlog::warn("{}", *line);
    SubscribeReport result = report();
    const ExitStatus status = outcome(result, {.messages = arguments_.messages.has_value(),
                                               .duration = arguments_.duration.has_value(),
                                               .sound = arguments_.reading.verify});
    result.outcome = to_string(status);
    print_report(arguments_.json ? to_json(result) + "\n" : to_text(result));
    return status;
}

// The first reason counts; later ones are consequences of closing.
void Run::end(std::string_view why) {
    if (!ended_.how.empty()) return;
    ended_.how = why;
    duration_timer_.cancel();
    if (all_.connected_count() == 0) return loop_.stop();
    all_.close();
}

void Run::duration_has_passed() {
    if (!answers_.extend(may_get_an_answer())) return end("duration");
    spdlog::info("no publisher has answered within --duration; waiting up to {} ms for an answer",
                 arguments_.socket.session.connect_timeout.count());
    duration_timer_.start(arguments_.socket.session.connect_timeout);
}

bool Run::may_get_an_answer() {
    bool may = false;
    all_.for_each([&](const Subscriptions::Source& source, const SubscribeSocket& socket) {
        may = may || socket.is_connected() || !answers_.is_tried(source.name);
    });
    return may;
}

// Uses the publishers' totals once they are known; before, the sequence numbers in the messages and
// the losses that the publishers have reported.
SubscribeReport Run::report() const {
    const Subscriptions::Sums sums = all_.sums();
    SubscribeReport report{.mode = "none",
                           .end = ended_.how,
                           .detail = ended_.detail,
                           .reached = {.any = answers_.any(), .unreached = answers_.unreached()},
                           .throughput = {.messages = sums.messages,
                                          .bytes = sums.bytes,
                                          .seconds = 0,
                                          .passed_over = prescale_.passed_over()},
                           .lost = 0,
                           .verified = arguments_.reading.verify,
                           .pattern = verifier_.pattern().total(),
                           .latency = latency_.report()};
    netio::pubsub::FramesSeen seen;
    netio::pubsub::FidMap<netio::pubsub::Account::Row> rows;
    netio::pubsub::Account::Row others;
    bool complete = true;
    std::set<std::string> providers;
    for (const Subscriptions::PublisherStats& stats : all_.publisher_stats()) {
        report.connections += stats.connections;
        report.restarts += stats.changes;
        report.unknown_tails += stats.unknown_tails;
        if (stats.connections > 0) complete = complete && stats.complete;
        if (!stats.provider.empty()) providers.insert(stats.provider);
        seen.pages = seen.pages || stats.seen.pages;
        seen.messages = seen.messages || stats.seen.messages || stats.seen.gathered;
        seen.fragments = seen.fragments || stats.seen.fragments;
        stats.fids.for_each(
            [&](Fid fid, const netio::pubsub::Account::Row& row) { rows[fid] += row; });
        others += stats.others;
    }
    for (const std::string& provider : providers)
        report.provider += (report.provider.empty() ? "" : "+") + provider;
    if (seen.fragments) report.mode = "fragments"; // from either kind of publisher
    if (seen.pages) report.mode = "buffered";
    if (seen.messages) report.mode = seen.pages ? "mixed" : "unbuffered";
    if (times_.first != netio::TimePoint::max()) {
        report.throughput.seconds =
            std::chrono::duration<double>(times_.last - times_.first).count();
    }
    std::uint64_t lost = others.lost;
    report.surplus += others.surplus;
    rows.for_each([&](Fid fid, const netio::pubsub::Account::Row& account) {
        const std::uint64_t numbers = complete ? 0 : verifier_.pattern().counts(fid).lost;
        const FidReport row{.fid = fid,
                            .messages = account.messages,
                            .bytes = account.bytes,
                            .lost = std::max(account.lost, numbers),
                            .surplus = account.surplus,
                            .first = verifier_.pattern().first(fid)};
        lost += row.lost;
        report.surplus += row.surplus;
        report.fids.push_back(row);
    });
    report.lost = lost;
    // The number of messages in flight when a publisher was lost is unknown, and so is the number
    // published by a publisher that was never reached.
    if (!answers_.any() || report.reached.unreached > 0 || ended_.how == "lost" ||
        report.unknown_tails > 0)
        report.lost.reset();
    std::ranges::sort(report.fids, {}, &FidReport::fid);
    return report;
}

std::function<void(Exposition&)> Run::metrics() {
    std::vector<OneWayMetrics> one_way;
    for (const auto& [name, times] : publisher_times_)
        if (auto metrics = times.one_way.metrics(name)) one_way.push_back(std::move(*metrics));
    return [snapshot = all_.snapshot(arguments_.metrics.fid_limit()),
            one_way = std::move(one_way)](Exposition& text) {
        write(snapshot, text);
        write(one_way, text);
    };
}

// --- the log --------------------------------------------------------------------------------

void Run::on_connected(Subscriptions&, const Subscriptions::Source& source,
                       const std::string& provider) {
    logged_.waiting.erase(source.name);
    publisher_times_[source.name].requested = netio::Clock::now();
    logged_.peers.info(fmt::format("connected to {} ({})", shown(source), provider));
}

void Run::on_subscribed(Subscriptions&, const Subscriptions::Source& source,
                        const FidRange& range) {
    PublisherTimes& times = publisher_times_[source.name];
    if (const auto requested = std::exchange(times.requested, std::nullopt))
        times.one_way.round_trip(netio::Clock::now() - *requested);
    if (answers_.accepted(source.name)) duration_timer_.start(*arguments_.duration);
    if (logged_.subscribed.empty()) logged_.tell_subscribed.start(netio::Duration::zero());
    logged_.subscribed.add(range);
}

void Run::on_refused(Subscriptions&, const Subscriptions::Source& source, const FidRange& range,
                     Subscriptions::Refusal why) {
    const std::string fids = apps::shown(range, logged_.layout);
    const std::string where = shown(source) + ": ";
    switch (why) {
    case Subscriptions::Refusal::too_many_ranges:
        return refuse(where + "the publisher has reached its limit of subscriptions and refuses " +
                      fids);
    case Subscriptions::Refusal::policy:
        return refuse(fmt::format(
            "{3}the publisher refuses policy '{1}' for {0}, {2}", fids, arguments_.policy,
            arguments_.policy == "newest" ? "because it is not buffered; use --policy drop"
                                          : "because it would block publishing more than its own "
                                            "slow_policy; leave out --policy",
            where));
    case Subscriptions::Refusal::not_permitted:
        return refuse(where + "the key does not permit to subscribe to " + fids +
                      (arguments_.policy.empty() ? "" : " with this --policy") +
                      "; its rights are in the key file of the publisher (netio key list)");
    }
}

void Run::refuse(std::string why) {
    spdlog::error("{}", why);
    ended_.detail = std::move(why);
    end("refused");
}

void Run::on_message(Subscriptions&, const Subscriptions::Source& source, Fid fid,
                     std::span<const std::byte> message, std::uint8_t) {
    times_.last = loop_.now();
    if (times_.first == netio::TimePoint::max()) times_.first = times_.last;
    if (const auto stamp = netio::time_stamp::of(message, source.stamps)) {
        if (const auto published = stamp->utc_ns()) {
            const auto arrived = static_cast<std::int64_t>(wall_clock());
            latency_.add(*published, arrived);
            if (metrics_) publisher_times_[source.name].one_way.add(*published, arrived);
        }
    }
    if (arguments_.reading.verify) verifier_.check(source.name, fid, message);
    const bool wanted = prescale_.takes(fid);
    if (wanted && slow_reader_.is_slow() && ended_.how.empty()) hold();
    if (--messages_left_ == 0) end("messages");
}

// Sleeps like a busy handler: everything else in this process waits, but a signal to end is
// noticed.
void Run::hold() {
    const netio::TimePoint end = netio::Clock::now() + slow_reader_.hold(netio::Clock::now());
    for (auto left = end - netio::Clock::now(); left.count() > 0;
         left = end - netio::Clock::now()) {
        if (is_to_end()) return;
        std::this_thread::sleep_for(std::min<netio::Duration>(left, longest_sleep));
    }
    times_.last = netio::Clock::now(); // the loop's time did not advance during the sleep
}

void Run::on_gap(Subscriptions&, const Subscriptions::Source&, Fid, std::uint64_t count) {
    logged_.missing += count;
}

void Run::on_lost_while_disconnected(Subscriptions&, const Subscriptions::Source&, Fid fid,
                                     std::uint64_t count) {
    logged_.missing += count;
    if (!logged_.end_outage.armed()) logged_.end_outage.start(outage_told);
    if (const auto line = logged_.outage.note(fid, count)) spdlog::warn("{}", *line);
}

void Run::on_publisher_changed(Subscriptions&, const Subscriptions::Source& source,
                               const netio::pubsub::PublisherChange& change) {
    logged_.peers.warn(
        fmt::format("{} has restarted; the number of messages of the former publisher {}",
                    shown(source), change.tail_known ? "is known" : "is not known"));
    verifier_.begin_anew(source.name);
}

void Run::on_nothing_published(Subscriptions&, const Subscriptions::Source& source,
                               const netio::pubsub::FidQuery::Near& near) {
    logged_.peers.warn(fmt::format("{}: {}", shown(source), apps::shown(near, logged_.layout)));
}

void Run::on_closed(Subscriptions&, const Subscriptions::Source& source,
                    const Subscriptions::Ending& ending) {
    const netio::Closed& closed = ending.closed;
    const std::string why = to_string(closed);
    answers_.ended(source.name);
    if (answers_.is_hopeless(may_get_an_answer())) end("duration");
    if (ending.retrying) {
        if (!logged_.waiting.insert(source.name).second) return;
        return logged_.peers.info("waiting for the publisher: " + why);
    }
    if (!ended_.how.empty()) return;
    if (!arguments_.from.bus.empty())
        return logged_.peers.warn(fmt::format("{}: {}", shown(source), why));
    const bool orderly = closed.reason == netio::CloseReason::orderly && ending.complete;
    if (!orderly) {
        ended_.lost = all_.sums().messages == 0 && closed.reason == netio::CloseReason::rejected
                          ? "refused"
                          : "lost";
        ended_.detail = why;
        spdlog::error("{}: {}", shown(source), ended_.detail);
    }
}

void Run::on_contest(Subscriptions&, const Subscriptions::Contest& contest) {
    logged_.contests.note(contest);
}

void Run::on_warning(Subscriptions&, const std::string& what) {
    logged_.peers.warn("bus: " + what);
}

void Run::on_ended(Subscriptions&) {
    if (ended_.how.empty()) ended_.how = ended_.lost.empty() ? "orderly" : ended_.lost;
    loop_.stop();
}

ExitStatus run(const Arguments& arguments) {
    netio::EventLoop loop{{.mode = arguments.loop}};
    const auto transport = netio::open_fabric(loop, {.provider = arguments.provider});
    const LogObserver observer{loop};
    const netio::DeviceWatch devices{loop};
    Run run{loop, *transport, arguments};
    return run.run();
}

void add_reading(CLI::App& command, Arguments::Reading& reading) {
    auto* const verify =
        command.add_flag("--verify", reading.verify,
                         "Check pattern messages for loss, order, duplicates and corruption");
    add_count(command, "--header-bytes", reading.header_bytes,
              "With --verify: skip this many header bytes of each message", {.min = 0, .max = 4096})
        ->needs(verify);
    add_duration(command, "--think", reading.think,
                 "Simulate a slow consumer: sleep this long per message");
    add_count(command, "--prescale", reading.prescale,
              "Apply --think to the first message of each fid and then to every N-th; all messages "
              "are counted and verified",
              {.min = 1, .max = UINT32_MAX});
    command
        .add_option_function<std::string>(
            "--pause",
            [&reading](const std::string& word) {
                if (!parse_pause(word, reading.slowness))
                    throw CLI::ValidationError{
                        "--pause", fmt::format("'{}'; allowed: {}", word, pause_spelling)};
            },
            "Simulate a slow consumer: read nothing for TIME once in TIME (500ms@10s)")
        ->type_name("TIME@TIME");
}

// Options of earlier versions, which are not in the help.
void refuse_recording(CLI::App& command) {
    for (const char* const name : {"--output", "--append", "--overwrite"}) {
        command
            .add_option_function<std::vector<std::string>>(
                name,
                [name](const std::vector<std::string>&) {
                    throw CLI::ValidationError{
                        name, "netio subscribe does not record any more; use netio record "
                              "--output FILE.mcap, and netio file export --as raw for the bytes "
                              "of a fid"};
                })
            ->expected(0, 1)
            ->group("");
    }
}

} // namespace
} // namespace subscribe

Command add_subscribe(CLI::App& program) {
    using subscribe::Arguments;
    auto* command = program.add_subcommand("subscribe", "Receive messages of a publisher");
    const auto arguments = std::make_shared<Arguments>();
    auto* const publishers =
        command->add_option("publisher", arguments->from.publishers,
                            "HOST:PORT of publishers; all fids are requested from each of them");
    auto* const bus = add_bus(*command, arguments->from.bus);
    command->callback([publishers, bus] {
        if (publishers->empty() && bus->empty()) {
            throw CLI::RequiredError{"publisher or --bus"};
        }
    });
    using Socket = netio::pubsub::SubscribeSocket::Options;
    command->add_flag(cli_flag<&Socket::reconnect>(), arguments->from.reconnect,
                      "Reconnect after a lost connection, and report the messages lost in between");
    command->add_flag(cli_flag<&Socket::history>(), arguments->socket.history,
                      "First get the messages that the publisher has kept of these fids "
                      "(history_limit), then the new ones");
    command
        ->add_option("--fid", arguments->fids.wanted,
                     "Subscribe to a fid in decimal or hex, a range A-B, or a comma-separated "
                     "list; may be repeated")
        ->required();
    add_count(*command, "--messages", arguments->messages,
              "End after this many messages of all fids together");
    add_duration(*command, "--duration", arguments->duration,
                 "End this long after the start, or after the first accepted subscription if the "
                 "publisher answers later than that");
    subscribe::add_reading(*command, arguments->reading);
    subscribe::refuse_recording(*command);
    command
        ->add_option(
            "--policy", arguments->policy,
            "Policy if this subscriber is slow: block, drop, disconnect, or newest (buffered "
            "publishers only); never one that blocks the publisher more than its own policy")
        ->check(one_of({subscribe::policy_words.begin(), subscribe::policy_words.end()}));
    add_subscriber(*command, arguments->local, arguments->socket);
    add_key(*command, arguments->key);
    add_decoding(*command, arguments->fids.decode);
    add_metrics(*command, arguments->metrics);
    add_provider(*command, arguments->provider)->capture_default_str();
    add_loop(*command, arguments->loop);
    add_progress(*command, arguments->progress);
    add_json(*command, arguments->json);
    return [arguments] { return to_integer(subscribe::run(*arguments)); };
}

} // namespace apps
