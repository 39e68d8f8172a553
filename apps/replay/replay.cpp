// SPDX-License-Identifier: Apache-2.0

// netio replay: publishes a recording again.

#include "apps/common/cli.hpp"
#include "apps/common/display.hpp"
#include "apps/common/logging.hpp"
#include "apps/common/machine.hpp"
#include "apps/common/option_name.hpp"
#include "apps/common/parse.hpp"
#include "apps/common/process.hpp"
#include "apps/common/recording_arguments.hpp"
#include "apps/common/report.hpp"
#include "apps/common/subscriber_log.hpp"
#include "apps/common/terminal.hpp"
#include "apps/program/commands.hpp"
#include "apps/replay/pace.hpp"
#include "apps/replay/read_ahead.hpp"
#include "netio/access/host.hpp"
#include "netio/fabric.hpp"
#include "netio/loop/descriptor_watch.hpp"
#include "netio/loop/signal_watch.hpp"
#include "pubsub/core/slow_policy.hpp"
#include "pubsub/discovery/announcement.hpp"
#include "pubsub/discovery/bus.hpp"
#include "pubsub/publisher/buffered_publish_socket.hpp"
#include "pubsub/publisher/publish_socket.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>

#include <unistd.h>

#include <chrono>
#include <cmath>
#include <deque>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace apps {
namespace replay {
namespace {

using netio::Status;
using netio::pubsub::BufferedPublishSocket;
using netio::pubsub::PublishSocket;
using netio::pubsub::SlowPolicy;

struct ReplayArguments {
    RecordingArguments recording;
    std::optional<double> factor = 1; // nullopt: as fast as possible
    std::vector<std::string> replacements;
    std::size_t repeat = 1;
    std::size_t wait_subscribers = 1;
    std::string listen = "127.0.0.1:0";
    std::string bus;
    std::string provider = "auto";
    netio::LoopMode loop = netio::LoopMode::blocking;
    KeyArguments keys;
    bool is_buffered = true;
    BufferedPublishSocket::Options buffered; // and the options of both modes
    PublishSocket::Options unbuffered;
    bool json = false;
    bool progress = false;
};

// Returns whether the text is a rate: recorded, max, or a factor such as 2x or 0.5x.
bool read_rate(const std::string& text, std::optional<double>& factor) {
    if (text == "max" || text == "recorded") {
        factor = text == "max" ? std::nullopt : std::optional{1.0};
        return true;
    }
    if (!text.ends_with('x')) return false;
    const auto number = parse_rate(text.substr(0, text.size() - 1));
    if (!number || *number < 1e-6 || *number > 1e6) return false;
    factor = *number;
    return true;
}

// The fids to announce: those of --fid, else all of the recording, which is read for that.
netio::FidSet announced_fids(const ReplayArguments& arguments,
                             const FidReplacements& replacements) {
    netio::FidSet fids;
    for (const netio::FidRange& range : parse_fids(arguments.recording.fids))
        for (const netio::FidRange& replaced : replacements(range))
            fids.add(replaced);
    if (!fids.empty()) return fids;
    spdlog::info("reading the recording once, to announce its fids; --fid makes this unnecessary");
    netio::RecordingReader reader = open_recording(arguments.recording);
    std::optional<netio::Fid> last;
    while (reader.next()) {
        if (reader.event() != nullptr || reader.message().fid == last) continue;
        last = reader.message().fid;
        fids.add(replacements(*last));
    }
    return fids;
}

// The endpoint as subscribers on other machines reach it.
std::string announced_address(netio::Endpoint endpoint) {
    const auto host = netio::access::parse_host(endpoint.address.host);
    if (host && netio::access::is_any(*host)) endpoint.address.host = netio::pubsub::this_host();
    return netio::pubsub::to_announced_address(endpoint);
}

class BusAnnouncement final : public netio::pubsub::Announcer::Handler {
  public:
    BusAnnouncement(netio::EventLoop& loop, const ReplayArguments& arguments,
                    const netio::FidSet& fids, const std::vector<netio::Endpoint>& endpoints)
        : log_{loop} {
        netio::pubsub::Announcement announcement{
            .name = fmt::format("replay-{}-{}", ::getpid(), netio::pubsub::draw_instance()),
            .instance = netio::pubsub::draw_instance(),
            .mode = arguments.is_buffered ? "buffered" : "unbuffered",
            .host = netio::pubsub::this_host(),
            .pid = static_cast<int>(::getpid()),
            .started = shown(std::chrono::time_point_cast<std::chrono::nanoseconds>(
                std::chrono::system_clock::now()))};
        for (const netio::FidRange& range : fids.ranges())
            announcement.fids.push_back({.fids = range, .meaning = "replay of a recording"});
        for (const netio::Endpoint& endpoint : endpoints)
            announcement.addresses.push_back(announced_address(endpoint));
        announcer_ = netio::pubsub::announce(loop, arguments.bus, announcement, *this, {});
    }

  private:
    void on_written() override { spdlog::info("announced on the bus"); }
    void on_trouble(const std::string& what) override { log_.warn("bus: " + what); }

    PeerLog log_;
    std::unique_ptr<netio::pubsub::Announcer> announcer_;
};

class ReplayRun final : public PublishSocket::Handler {
  public:
    ReplayRun(const ReplayArguments& arguments, netio::RecordingReader reader)
        : arguments_{arguments}, loop_{{.mode = arguments.loop}}, pace_{arguments.factor},
          keys_{server_keys(loop_, arguments.keys)}, transport_{netio::open_fabric(
                                                         loop_, {.provider = arguments.provider})} {
        FidReplacements replacements;
        for (const std::string& each : arguments_.replacements)
            replacements.add(each);
        open_socket();
        tell_listening(publisher().endpoints());
        if (!arguments_.bus.empty())
            bus_ = std::make_unique<BusAnnouncement>(loop_, arguments_,
                                                     announced_fids(arguments_, replacements),
                                                     publisher().endpoints());
        ahead_ = std::make_unique<ReadAhead>(
            std::move(reader), ReadAhead::Options{.replacements = std::move(replacements),
                                                  .repeat = arguments_.repeat});
        watch_ = std::make_unique<netio::DescriptorWatch>(
            loop_, ahead_->event_descriptor(), netio::DescriptorWatch::Interest::readable, [this] {
                ahead_->clear_event();
                pump();
            });
        if (arguments_.wait_subscribers > 0)
            spdlog::info("waiting for {} subscriber(s)", arguments_.wait_subscribers);
    }

    ExitStatus run() {
        {
            const LiveDisplay display{
                loop_, live_form(arguments_.json, arguments_.progress), [this] {
                    return LiveDisplay::Sums{.messages = publisher().counters().messages,
                                             .bytes = publisher().counters().bytes,
                                             .lost = std::nullopt};
                }};
            start_when_ready();
            loop_.run();
        }
        bus_.reset();
        print_report(arguments_.json ? to_json() + "\n" : to_text());
        if (failed_) return ExitStatus::failed;
        if (end_ == "finished" && publisher().counters().messages + without_subscribers_ == 0)
            return ExitStatus::nothing;
        const bool is_whole = end_ == "finished" && subscribers_.unconfirmed() == 0;
        return is_whole ? ExitStatus::done : ExitStatus::incomplete;
    }

  private:
    static constexpr std::size_t messages_per_turn = 4096;
    static constexpr std::size_t bytes_per_turn = std::size_t{1} << 20;

    // A block that was taken, and how many of its messages are in flight.
    struct Taken {
        std::unique_ptr<Block> block;
        std::size_t next = 0;
        std::size_t in_flight = 0;

        bool is_used_up() const { return next == block->messages.size() && in_flight == 0; }
    };

    void open_socket() {
        BufferedPublishSocket::Options buffered = arguments_.buffered;
        buffered.publisher.listen = {netio::parse_address(arguments_.listen)};
        buffered.publisher.keys = keys_;
        if (const auto links = arguments_.keys.connections_per_host)
            buffered.publisher.connections_per_host = *links;
        if (arguments_.is_buffered) {
            buffered_ = std::make_unique<BufferedPublishSocket>(*transport_, buffered, *this);
        } else {
            PublishSocket::Options unbuffered = arguments_.unbuffered;
            unbuffered.publisher = buffered.publisher;
            unbuffered_ = std::make_unique<PublishSocket>(*transport_, unbuffered, *this);
        }
    }
    netio::pubsub::Publisher& publisher() const {
        if (buffered_) return *buffered_;
        return *unbuffered_;
    }

    void start_when_ready() {
        if (begin_ || subscribers_.subscriber_count() < arguments_.wait_subscribers) return;
        begin_ = netio::Clock::now();
        pump();
    }

    void pump() {
        if (!begin_ || !end_.empty()) return;
        std::size_t bytes = 0;
        for (std::size_t i = 0; i < messages_per_turn && bytes < bytes_per_turn; ++i) {
            if (!take_block()) return;
            Taken& taken = taken_.back();
            const ReplayMessage& message = taken.block->messages[taken.next];
            const netio::TimePoint now = netio::Clock::now();
            const netio::TimePoint due = pace_.due(message.after, now);
            if (due > now) return timer_.start_at(due);
            if (!publish(taken, message)) return;
            pace_.published(due, now);
            bytes += message.bytes;
        }
        timer_.start(netio::Duration::zero());
    }

    // Makes sure that the last taken block has a message. Returns false if none is ready.
    bool take_block() {
        while (taken_.empty() || taken_.back().next == taken_.back().block->messages.size()) {
            release();
            // has_ended() first: the last block may become ready after take().
            const bool ended = ahead_->has_ended();
            std::unique_ptr<Block> block = ahead_->take();
            if (block) {
                taken_.push_back({.block = std::move(block)});
                continue;
            }
            if (ended) finish();
            return false;
        }
        return true;
    }
    void finish() {
        const std::string failure = ahead_->failure();
        if (failure.empty()) return end("finished");
        spdlog::error("{}", failure);
        failed_ = true;
        end("failed");
    }

    // Returns whether to continue.
    bool publish(Taken& taken, const ReplayMessage& message) {
        Status status = Status::ok;
        if (buffered_) {
            status =
                buffered_->publish(message.fid,
                                   std::span<const std::byte>{
                                       taken.block->memory.data() + message.offset, message.bytes},
                                   message.status);
        } else {
            const netio::Slice slice = taken.block->memory.slice(message.offset, message.bytes);
            status = unbuffered_->publishv(
                message.fid, {&slice, 1},
                netio::Cookie{first_taken_ + static_cast<std::uint64_t>(taken_.size()) - 1},
                {.status = message.status});
            if (status == Status::ok) ++taken.in_flight;
        }
        switch (status) {
        case Status::ok:
            break;
        case Status::again:
            return false; // on_writable, or a completion, continues
        case Status::no_subscribers:
            ++without_subscribers_;
            break;
        default:
            spdlog::error("a message of {} bytes of fid {} cannot be published ({}); increase "
                          "--largest-message, or --page-count if the publisher is buffered",
                          message.bytes, to_string(message.fid), to_string(status));
            failed_ = true;
            end("failed");
            return false;
        }
        ++taken.next;
        return true;
    }

    // Returns blocks that are used no longer, except the last one while it has messages.
    void release() {
        while (!taken_.empty() && taken_.front().is_used_up()) {
            ahead_->give(std::move(taken_.front().block));
            taken_.pop_front();
            ++first_taken_;
        }
    }

    void end(std::string_view why) {
        if (!end_.empty()) return;
        end_ = why;
        timer_.cancel();
        end_time_ = netio::Clock::now();
        subscribers_.begin_end();
        publisher().close();
    }
    void interrupt() {
        if (!end_.empty()) return loop_.stop(); // the second signal does not wait
        end("interrupted");
    }

    void on_subscribed(netio::pubsub::Publisher&, const netio::pubsub::SubscriberPeer& peer,
                       const netio::FidRange& range) override {
        subscribers_.subscribed(peer, range);
        start_when_ready();
    }
    void on_subscriber_closed(netio::pubsub::Publisher&, const netio::pubsub::SubscriberPeer& peer,
                              const netio::Closed& closed) override {
        subscribers_.closed(peer, closed);
    }
    void on_writable(netio::pubsub::Publisher&) override { pump(); }
    void on_closed(netio::pubsub::Publisher&, const netio::Closed&) override { loop_.stop(); }
    void on_publish_completed(PublishSocket&, netio::Cookie cookie,
                              const netio::pubsub::PublicationOutcome&) override {
        --taken_.at(static_cast<std::size_t>(static_cast<std::uint64_t>(cookie) - first_taken_))
              .in_flight;
        release();
    }

    struct Deviation {
        double p50_us, p99_us, longest_us, put_off_s;
    };
    std::optional<Deviation> deviation() const {
        if (!pace_.is_paced()) return std::nullopt;
        const auto us = [](netio::Duration time) {
            return std::chrono::duration<double, std::micro>(time).count();
        };
        return Deviation{.p50_us = us(pace_.deviation().quantile(0.5)),
                         .p99_us = us(pace_.deviation().quantile(0.99)),
                         .longest_us = us(pace_.deviation().longest()),
                         .put_off_s = std::chrono::duration<double>(pace_.put_off()).count()};
    }
    Throughput throughput() const {
        const auto& counters = publisher().counters();
        return {.messages = counters.messages,
                .bytes = counters.bytes,
                .seconds = begin_ ? std::chrono::duration<double>(
                                        end_time_.value_or(netio::Clock::now()) - *begin_)
                                        .count()
                                  : 0.0};
    }

    std::string to_json() const {
        const auto& counters = publisher().counters();
        const Throughput sums = throughput();
        nlohmann::ordered_json json{{"role", "replay"}, {"report_version", report_version}};
        json["mode"] = buffered_ ? "buffered" : "unbuffered";
        json["end"] = end_;
        json["messages"] = sums.messages;
        json["bytes"] = sums.bytes;
        json["seconds"] = sums.seconds;
        json["messages_per_s"] = sums.messages_per_s();
        json["gbit_per_s"] = sums.gbit_per_s();
        json["without_subscribers"] = without_subscribers_;
        json["again"] = counters.again;
        json["dropped"] = counters.dropped;
        json["disconnected"] = subscribers_.disconnected();
        json["unconfirmed"] = subscribers_.unconfirmed();
        if (const auto late = deviation()) {
            json["deviation"] = {{"p50_us", late->p50_us},
                                 {"p99_us", late->p99_us},
                                 {"longest_us", late->longest_us},
                                 {"put_off_s", late->put_off_s}};
        }
        json["torn"] = ahead_->has_ended() ? ahead_->reader().torn().size() : 0;
        json["foreign_messages"] =
            ahead_->has_ended() ? ahead_->reader().foreign_messages() : std::uint64_t{0};
        return json_line(json);
    }
    std::string to_text() const {
        const auto& counters = publisher().counters();
        const Throughput sums = throughput();
        std::string text = fmt::format(
            "replayed {} messages, {} bytes in {:.3f} s ({}messages/s, {:.3g} Gbit/s), {}\n",
            sums.messages, sums.bytes, sums.seconds, short_number(sums.messages_per_s()),
            sums.gbit_per_s(), end_);
        if (const auto late = deviation())
            text += fmt::format("behind the schedule: p50 {:.1f} us, p99 {:.1f} us, longest {:.1f} "
                                "us; put off {:.3f} s\n",
                                late->p50_us, late->p99_us, late->longest_us, late->put_off_s);
        if (without_subscribers_ > 0)
            text += fmt::format("{} messages had no subscriber\n", without_subscribers_);
        if (counters.dropped > 0)
            text +=
                fmt::format("{} messages were dropped for slow subscribers\n", counters.dropped);
        if (subscribers_.unconfirmed() > 0)
            text += fmt::format("{} subscribers did not confirm that they have everything\n",
                                subscribers_.unconfirmed());
        if (!ahead_->has_ended()) return text;
        for (const auto& torn : ahead_->reader().torn())
            text += fmt::format("{}: {}; {} bytes after offset {} were not read\n", torn.path,
                                torn.problem, torn.bytes, torn.offset);
        if (ahead_->reader().foreign_messages() > 0)
            text += fmt::format("{} messages of other programs were skipped\n",
                                ahead_->reader().foreign_messages());
        return text;
    }

    const ReplayArguments& arguments_;
    netio::EventLoop loop_;
    LogObserver observer_{loop_};
    Pace pace_;
    SubscriberLog subscribers_{loop_};
    std::shared_ptr<netio::ServerKeys> keys_;
    std::unique_ptr<netio::Transport> transport_;
    std::unique_ptr<ReadAhead> ahead_;
    std::deque<Taken> taken_;       // in order; only the last has messages that were not published
    std::uint64_t first_taken_ = 0; // number of the first of them
    std::unique_ptr<BufferedPublishSocket> buffered_;
    std::unique_ptr<PublishSocket> unbuffered_;
    std::unique_ptr<BusAnnouncement> bus_;
    std::unique_ptr<netio::DescriptorWatch> watch_;
    netio::Timer timer_{loop_, [this] { pump(); }};
    netio::SignalWatch signals_{loop_, end_signals(), [this](int) { interrupt(); }};
    std::optional<netio::TimePoint> begin_;
    std::optional<netio::TimePoint> end_time_;
    std::uint64_t without_subscribers_ = 0;
    std::string end_; // the reason; empty: not yet
    bool failed_ = false;
};

void add_publisher_options(CLI::App& command, ReplayArguments& arguments) {
    using Options = netio::pubsub::Publisher::Options;
    Options& publisher = arguments.buffered.publisher;
    command
        .add_option(cli_flag<&Options::listen>(), arguments.listen,
                    "Listen at HOST:PORT; port 0 is a free one")
        ->capture_default_str();
    add_allow_remote_anonymous(command, publisher.allow_remote_anonymous);
    add_bus(command, arguments.bus);
    add_words(
        command, "--mode", {"buffered", "unbuffered"},
        [&arguments](std::size_t which) { arguments.is_buffered = which == 0; },
        "buffered, or unbuffered (from the memory of the recording, without a copy)")
        ->default_str("buffered");
    add_words(
        command, cli_flag<&Options::slow_policy>(), {"block", "drop", "disconnect", "newest"},
        [&publisher](std::size_t which) { publisher.slow_policy = static_cast<SlowPolicy>(which); },
        "For slow subscribers: block, drop, disconnect or newest")
        ->default_str("block");
    add_milliseconds(command, cli_flag<&Options::disconnect_after>(), publisher.disconnect_after,
                     "Disconnect a subscriber without progress for this long, with --slow-policy "
                     "disconnect",
                     Zero::refused);
    add_bytes(command, cli_flag<&Options::largest_message_bytes>(), publisher.largest_message_bytes,
              "Limit of a message", {.min = 1, .max = netio::pubsub::largest_message_limit});
    add_count(command, cli_flag<&BufferedPublishSocket::Options::page_count>(),
              arguments.buffered.page_count, "Number of pages of a buffered publisher",
              {.min = 2, .max = 1 << 20});
    add_keys(command, arguments.keys);
    add_provider(command, arguments.provider)->capture_default_str();
    add_loop(command, arguments.loop);
}

} // namespace
} // namespace replay

Command add_replay(CLI::App& program) {
    using namespace replay;
    auto* command = program.add_subcommand("replay", "Publish a recording again");
    const auto arguments = std::make_shared<ReplayArguments>();
    add_recordings(*command, arguments->recording);
    add_recording_selection(*command, arguments->recording);
    command
        ->add_option_function<std::string>(
            "--rate",
            [arguments](const std::string& text) {
                if (!read_rate(text, arguments->factor))
                    throw CLI::ValidationError{
                        "--rate", fmt::format("'{}'; allowed: recorded, max, or a factor from "
                                              "0.000001x to 1000000x, such as 2x or 0.5x",
                                              text)};
            },
            "recorded: at the recorded pace; 2x, 0.5x: faster or slower; max: as fast as "
            "subscribers accept")
        ->default_str("recorded");
    command
        ->add_option("--map", arguments->replacements,
                     "Publish another fid, as 5=7 or 0-63=100-163; may be repeated")
        ->allow_extra_args(false); // files may follow
    add_count(*command, "--repeat", arguments->repeat, "Publish the recording this many times",
              {.min = 1, .max = 1'000'000'000});
    add_count(*command, "--wait-subscribers", arguments->wait_subscribers,
              "Begin to publish when this many subscribers are connected",
              {.min = 0, .max = 1'000'000});
    add_publisher_options(*command, *arguments);
    command->add_flag("--progress", arguments->progress, "Log the progress once a second");
    command->add_flag("--json", arguments->json,
                      "Print the report as one JSON object, as the last line");
    return [arguments] {
        ReplayRun run{*arguments, open_recording(arguments->recording)};
        return to_integer(run.run());
    };
}

} // namespace apps
