// SPDX-License-Identifier: Apache-2.0
#pragma once

// A bus, as those see it who look for publishers and as publishers do who want to be found
// (docs/discovery.md). It belongs to the loop's thread; handlers run from the loop only. Whatever
// happens to the bus, data that flows goes on.
//
//     const auto bus = netio::pubsub::open_bus(loop, "/run/netio/bus");
//     bus->watch(handler); // pubsub/discovery/bus.hpp

#include "netio/base/export.hpp"
#include "pubsub/discovery/announcement.hpp"

#include <string>

namespace netio::pubsub::inline v0_2 {

class NETIO_EXPORT Discovery {
  public:
    // Each function may destroy the Discovery.
    class Handler {
      public:
        // A publisher is there: a new one, or one that says something else than before. Another
        // instance of the same name is another process; its predecessor is not told as gone.
        virtual void on_announced(const Announcement& announcement) = 0;
        // It has withdrawn, or its counter has not moved for the lease.
        virtual void on_gone(const std::string& name) = 0;
        // One line for people. The same trouble is not told again soon.
        virtual void on_trouble(const std::string& what) = 0;
        // All that was there when it was first looked at has been told.
        virtual void on_caught_up() {}

      protected:
        ~Handler() = default;
    };

    Discovery() = default;
    virtual ~Discovery();
    Discovery(const Discovery&) = delete;
    Discovery& operator=(const Discovery&) = delete;

    // Tells all that is there, and from then on what changes. Once in its life.
    virtual void watch(Handler& handler) = 0;
    // Tells nothing any more; for a handler that goes before this does.
    virtual void unwatch() noexcept = 0;
};

// A publisher's place on a bus. It keeps the lease; destroying it withdraws the announcement.
class NETIO_EXPORT Announcer {
  public:
    class Handler {
      public:
        // As Discovery::Handler's. The announcement is tried again until it succeeds.
        virtual void on_trouble(const std::string& what) = 0;
        // It stands on the bus: told once.
        virtual void on_written() {}

      protected:
        ~Handler() = default;
    };

    Announcer() = default;
    virtual ~Announcer();
    Announcer(const Announcer&) = delete;
    Announcer& operator=(const Announcer&) = delete;

    // Says something else from now on, under the same name; the counter is the announcer's.
    // Throws AnnouncementError.
    virtual void update(Announcement announcement) = 0;
};

} // namespace netio::pubsub::inline v0_2
