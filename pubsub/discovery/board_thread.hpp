// SPDX-License-Identifier: Apache-2.0
#pragma once

// A board on a thread of its own, and its news for the loop. What both sides share belongs to those
// who make this, and is kept by the work as long as it runs: a file server that does not answer
// holds the thread and nobody else, so that the thread is left alone then.

#include "netio/loop/event_loop.hpp"
#include "netio/loop/process.hpp"
#include "pubsub/discovery/board.hpp"
#include "pubsub/discovery/wake_up.hpp"

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>

namespace netio::pubsub::inline v0_2 {

class BoardThread final : private EventSource {
  public:
    // How long the end waits for the work to end.
    static constexpr std::chrono::seconds end_wait{2};

    // What the work sees.
    class Place {
      public:
        explicit Place(std::unique_ptr<Board> board) : board_{std::move(board)} {}
        Board& board() noexcept { return *board_; }
        bool ended() const noexcept { return ended_; }
        // There is news.
        void tell() noexcept { news_->call(); }
        // For other threads of the work, which may outlive it and the board.
        std::shared_ptr<WakeUp> news() const noexcept { return news_; }

      private:
        friend class BoardThread;
        std::unique_ptr<Board> board_;
        std::atomic<bool> ended_{false};
        std::shared_ptr<WakeUp> news_ = std::make_shared<WakeUp>();
        WakeUp done_;
    };
    using Work = std::function<void(Place&)>;

    // `take` runs in the loop when there is news; it returns whether something is left for the next
    // turn, and may destroy this. Throws std::system_error.
    BoardThread(EventLoop& loop, std::unique_ptr<Board> board, Work work,
                std::function<bool()> take);
    ~BoardThread() override;

    // Ends the board's wait.
    void interrupt() noexcept {
        loop_.check_caller("Announcer", "update");
        place_->board().interrupt();
    }

  private:
    int wait_fd() const noexcept override { return place_->news_->descriptor(); }
    std::size_t drain(std::size_t budget) override;
    bool may_sleep() override { return !more_; }

    EventLoop& loop_;
    std::shared_ptr<Place> place_;
    std::function<bool()> take_;
    bool more_ = false;
    bool* destroyed_ = nullptr;
    ProcessOwned<std::thread> thread_;
};

} // namespace netio::pubsub::inline v0_2
