// SPDX-License-Identifier: Apache-2.0
#pragma once

// The two sides of a bus (docs/discovery.md): finding publishers, and announcing one. Belongs to
// the loop's thread; handlers run from the loop only. A failure of the bus does not affect
// connections.
//
//     const auto bus = netio::pubsub::open_bus(loop, "/run/netio/bus");
//     bus->watch(handler); // pubsub/discovery/bus.hpp

#include "netio/base/export.hpp"
#include "pubsub/discovery/announcement.hpp"

#include <string>

namespace netio::pubsub::inline v0_3 {

class NETIO_EXPORT Discovery {
  public:
    // Each function may destroy the Discovery.
    class Handler {
      public:
        // A new publisher, or a changed announcement. Another instance of the same name is another
        // process; its predecessor is not reported as gone.
        virtual void on_announced(const Announcement& announcement) = 0;
        // The publisher has withdrawn, or its counter has not changed during the lease.
        virtual void on_gone(const std::string& name) = 0;
        // One line for people. Repeated problems are rate-limited.
        virtual void on_warning(const std::string& what) = 0;
        // All announcements of the first look have been reported.
        virtual void on_caught_up() {}

      protected:
        ~Handler() = default;
    };

    Discovery() = default;
    virtual ~Discovery();
    Discovery(const Discovery&) = delete;
    Discovery& operator=(const Discovery&) = delete;

    // Reports all announcements to the handler, and then each change. Call it once (a second call
    // throws std::logic_error).
    virtual void watch(Handler& handler) = 0;
    // Ends the reports: the handler may be destroyed before the Discovery.
    virtual void unwatch() noexcept = 0;
};

// Announces a publisher on a bus and keeps its lease. Destroying it withdraws the announcement.
class NETIO_EXPORT Announcer {
  public:
    class Handler {
      public:
        // As in Discovery::Handler. The announcement is retried until it succeeds.
        virtual void on_warning(const std::string& what) = 0;
        // The announcement is on the bus: reported once.
        virtual void on_written() {}

      protected:
        ~Handler() = default;
    };

    Announcer() = default;
    virtual ~Announcer();
    Announcer(const Announcer&) = delete;
    Announcer& operator=(const Announcer&) = delete;

    // Replaces the announcement, except its name and counter. Throws AnnouncementError.
    virtual void update(Announcement announcement) = 0;
};

} // namespace netio::pubsub::inline v0_3
