// SPDX-License-Identifier: Apache-2.0
#pragma once

// The output of netio list, for people and for programs. No I/O.

#include "pubsub/core/fid_layout.hpp"
#include "pubsub/discovery/announcement.hpp"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace apps {

using Publishers = std::map<std::string, netio::pubsub::Announcement>; // by name

// Returns a few lines, with fids as numbers or by the layout's fields.
std::string listed_as_text(const netio::pubsub::Announcement& announcement,
                           const netio::pubsub::FidLayout* layout = nullptr);
// Returns one JSON object, without a line end; `event` may be empty.
std::string listed_as_json(const netio::pubsub::Announcement& announcement,
                           std::string_view event = {});
std::string removed_as_json(const std::string& name);
std::string listed_as_json(const Publishers& publishers);

// The answer of a publisher.
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

// Returns whether the publisher has any of these fids; true if no fids are given.
bool has_any(const netio::pubsub::Announcement& announcement,
             const std::vector<netio::pubsub::FidRange>& fids);
// Returns a line for each pair of publishers that announce the same fids; at most `limit` lines.
std::vector<std::string> shared_fids(const Publishers& publishers, std::size_t limit = 16);

} // namespace apps
