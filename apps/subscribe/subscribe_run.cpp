// SPDX-License-Identifier: Apache-2.0
#include "apps/subscribe/subscribe_run.hpp"

#include "apps/common/end_signals.hpp"
#include "apps/common/fid_spec.hpp"
#include "apps/common/live_display.hpp"
#include "apps/common/nothing_published.hpp"
#include "apps/common/option_values.hpp"
#include "apps/common/standard_output.hpp"
#include "apps/common/wall_clock.hpp"
#include "apps/metrics/publisher_metrics.hpp"
#include "apps/subscribe/policy_words.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <system_error>
#include <thread>
#include <utility>

namespace apps::subscribe {
namespace {

constexpr std::chrono::milliseconds longest_sleep{20};

// A signal has come that the loop has not seen yet.
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

// So long after the first of an outage its fids are summed up: what was missed is told as the
// publishers answer, range by range.
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
    // Who is found goes with its lease, and not with its connection.
    options.socket.reconnect = arguments.from.reconnect || bus != nullptr;
    return options;
}

} // namespace

Run::Logged::Logged(netio::EventLoop& loop, const std::string& decode)
    : layout{find_layout(decode)}, missed{layout}, end_missed{loop,
                                                              [this] {
                                                                  if (const auto line =
                                                                          missed.end())
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
      times_{.last = loop.now()}, duration_timer_{loop, [this] { end("duration"); }},
      bus_{arguments.from.bus.empty() ? nullptr
                                      : netio::pubsub::open_bus(loop, arguments.from.bus)},
      all_{transport, options_of(arguments, bus_.get()), *this}, metrics_{show_metrics(
                                                                     loop, arguments.metrics,
                                                                     [this] { return figures(); })},
      signals_{loop, end_signals(), [this](int) {
                   if (!ended_.how.empty()) return loop_.stop(); // the second one does not wait
                   end("interrupted");
               }} {
    const std::vector<FidRange> fids = parse_fids(arguments.fids.wanted);
    if (!arguments.output.empty()) {
        recorder_.emplace(
            loop, std::make_unique<Recorder>(arguments.output, fids, arguments.existing),
            BackgroundRecorder::Events{
                .on_writable = [this] { go_on_recording(); },
                .on_failure = [this](const std::string& why) { recording_failed(why); }});
    }
    for (const std::string& publisher : arguments.from.publishers)
        reached_.awaited.insert(to_string(peer_address(publisher)));
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
    if (const auto line = logged_.missed.end()) spdlog::warn("{}", *line);
    SubscribeReport result = report();
    finish_recording(result);
    result.end = ended_.how;
    result.detail = ended_.detail;
    const ExitStatus status = outcome(result, {.messages = arguments_.messages.has_value(),
                                               .duration = arguments_.duration.has_value(),
                                               .sound = arguments_.reading.verify || recorder_});
    result.outcome = to_string(status);
    print_report(arguments_.json ? to_json(result) + "\n" : to_text(result));
    return status;
}

// The first reason counts; what follows it is the closing of the connection.
void Run::end(std::string_view why) {
    if (!ended_.how.empty()) return;
    ended_.how = why;
    duration_timer_.cancel();
    if (all_.connected_count() == 0) return loop_.stop();
    all_.close();
}

// Whatever ended it but a publisher that was lost: all that came before is whole.
void Run::finish_recording(const SubscribeReport& report) {
    if (!recorder_ || ended_.how == "failed") return;
    std::optional<std::set<Fid>> whole;
    if (ended_.how != "lost") {
        whole.emplace();
        for (const FidReport& row : report.fids)
            if (is_whole(row.fid, report, verifier_.pattern().counts(row.fid)))
                whole->insert(row.fid);
    }
    try {
        recorder_->finish(std::move(whole));
    } catch (const std::exception& error) {
        ended_.how = "failed";
        ended_.detail = error.what();
        spdlog::error("{}", ended_.detail);
    }
}

// By the publishers' totals once they are known; before, by what the messages themselves say and
// by what the publishers have said is missing.
SubscribeReport Run::report() const {
    const Subscriptions::Sums sums = all_.sums();
    SubscribeReport report{.mode = "none",
                           .end = ended_.how,
                           .detail = ended_.detail,
                           .reached = {.any = reached_.any, .unreached = reached_.awaited.size()},
                           .throughput = {.messages = sums.messages,
                                          .bytes = sums.bytes,
                                          .seconds = 0,
                                          .passed_over = prescale_.passed_over()},
                           .lost = 0,
                           .verified = arguments_.reading.verify,
                           .pattern = verifier_.pattern().total(),
                           .latency = verifier_.latency()};
    netio::pubsub::FramesSeen seen;
    netio::pubsub::FidMap<netio::pubsub::Account::Row> rows;
    netio::pubsub::Account::Row others;
    bool complete = true;
    std::set<std::string> providers;
    for (const Subscriptions::Told& told : all_.told()) {
        report.connections += told.connections;
        report.restarts += told.changes;
        report.unknown_tails += told.unknown_tails;
        if (told.connections > 0) complete = complete && told.complete;
        if (!told.provider.empty()) providers.insert(told.provider);
        seen.pages = seen.pages || told.seen.pages;
        seen.messages = seen.messages || told.seen.messages || told.seen.gathered;
        seen.fragments = seen.fragments || told.seen.fragments;
        told.fids.for_each(
            [&](Fid fid, const netio::pubsub::Account::Row& row) { rows[fid] += row; });
        others += told.others;
    }
    for (const std::string& provider : providers)
        report.provider += (report.provider.empty() ? "" : "+") + provider;
    if (seen.fragments) report.mode = "fragments"; // of either kind
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
    // What was on its way when a publisher was lost, nobody knows, nor what one that was never
    // there has published.
    if (!reached_.any || report.reached.unreached > 0 || ended_.how == "lost" ||
        report.unknown_tails > 0)
        report.lost.reset();
    std::ranges::sort(report.fids, {}, &FidReport::fid);
    return report;
}

std::function<void(Exposition&)> Run::figures() {
    return [snapshot = all_.snapshot(arguments_.metrics.fid_limit())](Exposition& text) {
        write(snapshot, text);
    };
}

// --- what is told ---------------------------------------------------------------------------

void Run::on_connected(Subscriptions&, const Subscriptions::Source& source,
                       const std::string& provider) {
    logged_.waiting.erase(source.name);
    logged_.peers.info(fmt::format("connected to {} ({})", shown(source), provider));
}

void Run::on_subscribed(Subscriptions&, const Subscriptions::Source& source,
                        const FidRange& range) {
    reached_.any = true;
    reached_.awaited.erase(source.name);
    if (logged_.subscribed.empty()) logged_.tell_subscribed.start(netio::Duration::zero());
    logged_.subscribed.add(range);
}

void Run::on_refused(Subscriptions&, const Subscriptions::Source&, const FidRange& range,
                     Subscriptions::Refusal why) {
    const std::string fids = apps::shown(range, logged_.layout);
    switch (why) {
    case Subscriptions::Refusal::no_room:
        return refuse("the publisher has no room for the subscription to " + fids);
    case Subscriptions::Refusal::policy:
        return refuse(fmt::format(
            "the publisher does not treat a slow subscriber to {} by '{}', {}", fids,
            arguments_.policy,
            arguments_.policy == "newest"
                ? "since it is not buffered; use --policy drop"
                : "which would hold it up more than its own slow_subscribers; leave out --policy"));
    case Subscriptions::Refusal::not_permitted:
        return refuse("the key does not permit to subscribe to " + fids +
                      (arguments_.policy.empty() ? "" : " with this --policy"));
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
    if (arguments_.reading.verify) verifier_.check(source.name, fid, message, wall_clock());
    const bool wanted = prescale_.takes(fid);
    if (recorder_ && wanted) record(fid, message);
    if (wanted && slow_reader_.is_slow() && ended_.how.empty()) hold();
    if (--messages_left_ == 0) end("messages");
}

// While the disk takes nothing this side receives nothing, and goes on with everything else.
void Run::record(Fid fid, std::span<const std::byte> message) {
    recorder_->write(fid, message);
    if (!recorder_->is_full() || is_paused_ || !ended_.how.empty()) return;
    is_paused_ = true;
    all_.pause();
}

void Run::go_on_recording() {
    if (std::exchange(is_paused_, false)) all_.resume();
}

void Run::recording_failed(const std::string& why) {
    if (!ended_.how.empty()) return; // the end of the run reports it
    ended_.detail = why;
    spdlog::error("{}", why);
    go_on_recording();
    end("failed");
}

// Sleeps as a handler does that works: nothing else of this process goes on meanwhile, but the wish
// to end is heard.
void Run::hold() {
    const netio::TimePoint end = netio::Clock::now() + slow_reader_.hold(netio::Clock::now());
    for (auto left = end - netio::Clock::now(); left.count() > 0;
         left = end - netio::Clock::now()) {
        if (is_to_end()) return;
        std::this_thread::sleep_for(std::min<netio::Duration>(left, longest_sleep));
    }
    times_.last = netio::Clock::now(); // the loop's time stands still meanwhile
}

void Run::on_gap(Subscriptions&, const Subscriptions::Source&, Fid, std::uint64_t count) {
    logged_.missing += count;
}

void Run::on_missed(Subscriptions&, const Subscriptions::Source&, Fid fid, std::uint64_t count) {
    logged_.missing += count;
    if (!logged_.end_missed.armed()) logged_.end_missed.start(outage_told);
    if (const auto line = logged_.missed.note(fid, count)) spdlog::warn("{}", *line);
}

void Run::on_publisher_changed(Subscriptions&, const Subscriptions::Source& source,
                               const netio::pubsub::PublisherChange& change) {
    logged_.peers.warn(fmt::format(
        "{} is another publisher than before; what the former one published at its end {}",
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

void Run::on_trouble(Subscriptions&, const std::string& what) {
    logged_.peers.warn("bus: " + what);
}

void Run::on_ended(Subscriptions&) {
    if (ended_.how.empty()) ended_.how = ended_.lost.empty() ? "orderly" : ended_.lost;
    loop_.stop();
}

} // namespace apps::subscribe
