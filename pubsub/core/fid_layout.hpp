// SPDX-License-Identifier: Apache-2.0
#pragma once

// The meaning of the bits of fids: a layout names fields, prints a fid by its fields, and selects
// the fids whose fields have given values. felix_layout() is FELIX's; other layouts are defined by
// their fields:
//
//     const netio::pubsub::FidLayout crate{"crate", {{.name = "crate", .lowest = 8, .bits = 8},
//                                                    {.name = "channel", .lowest = 0, .bits = 8}}};
//     const auto fids = crate.select({{"crate", {{.first = 3, .last = 3}}},
//                                     {"channel", {{.first = 0, .last = 63, .step = 2}}}});
//
// No I/O.

#include "netio/base/export.hpp"
#include "pubsub/core/fid.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace netio::pubsub::inline v0_3 {

// The limit of the ranges of a selection. A larger selection is refused; it could not be subscribed
// to.
inline constexpr std::size_t selected_ranges_limit = std::size_t{1} << 20;

// first, first + step, ... up to last.
struct SteppedRange {
    std::uint64_t first = 0;
    std::uint64_t last = 0;
    std::uint64_t step = 1;

    friend bool operator==(const SteppedRange&, const SteppedRange&) = default;
};

class NETIO_EXPORT FidLayout {
  public:
    struct Field {
        std::string name;
        unsigned lowest = 0; // bit
        unsigned bits = 1;
        std::uint64_t usual = 0; // its value if a selection gives none
    };
    using Choices = std::map<std::string, std::vector<SteppedRange>>; // the values of each field

    // Throws std::invalid_argument if fields overlap, do not fit, or have the same name.
    FidLayout(std::string name, std::vector<Field> fields);

    const std::string& name() const noexcept { return name_; }
    const std::vector<Field>& fields() const noexcept { return fields_; } // the highest bits first
    // Throws std::invalid_argument if there is no such field.
    std::uint64_t value(Fid fid, std::string_view field) const;
    // Returns the fields that differ from their usual values, as "{detector: 3, link: 5}"; the
    // number if a bit is set that belongs to no field.
    std::string print(Fid fid) const;
    // The selection as a set of ranges. Throws std::invalid_argument, which names the field and the
    // allowed values.
    std::vector<FidRange> select(const Choices& choices) const;

  private:
    const Field& field(std::string_view name) const;

    std::string name_;
    std::vector<Field> fields_;
};

// The layout of FELIX fids, with the fields version (usually 1), detector, connector, virtual,
// link, elink, to_flx, protocol and stream.
NETIO_EXPORT const FidLayout& felix_layout();

// All fids that have these bits at the positions that are set in the mask, as a set of ranges.
// Throws std::invalid_argument if there is none, or if there are too many ranges.
NETIO_EXPORT std::vector<FidRange> masked_fids(std::uint64_t mask, std::uint64_t value);
// Throws std::invalid_argument if the range ends before it begins, the step is 0, or there are too
// many ranges.
NETIO_EXPORT std::vector<FidRange> stepped_fids(const SteppedRange& range);

} // namespace netio::pubsub::inline v0_3
