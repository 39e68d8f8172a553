// SPDX-License-Identifier: Apache-2.0
#pragma once

// The writing side of a registry: one announcement under a name.

#include "pubsub/discovery/registry_reader.hpp"

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace netio::pubsub::inline v0_3 {

// Decides whether a publisher may write under its name. At its start it takes the name over from
// its predecessor. If it finds another instance later, that one started later: it waits until the
// lease of the other instance ends, so that the two never alternate. If the registry itself ends
// leases, it waits until no announcement is stored any more.
class NameLease {
  public:
    NameLease(std::uint64_t instance, Duration lease) : instance_{instance}, other_{lease, 1} {}

    // `there`: the announcement stored under the name now. `lives`: the registry itself ends
    // leases, so the owner of `there` is alive.
    bool may_write(const std::optional<Announcement>& there, bool lives, TimePoint now) {
        if (!there || there->instance == instance_ || !taken_) {
            if (there && there->instance != instance_) other_.saw(*there, now);
            taken_ = true;
            return true;
        }
        other_.saw(*there, now);
        other_.expire(now);
        return !lives && other_.alive() == 0;
    }

  private:
    std::uint64_t instance_;
    bool taken_ = false;
    LeaseTracker other_;
};

// Keeps one announcement in a registry: rewrites it with a changed counter, retries after an error,
// and withdraws it at the end. Does no I/O except through the registry; has no clock.
class RegistryWriter {
  public:
    RegistryWriter(Announcement announcement, std::chrono::milliseconds lease)
        : announcement_{std::move(announcement)}, lease_{announcement_.instance, lease} {
        announcement_.lease = lease;
    }

    // Replaces the announcement from the next refresh on, except its name and instance.
    void update(Announcement announcement);
    // These do not throw: errors become warnings.
    void refresh(Registry& registry, TimePoint now);
    void withdraw(Registry& registry);
    std::vector<std::string> take_troubles();
    // Whether the current announcement is stored.
    bool is_written() const noexcept { return written_; }

  private:
    std::optional<Announcement> stored(Registry& registry) const;
    void warn(const std::string& trouble, TimePoint now);

    Announcement announcement_;
    NameLease lease_;
    bool written_ = false;
    RateLimitedWarnings warnings_;
    std::vector<std::string> troubles_; // limited by warnings_
};

} // namespace netio::pubsub::inline v0_3
