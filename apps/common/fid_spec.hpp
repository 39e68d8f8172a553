// SPDX-License-Identifier: Apache-2.0
#pragma once

// Fids as people write them, the same on the command line and in YAML:
//
//     7, 0x1f, 0-63, 0-63/2                           numbers, ranges, every second one
//     {detector: 3, link: 0-23, elink: [0-7, 16]}     by FELIX's fields; `any` is all of a field
//     mask:0xfff0000000000000=0x1030000000000000      those with these bits
//
// and lists of these with commas. No I/O.

#include "pubsub/core/fid_layout.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace apps {

// The fids of all the specifications, as a set of ranges. Throws std::invalid_argument naming the
// piece that is wrong and what is allowed.
std::vector<netio::pubsub::FidRange> parse_fids(std::string_view text);
// Of several texts, together.
std::vector<netio::pubsub::FidRange> parse_fids(const std::vector<std::string>& texts);

// As what --decode-fids says: empty (numbers), or the name of a layout, of which there is felix.
// Throws std::invalid_argument.
const netio::pubsub::FidLayout* find_layout(std::string_view name);
// By the layout's fields, or as numbers if it is null.
std::string shown(const netio::pubsub::FidRange& range, const netio::pubsub::FidLayout* layout);

} // namespace apps
