// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/common/io.hpp"
#include "apps/common/logging.hpp"
#include "apps/top/table.hpp"
#include "netio/base/time.hpp"
#include "netio/loop/descriptor_watch.hpp"
#include "netio/loop/event_loop.hpp"
#include "pubsub/discovery/bus.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace apps::top {

// Fetches the metrics of many programs at once: resolves their addresses, fetches /metrics and
// parses it, on its own threads.

// Resolves names with a deadline. A resolver may block for a long time, so each name is looked up
// on its own detached thread. Callers that ask for the same name share one lookup; the number of
// threads is limited.

class NameSearch {
  public:
    // Returns the addresses of a host, with port 0; throws std::runtime_error. Runs on any thread,
    // also after the NameSearch was destroyed.
    using Resolve = std::function<std::vector<SocketAddress>(const std::string& host)>;
    static constexpr std::size_t thread_limit = 64;

    NameSearch();
    explicit NameSearch(Resolve resolve, std::size_t limit = thread_limit);

    // Any thread. Numeric addresses need no lookup. Throws std::runtime_error if the name is
    // unknown or not resolved in time; a late answer serves the next caller.
    std::vector<SocketAddress> find(const netio::Address& address, netio::TimePoint until);

  private:
    struct Searches; // shared with the threads, which may outlive this object
    std::shared_ptr<Searches> searches_;
};

// The peer may be hostile, because its address may come from an announcement on a bus. Time and
// size of an answer are limited, and so is the memory of all answers that are read at the same
// time. (cpp-httplib 0.11 has no limit for the lines of an answer's header:
// docs/decisions/0016-the-metrics-server-is-our-own.md.)

// The memory budget of all answers. Any thread.
class AnswerRoom {
  public:
    explicit AnswerRoom(std::size_t bytes) : left_{bytes} {}
    // Returns false if less is left.
    bool take(std::size_t bytes) noexcept {
        std::size_t left = left_.load();
        while (bytes <= left)
            if (left_.compare_exchange_weak(left, left - bytes)) return true;
        return false;
    }
    void give(std::size_t bytes) noexcept { left_ += bytes; }

  private:
    std::atomic<std::size_t> left_;
};

struct FetchLimits {
    netio::TimePoint until = netio::Clock::now() + std::chrono::seconds{3};
    std::size_t answer_bytes = std::size_t{64} << 20;
    AnswerRoom* room = nullptr; // must outlive the answer; null: only answer_bytes limits it
};

// A text whose bytes are charged to the budget until it is destroyed.
class Answer {
  public:
    explicit Answer(AnswerRoom* room) : room_{room} {}
    ~Answer() {
        if (room_ != nullptr) room_->give(text_.size());
    }
    Answer(const Answer&) = delete;
    Answer& operator=(const Answer&) = delete;

    // Returns false if the budget is exhausted.
    bool append(std::string_view piece) {
        if (room_ != nullptr && !room_->take(piece.size())) return false;
        text_ += piece;
        return true;
    }
    const std::string& text() const noexcept { return text_; }

  private:
    AnswerRoom* room_;
    std::string text_;
};

// Calls `show` with the text of http://ADDRESS/metrics, from the first of the addresses that
// answers (the first eight are tried). Throws std::runtime_error with the reason if there is no
// text.
void fetch_metrics(std::span<const SocketAddress> addresses, const FetchLimits& limits,
                   const std::function<void(std::string_view text)>& show);

// All programs are asked at the same time with one deadline, so that one that does not answer does
// not delay the others.

struct AskLimits {
    FetchLimits each;          // except `room`
    std::size_t at_once = 128; // concurrent requests
    std::size_t bytes_together = std::size_t{512} << 20;
};

// Returns the results in the order of the sources (HOST:PORT); errors are in the program's Look.
std::vector<Look> look_at(const std::vector<std::string>& sources, NameSearch& names,
                          const AskLimits& limits = {});

// Runs look_at() on its own thread, one call at a time, so that it does not block the loop. Belongs
// to the loop's thread; the destructor does not wait for the thread.

class BackgroundLook {
  public:
    // `on_seen` runs on the loop's thread.
    BackgroundLook(netio::EventLoop& loop, std::function<void(std::vector<Look>)> on_seen);
    BackgroundLook(const BackgroundLook&) = delete;
    BackgroundLook& operator=(const BackgroundLook&) = delete;

    // Only after on_seen() of the previous call.
    void start(std::vector<std::string> sources);

  private:
    struct Shared; // shared with the thread, which may outlive this object
    NameSearch names_;
    std::shared_ptr<Shared> shared_;
    netio::DescriptorWatch watch_;
};

// The programs with metrics that are currently announced on a bus.

class BusSources final : private netio::pubsub::Discovery::Handler {
  public:
    // Throws std::invalid_argument if `where` is not a bus.
    BusSources(netio::EventLoop& loop, const std::string& where);

    // Runs the loop until the bus was read for the first time. Returns false if it could not be
    // read or the loop was stopped.
    bool read();
    // In the order of their names.
    std::vector<Source> sources() const;

  private:
    static constexpr std::chrono::seconds stop_timeout{5};

    void on_announced(const netio::pubsub::Announcement& announcement) override;
    void on_gone(const std::string& name) override { addresses_.erase(name); }
    void on_warning(const std::string& what) override;
    void on_caught_up() override;

    netio::EventLoop& loop_;
    PeerLog log_{loop_};
    std::map<std::string, std::string> addresses_; // by name
    bool caught_up_ = false;
    bool reading_ = false;
    netio::Timer end_timer_{loop_, [this] { loop_.stop(); }};
    std::unique_ptr<netio::pubsub::Discovery> bus_;
};

} // namespace apps::top
