// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/common/pace.hpp"
#include "apps/common/read_ahead.hpp"
#include "netio/fabric.hpp"
#include "netio/loop/event_loop.hpp"
#include "pubsub/publisher/buffered_publish_socket.hpp"
#include "pubsub/publisher/publish_socket.hpp"

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>

namespace apps::replay {

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
    // The socket's on_writable.
    void resume();
    // The socket's on_publish_completed, for a cookie of this player.
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
