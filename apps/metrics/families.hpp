// SPDX-License-Identifier: Apache-2.0
#pragma once

// Writes metrics in the text format of Prometheus (version 0.0.4). No I/O.
//
//     Exposition text;
//     text.counter("netio_publisher_messages_total", "Messages accepted").add(7);
//     text.gauge("netio_peer_waiting", "In its queue").add({{"peer", "10.0.0.1:5"}}, 3);
//     std::string body = std::move(text).take();

#include "apps/common/machine.hpp"
#include "netio/base/latency_histogram.hpp"
#include "netio/base/time.hpp"
#include "netio/loop/event_loop.hpp"
#include "netio/messages/listen_socket.hpp"
#include "netio/messages/send_snapshot.hpp"
#include "pubsub/core/publication_outcome.hpp"
#include "pubsub/core/subscriptions_snapshot.hpp"
#include "pubsub/publisher/publisher.hpp"
#include "stream/socket/stream_socket.hpp"

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace apps {

class Exposition {
  public:
    using Labels = std::initializer_list<std::pair<std::string_view, std::string_view>>;

    // The samples of one name; they must be added directly after the name.
    class Family {
      public:
        Family& add(std::uint64_t value) { return add({}, value); }
        Family& add(Labels labels, std::uint64_t value);
        Family& add(netio::Duration value) { return add({}, value); }
        Family& add(Labels labels, netio::Duration value); // in seconds

      private:
        friend class Exposition;
        Family(std::string& text, std::string_view name) : text_{text}, name_{name} {}
        void begin(Labels labels, std::string_view suffix = {});

        std::string& text_;
        std::string name_;
    };

    // The names of counters, and no others, end in _total (checked).
    Family counter(std::string_view name, std::string_view help);
    Family gauge(std::string_view name, std::string_view help);
    // In seconds; the buckets are powers of two in nanoseconds.
    void histogram(std::string_view name, std::string_view help,
                   const netio::LatencyHistogram& values);

    std::string take() && { return std::move(text_); }

  private:
    Family family(std::string_view name, std::string_view type, std::string_view help);

    std::string text_;
};

// The metrics of the programs: each struct is a snapshot of an object, and write() formats it. No
// I/O.

// Metrics of every program: its loop and its log.

struct LoopMetrics {
    std::uint64_t turns = 0;
    std::uint64_t waits = 0;
    netio::Duration longest_turn{}; // since the last call
    netio::Duration stalled{};
    std::uint64_t log_lines_left_out = 0; // lost lines of the program's log
};
LoopMetrics take_snapshot(netio::EventLoop& loop);
void write(const LoopMetrics& loop, Exposition& text);

// The ports of RDMA devices; writes nothing without devices.
void write(std::span<const RdmaDevice> devices, Exposition& text);

// The one-way latency of messages with time stamps, and the estimated difference of the clocks.
struct OneWayMetrics {
    std::string publisher;
    netio::Duration median{}; // corrected by the offset, if that is larger than its error
    netio::Duration p99{};
    netio::Duration clock_offset{}; // this machine's clock minus the publisher's
    netio::Duration clock_offset_error{};
};
void write(std::span<const OneWayMetrics> publishers, Exposition& text);

// Outcomes of unbuffered publications, counted per subscriber.
struct OutcomeSums {
    std::uint64_t sent = 0;
    std::uint64_t dropped = 0;
    std::uint64_t unsubscribed = 0;
    std::uint64_t lost = 0;

    void add(const netio::pubsub::PublicationOutcome& outcome) noexcept {
        sent += outcome.sent;
        dropped += outcome.dropped;
        unsubscribed += outcome.unsubscribed;
        lost += outcome.lost;
    }
};

struct PublisherMetrics {
    std::string unit; // of the pool: bytes, or publications
    netio::pubsub::Publisher::Counters counters;
    netio::pubsub::PublisherSnapshot snapshot;
    std::uint64_t disconnected = 0; // subscribers that did not close in order
    OutcomeSums outcomes{};         // unbuffered
};
void write(const PublisherMetrics& publisher, Exposition& text);

void write(const netio::pubsub::SubscriptionsSnapshot& subscriber, Exposition& text);

struct SenderMetrics {
    std::string peer; // the receiver
    netio::SendSnapshot snapshot;
};
void write(const SenderMetrics& sender, Exposition& text);

struct ReceiverMetrics {
    struct Sender {
        std::string peer;
        netio::ReceiveSocket::Counters counters;
    };
    netio::ListenSocket::Counters counters;
    std::vector<Sender> senders; // connected ones, up to the limit
    std::size_t sender_count = 0;
    netio::KeepStats kept{};
};
ReceiverMetrics metrics_of(const netio::ListenSocket& socket, std::size_t senders = 1000);
void write(const ReceiverMetrics& receiver, Exposition& text);

struct StreamMetrics {
    std::string peer;
    netio::stream::StreamSocket::Counters counters;
    std::uint64_t queued_bytes = 0;
};
void write(std::span<const StreamMetrics> streams, Exposition& text);

} // namespace apps
