// SPDX-License-Identifier: Apache-2.0

// netio subscribe: receives fids, counts, verifies or records them.

#include "apps/common/fid_spec.hpp"
#include "apps/common/live_display.hpp"
#include "apps/common/pattern.hpp"
#include "apps/common/report.hpp"
#include "apps/program/commands.hpp"
#include "apps/subscribe/recorder.hpp"
#include "netio/fabric.hpp"
#include "pubsub/core/fid_ranges.hpp"
#include "pubsub/subscriber/subscribe_socket.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <csignal>
#include <memory>
#include <optional>
#include <system_error>
#include <utility>

namespace apps {
namespace {

struct SubscribeArguments {
    std::string publisher;
    std::vector<std::string> fids;
    std::optional<std::uint64_t> messages;
    std::optional<double> duration_s;
    std::string output;
    std::string local;
    std::string provider = "auto";
    std::string loop = "blocking";
    std::string policy; // empty: the publisher's own
    std::size_t buffers = netio::pubsub::SubscribeSocket::Options{}.session.receive_count;
    std::size_t buffer_bytes = netio::pubsub::SubscribeSocket::Options{}.session.receive_bytes;
    bool verify = false;
    bool json = false;
    bool progress = false;
};

std::vector<netio::pubsub::FidRange> wanted_fids(const SubscribeArguments& arguments) {
    std::vector<netio::pubsub::FidRange> ranges;
    for (const std::string& spec : arguments.fids) {
        const auto some = parse_fids(spec);
        ranges.insert(ranges.end(), some.begin(), some.end());
    }
    return netio::pubsub::normalised(ranges);
}

std::optional<netio::pubsub::SlowPolicy> wanted_policy(const SubscribeArguments& arguments) {
    if (arguments.policy.empty()) return std::nullopt;
    return arguments.policy == "block"  ? netio::pubsub::SlowPolicy::block
           : arguments.policy == "drop" ? netio::pubsub::SlowPolicy::drop
                                        : netio::pubsub::SlowPolicy::disconnect;
}

netio::pubsub::SubscribeSocket::Options socket_options(const SubscribeArguments& arguments) {
    netio::pubsub::SubscribeSocket::Options options;
    options.publisher = netio::parse_address(arguments.publisher);
    options.local_host = arguments.local;
    options.session.receive_count = arguments.buffers;
    options.session.receive_bytes = arguments.buffer_bytes;
    return options;
}

class SubscribeRun final : public netio::pubsub::SubscribeSocket::Handler {
  public:
    SubscribeRun(netio::EventLoop& loop, netio::Transport& transport,
                 const SubscribeArguments& arguments);

    int run();

  private:
    void end(std::string_view why);
    void refuse(std::string why);
    void finish_recording();
    bool did_the_job(const SubscribeReport& report) const;
    std::uint64_t lost() const;
    SubscribeReport report() const;

    void on_connected(netio::pubsub::SubscribeSocket& socket) override;
    void on_subscribed(netio::pubsub::SubscribeSocket& socket,
                       const netio::pubsub::FidRange& range) override;
    void on_subscription_refused(netio::pubsub::SubscribeSocket& socket,
                                 const netio::pubsub::FidRange& range) override;
    void on_policy_refused(netio::pubsub::SubscribeSocket& socket,
                           const netio::pubsub::FidRange& range) override;
    void on_message(netio::pubsub::SubscribeSocket& socket, netio::pubsub::Fid fid,
                    std::span<const std::byte> message, std::uint8_t status) override;
    void on_closed(netio::pubsub::SubscribeSocket& socket, const netio::Closed& closed,
                   bool retrying) override;

    const SubscribeArguments& arguments_;
    netio::EventLoop& loop_;
    PatternChecker checker_;
    std::optional<Recorder> recorder_;
    std::uint64_t messages_left_;
    std::string end_;
    std::string detail_;
    bool waiting_told_ = false;
    netio::TimePoint first_ = netio::TimePoint::max();
    netio::TimePoint last_;
    netio::Timer duration_timer_;
    netio::pubsub::SubscribeSocket socket_;
    netio::SignalWatch signals_;
};

SubscribeRun::SubscribeRun(netio::EventLoop& loop, netio::Transport& transport,
                           const SubscribeArguments& arguments)
    : arguments_{arguments}, loop_{loop},
      messages_left_{arguments.messages.value_or(UINT64_MAX)}, last_{loop.now()},
      duration_timer_{loop, [this] { end("duration"); }}, socket_{transport,
                                                                  socket_options(arguments), *this},
      signals_{loop, {SIGINT, SIGTERM}, [this](int) {
                   if (!end_.empty()) return loop_.stop(); // the second one does not wait
                   end("interrupted");
               }} {
    socket_.subscribe(wanted_fids(arguments), wanted_policy(arguments));
    if (!arguments.output.empty()) recorder_.emplace(arguments.output);
    if (arguments.duration_s) {
        duration_timer_.start(std::chrono::duration_cast<netio::Duration>(
            std::chrono::duration<double>{*arguments.duration_s}));
    }
}

int SubscribeRun::run() {
    {
        const LiveDisplay display{loop_, live_form(arguments_.json, arguments_.progress), [this] {
                                      return LiveDisplay::Sums{.messages =
                                                                   socket_.arrivals().messages(),
                                                               .bytes = socket_.arrivals().bytes(),
                                                               .lost = lost()};
                                  }};
        loop_.run();
    }
    finish_recording();
    const SubscribeReport result = report();
    if (arguments_.json) {
        fmt::print("{}\n", to_json(result));
    } else {
        fmt::print("{}", to_text(result));
    }
    return did_the_job(result) ? 0 : 1;
}

// The first reason counts; what follows it is the closing of the connection.
void SubscribeRun::end(std::string_view why) {
    if (!end_.empty()) return;
    end_ = why;
    duration_timer_.cancel();
    if (!socket_.is_connected()) return loop_.stop();
    socket_.close();
}

void SubscribeRun::finish_recording() {
    const bool complete = end_ == "orderly" || end_ == "messages" || end_ == "duration";
    if (!recorder_ || !complete) return;
    try {
        recorder_->finish();
    } catch (const std::system_error& error) {
        end_ = "failed";
        detail_ = error.what();
        spdlog::error("{}", detail_);
    }
}

bool SubscribeRun::did_the_job(const SubscribeReport& result) const {
    const bool ended_well = result.end == "orderly" || result.end == "messages" ||
                            result.end == "duration" || result.end == "interrupted";
    const bool sound = result.pattern.corrupt == 0 && result.pattern.reordered == 0 &&
                       result.pattern.duplicates == 0 && result.lost == 0;
    const bool soundness_matters = arguments_.verify || recorder_.has_value();
    return ended_well && (sound || !soundness_matters);
}

// By the publisher's totals once they are known; before, by what the messages themselves say and
// by what the publisher has said it left out.
std::uint64_t SubscribeRun::lost() const {
    const std::uint64_t told = socket_.arrivals().lost();
    if (socket_.arrivals().complete() || !arguments_.verify) return told;
    return std::max(told, checker_.total().lost);
}

SubscribeReport SubscribeRun::report() const {
    const netio::pubsub::ArrivalCounter& arrivals = socket_.arrivals();
    SubscribeReport report{
        .provider = socket_.provider(),
        .mode = "none",
        .end = end_,
        .detail = detail_,
        .throughput = {.messages = arrivals.messages(), .bytes = arrivals.bytes(), .seconds = 0},
        .lost = lost(),
        .verified = arguments_.verify,
        .pattern = checker_.total(),
        .fids = {}};
    if (first_ != netio::TimePoint::max()) {
        report.throughput.seconds = std::chrono::duration<double>(last_ - first_).count();
    }
    if (socket_.received_buffered()) report.mode = "buffered";
    if (socket_.received_unbuffered()) {
        report.mode = socket_.received_buffered() ? "mixed" : "unbuffered";
    }
    arrivals.fids().for_each([&](netio::pubsub::Fid fid, const netio::pubsub::Arrivals& account) {
        FidReport row{.fid = fid, .messages = account.messages, .bytes = account.bytes};
        row.lost = arrivals.lost(fid);
        if (!arrivals.complete()) row.lost = std::max(row.lost, checker_.counts(fid).lost);
        report.fids.push_back(row);
    });
    std::ranges::sort(report.fids, {}, &FidReport::fid);
    return report;
}

void SubscribeRun::on_connected(netio::pubsub::SubscribeSocket& socket) {
    spdlog::info("connected to {} ({})", arguments_.publisher, socket.provider());
}

void SubscribeRun::on_subscribed(netio::pubsub::SubscribeSocket&,
                                 const netio::pubsub::FidRange& range) {
    spdlog::info("subscribed to {}", to_string(range));
}

void SubscribeRun::on_subscription_refused(netio::pubsub::SubscribeSocket&,
                                           const netio::pubsub::FidRange& range) {
    refuse("the publisher has no room for the subscription to " + to_string(range));
}

void SubscribeRun::on_policy_refused(netio::pubsub::SubscribeSocket&,
                                     const netio::pubsub::FidRange& range) {
    refuse(fmt::format("the publisher does not treat a slow subscriber to {} by '{}', which would "
                       "hold it up more than its own slow_subscribers; leave out --policy",
                       to_string(range), arguments_.policy));
}

void SubscribeRun::refuse(std::string why) {
    spdlog::error("{}", why);
    detail_ = std::move(why);
    end("refused");
}

void SubscribeRun::on_message(netio::pubsub::SubscribeSocket&, netio::pubsub::Fid fid,
                              std::span<const std::byte> message, std::uint8_t) {
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

void SubscribeRun::on_closed(netio::pubsub::SubscribeSocket& socket, const netio::Closed& closed,
                             bool retrying) {
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

int run(const SubscribeArguments& arguments) {
    const netio::LoopMode mode = arguments.loop == "busy"       ? netio::LoopMode::busy
                                 : arguments.loop == "adaptive" ? netio::LoopMode::adaptive
                                                                : netio::LoopMode::blocking;
    netio::EventLoop loop{{.mode = mode}};
    const auto transport = netio::open_fabric(loop, {.provider = arguments.provider});
    SubscribeRun run{loop, *transport, arguments};
    return run.run();
}

} // namespace

Command add_subscribe(CLI::App& program) {
    auto* command = program.add_subcommand("subscribe", "Receive what a publisher publishes");
    const auto arguments = std::make_shared<SubscribeArguments>();
    command->add_option("publisher", arguments->publisher, "HOST:PORT")->required();
    command
        ->add_option("--fid", arguments->fids,
                     "A fid in decimal or hex, a range A-B, or a comma list; may be repeated")
        ->required();
    command->add_option("--messages", arguments->messages, "End after so many, all fids together")
        ->check(CLI::PositiveNumber);
    command->add_option("--duration", arguments->duration_s, "End so many seconds after the start")
        ->check(CLI::PositiveNumber);
    command->add_flag("--verify", arguments->verify,
                      "Check pattern messages for loss, order, duplicates and corruption");
    command->add_option("--output", arguments->output,
                        "Write the messages of each fid to a file in this folder");
    command
        ->add_option("--policy", arguments->policy,
                     "When this subscriber is slow: block, drop or disconnect; never one that "
                     "holds the publisher up more than its own")
        ->check(CLI::IsMember({"block", "drop", "disconnect"}));
    command->add_option("--local", arguments->local, "Local address to connect from");
    command->add_option("--buffers", arguments->buffers, "Receive buffers")
        ->capture_default_str()
        ->check(CLI::Range(4, 16384));
    command->add_option("--buffer-size", arguments->buffer_bytes, "Bytes of each, also as 64k")
        ->capture_default_str()
        ->transform(CLI::AsSizeValue(false));
    command->add_option("--provider", arguments->provider, "auto, tcp or verbs")
        ->capture_default_str();
    command->add_option("--loop", arguments->loop, "blocking, busy or adaptive")
        ->capture_default_str()
        ->check(CLI::IsMember({"blocking", "busy", "adaptive"}));
    command->add_flag("--progress", arguments->progress, "Log what moves, once a second");
    command->add_flag("--json", arguments->json, "One JSON object as the last line of output");
    return [arguments] { return run(*arguments); };
}

} // namespace apps
