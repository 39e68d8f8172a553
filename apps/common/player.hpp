// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "netio/base/latency_histogram.hpp"
#include "netio/base/time.hpp"
#include "netio/fabric.hpp"
#include "netio/loop/event_loop.hpp"
#include "netio/memory/buffer.hpp"
#include "pubsub/core/fid.hpp"
#include "pubsub/core/fid_set.hpp"
#include "pubsub/publisher/buffered_publish_socket.hpp"
#include "pubsub/publisher/publish_socket.hpp"
#include "pubsub/recording/recording_reader.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace apps::replay {

// Replaces fids: "5=7", or equally long ranges, "0-63=100-163". The first rule for a fid decides.
class FidReplacements {
  public:
    // Throws std::invalid_argument: "PROBLEM; allowed: ...".
    void add(std::string_view text);
    netio::Fid operator()(netio::Fid fid) const noexcept;
    // The fids that those of the range become.
    std::vector<netio::FidRange> operator()(const netio::FidRange& range) const;
    bool empty() const noexcept { return ranges_.empty(); }

  private:
    struct Range {
        netio::FidRange from;
        netio::Fid to;
    };
    std::vector<Range> ranges_;
};

struct ReplayMessage {
    netio::Fid fid{};
    std::uint8_t status = 0;
    bool has_time = false;    // the publisher had sent utc_ns
    std::int64_t utc_ns = 0;  // since 1970
    netio::Duration after{0}; // the first message; never less than the one before
    std::size_t offset = 0;   // in the block's memory
    std::size_t bytes = 0;
};

// Messages in registered memory.
struct Block {
    explicit Block(std::size_t bytes) : memory{bytes} {}

    netio::RegisteredBuffer memory;
    std::vector<ReplayMessage> messages;
};

// Reads a recording on its own thread, so that no disk and no decompression delays the loop. The
// thread fills at most read_ahead_limit_bytes of blocks. The event descriptor becomes readable when
// a block is ready, at the end, and on failure. Belongs to the loop's thread, as the blocks do
// while they are taken.
class ReadAhead {
  public:
    static constexpr std::size_t block_bytes = std::size_t{4} << 20; // a larger message has its own
    static constexpr std::size_t read_ahead_limit_bytes = std::size_t{64} << 20;

    struct Options {
        FidReplacements replacements;
        netio::FidSet fids; // after the replacement; other messages are skipped. Empty: all
        std::uint64_t repeat = 1;
    };
    // Throws std::system_error: the system grants no thread or no descriptor.
    ReadAhead(netio::RecordingReader reader, Options options);
    ~ReadAhead(); // waits until the thread has ended
    ReadAhead(const ReadAhead&) = delete;
    ReadAhead& operator=(const ReadAhead&) = delete;

    // Returns null if no block is ready now, or has_ended().
    std::unique_ptr<Block> take();
    // Takes back a block whose memory is not used any more.
    void give(std::unique_ptr<Block> block);
    // True after all blocks were taken and no more follow.
    bool has_ended() const;
    // Why the recording ended early; empty if it did not. Call after has_ended().
    std::string failure() const;
    // What the reader has found so far: torn ends, foreign messages. Call after has_ended().
    const netio::RecordingReader& reader() const;

    int event_descriptor() const noexcept;
    void clear_event() noexcept;

  private:
    class State;
    std::unique_ptr<State> state_;
};

// When the messages of a recording are due. If the publisher is late, for instance because a
// subscriber blocked it, at most one second is caught up; a longer delay postpones everything that
// follows. No I/O, no clock.
class Pace {
  public:
    // Factor of the recorded speed, above zero; nullopt: as fast as possible.
    explicit Pace(std::optional<double> factor) noexcept : factor_{factor} {}

    static constexpr netio::Duration catch_up_limit = std::chrono::seconds{1};

    // Returns when the message is due that was recorded this long after the first one; TimePoint{}:
    // at once. The first call decides the begin.
    netio::TimePoint due(netio::Duration recorded, netio::TimePoint now) noexcept {
        if (!factor_) return {};
        if (!begin_) begin_ = now;
        constexpr double longest = 1e18; // ns
        const double after = static_cast<double>(recorded.count()) / *factor_;
        const netio::Duration scaled{
            static_cast<netio::Duration::rep>(std::clamp(after, 0.0, longest))};
        netio::TimePoint time = *begin_ + scaled;
        if (now - time > catch_up_limit) {
            const netio::Duration shift = now - time - catch_up_limit;
            put_off_ += shift;
            *begin_ += shift;
            time += shift;
        }
        return time;
    }
    // Call it when a message that was due at `due` has been published.
    void published(netio::TimePoint due, netio::TimePoint now) noexcept {
        if (factor_) deviation_.add(now - due);
    }

    bool is_paced() const noexcept { return factor_.has_value(); }
    // How late the messages were, relative to the schedule without the time for which it was
    // postponed.
    const netio::LatencyHistogram& deviation() const noexcept { return deviation_; }
    netio::Duration put_off() const noexcept { return put_off_; }

  private:
    std::optional<double> factor_;
    std::optional<netio::TimePoint> begin_;
    netio::Duration put_off_{0};
    netio::LatencyHistogram deviation_;
};

// Returns whether the text is a rate: recorded, max, or a factor such as 2x or 0.5x.
bool read_rate(const std::string& text, std::optional<double>& factor);
inline constexpr const char* allowed_rates =
    "recorded, max, or a factor from 0.000001x to 1000000x, such as 2x or 0.5x";

// Publishes a recording into a socket of the user, in the recorded order and at a pace. It reads on
// a thread of its own. Belongs to the loop's thread. Must outlive the socket, which sends from the
// player's memory.
class Player {
  public:
    struct Options {
        std::optional<double> factor = 1; // of the recorded pace; nullopt: as fast as possible
        std::uint64_t repeat = 1;
        FidReplacements replacements;
        netio::FidSet fids; // after the replacement; the other messages are skipped. Empty: all
        // The socket has StampClock::tai: sends the recorded publication times, and no time with
        // messages that were recorded without one. Otherwise the socket decides.
        bool sends_recorded_times = false;
        // The first cookie of publications of an unbuffered socket; the next ones follow.
        std::uint64_t first_cookie = 0;
        bool counts_fids = false; // for published()
    };
    // The socket into which it publishes.
    struct Socket {
        netio::pubsub::BufferedPublishSocket* buffered = nullptr;
        netio::pubsub::PublishSocket* unbuffered = nullptr; // if buffered is null
    };

    // `on_end` is called in the loop, once, after the last message was accepted, after a failure,
    // or when `messages_left` is 0, which may be shared with others and must outlive the player.
    // Throws std::system_error: the system grants no thread or no descriptor.
    Player(netio::EventLoop& loop, netio::RecordingReader reader, Options options,
           std::uint64_t& messages_left, std::function<void()> on_end);
    ~Player();
    Player(const Player&) = delete;
    Player& operator=(const Player&) = delete;

    void begin(Socket socket);
    // Call it in the socket's on_writable.
    void resume();
    // Call it in the socket's on_publish_completed, for a cookie of this player.
    void completed(netio::Cookie cookie);
    // Publishes nothing more.
    void stop();

    // True after on_end.
    bool has_ended() const noexcept;
    // Why it ended early: a damaged recording, or a message that cannot be published; empty if it
    // did not.
    const std::string& failure() const noexcept;
    std::uint64_t without_subscribers() const noexcept;
    const Pace& pace() const noexcept;
    // By fid, also without subscribers.
    const std::unordered_map<std::uint64_t, std::uint64_t>& published() const noexcept;
    // What the reader has found: torn ends, foreign messages. Null until everything was read.
    const netio::RecordingReader* reader() const;

  private:
    class State;
    std::unique_ptr<State> state_;
};

} // namespace apps::replay
