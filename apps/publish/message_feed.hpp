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

// Where the messages of a test publisher come from.

class Source {
  public:
    enum class Outcome : std::uint8_t {
        message,   // `bytes` of memory are the message
        ended,     // there are no more
        not_ready, // none now; wait_fd() becomes readable when it is worth trying
    };
    struct Result {
        Outcome outcome = Outcome::ended;
        std::size_t bytes = 0;
    };

    virtual ~Source() = default;
    // The next message, of memory.size() bytes unless the source ends within it; the same place
    // again until accept(). Throws std::system_error naming the file.
    virtual Result fill(std::span<std::byte> memory) = 0;
    // The message that was filled last has been published.
    virtual void accept() = 0;
    virtual int wait_fd() const noexcept { return -1; }
    // Of the next message, from zero: what an event's number is compared with.
    virtual std::uint64_t number() const noexcept = 0;
    // What a checker of all that was accepted finds.
    virtual FaultCounts faults() const { return {}; }
};

// Self-checking messages (apps/common/pattern.hpp); `timed` ones are stamped by who publishes them.
std::unique_ptr<Source> make_pattern_source(netio::pubsub::Fid fid, bool timed);
std::unique_ptr<Source> make_faulty_source(netio::pubsub::Fid fid, bool timed,
                                           const FaultConfig& faults, std::uint64_t seed);
// Opened at the first fill(). With `repeat` it begins again when it ends (an empty file ends).
std::unique_ptr<Source> make_file_source(std::string path, bool repeat);
// A descriptor that is not owned; ends with it.
std::unique_ptr<Source> make_pipe_source(int fd);

// Decides which stream's message a test publisher publishes next: all streams in turn, and within
// a stream all its fids in turn, as far as rates, triggers, counts, sources and subscribers allow.
// A message that is refused stays in its source, and its fid waits, without holding up another. No
// network, no clock.
//
// With a trigger every fid of its streams has one message of each event, and no fid begins the next
// event before all others have had theirs, but for those that wait: these catch up.

class MessageFeed {
  public:
    explicit MessageFeed(const std::vector<StreamConfig>& streams,
                         const std::vector<TriggerConfig>& triggers = {});

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
        std::array<std::byte, 8> header{};
        std::size_t header_bytes = 0; // of it, in front of the others
        std::size_t slices = 1;
        bool timed = false; // to be stamped (apps/common/pattern.hpp)
    };
    const Message& message() const noexcept { return message_; }

    // Of each fid, how many were published.
    std::vector<PublishedFid> published() const;
    // What a checker of all that was published finds.
    FaultCounts faults() const;
    std::vector<TriggerReport> triggers() const;
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
    struct Stream;
    struct Trigger {
        TriggerConfig config;
        std::optional<TriggerClock> clock; // once it has begun
        std::uint64_t events = 0;
        std::vector<Stream*> streams;
    };
    struct Stream {
        explicit Stream(const StreamConfig& stream)
            : config{stream}, sizes{stream.sizes, stream.seed} {}

        StreamConfig config;
        std::vector<Flow> flows;
        std::deque<std::uint32_t> ready;   // flows, in the order of their turns
        std::deque<std::uint32_t> waiting; // those that were refused, the longest first
        SizeSequence sizes;
        std::optional<TriggerClock> clock; // of a rate, once it has begun
        bool granted = false;              // by the rate, and not used yet
        Trigger* trigger = nullptr;
        std::size_t owed = 0; // the first so many that are ready may have a message of an event
        std::optional<std::size_t> wanted; // a size that was drawn and is not filled yet
    };
    Outcome next_of(Stream& stream, std::span<std::byte> memory, netio::TimePoint now);
    bool is_due(Stream& stream, netio::TimePoint now);
    bool is_due(std::optional<TriggerClock>& clock, netio::TimePoint now);
    bool fire(Trigger& trigger, netio::TimePoint now);
    void describe(const Stream& stream, const Flow& flow, std::size_t bytes);
    void end(Flow& flow);

    std::deque<Trigger> triggers_; // never moved
    std::deque<Stream> streams_;   // never moved
    std::size_t turn_ = 0;
    Stream* current_ = nullptr; // whose message() is
    bool refused_ = false;      // since retry()
    std::size_t largest_bytes_ = 0;
    Message message_;
    FaultCounts ended_faults_; // of sources that have ended
    netio::TimePoint next_due_ = netio::TimePoint::max();
    std::vector<int> wait_fds_;
};

} // namespace apps
