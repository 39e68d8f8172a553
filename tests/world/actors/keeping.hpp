// SPDX-License-Identifier: Apache-2.0
#pragma once

// A user that keeps some of the messages that it receives, for a while: the bytes must stay as they
// were, through pauses, reconnects and the end of the socket, in whatever order they are released.

#include "netio/base/kept_bytes.hpp"
#include "netio/loop/event_loop.hpp"
#include "netio/memory/receive_memory.hpp"
#include "tests/world/dice.hpp"
#include "tests/world/oracle.hpp"
#include "tests/world/process.hpp"
#include "tests/world/world.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace netio::world {

// Memory of the user's that a socket receives into, for its window, as many windows more, and some
// spare buffers; nothing without the option.
class OwnMemory {
  public:
    explicit OwnMemory(const Process& process) {
        const std::int64_t spares = process.plan.options.get("own_buffers", -1);
        if (spares < 0) return;
        // Of the largest buffer that a publisher requires.
        constexpr std::int64_t largest = 4096 + 512;
        const std::int64_t windows = process.plan.options.get("own_windows", 1);
        const std::int64_t count = process.plan.options.get("receives", 8) * windows + spares;
        bytes_.resize(static_cast<std::size_t>(count * largest));
        memory_ = std::make_shared<ReceiveMemory>(bytes_);
    }
    const std::shared_ptr<ReceiveMemory>& memory() const noexcept { return memory_; }

  private:
    std::vector<std::byte> bytes_;
    std::shared_ptr<ReceiveMemory> memory_;
};

class KeptMessages {
  public:
    KeptMessages(World& world, Process& process)
        : world_{world}, number_{process.plan.number}, percent_{process.plan.options.get(
                                                           "keep_percent", 0)},
          time_{std::chrono::microseconds{process.plan.options.get("keep_us", 0)}},
          dice_{process.plan.number}, timer_{process.loop, [this] { release_some(); }} {}
    ~KeptMessages() {
        while (!kept_.empty())
            release();
    }
    KeptMessages(const KeptMessages&) = delete;
    KeptMessages& operator=(const KeptMessages&) = delete;

    // In on_message. keep(part) is the socket's.
    template <typename Keep>
    void offer(std::span<const std::byte> message, Keep keep) {
        if (!dice_.percent(percent_)) return;
        const auto size = static_cast<std::int64_t>(message.size());
        const auto begin = static_cast<std::size_t>(dice_.percent(80) ? 0 : dice_.between(0, size));
        const std::span<const std::byte> part = message.subspan(begin);
        if (part.empty()) return;
        kept_.push_back({.bytes = keep(part), .expected = {part.begin(), part.end()}});
        if (dice_.percent(20)) kept_.push_back(kept_.back()); // a further copy
        // A connection whose memory is kept receives nothing.
        world_.oracle().lasts(Trouble::busy, number_, time_);
        if (!timer_.armed()) timer_.start(time_);
    }
    // Keeps nothing any more.
    void stop() {
        percent_ = 0;
        while (!kept_.empty())
            release();
    }

  private:
    struct Kept {
        KeptBytes bytes;
        std::vector<std::byte> expected;
    };

    void release() {
        const auto last = static_cast<std::int64_t>(kept_.size()) - 1;
        std::swap(kept_[static_cast<std::size_t>(dice_.between(0, last))], kept_.back());
        const Kept kept = std::move(kept_.back());
        kept_.pop_back();
        if (std::ranges::equal(kept.bytes.bytes(), kept.expected)) return;
        world_.oracle().violate(RuleId::kept_stays, "process " + std::to_string(number_) +
                                                        " kept " +
                                                        std::to_string(kept.expected.size()) +
                                                        " bytes, which have changed");
    }
    void release_some() {
        const std::size_t left = dice_.percent(50) ? 0 : kept_.size() / 2;
        while (kept_.size() > left)
            release();
        if (kept_.empty()) return;
        world_.oracle().lasts(Trouble::busy, number_, time_);
        timer_.start(time_);
    }

    World& world_;
    std::uint32_t number_;
    std::int64_t percent_;
    Duration time_;
    Dice dice_;
    std::vector<Kept> kept_;
    Timer timer_;
};

} // namespace netio::world
