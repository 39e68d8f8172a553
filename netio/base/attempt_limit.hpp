// SPDX-License-Identifier: Apache-2.0
#pragma once

// Limits the unanswered attempts to connect to one address. A listener closes connections of a
// machine that has too many unfinished ones (FabricOptions::pending_handshakes_per_host), so a
// program that connects a thousand sockets at once must not look like a flood. Attempts beyond the
// limit wait in a queue, oldest first. No I/O; belongs to the loop's thread.

#include "netio/base/status.hpp"
#include "netio/base/time.hpp"

#include <cstddef>
#include <functional>
#include <list>
#include <map>
#include <string>
#include <utility>

namespace netio::inline v0_3 {

class AttemptLimit {
    struct Line;

  public:
    explicit AttemptLimit(std::size_t per_address) noexcept : per_address_{per_address} {}
    AttemptLimit(const AttemptLimit&) = delete;
    AttemptLimit& operator=(const AttemptLimit&) = delete;
    std::size_t per_address() const noexcept { return per_address_; }

    // The slot of one connector, or its position in the queue. The limit must outlive it.
    class Slot {
      public:
        // `on_free` is called when a queued connector gets a slot. It must not enter or leave.
        Slot(AttemptLimit& limit, std::function<void()> on_free)
            : limit_{limit}, on_free_{std::move(on_free)} {}
        ~Slot() { leave(); }
        Slot(const Slot&) = delete;
        Slot& operator=(const Slot&) = delete;

        // Returns false if all slots of the address are held; on_free follows. Must not be called
        // while this holds a slot or waits.
        bool enter(const Address& remote);
        void leave() noexcept;
        bool is_held() const noexcept { return line_ != nullptr && !waits_; }
        bool is_waiting() const noexcept { return waits_; }
        // Call it when the address has answered this attempt, possibly with a refusal.
        void note_answer(TimePoint now) noexcept;
        // When the address last answered an attempt of this transport; TimePoint::min() means
        // never.
        TimePoint last_answer() const noexcept;

      private:
        friend class AttemptLimit;

        AttemptLimit& limit_;
        std::function<void()> on_free_;
        Line* line_ = nullptr;
        std::list<Slot*>::iterator position_{}; // while it waits
        bool waits_ = false;
    };

  private:
    using Name = std::pair<std::string, std::uint16_t>;
    // The attempts at one address, while a connector holds a slot or waits.
    struct Line {
        Name name;
        std::size_t held = 0;
        std::list<Slot*> waiting;
        TimePoint last_answer = TimePoint::min();
    };

    const std::size_t per_address_;
    std::map<Name, Line> lines_;
};

inline bool AttemptLimit::Slot::enter(const Address& remote) {
    Name name{remote.host, remote.port};
    line_ = &limit_.lines_.try_emplace(name, Line{.name = name, .waiting = {}}).first->second;
    if (line_->held < limit_.per_address_) {
        ++line_->held;
        return true;
    }
    position_ = line_->waiting.insert(line_->waiting.end(), this);
    waits_ = true;
    return false;
}

inline void AttemptLimit::Slot::leave() noexcept {
    Line* const line = std::exchange(line_, nullptr);
    if (line == nullptr) return;
    if (std::exchange(waits_, false)) {
        line->waiting.erase(position_);
        return; // slots that are held keep the line
    }
    if (!line->waiting.empty()) {
        Slot& next = *line->waiting.front();
        line->waiting.pop_front();
        next.waits_ = false;
        return next.on_free_();
    }
    if (--line->held == 0) limit_.lines_.erase(Name{line->name});
}

inline void AttemptLimit::Slot::note_answer(TimePoint now) noexcept {
    if (is_held()) line_->last_answer = now;
}

inline TimePoint AttemptLimit::Slot::last_answer() const noexcept {
    return line_ != nullptr ? line_->last_answer : TimePoint::min();
}

} // namespace netio::inline v0_3
