// SPDX-License-Identifier: Apache-2.0

// Announcements of a bus, with arbitrary content.

#include "pubsub/discovery/announcement.hpp"
#include "tests/fuzz/target.hpp"

#include <string_view>

namespace netio::fuzz::announcement_fuzz {
namespace {

const Target announcement{
    "announcement", [](Bytes bytes) {
        const std::string_view text{reinterpret_cast<const char*>(bytes.data()), bytes.size()};
        try {
            const pubsub::Announcement taken = pubsub::parse_announcement(text);
            NETIO_CHECK(pubsub::is_announced_name(taken.name));
            NETIO_CHECK(pubsub::parse_announcement(pubsub::to_text(taken)) == taken);
            for (const auto& address : taken.addresses)
                NETIO_CHECK(pubsub::parse_announced_address(address).has_value());
        } catch (const pubsub::AnnouncementError& error) {
            const std::string_view what = error.what();
            NETIO_CHECK(!what.empty() && what.find('\n') == what.npos);
        }
    }};

} // namespace
} // namespace netio::fuzz::announcement_fuzz
