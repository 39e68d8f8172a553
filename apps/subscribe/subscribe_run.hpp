// SPDX-License-Identifier: Apache-2.0
#pragma once

// One run of `netio subscribe`: from the connection to the report.

#include "apps/common/keys.hpp"
#include "apps/common/pattern.hpp"
#include "apps/common/report.hpp"
#include "apps/metrics/metrics.hpp"
#include "apps/subscribe/outcome.hpp"
#include "apps/subscribe/recorder.hpp"
#include "netio/loop/signal_watch.hpp"
#include "pubsub/subscriber/subscribe_socket.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace apps::subscribe {

using netio::pubsub::Fid;
using netio::pubsub::FidRange;
using netio::pubsub::SubscribeSocket;

struct Arguments {
    std::string publisher;
    std::vector<std::string> fids;
    std::optional<std::uint64_t> messages;
    std::optional<netio::Duration> duration;
    std::string output; // empty: nothing is recorded
    Existing existing = Existing::refuse;
    std::string local;
    KeyArguments key;
    MetricsArguments metrics;
    std::string provider = "auto";
    std::string loop = "blocking";
    std::string policy; // empty: the publisher's own
    struct Buffers {
        std::size_t count = SubscribeSocket::Options{}.session.receive_count;
        std::size_t bytes = SubscribeSocket::Options{}.session.receive_bytes;
    };
    Buffers buffers;
    bool verify = false;
    bool json = false;
    bool progress = false;
};

class Run final : public SubscribeSocket::Handler {
  public:
    Run(netio::EventLoop& loop, netio::Transport& transport, const Arguments& arguments);

    ExitStatus run();

  private:
    using Books = netio::pubsub::ArrivalCounter::Books;

    void end(std::string_view why);
    void refuse(std::string why);
    void finish_recording();
    Books books() const;
    Books books(Fid fid) const;
    bool is_whole(Fid fid) const;
    SubscribeReport report() const;
    std::function<void(Exposition&)> figures();

    void on_connected(SubscribeSocket& socket) override;
    void on_subscribed(SubscribeSocket& socket, const FidRange& range) override;
    void on_subscription_refused(SubscribeSocket& socket, const FidRange& range) override;
    void on_policy_refused(SubscribeSocket& socket, const FidRange& range) override;
    void on_subscription_not_permitted(SubscribeSocket& socket, const FidRange& range) override;
    void on_message(SubscribeSocket& socket, Fid fid, std::span<const std::byte> message,
                    std::uint8_t status) override;
    void on_closed(SubscribeSocket& socket, const netio::Closed& closed, bool retrying) override;

    const Arguments& arguments_;
    netio::EventLoop& loop_;
    PatternChecker checker_;
    std::optional<Recorder> recorder_;
    std::uint64_t messages_left_;
    std::string end_;
    std::string detail_;
    bool waiting_told_ = false;
    bool reached_ = false; // the publisher has accepted a subscription
    netio::TimePoint first_ = netio::TimePoint::max();
    netio::TimePoint last_;
    netio::Timer duration_timer_;
    SubscribeSocket socket_;
    std::unique_ptr<MetricsServer> metrics_;
    netio::SignalWatch signals_;
};

} // namespace apps::subscribe
