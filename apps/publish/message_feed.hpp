// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/common/report.hpp"
#include "apps/publish/message_plan.hpp"
#include "apps/publish/publisher_config.hpp"
#include "pubsub/core/fid.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace apps {

// The sources of a test publisher's messages.

class Source {
  public:
    enum class Outcome : std::uint8_t {
        message,   // `bytes` of memory are the message
        ended,     // no more messages
        not_ready, // none now; retry when wait_fd() becomes readable
    };
    struct Result {
        Outcome outcome = Outcome::ended;
        std::size_t bytes = 0;
    };

    virtual ~Source() = default;
    // Writes the next message, of memory.size() bytes unless the source ends within it. Repeats the
    // same message until accept(). Throws std::system_error that names the file.
    virtual Result fill(std::span<std::byte> memory) = 0;
    // Call it when the last filled message has been published.
    virtual void accept() = 0;
    virtual int wait_fd() const noexcept { return -1; }
    // Number of the next message, from zero; compared with the number of an event.
    virtual std::uint64_t number() const noexcept = 0;
    // The faults that a checker of all accepted messages finds.
    virtual FaultCounts faults() const { return {}; }
};

// Self-checking messages (apps/common/pattern.hpp).
std::unique_ptr<Source> make_pattern_source(netio::pubsub::Fid fid);
std::unique_ptr<Source> make_faulty_source(netio::pubsub::Fid fid, const FaultConfig& faults,
                                           std::uint64_t seed);
// A file, opened at the first fill(). With `repeat` it starts again at its end (an empty file
// ends).
std::unique_ptr<Source> make_file_source(std::string path, bool repeat);
// Reads a descriptor, which it does not own, until its end.
std::unique_ptr<Source> make_pipe_source(int fd);

// Decides which message a test publisher publishes next: all streams in turn, and within a stream
// all its fids in turn, as far as rates, triggers, counts, sources and subscribers allow. A refused
// message stays in its source and its fid waits, without blocking other fids. No network, no clock.
//
// With a trigger every fid of its streams has one message per event. No fid begins the next event
// before all other fids have had theirs, except blocked fids, which catch up later.

class MessageFeed {
  public:
    explicit MessageFeed(const std::vector<StreamConfig>& streams,
                         const std::vector<TriggerConfig>& triggers = {});

    // Starts the rates. Call once, before next().
    void begin(netio::TimePoint now);

    enum class Outcome : std::uint8_t {
        message, // publish message()
        waiting, // until next_due(), until one of wait_fds() is readable, or until retry()
        ended,   // all sources have ended
    };
    // Writes the next message into `memory`, which has largest_bytes(); call accept() or refuse()
    // next. Throws std::system_error if a source cannot be read.
    Outcome next(std::span<std::byte> memory, netio::TimePoint now);

    // Call it when the message was published.
    void accept();
    // Call it when a subscriber of the fid is slow: the fid waits for retry().
    void refuse();
    // Call it when some subscriber can receive again: tries a few waiting fids next, and then
    // further ones as long as none is refused.
    void retry();
    static constexpr std::size_t retries_at_once = 16;

    struct Message {
        netio::pubsub::Fid fid{};
        std::size_t bytes = 0;
        std::uint8_t status = 0;
        std::array<std::byte, 8> header{};
        std::size_t header_bytes = 0; // header, before the rest of the message
        std::size_t slices = 1;
    };
    const Message& message() const noexcept { return message_; }

    // Returns the number of published messages of each fid.
    std::vector<PublishedFid> published() const;
    // The faults that a checker of all published messages finds.
    FaultCounts faults() const;
    std::vector<TriggerReport> triggers() const;
    std::size_t largest_bytes() const noexcept { return largest_bytes_; }
    netio::TimePoint next_due() const noexcept { return next_due_; } // max(): no rate is due
    const std::vector<int>& wait_fds() const noexcept { return wait_fds_; }

  private:
    struct Flow {
        netio::pubsub::Fid fid{};
        std::unique_ptr<Source> source;
        std::uint64_t left = 0; // messages
        std::uint64_t published = 0;
    };
    struct Stream;
    struct Trigger {
        TriggerConfig config;
        std::optional<TriggerClock> clock; // set when it has begun
        std::uint64_t events = 0;
        std::vector<Stream*> streams;
    };
    struct Stream {
        explicit Stream(const StreamConfig& stream)
            : config{stream}, sizes{stream.sizes, stream.seed} {}

        StreamConfig config;
        std::vector<Flow> flows;
        std::deque<std::uint32_t> ready;   // flows in turn
        std::deque<std::uint32_t> waiting; // refused flows, the oldest first
        SizeSequence sizes;
        std::optional<TriggerClock> clock; // for a rate, set when it has begun
        bool granted = false;              // granted by the rate, not used yet
        Trigger* trigger = nullptr;
        std::size_t owed = 0; // how many of the first ready flows may publish for an event
        std::optional<std::size_t> wanted; // a generated size that is not filled yet
    };
    Outcome next_of(Stream& stream, std::span<std::byte> memory, netio::TimePoint now);
    bool is_due(Stream& stream, netio::TimePoint now);
    bool is_due(std::optional<TriggerClock>& clock, netio::TimePoint now);
    bool fire(Trigger& trigger, netio::TimePoint now);
    void describe(const Stream& stream, const Flow& flow, std::size_t bytes);
    void end(Flow& flow);

    std::deque<Trigger> triggers_; // elements have stable addresses
    std::deque<Stream> streams_;   // elements have stable addresses
    std::size_t turn_ = 0;
    Stream* current_ = nullptr; // the stream of message()
    bool refused_ = false;      // since retry()
    std::size_t largest_bytes_ = 0;
    Message message_;
    FaultCounts ended_faults_; // faults of sources that have ended
    netio::TimePoint next_due_ = netio::TimePoint::max();
    std::vector<int> wait_fds_;
};

} // namespace apps
