// SPDX-License-Identifier: Apache-2.0
#pragma once

// Asks a program for its figures over HTTP. What answers may be anybody, as an announcement on a
// bus named it: so much of an answer is read, in so much time, and no more; and so much of all the
// answers that are read at the same time.

#include "apps/common/host_addresses.hpp"
#include "netio/base/time.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace apps::top {

// What answers that are read at the same time take together. Any thread.
class AnswerRoom {
  public:
    explicit AnswerRoom(std::size_t bytes) : left_{bytes} {}
    // False: that is more than is left.
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
    AnswerRoom* room = nullptr; // must outlive the answer; null: its own limit is enough
};

// A text that holds its place in the room.
class Answer {
  public:
    explicit Answer(AnswerRoom* room) : room_{room} {}
    ~Answer() {
        if (room_ != nullptr) room_->give(text_.size());
    }
    Answer(const Answer&) = delete;
    Answer& operator=(const Answer&) = delete;

    // False: there is no room for it.
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

// Shows what a program says at http://ADDRESS/metrics, at the first of these addresses that
// answers; of more than eight, eight are tried. Throws std::runtime_error: why it says nothing.
void fetch_figures(std::span<const SocketAddress> addresses, const FetchLimits& limits,
                   const std::function<void(std::string_view text)>& show);

} // namespace apps::top
