// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where a bus is made: a directory that all hosts see, or an etcd (docs/discovery.md). All its I/O
// is done by a thread of its own, so that no file server and no network holds the loop up.

#include "netio/base/export.hpp"
#include "netio/loop/event_loop.hpp"
#include "pubsub/discovery/board.hpp"
#include "pubsub/discovery/discovery.hpp"

#include <chrono>
#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

namespace netio::pubsub::inline v0_2 {

struct BusOptions {
    // Who has not moved his counter for so long is gone; publishers move it thrice as often.
    // A publisher announces its lease, so that readers need not know it; theirs is for those who do
    // not say.
    std::chrono::milliseconds lease{10000};
    // How often a directory is looked at as a whole: what other hosts change is not told.
    std::chrono::milliseconds poll{1000};
    std::size_t publisher_limit = 8192; // others are passed over
};

// Another back end: an etcd, for instance, which the program netio has. Its boards do all they do
// on a thread of their own.
struct BusKind {
    bool (*is_one)(std::string_view where) noexcept = nullptr;
    std::unique_ptr<Board> (*open)(std::string_view where, const BusOptions& options) = nullptr;
    std::string spelling; // what `where` looks like, for error messages
};
// From then on, for all of the process. Any thread.
NETIO_EXPORT void add_bus_kind(const BusKind& kind);

// `where`: a directory, or what a kind that was added takes. Throws std::invalid_argument for what
// is none, and for options. A bus that cannot be reached is a trouble, and no exception.
NETIO_EXPORT std::unique_ptr<Discovery> open_bus(EventLoop& loop, std::string_view where,
                                                 BusOptions options = {});
// Announces a publisher as long as the result lives. Throws AnnouncementError, too. The handler
// must outlive the announcer.
NETIO_EXPORT std::unique_ptr<Announcer> announce(EventLoop& loop, std::string_view where,
                                                 const Announcement& announcement,
                                                 Announcer::Handler& handler,
                                                 BusOptions options = {});
// What this machine is called where a publisher announces its host.
NETIO_EXPORT std::string this_host();
// One that is not found in any other process of this or any other host.
NETIO_EXPORT std::uint64_t draw_instance();

} // namespace netio::pubsub::inline v0_2

namespace netio::inline v0_2 {

// Where publishers are found by fid, for netio::Publisher and netio::Subscriber:
// Bus{"/shared/bus"}.
struct Bus {
    std::string where{};
    pubsub::BusOptions options{};
};

} // namespace netio::inline v0_2
