// SPDX-License-Identifier: Apache-2.0
#pragma once

// Who is there, by what is read on a bus: an announcement lives as long as its counter moves, by
// the reader's clock, so that nobody's clock need be right. What has expired stays known, so that
// what a killed publisher left behind is not found again. No I/O, no clock.

#include "netio/base/time.hpp"
#include "pubsub/discovery/announcement.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace netio::pubsub::inline v0_2 {

class LeaseTracker {
  public:
    enum class Seen : std::uint8_t {
        found,     // a publisher that was not there
        changed,   // one that was, and says something else, or is another instance
        alive,     // nothing new, but it lives
        stale,     // its counter did not move
        contested, // an instance that was replaced is back: two have one name; it is not taken
        refused,   // there are too many, or they say too much
    };

    static constexpr std::size_t usual_bytes_limit = std::size_t{256} << 20;

    // `lease`: of those who do not say theirs; `bytes_limit`: what is kept of all announcements.
    LeaseTracker(Duration lease, std::size_t limit, std::size_t bytes_limit = usual_bytes_limit)
        : lease_{lease}, limit_{limit}, bytes_limit_{bytes_limit} {}

    Seen saw(const Announcement& announcement, TimePoint now);
    // A bus that keeps leases itself has it. False: what it says was refused, and there may be room
    // by now; or it is of another one than was taken, whose lease may be over.
    bool keep(std::string_view name, TimePoint now);
    // It was taken off the bus. Whether it was there.
    bool withdrawn(std::string_view name);
    // Who is gone now, in order of their names.
    std::vector<std::string> expire(TimePoint now);
    // Nobody could be read, so nobody is judged by the time that has passed.
    void excuse_all(TimePoint now);

    TimePoint next_expiry() const; // TimePoint::max(): nobody
    std::size_t alive() const noexcept { return alive_; }

  private:
    struct Held {
        Announcement last;
        TimePoint moved;
        std::uint64_t predecessor = 0; // the instance that this one has replaced
        bool alive = true;
        bool refused = false;   // what it said last
        bool contested = false; // what stands there now
    };
    bool has_place(const Announcement& announcement, std::size_t in_its_place) const;
    Seen refuse() noexcept {
        full_ = true;
        return Seen::refused;
    }
    Seen take(Held& held, const Announcement& announcement, TimePoint now);
    TimePoint end_of(const Held& held) const {
        return held.moved + (held.last.lease.count() > 0 ? Duration{held.last.lease} : lease_);
    }

    Duration lease_;
    std::size_t limit_;
    std::size_t bytes_limit_;
    std::size_t alive_ = 0;
    std::size_t bytes_ = 0; // of those who are alive
    bool full_ = false;     // somebody was refused, and nobody has gone since
    std::map<std::string, Held, std::less<>> held_;
};

} // namespace netio::pubsub::inline v0_2
