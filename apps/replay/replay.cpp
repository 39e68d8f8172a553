// SPDX-License-Identifier: Apache-2.0

// netio replay: publishes a recording again.

#include "apps/common/cli.hpp"
#include "apps/common/io.hpp"
#include "apps/common/logging.hpp"
#include "apps/common/machine.hpp"
#include "apps/common/parse.hpp"
#include "apps/common/player.hpp"
#include "apps/common/report.hpp"
#include "apps/program/commands.hpp"
#include "netio/access/host.hpp"
#include "netio/fabric.hpp"
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
#include <limits>
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
    Player::Options player;
    std::vector<std::string> replacements;
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

// The fids to announce: those of --fid, else all of the recording, which is read for that. Empty if
// a signal ends the program meanwhile.
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
    for (std::uint64_t count = 0; reader.next(); ++count) {
        if (count % 4096 == 0 && is_signal_pending(end_signals())) return {}; // the loop handles it
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

void add_replacement(FidReplacements& replacements, const std::string& text) {
    try {
        replacements.add(text);
    } catch (const std::invalid_argument& error) {
        throw std::invalid_argument{std::string{"--map: "} + error.what()};
    }
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
    void on_warning(const std::string& what) override { log_.warn("bus: " + what); }

    PeerLog log_;
    std::unique_ptr<netio::pubsub::Announcer> announcer_;
};

class ReplayRun final : public PublishSocket::Handler {
  public:
    ReplayRun(const ReplayArguments& arguments, netio::RecordingReader reader)
        : arguments_{arguments}, loop_{{.mode = arguments.loop}}, keys_{server_keys(
                                                                      loop_, arguments.keys)},
          transport_{netio::open_fabric(loop_, {.provider = arguments.provider})} {
        Player::Options options = arguments_.player;
        for (const std::string& each : arguments_.replacements)
            add_replacement(options.replacements, each);
        open_socket();
        tell_listening(publisher().endpoints());
        if (!arguments_.bus.empty()) {
            const netio::FidSet fids = announced_fids(arguments_, options.replacements);
            if (!fids.empty())
                bus_ = std::make_unique<BusAnnouncement>(loop_, arguments_, fids,
                                                         publisher().endpoints());
        }
        player_ = std::make_unique<Player>(loop_, std::move(reader), std::move(options),
                                           messages_left_, [this] { on_player_end(); });
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
        if (end_ == "finished" &&
            publisher().counters().messages + player_->without_subscribers() == 0)
            return ExitStatus::nothing;
        const bool is_whole = end_ == "finished" && subscribers_.unconfirmed() == 0;
        return is_whole ? ExitStatus::done : ExitStatus::incomplete;
    }

  private:
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
        player_->begin({.buffered = buffered_.get(), .unbuffered = unbuffered_.get()});
    }
    void on_player_end() {
        if (player_->failure().empty()) return end("finished");
        spdlog::error("{}", player_->failure());
        failed_ = true;
        end("failed");
    }

    void end(std::string_view why) {
        if (!end_.empty()) return;
        end_ = why;
        player_->stop();
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
    void on_writable(netio::pubsub::Publisher&) override { player_->resume(); }
    void on_closed(netio::pubsub::Publisher&, const netio::Closed&) override { loop_.stop(); }
    void on_publish_completed(PublishSocket&, netio::Cookie cookie,
                              const netio::pubsub::PublicationOutcome&) override {
        player_->completed(cookie);
    }

    struct Deviation {
        double p50_us, p99_us, longest_us, put_off_s;
    };
    std::optional<Deviation> deviation() const {
        if (!player_->pace().is_paced()) return std::nullopt;
        const auto us = [](netio::Duration time) {
            return std::chrono::duration<double, std::micro>(time).count();
        };
        return Deviation{.p50_us = us(player_->pace().deviation().quantile(0.5)),
                         .p99_us = us(player_->pace().deviation().quantile(0.99)),
                         .longest_us = us(player_->pace().deviation().longest()),
                         .put_off_s =
                             std::chrono::duration<double>(player_->pace().put_off()).count()};
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
        json["without_subscribers"] = player_->without_subscribers();
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
        const netio::RecordingReader* const reader = player_->reader();
        json["torn"] = reader != nullptr ? reader->torn().size() : 0;
        json["foreign_messages"] =
            reader != nullptr ? reader->foreign_messages() : std::uint64_t{0};
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
        if (player_->without_subscribers() > 0)
            text += fmt::format("{} messages had no subscriber\n", player_->without_subscribers());
        if (counters.dropped > 0)
            text +=
                fmt::format("{} messages were dropped for slow subscribers\n", counters.dropped);
        if (subscribers_.unconfirmed() > 0)
            text += fmt::format("{} subscribers did not confirm that they have everything\n",
                                subscribers_.unconfirmed());
        const netio::RecordingReader* const reader = player_->reader();
        if (reader == nullptr) return text;
        for (const auto& torn : reader->torn())
            text += fmt::format("{}: {}; {} bytes after offset {} were not read\n", torn.path,
                                torn.problem, torn.bytes, torn.offset);
        if (reader->foreign_messages() > 0)
            text += fmt::format("{} messages of other programs were skipped\n",
                                reader->foreign_messages());
        return text;
    }

    const ReplayArguments& arguments_;
    netio::EventLoop loop_;
    LogObserver observer_{loop_};
    SubscriberLog subscribers_{loop_};
    std::shared_ptr<netio::ServerKeys> keys_;
    std::unique_ptr<netio::Transport> transport_;
    std::uint64_t messages_left_ = std::numeric_limits<std::uint64_t>::max();
    std::unique_ptr<Player> player_; // destroyed after the sockets, which send from its memory
    std::unique_ptr<BufferedPublishSocket> buffered_;
    std::unique_ptr<PublishSocket> unbuffered_;
    std::unique_ptr<BusAnnouncement> bus_;
    netio::SignalWatch signals_{loop_, end_signals(), [this](int) { interrupt(); }};
    std::optional<netio::TimePoint> begin_;
    std::optional<netio::TimePoint> end_time_;
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
    add_words(
        command, cli_flag<&Options::time_stamps>(), {"none", "tai", "recorded"},
        [&arguments, &publisher](std::size_t which) {
            publisher.time_stamps = which == 0 ? netio::StampClock::none : netio::StampClock::tai;
            arguments.player.sends_recorded_times = which == 2;
        },
        "Send a time with each message: none, tai (when it is replayed), or recorded (when it was "
        "published first)")
        ->default_str("none");
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
                if (!read_rate(text, arguments->player.factor))
                    throw CLI::ValidationError{
                        "--rate", fmt::format("'{}'; allowed: {}", text, allowed_rates)};
            },
            "recorded: at the recorded pace; 2x, 0.5x: faster or slower; max: as fast as "
            "subscribers accept")
        ->default_str("recorded");
    command
        ->add_option("--map", arguments->replacements,
                     "Publish another fid, as 5=7 or 0-63=100-163; may be repeated")
        ->allow_extra_args(false); // files may follow
    add_count(*command, "--repeat", arguments->player.repeat,
              "Publish the recording this many times", {.min = 1, .max = 1'000'000'000});
    add_count(*command, "--wait-subscribers", arguments->wait_subscribers,
              "Begin to publish when this many subscribers are connected",
              {.min = 0, .max = 1'000'000});
    add_publisher_options(*command, *arguments);
    add_progress(*command, arguments->progress);
    add_json(*command, arguments->json);
    return [arguments] {
        ReplayRun run{*arguments, open_recording(arguments->recording)};
        return to_integer(run.run());
    };
}

} // namespace apps
