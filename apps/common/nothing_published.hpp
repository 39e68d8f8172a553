// SPDX-License-Identifier: Apache-2.0
#pragma once

// The hint for a subscriber that receives nothing: its fids may not be the publisher's.

#include "apps/common/fid_spec.hpp"
#include "pubsub/subscriber/fid_query.hpp"

#include <chrono>
#include <string>

namespace apps {

// How long a subscriber waits for the first message before it asks whether there can be any.
inline constexpr std::chrono::milliseconds silence_hint{5000};

// As netio::pubsub::to_string(), with fids by the layout's fields, or as numbers if it is null.
inline std::string shown(const netio::pubsub::FidQuery::Near& near,
                         const netio::pubsub::FidLayout* layout) {
    if (near.is_published) return shown(near.asked, layout) + " is published";
    std::string text = "nothing is published under " + shown(near.asked, layout) + " so far";
    if (near.nearest.empty()) return text + ", nor under any other fid that may be read here";
    text += "; the nearest published fids are ";
    for (std::size_t i = 0; i < near.nearest.size(); ++i) {
        if (i > 0) text += i + 1 == near.nearest.size() ? " and " : ", ";
        text += shown(near.nearest[i], layout);
    }
    return text;
}

} // namespace apps
