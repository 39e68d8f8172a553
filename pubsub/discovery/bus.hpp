// SPDX-License-Identifier: Apache-2.0
#pragma once

// Opens a bus: a directory that all hosts share, or an etcd (docs/discovery.md). Its own thread
// does all I/O, so that no file server and no network blocks the loop.

#include "netio/base/export.hpp"
#include "netio/loop/event_loop.hpp"
#include "pubsub/discovery/discovery.hpp"
#include "pubsub/discovery/registry.hpp"

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace netio::pubsub::inline v0_3 {

struct BusOptions {
    // A publisher whose counter has not changed for this time is gone; publishers change it three
    // times as often. A publisher announces its lease; the lease of a reader applies to
    // announcements without one.
    std::chrono::milliseconds lease{10000};
    // How often a whole directory is read, because inotify does not report changes by other hosts.
    std::chrono::milliseconds poll{1000};
    std::size_t publisher_limit = 8192; // further ones are ignored
};

// A kind of bus other than a directory, such as the etcd of the program netio. Each open registry
// is used by one thread only.
struct BusKind {
    bool (*is_one)(std::string_view where) noexcept = nullptr; // is `where` a bus of this kind?
    std::unique_ptr<Registry> (*open)(std::string_view where, const BusOptions& options) = nullptr;
    std::string spelling; // the form of `where`, for error messages
};
// Adds a kind for the whole process. Any thread.
NETIO_EXPORT void add_bus_kind(const BusKind& kind);

// `where`: a directory, or the form of an added kind. Throws std::invalid_argument for an invalid
// `where` or option. A bus that cannot be reached is reported with on_warning. The loop must
// outlive the result.
NETIO_EXPORT std::unique_ptr<Discovery> open_bus(EventLoop& loop, std::string_view where,
                                                 BusOptions options = {});
// Announces a publisher as long as the result exists. Throws what open_bus() throws, and
// AnnouncementError. The loop and the handler must outlive the result.
NETIO_EXPORT std::unique_ptr<Announcer> announce(EventLoop& loop, std::string_view where,
                                                 const Announcement& announcement,
                                                 Announcer::Handler& handler,
                                                 BusOptions options = {});
// The name of this machine in announcements: its host name; empty if that is unknown.
NETIO_EXPORT std::string this_host();
// Draws a random instance number, unique among all processes of all hosts.
NETIO_EXPORT std::uint64_t draw_instance();

} // namespace netio::pubsub::inline v0_3

namespace netio::inline v0_3 {

// A bus where publishers are found by fid, for netio::Publisher and netio::Subscriber:
// Bus{"/shared/bus"}.
struct Bus {
    std::string where{};
    pubsub::BusOptions options{};
};

} // namespace netio::inline v0_3
