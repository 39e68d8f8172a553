// SPDX-License-Identifier: Apache-2.0
#pragma once

// The writing side of a registry: one announcement under a name.

#include "pubsub/discovery/announcement.hpp"
#include "pubsub/discovery/registry_reader.hpp"

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
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

// Finds announced addresses that programs on other hosts cannot use, so that their publisher can
// warn about them. Otherwise only the subscribers notice, and they cannot correct it.

namespace netio::pubsub::inline v0_3 {

// Why a host name cannot be resolved; empty if it can. May block; called on another thread.
using ResolveHost = std::function<std::string(const std::string& host)>;
std::string resolve_here(const std::string& host); // by the system's resolver

class HostCheck {
  public:
    using Tell = std::function<void(const std::string&)>;
    explicit HostCheck(Tell tell, ResolveHost resolve = resolve_here);

    // Calls `tell` with one line for people for each such host: before it returns for a numeric
    // address, and on another thread for a name that cannot be resolved. A resolver may need half a
    // minute until it fails; the thread is not waited for, and may outlive this. There is one
    // thread at most: names of a later call replace those that it has not resolved yet. Loopback is
    // no problem: it is announced on purpose. Does nothing if the addresses are those of the last
    // call.
    void look(const Announcement& announcement);

  private:
    struct Search;

    Tell tell_;
    std::shared_ptr<Search> search_; // shared with the thread
    std::vector<std::string> addresses_;
    std::string metrics_;
};

} // namespace netio::pubsub::inline v0_3
