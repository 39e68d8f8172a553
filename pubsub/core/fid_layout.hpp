// SPDX-License-Identifier: Apache-2.0
#pragma once

// Fids by what their bits mean: a layout names fields, prints a fid by them, and selects the fids
// whose fields have given values. FELIX's is felix_layout(); another one is made of its fields:
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

// What a selection may become; a larger one is refused, and could not be subscribed to.
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
        std::uint64_t usual = 0; // where nothing is said
    };
    using Choices = std::map<std::string, std::vector<SteppedRange>>; // of each field the values

    // Throws std::invalid_argument: fields overlap, do not fit, or are named twice.
    FidLayout(std::string name, std::vector<Field> fields);

    const std::string& name() const noexcept { return name_; }
    const std::vector<Field>& fields() const noexcept { return fields_; } // from the highest bits
    // Throws std::invalid_argument: there is no such field.
    std::uint64_t value(Fid fid, std::string_view field) const;
    // {detector: 3, link: 5}: the fields that are not as usual. As a number where it has bits that
    // no field has.
    std::string print(Fid fid) const;
    // As a set of ranges. Throws std::invalid_argument naming the field and what is allowed.
    std::vector<FidRange> select(const Choices& choices) const;

  private:
    const Field& field(std::string_view name) const;

    std::string name_;
    std::vector<Field> fields_;
};

// version, detector, connector, virtual, link, elink, to_flx, protocol, stream; the version is 1.
NETIO_EXPORT const FidLayout& felix_layout();

// All fids with these bits where the mask has any, as a set of ranges. Throws
// std::invalid_argument: there is none, or there are too many ranges.
NETIO_EXPORT std::vector<FidRange> masked_fids(std::uint64_t mask, std::uint64_t value);
// Throws std::invalid_argument: it ends before it begins, the step is 0, or there are too many.
NETIO_EXPORT std::vector<FidRange> stepped_fids(const SteppedRange& range);

} // namespace netio::pubsub::inline v0_3
