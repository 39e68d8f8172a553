// SPDX-License-Identifier: Apache-2.0
#pragma once

// The reading side of a registry: which publishers are alive, and which warnings are worth a
// report.

#include "netio/base/time.hpp"
#include "pubsub/discovery/announcement.hpp"
#include "pubsub/discovery/registry.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace netio::pubsub::inline v0_3 {

// Decides which warnings are reported: each when it is new, and again when it has been silent for
// an interval; up to `limit` different ones per interval, whatever is stored in a registry.
class RateLimitedWarnings {
  public:
    static constexpr std::chrono::minutes interval{1};
    static constexpr std::size_t limit = 32;             // different ones in an interval
    static constexpr std::size_t line_limit = limit + 1; // and one that there are more

    // Returns the line to report, or `nullopt`.
    std::optional<std::string> line_for(const std::string& warning, TimePoint now) {
        std::erase_if(reported_, [&](const auto& each) { return now - each.second >= interval; });
        if (reported_.contains(warning) || reported_.size() > limit) return {};
        const bool last = reported_.size() == limit;
        reported_.emplace(warning, now);
        return last ? "the bus has more problems than are reported" : warning;
    }

  private:
    std::map<std::string, TimePoint> reported_;
};

// Decides which publishers are alive. An announcement is alive while its counter changes, measured
// by the clock of the reader, so that no clock needs to be correct. Expired announcements are
// remembered, so that an entry of a killed publisher is not reported again.
class LeaseTracker {
  public:
    enum class Seen : std::uint8_t {
        found,     // a new publisher
        changed,   // a known publisher with a changed announcement, or another instance
        alive,     // unchanged, but its counter has changed
        stale,     // its counter has not changed
        contested, // a replaced instance is back, so two publishers have the name; ignored
        refused,   // a limit was reached
    };

    static constexpr std::size_t usual_bytes_limit = std::size_t{256} << 20;

    // `lease`: of announcements without one; `limit`: publishers; `bytes_limit`: memory of all
    // announcements.
    LeaseTracker(Duration lease, std::size_t limit, std::size_t bytes_limit = usual_bytes_limit)
        : lease_{lease}, limit_{limit}, bytes_limit_{bytes_limit} {}

    Seen saw(const Announcement& announcement, TimePoint now);
    // Call it if the registry itself ends leases, and still has the announcement. Returns false if
    // the announcement must be passed to saw() again: it was refused and there may be space now, or
    // it is contested and the lease of the other instance may have ended.
    bool keep(std::string_view name, TimePoint now);
    // Call it when the announcement was removed. Returns whether the publisher was alive.
    bool withdrawn(std::string_view name);
    // Returns the publishers whose lease ended, in order of their names.
    std::vector<std::string> expire(TimePoint now);
    // Call it when the registry could not be read: renews all leases.
    void renew_all(TimePoint now);

    TimePoint next_expiry() const; // TimePoint::max(): no lease
    std::size_t alive() const noexcept { return alive_; }

  private:
    struct Held {
        Announcement last;
        TimePoint moved;
        std::uint64_t predecessor = 0; // the replaced instance
        bool alive = true;
        bool refused = false;   // its last announcement
        bool contested = false; // the announcement that is stored now
    };
    bool fits(const Announcement& announcement, std::size_t replaced_bytes) const;
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
    std::size_t bytes_ = 0; // of the announcements that are alive
    bool full_ = false;     // one was refused, and none has gone since
    std::map<std::string, Held, std::less<>> held_;
};

// The changes since the last call. Bounded by the number of publishers, and by
// RateLimitedWarnings::line_limit.
struct RegistryChanges {
    std::map<std::string, std::optional<Announcement>> publishers; // nullopt: gone
    std::vector<std::string> troubles;
    bool caught_up = false; // the registry was read for the first time

    bool empty() const noexcept { return publishers.empty() && troubles.empty() && !caught_up; }
    // Merges later changes.
    void add(RegistryChanges&& later);
};

// Converts the texts of a registry into changes of publishers and warnings. Does no I/O except
// through the registry; has no clock.
class RegistryReader final : private Registry::Visitor {
  public:
    RegistryReader(Duration lease, std::size_t publisher_limit)
        : publisher_limit_{publisher_limit}, tracker_{lease, publisher_limit} {}

    // Reads the registry. Does not throw: errors become warnings.
    void look(Registry& registry, TimePoint now);
    RegistryChanges take_news();
    TimePoint next_expiry() const { return tracker_.next_expiry(); }

  private:
    void on_text(const std::string& name, const std::string& text) override;
    bool on_kept(const std::string& name) override;
    void on_removed(const std::string& name) override;
    void on_unreadable(const std::string& what) override;
    void warn(const std::string& trouble);

    std::size_t publisher_limit_;
    LeaseTracker tracker_;
    RateLimitedWarnings warnings_;
    RegistryChanges news_;
    TimePoint now_; // of this call of look()
    bool was_read_ = false;
};

} // namespace netio::pubsub::inline v0_3
