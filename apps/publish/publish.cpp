// SPDX-License-Identifier: Apache-2.0

// netio publish: a test publisher from a YAML configuration.

#include "apps/common/accept_failure_log.hpp"
#include "apps/common/end_signals.hpp"
#include "apps/common/live_display.hpp"
#include "apps/common/option_values.hpp"
#include "apps/common/report.hpp"
#include "apps/common/standard_output.hpp"
#include "apps/program/commands.hpp"
#include "apps/publish/message_feed.hpp"
#include "apps/publish/publisher_config.hpp"
#include "netio/fabric.hpp"
#include "netio/loop/descriptor_watch.hpp"
#include "netio/loop/signal_watch.hpp"
#include "pubsub/publisher/buffered_publish_socket.hpp"
#include "pubsub/publisher/publish_socket.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <algorithm>
#include <csignal>
#include <memory>
#include <set>
#include <system_error>

namespace apps {
namespace {

using netio::Cookie;
using netio::Status;

struct PublishArguments {
    std::string config;
    std::string listen;
    std::string provider;
    std::optional<std::uint64_t> messages;
    std::optional<netio::Duration> duration;
    std::optional<std::uint64_t> wait_subscribers;
    bool json = false;
    bool progress = false;
};

PublisherConfig configured(const PublishArguments& arguments) {
    PublisherConfig config = load_publisher_config(arguments.config);
    if (!arguments.listen.empty()) config.listen = {netio::parse_address(arguments.listen)};
    if (!arguments.provider.empty()) config.provider = arguments.provider;
    if (arguments.wait_subscribers) config.wait_subscribers = arguments.wait_subscribers;
    config.publisher.addresses = config.listen;
    config.buffered_options.publisher = config.publisher;
    config.unbuffered_options.publisher = config.publisher;
    return config;
}

// Whoever sets no pace is paced by its subscribers, so it waits for the first one.
std::uint64_t subscribers_to_wait_for(const PublisherConfig& config) {
    if (config.wait_subscribers) return *config.wait_subscribers;
    const bool unpaced = std::ranges::any_of(
        config.streams, [](const StreamConfig& stream) { return !stream.rate; });
    return unpaced ? 1 : 0;
}

class PublishRun final : public netio::pubsub::PublishSocket::Handler {
  public:
    PublishRun(netio::EventLoop& loop, netio::Transport& transport, const PublisherConfig& config,
               const PublishArguments& arguments);

    int run(bool json, bool progress);

  private:
    // What nobody wants costs time too, in which nobody could come.
    static constexpr std::size_t messages_per_turn = 4096;
    static constexpr std::size_t bytes_per_turn = std::size_t{1} << 20;
    static constexpr std::size_t default_memory = std::size_t{256} << 20;

    void make_slots(const PublisherConfig& config);
    void start_when_ready();
    void pump();
    bool offer();
    void wait_for_feed();
    void interrupt();
    void end(std::string_view why);
    std::vector<netio::SessionListener::Endpoint> endpoints() const;
    const netio::pubsub::Publisher::Counters& counters();
    PublishReport report();

    void on_subscribed(netio::pubsub::Publisher& publisher,
                       const netio::pubsub::SubscriberPeer& peer,
                       const netio::pubsub::FidRange& range) override;
    void on_subscriber_closed(netio::pubsub::Publisher& publisher,
                              const netio::pubsub::SubscriberPeer& peer,
                              const netio::Closed& closed) override;
    void on_accept_failed(netio::pubsub::Publisher&, const std::string& peer_address,
                          const netio::FabricError& why) override {
        accept_failed_.note(peer_address, why);
    }
    void on_writable(netio::pubsub::Publisher&) override { pump(); }
    void on_closed(netio::pubsub::Publisher&, const netio::Closed&) override { loop_.stop(); }
    void on_publish_completed(netio::pubsub::PublishSocket&, Cookie key) override;

    netio::EventLoop& loop_;
    MessageFeed feed_;
    std::uint64_t messages_left_;
    std::uint64_t wait_for_;
    std::set<netio::pubsub::SubscriberId> subscribed_;
    bool started_ = false;
    bool ended_ = false;
    bool prepared_ = false; // feed_.message() waits to be published
    std::uint32_t slot_ = 0;
    std::string end_;
    std::string failure_;
    std::uint64_t unwanted_ = 0;
    netio::TimePoint begin_;
    netio::TimePoint finish_;
    std::size_t slot_bytes_ = 0;
    std::unique_ptr<netio::RegisteredBuffer> memory_; // of all slots; buffered: of one message
    std::vector<std::uint32_t> free_slots_;
    AcceptFailureLog accept_failed_;
    netio::Timer continue_timer_;
    netio::Timer duration_timer_;
    std::unique_ptr<netio::DescriptorWatch> input_watch_;
    std::unique_ptr<netio::pubsub::BufferedPublishSocket> buffered_;
    std::unique_ptr<netio::pubsub::PublishSocket> unbuffered_;
    netio::SignalWatch signals_{loop_, end_signals(), [this](int) { interrupt(); }};
};

PublishRun::PublishRun(netio::EventLoop& loop, netio::Transport& transport,
                       const PublisherConfig& config, const PublishArguments& arguments)
    : loop_{loop}, feed_{config.streams}, messages_left_{arguments.messages.value_or(UINT64_MAX)},
      wait_for_{subscribers_to_wait_for(config)}, begin_{loop.now()}, finish_{loop.now()},
      accept_failed_{loop}, continue_timer_{loop, [this] { pump(); }},
      duration_timer_{loop, [this] { end("duration"); }} {
    if (config.buffered) {
        buffered_ = std::make_unique<netio::pubsub::BufferedPublishSocket>(
            transport, config.buffered_options, *this);
        memory_ = std::make_unique<netio::RegisteredBuffer>(feed_.largest_bytes());
        if (feed_.largest_bytes() > buffered_->message_limit()) {
            throw ConfigError{fmt::format(
                "{}: messages of up to {} bytes do not fit into {} pages of {} bytes; allowed: at "
                "most {} bytes, or more or larger pages",
                arguments.config, feed_.largest_bytes(), config.buffered_options.page_count,
                config.buffered_options.page_bytes, buffered_->message_limit())};
        }
    } else {
        unbuffered_ = std::make_unique<netio::pubsub::PublishSocket>(
            transport, config.unbuffered_options, *this);
        make_slots(config);
    }
    if (arguments.duration) duration_timer_.start(*arguments.duration);
    for (const auto& endpoint : endpoints())
        spdlog::info("listening at {} ({})", to_string(endpoint.address), endpoint.provider);
    if (wait_for_ > 0) spdlog::info("waiting for {} subscriber(s)", wait_for_);
}

// Every message that is lent to the network has a place of its own, as large as the largest.
void PublishRun::make_slots(const PublisherConfig& config) {
    constexpr std::size_t alignment = 64;
    slot_bytes_ = (feed_.largest_bytes() + alignment - 1) / alignment * alignment;
    const std::size_t memory = config.memory_bytes > 0 ? config.memory_bytes : default_memory;
    const std::size_t slots = std::clamp<std::size_t>(
        memory / slot_bytes_, 2, config.unbuffered_options.outstanding_limit + 1);
    memory_ = std::make_unique<netio::RegisteredBuffer>(slots * slot_bytes_);
    for (std::size_t i = slots; i > 0; --i)
        free_slots_.push_back(static_cast<std::uint32_t>(i - 1));
}

int PublishRun::run(bool json, bool progress) {
    {
        const LiveDisplay display{loop_, live_form(json, progress), [this] {
                                      return LiveDisplay::Sums{.messages = counters().messages,
                                                               .bytes = counters().bytes,
                                                               .lost = {}};
                                  }};
        start_when_ready();
        loop_.run();
    }
    finish_ = netio::Clock::now();
    const PublishReport result = report();
    if (!failure_.empty()) spdlog::error("{}", failure_);
    print_report(json ? to_json(result) + "\n" : to_text(result));
    return failure_.empty() ? 0 : 1;
}

void PublishRun::start_when_ready() {
    if (started_ || ended_ || subscribed_.size() < wait_for_) return;
    started_ = true;
    begin_ = netio::Clock::now();
    feed_.begin(begin_);
    continue_timer_.start(netio::Duration::zero());
}

// Publishes until nothing more is accepted, or due, or a turn is long enough.
void PublishRun::pump() {
    if (!started_ || ended_) return;
    try {
        std::size_t bytes = 0;
        for (std::size_t i = 0; i < messages_per_turn && bytes < bytes_per_turn; ++i) {
            if (messages_left_ == 0) return end("finished");
            if (!prepared_) {
                if (unbuffered_ && free_slots_.empty()) return; // a completion goes on
                if (unbuffered_) slot_ = free_slots_.back();    // taken when there is a message
                const auto memory =
                    memory_->memory().subspan(slot_ * slot_bytes_, feed_.largest_bytes());
                const MessageFeed::Outcome outcome = feed_.next(memory, loop_.now());
                if (outcome == MessageFeed::Outcome::ended) return end("finished");
                if (outcome == MessageFeed::Outcome::waiting) return wait_for_feed();
                prepared_ = true;
                bytes += feed_.message().bytes;
                if (unbuffered_) free_slots_.pop_back();
            }
            if (!offer()) return; // on_writable goes on
            prepared_ = false;
            --messages_left_;
        }
        continue_timer_.start(netio::Duration::zero());
    } catch (const std::system_error& error) {
        failure_ = error.what();
        end("failed");
    }
}

// False: again.
bool PublishRun::offer() {
    const MessageFeed::Message& message = feed_.message();
    Status status = Status::ok;
    if (buffered_) {
        status =
            buffered_->publish(message.fid, memory_->memory().first(message.bytes), message.status);
    } else {
        const netio::Slice slice = memory_->slice(slot_ * slot_bytes_, message.bytes);
        status = unbuffered_->publishv(message.fid, {&slice, 1}, Cookie{slot_},
                                       {.status = message.status, .header = {}});
        if (status == Status::no_subscribers) free_slots_.push_back(slot_);
    }
    if (status == Status::no_subscribers) ++unwanted_;
    return status != Status::again;
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

// The second one does not wait for subscribers.
void PublishRun::interrupt() {
    if (ended_) return loop_.stop();
    end("interrupted");
}

void PublishRun::end(std::string_view why) {
    if (ended_) return;
    ended_ = true;
    end_ = why;
    continue_timer_.cancel();
    duration_timer_.cancel();
    input_watch_.reset();
    if (buffered_) buffered_->close();
    if (unbuffered_) unbuffered_->close();
}

std::vector<netio::SessionListener::Endpoint> PublishRun::endpoints() const {
    return buffered_ ? buffered_->endpoints() : unbuffered_->endpoints();
}

const netio::pubsub::Publisher::Counters& PublishRun::counters() {
    return buffered_ ? buffered_->counters() : unbuffered_->counters();
}

PublishReport PublishRun::report() {
    const netio::pubsub::Publisher::Counters& sums = counters();
    std::string providers;
    for (const auto& endpoint : endpoints()) {
        if (providers.find(endpoint.provider) != std::string::npos) continue;
        providers += (providers.empty() ? "" : "+") + endpoint.provider;
    }
    const double seconds = started_ ? std::chrono::duration<double>(finish_ - begin_).count() : 0.0;
    return {.provider = providers,
            .mode = buffered_ ? "buffered" : "unbuffered",
            .end = end_,
            .throughput = {.messages = sums.messages, .bytes = sums.bytes, .seconds = seconds},
            .without_subscribers = unwanted_,
            .again = sums.again,
            .dropped = sums.dropped,
            .pages = sums.pages};
}

void PublishRun::on_subscribed(netio::pubsub::Publisher&, const netio::pubsub::SubscriberPeer& peer,
                               const netio::pubsub::FidRange& range) {
    spdlog::info("{} subscribes to {}", peer.address, to_string(range));
    subscribed_.insert(peer.id);
    start_when_ready();
}

void PublishRun::on_subscriber_closed(netio::pubsub::Publisher&,
                                      const netio::pubsub::SubscriberPeer& peer,
                                      const netio::Closed& closed) {
    subscribed_.erase(peer.id);
    if (closed.reason == netio::CloseReason::local ||
        closed.reason == netio::CloseReason::orderly) {
        spdlog::info("{} has left", peer.address);
    } else if (closed.reason == netio::CloseReason::unconfirmed) {
        spdlog::info("{} has left: {}", peer.address, closed.detail);
    } else {
        spdlog::warn("{}: {} {}", peer.address, netio::to_string(closed.reason), closed.detail);
    }
}

void PublishRun::on_publish_completed(netio::pubsub::PublishSocket&, Cookie key) {
    const bool starved = free_slots_.empty();
    free_slots_.push_back(static_cast<std::uint32_t>(key));
    if (starved) pump();
}

int run(const PublishArguments& arguments) {
    const PublisherConfig config = configured(arguments);
    netio::EventLoop loop{config.loop};
    const auto transport = netio::open_fabric(loop, {.provider = config.provider});
    PublishRun run{loop, *transport, config, arguments};
    return run.run(arguments.json, arguments.progress);
}

} // namespace

Command add_publish(CLI::App& program) {
    auto* command = program.add_subcommand("publish", "Publish streams as a YAML file describes");
    const auto arguments = std::make_shared<PublishArguments>();
    command->add_option("config", arguments->config, "YAML file, see config/")->required();
    command->add_option("--listen", arguments->listen, "HOST:PORT instead of the file's");
    add_count(*command, "--messages", arguments->messages, "End after so many, all fids together");
    add_duration(*command, "--duration", arguments->duration, "End so long after the start");
    add_count(*command, "--wait-subscribers", arguments->wait_subscribers,
              "Begin when so many have subscribed", {.min = 0, .max = 1'000'000});
    command->add_option("--provider", arguments->provider, "auto, tcp or verbs");
    command->add_flag("--progress", arguments->progress, "Log what moves, once a second");
    command->add_flag("--json", arguments->json, "One JSON object as the last line of output");
    return [arguments] { return run(*arguments); };
}

} // namespace apps
