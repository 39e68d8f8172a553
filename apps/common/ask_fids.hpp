// SPDX-License-Identifier: Apache-2.0
#pragma once

// Asks a publisher which fids it publishes. For commands that ask once and end.

#include "apps/common/cli.hpp"
#include "pubsub/subscriber/fid_query.hpp"

#include <string>
#include <vector>

namespace apps {

struct FidsArguments {
    std::string publisher; // HOST:PORT
    std::string provider = "auto";
    KeyArguments key;
};

// Returns the whole list, or the published fids that are nearest to each of these. Throws as
// open_fabric() and client_key().
netio::pubsub::FidQuery::Result ask_fids(const FidsArguments& arguments,
                                         std::vector<netio::pubsub::FidRange> near);

} // namespace apps
