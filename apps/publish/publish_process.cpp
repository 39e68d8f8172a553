// SPDX-License-Identifier: Apache-2.0
#include "apps/publish/publish_process.hpp"

#include "apps/common/cli.hpp"
#include "apps/common/fid_text.hpp"
#include "apps/common/io.hpp"
#include "apps/common/logging.hpp"
#include "apps/common/machine.hpp"
#include "apps/common/pattern.hpp"
#include "apps/common/player.hpp"
#include "apps/common/report.hpp"
#include "apps/metrics/families.hpp"
#include "apps/metrics/metrics.hpp"
#include "apps/publish/message_feed.hpp"
#include "apps/publish/outlet.hpp"
#include "apps/publish/publish.hpp"
#include "apps/publish/publisher_config.hpp"
#include "netio/base/check.hpp"
#include "netio/base/signals_blocked.hpp"
#include "netio/device_watch.hpp"
#include "netio/fabric.hpp"
#include "netio/loop/descriptor_watch.hpp"
#include "netio/loop/signal_watch.hpp"
#include "pubsub/publisher/publish_socket.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <future>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace apps {
namespace {

const RecordingConfig* recording_of(const StreamConfig& stream) {
    return std::get_if<RecordingConfig>(&stream.source);
}

// The streams whose messages a MessageFeed makes.
std::vector<StreamConfig> fed_streams(const PublisherConfig& config) {
    std::vector<StreamConfig> streams;
    std::ranges::copy_if(
        config.streams, std::back_inserter(streams),
        [](const StreamConfig& stream) { return recording_of(stream) == nullptr; });
    return streams;
}

// Throws RecordingError.
netio::RecordingReader open_recording(const StreamConfig& stream, const RecordingConfig& config) {
    RecordingArguments arguments;
    arguments.files = {config.path};
    arguments.from = config.from;
    arguments.until = config.until;
    if (config.replacements.empty()) // the fids are the recorded ones: other chunks are not read
        for (const netio::pubsub::FidRange& range : stream.fids)
            arguments.fids.push_back(
                fmt::format("{}-{}", to_integer(range.first), to_integer(range.last)));
    return open_recording(arguments);
}

// One publisher of `netio publish`, from the first subscriber to the report.

// Number of messages that all publishers of a process may still publish.
struct PublishBudget {
    std::uint64_t messages_left = 0;
};

class PublishRun final : public netio::pubsub::PublishSocket::Handler {
  public:
    // Calls on_ended once, after the publisher has been closed in order.
    PublishRun(netio::EventLoop& loop, netio::Transport& transport, const PublisherConfig& config,
               const PublishArguments& arguments, PublishBudget& budget,
               std::function<void()> on_ended);

    // Starts now if enough subscribers are connected, otherwise when they are.
    void start_when_ready();
    // Begins to close, if that has not begun. The first reason counts.
    void end(std::string_view why);
    // The addresses where it listens.
    std::vector<netio::Endpoint> endpoints() const { return outlet_->publisher().endpoints(); }
    // The address of its metrics; empty if there are none.
    std::string metrics_address() const;
    const netio::pubsub::Publisher::Counters& counters() const {
        return outlet_->publisher().counters();
    }
    bool has_failed() const noexcept { return failed_; }
    PublishReport report() const;

  private:
    void pump();
    bool publish_one();
    void wait_for_feed();
    void open_players();
    void on_feed_end();
    void on_player_end(const replay::Player& player);
    void end_if_all_have_ended();
    std::function<void(Exposition&)> metrics();
    std::vector<PublishedFid> published() const;
    std::uint64_t without_subscribers() const;

    void on_subscribed(netio::pubsub::Publisher& publisher,
                       const netio::pubsub::SubscriberPeer& peer,
                       const netio::pubsub::FidRange& range) override;
    void on_subscriber_closed(netio::pubsub::Publisher& publisher,
                              const netio::pubsub::SubscriberPeer& peer,
                              const netio::Closed& closed) override;
    void on_writable(netio::pubsub::Publisher& publisher) override;
    void on_closed(netio::pubsub::Publisher& publisher, const netio::Closed& closed) override;
    void on_publish_completed(netio::pubsub::PublishSocket& socket, netio::Cookie cookie,
                              const netio::pubsub::PublicationOutcome& outcome) override;

    netio::EventLoop& loop_;
    const PublisherConfig& config_;
    const std::vector<StreamConfig> fed_;
    MessageFeed feed_; // of all streams but recordings
    bool feed_ended_;
    // A player for each recording; destroyed after the outlet, which sends from their memory.
    std::vector<std::unique_ptr<replay::Player>> players_;
    PublishBudget& budget_;
    std::uint64_t unwanted_ = 0;
    std::optional<netio::TimePoint> begin_; // of publishing
    std::string end_;                       // the reason; empty: not yet
    bool failed_ = false;
    SubscriberLog subscribers_;
    OutcomeSums outcomes_;
    netio::Timer continue_timer_;
    netio::Timer duration_timer_;
    std::unique_ptr<netio::DescriptorWatch> input_watch_;
    std::unique_ptr<Outlet> outlet_;
    std::unique_ptr<MetricsServer> metrics_;
    std::function<void()> on_ended_;
};

using netio::Status;

// A turn is limited also without subscribers, so that new subscribers can connect.
constexpr std::size_t messages_per_turn = 4096;
constexpr std::size_t bytes_per_turn = std::size_t{1} << 20;

// A publisher without a rate runs at the speed of its subscribers, so it waits for the first one.
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

PublishRun::PublishRun(netio::EventLoop& loop, netio::Transport& transport,
                       const PublisherConfig& config, const PublishArguments& arguments,
                       PublishBudget& budget, std::function<void()> on_ended)
    : loop_{loop}, config_{config}, fed_{fed_streams(config)}, feed_{fed_, config.triggers},
      feed_ended_{fed_.empty()}, budget_{budget}, subscribers_{loop},
      continue_timer_{loop, [this] { pump(); }}, duration_timer_{loop, [this] { end("duration"); }},
      outlet_{make_outlet(transport, config, feed_.largest_bytes(), *this)},
      metrics_{with_config_key(config, "metrics",
                               [&] {
                                   return show_metrics(
                                       loop, config.metrics,
                                       with_gate(config.buffered_options.publisher.keys,
                                                 [this] { return metrics(); }));
                               })},
      on_ended_{std::move(on_ended)} {
    open_players();
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
    if (!feed_ended_) continue_timer_.start(netio::Duration::zero());
    for (const auto& player : players_)
        player->begin(outlet_->socket());
}

// The cookies of an outlet are below the first one of a player.
constexpr unsigned player_shift = 40;

void PublishRun::open_players() {
    for (const StreamConfig& stream : config_.streams) {
        const RecordingConfig* const recording = recording_of(stream);
        if (recording == nullptr) continue;
        replay::Player::Options options{.factor = recording->factor,
                                        .repeat = recording->repeat,
                                        .replacements = recording->replacements,
                                        .fids = netio::FidSet{stream.fids},
                                        .sends_recorded_times = recording->sends_recorded_times,
                                        .first_cookie = (std::uint64_t{players_.size()} + 1)
                                                        << player_shift,
                                        .counts_fids = true};
        const std::size_t which = players_.size();
        players_.push_back(std::make_unique<replay::Player>(
            loop_, open_recording(stream, *recording), std::move(options), budget_.messages_left,
            [this, which] { on_player_end(*players_[which]); }));
    }
}

void PublishRun::on_feed_end() {
    feed_ended_ = true;
    end_if_all_have_ended();
}

void PublishRun::on_player_end(const replay::Player& player) {
    if (player.failure().empty()) return end_if_all_have_ended();
    spdlog::error("{}", player.failure());
    failed_ = true;
    end("failed");
}

void PublishRun::end_if_all_have_ended() {
    if (budget_.messages_left > 0 &&
        !(feed_ended_ &&
          std::ranges::all_of(players_, [](const auto& player) { return player->has_ended(); })))
        return;
    end("finished");
}

// Publishes until a message is refused, nothing is due, or the turn is long enough.
void PublishRun::pump() {
    if (!begin_ || !end_.empty() || feed_ended_) return;
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

// Returns false if there is nothing more to publish, now or at all.
bool PublishRun::publish_one() {
    if (budget_.messages_left == 0) return end("finished"), false;
    const std::span<std::byte> place = outlet_->place();
    if (place.empty()) return false; // a completion continues
    const MessageFeed::Outcome outcome = feed_.next(place, loop_.now());
    if (outcome == MessageFeed::Outcome::ended) return on_feed_end(), false;
    if (outcome == MessageFeed::Outcome::waiting) return wait_for_feed(), false;
    const Status status = outlet_->offer(feed_.message());
    if (status == Status::again) {
        feed_.refuse(); // other fids continue
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
    // Only standard input needs waiting, and it belongs to a single stream.
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
    for (const auto& player : players_)
        player->stop();
    subscribers_.begin_end();
    outlet_->publisher().close();
}

std::vector<PublishedFid> PublishRun::published() const {
    std::vector<PublishedFid> fids = feed_.published();
    for (const auto& player : players_)
        for (const auto& [fid, messages] : player->published())
            fids.push_back({.fid = netio::pubsub::Fid{fid}, .messages = messages});
    std::ranges::sort(fids, {}, &PublishedFid::fid);
    return fids;
}

std::uint64_t PublishRun::without_subscribers() const {
    std::uint64_t sum = unwanted_;
    for (const auto& player : players_)
        sum += player->without_subscribers();
    return sum;
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
            .without_subscribers = without_subscribers(),
            .again = sums.again,
            .dropped = sums.dropped,
            .pages = sums.pages,
            .disconnected = subscribers_.disconnected(),
            .unconfirmed = subscribers_.unconfirmed(),
            .triggers = feed_.triggers(),
            .faults = std::ranges::any_of(config_.streams, makes_faults)
                          ? std::optional{feed_.faults()}
                          : std::nullopt,
            .fids = published()};
}

std::function<void(Exposition&)> PublishRun::metrics() {
    netio::pubsub::Publisher& publisher = outlet_->publisher();
    PublisherMetrics metrics{.unit = config_.buffered ? "bytes" : "publications",
                             .counters = publisher.counters(),
                             .snapshot = publisher.snapshot({.fids = config_.metrics.fid_limit()}),
                             .disconnected = subscribers_.disconnected(),
                             .outcomes = outcomes_};
    return [metrics = std::move(metrics)](Exposition& text) { write(metrics, text); };
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
    for (const auto& player : players_)
        player->resume();
}

void PublishRun::on_closed(netio::pubsub::Publisher&, const netio::Closed&) {
    on_ended_();
}

void PublishRun::on_publish_completed(netio::pubsub::PublishSocket&, netio::Cookie cookie,
                                      const netio::pubsub::PublicationOutcome& outcome) {
    outcomes_.add(outcome);
    if (const auto player = static_cast<std::uint64_t>(cookie) >> player_shift; player > 0)
        return players_.at(player - 1)->completed(cookie);
    if (outlet_->release(cookie)) pump();
}

// A loop of `netio publish` with everything that belongs to it: its publishers, their network,
// their keys, and their announcements. Loops share none of it.

class PublishLoop {
  public:
    struct Options {
        netio::EventLoop::Options loop;
        netio::FabricOptions fabric;
        std::vector<PublisherConfig> publishers;
        std::uint64_t messages = UINT64_MAX; // limit of all its publishers together
    };

    // Calls `on_ended` after all publishers have ended, while the loop runs. The options and the
    // arguments must outlive this object.
    PublishLoop(const Options& options, const PublishArguments& arguments,
                std::function<void()> on_ended);

    netio::EventLoop& loop() noexcept { return loop_; }
    // Creates the publishers and their threads. Throws what the sockets' constructors throw.
    void open();
    // Publishers with enough subscribers begin now, the others when their subscribers are
    // connected.
    void start();
    // Begins to close all publishers, if that has not begun.
    void end(std::string_view why);

    bool has_failed() const;
    LiveDisplay::Sums sums() const;
    // One for each publisher.
    std::vector<PublishReport> reports() const;

  private:
    void ended();

    const Options& options_;
    const PublishArguments& arguments_;
    netio::EventLoop loop_;
    LogObserver observer_;
    std::vector<PublisherConfig> publishers_; // destroyed before the loop, because of the keys
    std::unique_ptr<netio::Transport> transport_;
    PublishBudget budget_;
    std::function<void()> on_ended_;
    std::vector<std::unique_ptr<PublishRun>> runs_;
    std::vector<std::unique_ptr<BusPlace>> places_; // null: not announced
    std::size_t running_ = 0;
};

// Gives a publisher the keys from its configuration. Throws ConfigError.
void serve_keys(netio::EventLoop& loop, PublisherConfig& config) {
    const auto keys =
        with_config_key(config, "keys", [&] { return server_keys(loop, config.keys); });
    config.buffered_options.publisher.keys = keys;
    config.unbuffered_options.publisher.keys = keys;
}

PublishLoop::PublishLoop(const Options& options, const PublishArguments& arguments,
                         std::function<void()> on_ended)
    : options_{options}, arguments_{arguments}, loop_{options.loop}, observer_{loop_},
      publishers_{options.publishers}, budget_{options.messages}, on_ended_{std::move(on_ended)} {}

void PublishLoop::open() {
    for (PublisherConfig& config : publishers_) {
        serve_keys(loop_, config);
    }
    transport_ = netio::open_fabric(loop_, options_.fabric);
    for (const PublisherConfig& config : publishers_) {
        runs_.push_back(std::make_unique<PublishRun>(loop_, *transport_, config, arguments_,
                                                     budget_, [this] { ended(); }));
        PublisherConfig found = config;
        found.metrics.listen = runs_.back()->metrics_address(); // with the actual port
        places_.push_back(announce_publisher(loop_, found, runs_.back()->endpoints()));
    }
    running_ = runs_.size();
}

void PublishLoop::start() {
    for (const auto& run : runs_)
        run->start_when_ready();
}

void PublishLoop::end(std::string_view why) {
    for (const auto& run : runs_)
        run->end(why);
}

void PublishLoop::ended() {
    if (--running_ == 0) on_ended_();
}

bool PublishLoop::has_failed() const {
    return std::ranges::any_of(runs_, [](const auto& run) { return run->has_failed(); });
}

LiveDisplay::Sums PublishLoop::sums() const {
    LiveDisplay::Sums sums;
    for (const auto& run : runs_) {
        sums.messages += run->counters().messages;
        sums.bytes += run->counters().bytes;
    }
    return sums;
}

std::vector<PublishReport> PublishLoop::reports() const {
    std::vector<PublishReport> reports;
    for (const auto& run : runs_)
        reports.push_back(run->report());
    return reports;
}

// A further loop of `netio publish`, on its own thread. The thread creates everything that belongs
// to the loop, so that its memory is not shared with other threads. The loop and the owner's thread
// exchange values in posted tasks only.

class LoopThread {
  public:
    // Called in the owner's loop.
    struct Events {
        std::function<void(const LiveDisplay::Sums&)> on_sums; // once a second; may be empty
        std::function<void()> on_ended; // all its publishers have ended, or stop() was called
    };

    // Returns when the loop's publishers listen; throws what prevented it. The owner must have
    // blocked the signals that are not for the thread.
    LoopThread(PublishLoop::Options options, const PublishArguments& arguments,
               netio::EventLoop& owner, Events events);
    // Aborts if the loop has not ended.
    ~LoopThread();
    LoopThread(const LoopThread&) = delete;
    LoopThread& operator=(const LoopThread&) = delete;

    void start();
    void end(std::string_view why);
    void stop() noexcept;
    // Waits until the thread has ended. Call the other functions only after that.
    void join();
    bool has_failed() const { return loop_->has_failed(); }
    std::vector<PublishReport> reports() const { return loop_->reports(); }

  private:
    void run();

    const PublishLoop::Options options_;
    netio::EventLoop& owner_;
    Events events_;
    std::unique_ptr<PublishLoop> loop_; // created by the thread
    std::thread thread_;
};

constexpr std::chrono::seconds tell_interval{1};

LoopThread::LoopThread(PublishLoop::Options options, const PublishArguments& arguments,
                       netio::EventLoop& owner, Events events)
    : options_{std::move(options)}, owner_{owner}, events_{std::move(events)} {
    std::promise<void> listens;
    std::future<void> made = listens.get_future();
    // The thread owns the promise, because it may still use it after the waiting thread has
    // continued.
    auto work = [this, &arguments, listens = std::move(listens)]() mutable {
        try {
            loop_ = std::make_unique<PublishLoop>(options_, arguments,
                                                  [this] { loop_->loop().stop(); });
            loop_->open();
        } catch (...) {
            return listens.set_exception(std::current_exception());
        }
        listens.set_value();
        run();
    };
    {
        const netio::AllSignalsBlocked blocked;
        thread_ = std::thread{std::move(work)};
    }
    try {
        made.get();
    } catch (...) {
        thread_.join();
        throw;
    }
}

LoopThread::~LoopThread() {
    stop();
    join();
}

void LoopThread::run() {
    std::optional<netio::Timer> tell;
    if (events_.on_sums) {
        tell.emplace(loop_->loop(), [this, &tell] {
            // If the owner's task queue is full, it gets the next sums.
            static_cast<void>(
                owner_.post([told = events_.on_sums, sums = loop_->sums()] { told(sums); }));
            tell->start(tell_interval);
        });
        tell->start(tell_interval);
    }
    loop_->loop().run();
    const bool told = owner_.post(events_.on_ended);
    NETIO_CHECK_MSG(told, "the task queue of the first loop is full");
}

void LoopThread::start() {
    const bool posted = loop_->loop().post([this] { loop_->start(); });
    NETIO_CHECK_MSG(posted, "the task queue of a loop is full at its start");
}

void LoopThread::end(std::string_view why) {
    const bool posted = loop_->loop().post([this, why = std::string{why}] { loop_->end(why); });
    NETIO_CHECK_MSG(posted, "the task queue of a loop is full at its end");
}

void LoopThread::stop() noexcept {
    loop_->loop().stop();
}

void LoopThread::join() {
    if (thread_.joinable()) thread_.join();
}

// All publishers of one `netio publish`, on one loop or several, from their configuration to the
// report. The first loop runs on the calling thread and handles the signals and the display.

class PublishProcess {
  public:
    // Throws ConfigError if a publisher cannot be divided among the loops, and what the sockets'
    // constructors throw.
    PublishProcess(const PublishConfig& config, const PublishArguments& arguments);
    PublishProcess(const PublishProcess&) = delete;
    PublishProcess& operator=(const PublishProcess&) = delete;

    ExitStatus run();

  private:
    void interrupt();
    void end_all(std::string_view why);
    void ended(bool failed);
    LiveDisplay::Sums sums() const;
    std::vector<PublishReport> reports() const;

    const PublishConfig& config_;
    const PublishArguments& arguments_;
    const PublishLoop::Options first_options_;
    PublishLoop first_;
    netio::DeviceWatch devices_;
    netio::SignalWatch
        signals_; // constructed before the threads, so that they do not get the signals
    std::vector<LiveDisplay::Sums> other_sums_; // last reported values
    std::vector<std::unique_ptr<LoopThread>> others_;
    std::size_t running_ = 0; // number of running loops
    bool interrupted_ = false;
    bool failed_ = false;
};

// Returns the options of one loop. A limit of messages is divided like the fids.
PublishLoop::Options options_of(const PublishConfig& config, const PublishArguments& arguments,
                                std::size_t loop) {
    PublishLoop::Options options{.loop = config.loop, .fabric = config.fabric, .publishers = {}};
    for (const PublisherConfig& publisher : config.publishers)
        options.publishers.push_back(divided(publisher, config.loops).at(loop));
    if (arguments.messages) {
        const std::uint64_t messages = *arguments.messages;
        options.messages = messages / config.loops + (loop < messages % config.loops ? 1 : 0);
    }
    return options;
}

PublishProcess::PublishProcess(const PublishConfig& config, const PublishArguments& arguments)
    : config_{config}, arguments_{arguments}, first_options_{options_of(config, arguments, 0)},
      first_{first_options_, arguments, [this] { ended(first_.has_failed()); }},
      devices_{first_.loop()}, signals_{first_.loop(), end_signals(), [this](int) { interrupt(); }},
      other_sums_(config.loops - 1), running_{config.loops} {
    first_.open();
    const bool shown = live_form(arguments.json, arguments.progress) != LiveDisplay::Form::none;
    for (std::size_t i = 1; i < config.loops; ++i) {
        LoopThread::Events events{
            .on_sums = {}, .on_ended = [this, i] { ended(others_.at(i - 1)->has_failed()); }};
        if (shown) {
            events.on_sums = [this, i](const LiveDisplay::Sums& sums) {
                other_sums_.at(i - 1) = sums;
            };
        }
        others_.push_back(std::make_unique<LoopThread>(options_of(config, arguments, i), arguments,
                                                       first_.loop(), std::move(events)));
    }
}

ExitStatus PublishProcess::run() {
    {
        const LiveDisplay display{first_.loop(), live_form(arguments_.json, arguments_.progress),
                                  [this] { return sums(); }};
        first_.start();
        for (const auto& other : others_)
            other->start();
        first_.loop().run();
    }
    for (const auto& other : others_)
        other->stop();
    for (const auto& other : others_)
        other->join();
    const std::vector<PublishReport> all = reports();
    print_report(arguments_.json ? to_json(all) + "\n" : to_text(all));
    return outcome(all, failed_);
}

// The second signal does not wait for subscribers.
void PublishProcess::interrupt() {
    if (interrupted_) return first_.loop().stop();
    interrupted_ = true;
    end_all("interrupted");
}

void PublishProcess::end_all(std::string_view why) {
    first_.end(why);
    for (const auto& other : others_)
        other->end(why);
}

// If one loop fails, the others end, too, because a part of a publisher is of no use.
void PublishProcess::ended(bool failed) {
    if (failed && !failed_ && running_ > 1) {
        spdlog::error("a loop has failed; the others end as well");
        end_all("failed");
    }
    failed_ = failed_ || failed;
    if (--running_ == 0) first_.loop().stop();
}

LiveDisplay::Sums PublishProcess::sums() const {
    LiveDisplay::Sums sums = first_.sums();
    for (const LiveDisplay::Sums& other : other_sums_) {
        sums.messages += other.messages;
        sums.bytes += other.bytes;
    }
    return sums;
}

// Returns one report per publisher, for any number of loops.
std::vector<PublishReport> PublishProcess::reports() const {
    std::vector<std::vector<PublishReport>> of_loops{first_.reports()};
    for (const auto& other : others_)
        of_loops.push_back(other->reports());
    if (of_loops.size() == 1) return of_loops.front();
    std::vector<PublishReport> sums;
    for (std::size_t i = 0; i < config_.publishers.size(); ++i) {
        std::vector<PublishReport> parts;
        for (const auto& reports : of_loops)
            parts.push_back(reports.at(i));
        sums.push_back(sum_of(parts, config_.publishers[i].name));
    }
    return sums;
}

std::string places_of(const PublisherConfig& config) {
    std::string places;
    for (const netio::Address& each : config.listen)
        places += (places.empty() ? "" : ", ") + to_string(each);
    return places;
}

// Checks at a free port whether the address belongs to this machine and may be used for metrics.
void check_metrics(netio::EventLoop& loop, const MetricsArguments& metrics) {
    if (metrics.listen.empty()) return;
    netio::Address address = metrics_address(metrics);
    address.port = 0;
    const MetricsServer server{
        loop,
        {.address = std::move(address), .allow_remote_anonymous = metrics.allow_remote_anonymous},
        [] { return MetricsServer::Render{[] { return std::string{}; }}; }};
}

// Does everything that a start does, but at free ports: it fails if a start would fail, except that
// it does not detect ports in use.
std::string check(netio::Transport& transport, PublisherConfig config) {
    with_config_key(config, "metrics", [&] { check_metrics(transport.loop(), config.metrics); });
    const std::string places = places_of(config);
    for (auto* const options :
         {&config.buffered_options.publisher, &config.unbuffered_options.publisher}) {
        for (netio::Address& each : options->listen)
            each.port = 0;
    }
    const MessageFeed feed{fed_streams(config), config.triggers};
    for (const StreamConfig& stream : config.streams)
        if (const RecordingConfig* const recording = recording_of(stream))
            static_cast<void>(open_recording(stream, *recording));
    struct IgnoringHandler final : netio::pubsub::PublishSocket::Handler {
        void on_publish_completed(netio::pubsub::PublishSocket&, netio::Cookie,
                                  const netio::pubsub::PublicationOutcome&) override {}
    } ignoring;
    const auto outlet = make_outlet(transport, config, feed.largest_bytes(), ignoring);
    check_announcement(transport.loop(), config, outlet->publisher().endpoints());
    std::uint64_t fids = 0;
    for (const StreamConfig& stream : config.streams)
        for (const netio::pubsub::FidRange& range : stream.fids)
            fids += to_integer(range.last) - to_integer(range.first) + 1;
    return fmt::format("{}: would publish {} fid(s) at {}, {}, in messages of {} bytes at most\n",
                       config.file, fids, places, config.buffered ? "buffered" : "unbuffered",
                       feed.largest_bytes());
}

} // namespace

ExitStatus publish(const PublishConfig& config, const PublishArguments& arguments) {
    return PublishProcess{config, arguments}.run();
}

std::string check_publish(const PublishConfig& config) {
    netio::EventLoop loop{config.loop};
    const LogObserver observer{loop};
    const auto transport = netio::open_fabric(loop, config.fabric);
    std::string text;
    for (const PublisherConfig& publisher : config.publishers) {
        for (PublisherConfig& part : divided(publisher, config.loops)) {
            serve_keys(loop, part);
            text += check(*transport, part);
        }
    }
    return text;
}

} // namespace apps
