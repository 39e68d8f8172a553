// SPDX-License-Identifier: Apache-2.0
#pragma once

// What is shown of a bus, for people and for programs. No I/O.

#include "pubsub/core/fid_layout.hpp"
#include "pubsub/discovery/announcement.hpp"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace apps {

using Publishers = std::map<std::string, netio::pubsub::Announcement>; // by their names

// A few lines each, with fids as numbers or by the layout's fields.
std::string listed_as_text(const netio::pubsub::Announcement& announcement,
                           const netio::pubsub::FidLayout* layout = nullptr);
// One JSON object, without an end of line; `event` may be empty.
std::string listed_as_json(const netio::pubsub::Announcement& announcement,
                           std::string_view event = {});
std::string gone_as_json(const std::string& name);
std::string listed_as_json(const Publishers& publishers);

// What a publisher says of itself.
struct PublishedFids {
    std::string publisher; // HOST:PORT
    std::string provider;
    std::vector<netio::pubsub::FidRange> fids; // ascending
    bool is_complete = true;
};
std::string listed_as_text(const PublishedFids& published,
                           const netio::pubsub::FidLayout* layout = nullptr);
std::string listed_as_json(const PublishedFids& published);
bool has_any(const netio::pubsub::FidRange& range,
             const std::vector<netio::pubsub::FidRange>& fids);

// Those that have any of these fids; all if none is given.
bool has_any(const netio::pubsub::Announcement& announcement,
             const std::vector<netio::pubsub::FidRange>& fids);
// A line for each two that claim the same fids; up to `limit`.
std::vector<std::string> shared_fids(const Publishers& publishers, std::size_t limit = 16);

} // namespace apps
