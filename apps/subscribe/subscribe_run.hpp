// SPDX-License-Identifier: Apache-2.0
#pragma once

// One run of `netio subscribe`: from the connection to the report.

#include "apps/common/keys.hpp"
#include "apps/common/peer_log.hpp"
#include "apps/common/range_line.hpp"
#include "apps/common/report.hpp"
#include "apps/metrics/metrics.hpp"
#include "apps/subscribe/background_recorder.hpp"
#include "apps/subscribe/contest_log.hpp"
#include "apps/subscribe/missed_log.hpp"
#include "apps/subscribe/outcome.hpp"
#include "apps/subscribe/prescale.hpp"
#include "apps/subscribe/slow_reader.hpp"
#include "apps/subscribe/verifier.hpp"
#include "netio/loop/signal_watch.hpp"
#include "pubsub/client/subscriptions.hpp"
#include "pubsub/discovery/bus.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace apps::subscribe {

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
        std::string decode; // in the log: a layout, or empty
    };
    Fids fids;
    std::optional<std::uint64_t> messages;
    std::optional<netio::Duration> duration;
    std::string output; // empty: nothing is recorded
    Existing existing = Existing::refuse;
    std::string local;
    KeyArguments key;
    MetricsArguments metrics;
    std::string provider = "auto";
    std::string loop = "blocking";
    std::string policy;              // empty: the publisher's own
    SubscribeSocket::Options socket; // but for what stands above
    struct Reading {
        bool verify = false;
        std::size_t header_bytes = 0;         // in front of what is verified
        std::optional<netio::Duration> think; // over each message
        std::uint64_t prescale = 1;           // every so many are worked on
        Slowness slowness;                    // and pauses
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
    // What was told as it came.
    struct Logged {
        Logged(netio::EventLoop& loop, const std::string& decode);
        const netio::pubsub::FidLayout* layout; // by whose fields fids are shown; null: numbers
        std::set<std::string> waiting;          // for whom
        std::uint64_t missing = 0;
        MissedLog missed;
        netio::Timer end_missed; // one after another they belong together
        ContestLog contests;
        PeerLog peers;        // who comes and goes, and troubles with the bus
        RangeLine subscribed; // not told yet
        netio::Timer tell_subscribed;
    };
    struct Ended { // why; empty: not yet
        std::string how;
        std::string detail;
        std::string lost; // how a publisher ended, if it was not in order
    };
    struct Reached {
        bool any = false;              // a publisher has accepted a subscription
        std::set<std::string> awaited; // of those whose addresses are given: who has not
    };
    struct Times { // of messages
        netio::TimePoint first = netio::TimePoint::max();
        netio::TimePoint last;
    };

    void end(std::string_view why);
    void refuse(std::string why);
    void record(Fid fid, std::span<const std::byte> message);
    void go_on_recording();
    void recording_failed(const std::string& why);
    void hold();
    void finish_recording(const SubscribeReport& report);
    SubscribeReport report() const;
    std::function<void(Exposition&)> figures();

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
    void on_missed(Subscriptions& all, const Subscriptions::Source& source, Fid fid,
                   std::uint64_t count) override;
    void on_publisher_changed(Subscriptions& all, const Subscriptions::Source& source,
                              const netio::pubsub::PublisherChange& change) override;
    void on_nothing_published(Subscriptions&, const Subscriptions::Source& source,
                              const netio::pubsub::FidQuery::Near& near) override;
    void on_closed(Subscriptions& all, const Subscriptions::Source& source,
                   const Subscriptions::Ending& ending) override;
    void on_contest(Subscriptions& all, const Subscriptions::Contest& contest) override;
    void on_trouble(Subscriptions& all, const std::string& what) override;
    void on_ended(Subscriptions& all) override;

    const Arguments& arguments_;
    netio::EventLoop& loop_;
    Verifier verifier_;
    Prescale prescale_;
    SlowReader slow_reader_;
    std::optional<BackgroundRecorder> recorder_;
    bool is_paused_ = false; // until the recorder has room
    std::uint64_t messages_left_;
    Ended ended_;
    Logged logged_;
    Reached reached_;
    Times times_;
    netio::Timer duration_timer_;
    std::unique_ptr<netio::pubsub::Discovery> bus_; // null: none
    Subscriptions all_;
    std::unique_ptr<MetricsServer> metrics_;
    netio::SignalWatch signals_;
};

} // namespace apps::subscribe
