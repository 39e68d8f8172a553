// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "apps/common/cli.hpp"
#include "pubsub/core/fid_layout.hpp"
#include "pubsub/subscriber/fid_query.hpp"

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace apps {

// Fids as users write them, the same on the command line and in YAML:
//
//     7, 0x1f, 0-63, 0-63/2                           numbers, ranges, every second fid
//     {detector: 3, link: 0-23, elink: [0-7, 16]}     by FELIX's fields; `any`: all values
//     mask:0xfff0000000000000=0x1030000000000000      fids with these bits
//
// Several of these are separated by commas. No I/O.

// Returns the fids of all the specifications as a set of ranges. Throws std::invalid_argument that
// names the wrong part and what is allowed.
std::vector<netio::pubsub::FidRange> parse_fids(std::string_view text);
// Returns the union of the fids of several texts.
std::vector<netio::pubsub::FidRange> parse_fids(const std::vector<std::string>& texts);

// Returns the layout that --decode-fids names: felix, or null for an empty name (fids are shown as
// numbers). Throws std::invalid_argument for other names.
const netio::pubsub::FidLayout* find_layout(std::string_view name);
// Shows the range by the fields of the layout, or as numbers if the layout is null.
std::string shown(const netio::pubsub::FidRange& range, const netio::pubsub::FidLayout* layout);

// Collects ranges of fids for one log line: the first ones, and the number of the others.
class RangeLine {
  public:
    static constexpr std::size_t shown_ranges = 4;

    // Shows fids by the fields of the layout; null: as numbers.
    void decode_by(const netio::pubsub::FidLayout* layout) noexcept { layout_ = layout; }
    void add(const netio::pubsub::FidRange& range) {
        if (count_ < shown_ranges) text_ += (count_ > 0 ? ", " : "") + shown(range, layout_);
        ++count_;
    }
    bool empty() const noexcept { return count_ == 0; }
    // The ranges since the last call.
    std::string take() {
        std::string line = std::exchange(text_, {});
        const std::size_t count = std::exchange(count_, 0);
        if (count > shown_ranges)
            line += " and " + std::to_string(count - shown_ranges) + " more ranges";
        return line;
    }

  private:
    const netio::pubsub::FidLayout* layout_ = nullptr;
    std::string text_;
    std::size_t count_ = 0;
};

// A subscriber that has received no message for this long asks the publisher which of its fids are
// published.
inline constexpr std::chrono::milliseconds silence_hint{5000};

// Returns the answer as a hint for the user, with fids by the fields of the layout, or as numbers
// if it is null.
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

// Asks a publisher which fids it publishes. For commands that ask once and end.

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
