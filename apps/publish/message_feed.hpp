// SPDX-License-Identifier: Apache-2.0
#pragma once

// Decides which stream's message a test publisher publishes next: all streams in turn, and within
// a stream all its fids in turn, as far as rates, counts, sources and subscribers allow. A message
// that is refused stays in its source, and its fid waits, without holding up another. No network,
// no clock.

#include "apps/common/report.hpp"
#include "apps/publish/pacer.hpp"
#include "apps/publish/publisher_config.hpp"
#include "apps/publish/sources.hpp"

#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace apps {

class MessageFeed {
  public:
    explicit MessageFeed(const std::vector<StreamConfig>& streams);

    // The rates begin now. Once, before next().
    void begin(netio::TimePoint now);

    enum class Outcome : std::uint8_t {
        message, // message() is what to publish
        waiting, // until next_due(), until one of wait_fds() is readable, or until retry()
        ended,   // all sources have ended
    };
    // Writes the next message into `memory`, which has largest_bytes(); accept() or refuse()
    // follows. Throws std::system_error: a source cannot be read.
    Outcome next(std::span<std::byte> memory, netio::TimePoint now);

    // The message was published.
    void accept();
    // Somebody who wants it has no room: its fid waits for retry().
    void refuse();
    // There is room again, and nobody says for whom: a few of those that wait come next, and others
    // behind them as long as none of them is refused.
    void retry();
    static constexpr std::size_t retries_at_once = 16;

    struct Message {
        netio::pubsub::Fid fid{};
        std::size_t bytes = 0;
        std::uint8_t status = 0;
    };
    const Message& message() const noexcept { return message_; }

    // Of each fid, how many were published.
    std::vector<PublishedFid> published() const;
    std::size_t largest_bytes() const noexcept { return largest_bytes_; }
    netio::TimePoint next_due() const noexcept { return next_due_; } // max(): no rate is waited for
    const std::vector<int>& wait_fds() const noexcept { return wait_fds_; }

  private:
    struct Flow {
        netio::pubsub::Fid fid{};
        std::unique_ptr<Source> source;
        std::uint64_t left = 0; // messages
        std::uint64_t published = 0;
    };
    struct Stream {
        std::vector<Flow> flows;
        std::deque<std::uint32_t> ready;   // flows, in the order of their turns
        std::deque<std::uint32_t> waiting; // those that were refused, the longest first
        SizeSequence sizes;
        std::optional<RateConfig> rate;
        std::optional<Pacer> pacer;
        std::uint64_t allowed = 0;         // messages that the rate allows at `looked`
        std::optional<std::size_t> wanted; // a size that was drawn and is not filled yet
        std::uint8_t status = 0;
    };
    Outcome next_of(Stream& stream, std::span<std::byte> memory, netio::TimePoint now);

    std::deque<Stream> streams_; // never moved
    std::size_t turn_ = 0;
    Stream* current_ = nullptr; // whose message() is
    bool refused_ = false;      // since retry()
    std::size_t largest_bytes_ = 0;
    Message message_;
    netio::TimePoint next_due_ = netio::TimePoint::max();
    std::vector<int> wait_fds_;
};

} // namespace apps
