// SPDX-License-Identifier: Apache-2.0
#include "apps/subscribe/subscribe_run.hpp"

#include "apps/common/end_signals.hpp"
#include "apps/common/fid_spec.hpp"
#include "apps/common/live_display.hpp"
#include "apps/common/standard_output.hpp"
#include "apps/metrics/publisher_metrics.hpp"
#include "pubsub/core/fid_ranges.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <system_error>
#include <utility>

namespace apps::subscribe {
namespace {

std::vector<FidRange> wanted_fids(const Arguments& arguments) {
    std::vector<FidRange> ranges;
    for (const std::string& spec : arguments.fids) {
        const auto some = parse_fids(spec);
        ranges.insert(ranges.end(), some.begin(), some.end());
    }
    return netio::pubsub::normalised(ranges);
}

std::optional<netio::pubsub::SlowPolicy> wanted_policy(const Arguments& arguments) {
    if (arguments.policy.empty()) return std::nullopt;
    return arguments.policy == "block"  ? netio::pubsub::SlowPolicy::block
           : arguments.policy == "drop" ? netio::pubsub::SlowPolicy::drop
                                        : netio::pubsub::SlowPolicy::disconnect;
}

SubscribeSocket::Options socket_options(const Arguments& arguments) {
    SubscribeSocket::Options options;
    options.publisher = netio::parse_address(arguments.publisher);
    options.local_host = arguments.local;
    options.key = client_key(arguments.key);
    options.session.receive_count = arguments.buffers.count;
    options.session.receive_bytes = arguments.buffers.bytes;
    return options;
}

} // namespace

Run::Run(netio::EventLoop& loop, netio::Transport& transport, const Arguments& arguments)
    : arguments_{arguments}, loop_{loop},
      messages_left_{arguments.messages.value_or(UINT64_MAX)}, last_{loop.now()},
      duration_timer_{loop, [this] { end("duration"); }}, socket_{transport,
                                                                  socket_options(arguments), *this},
      metrics_{show_metrics(loop, arguments.metrics, [this] { return figures(); })},
      signals_{loop, end_signals(), [this](int) {
                   if (!end_.empty()) return loop_.stop(); // the second one does not wait
                   end("interrupted");
               }} {
    const std::vector<FidRange> fids = wanted_fids(arguments);
    if (!arguments.output.empty()) recorder_.emplace(arguments.output, fids, arguments.existing);
    socket_.subscribe(fids, wanted_policy(arguments));
    if (arguments.duration) duration_timer_.start(*arguments.duration);
}

ExitStatus Run::run() {
    {
        const LiveDisplay display{loop_, live_form(arguments_.json, arguments_.progress), [this] {
                                      return LiveDisplay::Sums{.messages =
                                                                   socket_.arrivals().messages(),
                                                               .bytes = socket_.arrivals().bytes(),
                                                               .lost = books().lost};
                                  }};
        loop_.run();
    }
    finish_recording();
    SubscribeReport result = report();
    const ExitStatus status = outcome(result, {.messages = arguments_.messages.has_value(),
                                               .duration = arguments_.duration.has_value(),
                                               .sound = arguments_.verify || recorder_});
    result.outcome = to_string(status);
    print_report(arguments_.json ? to_json(result) + "\n" : to_text(result));
    return status;
}

// The first reason counts; what follows it is the closing of the connection.
void Run::end(std::string_view why) {
    if (!end_.empty()) return;
    end_ = why;
    duration_timer_.cancel();
    if (!socket_.is_connected()) return loop_.stop();
    socket_.close();
}

// Whatever ended it but a publisher that was lost: all that came before is whole.
void Run::finish_recording() {
    if (!recorder_ || end_ == "lost" || end_ == "failed") return;
    try {
        recorder_->finish([this](Fid fid) { return is_whole(fid); });
    } catch (const std::system_error& error) {
        end_ = "failed";
        detail_ = error.what();
        spdlog::error("{}", detail_);
    }
}

bool Run::is_whole(Fid fid) const {
    const PatternCounts counts = checker_.counts(fid);
    return books(fid) == Books{} && counts.corrupt == 0 && counts.reordered == 0 &&
           counts.duplicates == 0;
}

// By the publisher's totals once they are known; before, by what the messages themselves say and
// by what the publisher has said it left out.
Run::Books Run::books() const {
    const netio::pubsub::ArrivalCounter& arrivals = socket_.arrivals();
    if (const auto books = arrivals.books()) return *books;
    const std::uint64_t seen = arguments_.verify ? checker_.total().lost : 0;
    return {.lost = std::max(arrivals.missed(), seen), .surplus = 0};
}

Run::Books Run::books(Fid fid) const {
    const netio::pubsub::ArrivalCounter& arrivals = socket_.arrivals();
    if (const auto books = arrivals.books(fid)) return *books;
    return {.lost = std::max(arrivals.missed(fid), checker_.counts(fid).lost), .surplus = 0};
}

SubscribeReport Run::report() const {
    const netio::pubsub::ArrivalCounter& arrivals = socket_.arrivals();
    SubscribeReport report{
        .provider = socket_.provider(),
        .mode = "none",
        .end = end_,
        .outcome = {},
        .detail = detail_,
        .reached = reached_,
        .throughput = {.messages = arrivals.messages(), .bytes = arrivals.bytes(), .seconds = 0},
        .lost = books().lost,
        .surplus = books().surplus,
        .verified = arguments_.verify,
        .pattern = checker_.total(),
        .fids = {}};
    // What was on its way when the publisher was lost, nobody knows.
    if (!reached_ || end_ == "lost") report.lost.reset();
    if (first_ != netio::TimePoint::max()) {
        report.throughput.seconds = std::chrono::duration<double>(last_ - first_).count();
    }
    const auto& seen = socket_.seen();
    if (seen.fragments) report.mode = "fragments"; // of either kind
    if (seen.pages) report.mode = "buffered";
    if (seen.messages || seen.gathered) report.mode = seen.pages ? "mixed" : "unbuffered";
    arrivals.fids().for_each([&](Fid fid, const netio::pubsub::Arrivals& account) {
        const Books books = this->books(fid);
        const FidReport row{.fid = fid,
                            .messages = account.messages,
                            .bytes = account.bytes,
                            .lost = books.lost,
                            .surplus = books.surplus,
                            .first = checker_.first(fid)};
        report.fids.push_back(row);
    });
    std::ranges::sort(report.fids, {}, &FidReport::fid);
    return report;
}

std::function<void(Exposition&)> Run::figures() {
    SubscriptionFigures figures = figures_of(socket_, arguments_.metrics.fids);
    figures.publisher = arguments_.publisher;
    return [figures = std::move(figures)](Exposition& text) { write(figures, text); };
}

void Run::on_connected(SubscribeSocket& socket) {
    spdlog::info("connected to {} ({})", arguments_.publisher, socket.provider());
}

void Run::on_subscribed(SubscribeSocket&, const FidRange& range) {
    reached_ = true;
    spdlog::info("subscribed to {}", to_string(range));
}

void Run::on_subscription_refused(SubscribeSocket&, const FidRange& range) {
    refuse("the publisher has no room for the subscription to " + to_string(range));
}

void Run::on_policy_refused(SubscribeSocket&, const FidRange& range) {
    refuse(fmt::format("the publisher does not treat a slow subscriber to {} by '{}', which would "
                       "hold it up more than its own slow_subscribers; leave out --policy",
                       to_string(range), arguments_.policy));
}

void Run::on_subscription_not_permitted(SubscribeSocket&, const FidRange& range) {
    refuse("the key does not permit to subscribe to " + to_string(range) +
           (arguments_.policy.empty() ? "" : " with this --policy"));
}

void Run::refuse(std::string why) {
    spdlog::error("{}", why);
    detail_ = std::move(why);
    end("refused");
}

void Run::on_message(SubscribeSocket&, Fid fid, std::span<const std::byte> message, std::uint8_t) {
    last_ = loop_.now();
    if (first_ == netio::TimePoint::max()) first_ = last_;
    if (arguments_.verify) checker_.check(fid, message);
    if (recorder_) {
        try {
            recorder_->write(fid, message);
        } catch (const std::system_error& error) {
            detail_ = error.what();
            spdlog::error("{}", detail_);
            return end("failed");
        }
    }
    if (--messages_left_ == 0) end("messages");
}

void Run::on_closed(SubscribeSocket& socket, const netio::Closed& closed, bool retrying) {
    if (retrying) {
        if (!waiting_told_) {
            spdlog::info("waiting for the publisher: {}", closed.detail);
        }
        waiting_told_ = true;
        return;
    }
    if (end_.empty()) {
        const bool orderly =
            closed.reason == netio::CloseReason::orderly && socket.arrivals().complete();
        end_ = orderly ? "orderly" : "lost";
        if (!orderly) {
            if (socket.arrivals().messages() == 0 &&
                closed.reason == netio::CloseReason::rejected) {
                end_ = "refused";
            }
            detail_ = closed.detail.empty() ? std::string{to_string(closed.reason)} : closed.detail;
            spdlog::error("{}: {}", arguments_.publisher, detail_);
        }
    }
    loop_.stop();
}

} // namespace apps::subscribe
