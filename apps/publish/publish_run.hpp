// SPDX-License-Identifier: Apache-2.0
#pragma once

// One publisher of `netio publish`: from the first subscriber to the report.

#include "apps/common/keys.hpp"
#include "apps/common/report.hpp"
#include "apps/metrics/metrics.hpp"
#include "apps/metrics/publisher_metrics.hpp"
#include "apps/publish/message_feed.hpp"
#include "apps/publish/outlet.hpp"
#include "apps/publish/publisher_config.hpp"
#include "apps/publish/subscriber_log.hpp"
#include "netio/loop/descriptor_watch.hpp"
#include "pubsub/publisher/publish_socket.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace apps {

struct PublishArguments {
    std::string config;
    std::string listen;
    std::string bus;
    std::string decode; // fids in the log
    bool open = false;
    KeyArguments keys;
    MetricsArguments metrics;
    std::string provider;
    std::optional<std::uint64_t> messages;
    std::optional<netio::Duration> duration;
    std::optional<std::uint64_t> wait_subscribers;
    bool json = false;
    bool progress = false;
};

// How many messages all publishers of a process may publish yet.
struct PublishBudget {
    std::uint64_t messages_left = 0;
};

class PublishRun final : public netio::pubsub::PublishSocket::Handler {
  public:
    // Calls on_ended once, when it has been ended in order.
    PublishRun(netio::EventLoop& loop, netio::Transport& transport, const PublisherConfig& config,
               const PublishArguments& arguments, PublishBudget& budget,
               std::function<void()> on_ended);

    // If there are subscribers enough; else it does so itself.
    void start_when_ready();
    // Begins the end, if it has not begun. The first reason counts.
    void end(std::string_view why);
    // Where it listens.
    std::vector<netio::Endpoint> endpoints() const { return outlet_->publisher().endpoints(); }
    // Where its figures are; empty: nowhere.
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
    std::function<void(Exposition&)> figures();

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
    MessageFeed feed_;
    PublishBudget& budget_;
    std::uint64_t unwanted_ = 0;
    std::optional<netio::TimePoint> begin_; // of the messages
    std::string end_;                       // why; empty: not yet
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

} // namespace apps
