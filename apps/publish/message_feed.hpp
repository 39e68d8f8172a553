// SPDX-License-Identifier: Apache-2.0
#pragma once

// Decides which stream's message a test publisher publishes next: all streams in turn, and within
// a stream all its fids in turn, as far as rates, counts and sources allow. No network, no clock.

#include "apps/publish/pacer.hpp"
#include "apps/publish/publisher_config.hpp"
#include "apps/publish/sources.hpp"

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
        waiting, // until next_due(), or until one of wait_fds() is readable
        ended,   // all sources have ended
    };
    // Writes the next message into `memory`, which has largest_bytes(). Throws std::system_error: a
    // source cannot be read.
    Outcome next(std::span<std::byte> memory, netio::TimePoint now);

    struct Message {
        netio::pubsub::Fid fid{};
        std::size_t bytes = 0;
        std::uint8_t status = 0;
    };
    const Message& message() const noexcept { return message_; }

    std::size_t largest_bytes() const noexcept { return largest_bytes_; }
    netio::TimePoint next_due() const noexcept { return next_due_; } // max(): no rate is waited for
    const std::vector<int>& wait_fds() const noexcept { return wait_fds_; }

  private:
    struct Flow {
        netio::pubsub::Fid fid{};
        std::unique_ptr<Source> source;
        std::uint64_t left = 0; // messages
    };
    struct Stream {
        std::vector<Flow> flows; // one that has ended has no source, and leaves at the next round
        std::size_t live = 0;    // flows that have not ended
        std::size_t turn = 0;    // whose it is
        SizeSequence sizes;
        std::optional<RateConfig> rate;
        std::optional<Pacer> pacer;
        std::uint64_t allowed = 0;         // messages that the rate allows at `looked`
        std::optional<std::size_t> wanted; // a size that was drawn and is not filled yet
        std::uint8_t status = 0;
    };
    static Flow& flow_in_turn(Stream& stream);
    static void end_flow(Stream& stream, Flow& flow);
    Outcome next_of(Stream& stream, std::span<std::byte> memory, netio::TimePoint now);

    std::vector<Stream> streams_;
    std::size_t turn_ = 0;
    std::size_t largest_bytes_ = 0;
    Message message_;
    netio::TimePoint next_due_ = netio::TimePoint::max();
    std::vector<int> wait_fds_;
};

} // namespace apps
