// SPDX-License-Identifier: Apache-2.0
#include "pubsub/core/fid_layout.hpp"

#include "netio/base/never_destroyed.hpp"
#include "pubsub/core/fid_ranges.hpp"

#include <algorithm>
#include <bit>
#include <stdexcept>
#include <utility>

namespace netio::pubsub::inline v0_3 {
namespace {

constexpr std::uint64_t all_ones(unsigned bits) noexcept {
    return bits >= 64 ? UINT64_MAX : (std::uint64_t{1} << bits) - 1;
}

[[noreturn]] void refuse_selection(const std::string& problem) {
    throw std::invalid_argument{problem};
}

[[noreturn]] void refuse_number() {
    refuse_selection("more than " + std::to_string(selected_ranges_limit) + " ranges of fids");
}

// The number of ranges, without creating them.
std::size_t size_of_range(const SteppedRange& range) {
    if (range.last < range.first) refuse_selection("ends before it begins");
    if (range.step == 0) refuse_selection("has the step 0");
    if (range.step == 1) return 1;
    const std::uint64_t steps = (range.last - range.first) / range.step;
    if (steps >= selected_ranges_limit) refuse_number();
    return static_cast<std::size_t>(steps) + 1;
}

void append_range(std::vector<FidRange>& ranges, const SteppedRange& range) {
    if (range.step == 1) {
        ranges.push_back({.first = Fid{range.first}, .last = Fid{range.last}});
        return;
    }
    const std::size_t count = size_of_range(range);
    for (std::size_t at = 0; at < count; ++at) {
        const Fid fid{range.first + at * range.step};
        ranges.push_back({.first = fid, .last = fid});
    }
}

// Whether the set contains all numbers below 2^bits.
bool is_everything(const std::vector<FidRange>& set, unsigned bits) {
    return set.size() == 1 && to_integer(set[0].first) == 0 &&
           to_integer(set[0].last) == all_ones(bits);
}

// Each range of `high` combined with each of `low`, which has this many bits.
std::vector<FidRange> combined(const std::vector<FidRange>& high, const std::vector<FidRange>& low,
                               unsigned bits) {
    std::vector<FidRange> ranges;
    if (is_everything(low, bits)) {
        for (const FidRange& range : high) {
            ranges.push_back({.first = Fid{to_integer(range.first) << bits},
                              .last = Fid{(to_integer(range.last) << bits) | all_ones(bits)}});
        }
        return ranges;
    }
    std::size_t count = 0;
    for (const FidRange& range : high) {
        const std::uint64_t width = to_integer(range.last) - to_integer(range.first);
        if (width >= selected_ranges_limit) refuse_number();
        count += (static_cast<std::size_t>(width) + 1) * low.size();
        if (count > selected_ranges_limit) refuse_number();
    }
    for (const FidRange& range : high) {
        const std::uint64_t width = to_integer(range.last) - to_integer(range.first);
        for (std::uint64_t at = 0; at <= width; ++at) {
            const std::uint64_t base = (to_integer(range.first) + at) << bits;
            for (const FidRange& each : low) {
                ranges.push_back({.first = Fid{base | to_integer(each.first)},
                                  .last = Fid{base | to_integer(each.last)}});
            }
        }
    }
    return ranges;
}

std::vector<FidRange> values_of(const FidLayout::Field& field,
                                const std::vector<SteppedRange>& choices) {
    std::vector<FidRange> values;
    std::size_t count = 0;
    for (const SteppedRange& choice : choices) {
        try {
            count += size_of_range(choice);
            if (count > selected_ranges_limit) refuse_number();
        } catch (const std::invalid_argument& error) {
            refuse_selection(field.name + ": " + error.what());
        }
        if (choice.last > all_ones(field.bits)) {
            refuse_selection(field.name + ": " + std::to_string(choice.last) +
                             " is out of range; it has " + std::to_string(field.bits) +
                             " bits, 0 to " + std::to_string(all_ones(field.bits)));
        }
        append_range(values, choice);
    }
    return normalised(values);
}

} // namespace

FidLayout::FidLayout(std::string name, std::vector<Field> fields)
    : name_{std::move(name)}, fields_{std::move(fields)} {
    std::ranges::sort(fields_, std::greater{}, &Field::lowest);
    unsigned end = 64;
    for (const Field& each : fields_) {
        if (each.bits == 0 || each.bits > 64 || each.lowest >= 64 || each.lowest + each.bits > end)
            refuse_selection(name_ + ": the field '" + each.name +
                             "' does not fit, or overlaps another");
        if (each.usual > all_ones(each.bits))
            refuse_selection(name_ + ": the usual value of '" + each.name +
                             "' does not fit into it");
        if (std::ranges::count(fields_, each.name, &Field::name) != 1)
            refuse_selection(name_ + ": two fields are called '" + each.name + "'");
        end = each.lowest;
    }
}

const FidLayout::Field& FidLayout::field(std::string_view name) const {
    const auto found = std::ranges::find(fields_, name, &Field::name);
    if (found != fields_.end()) return *found;
    std::string names;
    for (const Field& each : fields_)
        names += (names.empty() ? "" : ", ") + each.name;
    refuse_selection("'" + std::string{name} + "' is no field of " + name_ + ", which has " +
                     names);
}

std::uint64_t FidLayout::value(Fid fid, std::string_view name) const {
    const Field& one = field(name);
    return (to_integer(fid) >> one.lowest) & all_ones(one.bits);
}

std::string FidLayout::print(Fid fid) const {
    std::uint64_t left = to_integer(fid);
    std::string text;
    for (const Field& each : fields_) {
        const std::uint64_t here = (to_integer(fid) >> each.lowest) & all_ones(each.bits);
        left &= ~(all_ones(each.bits) << each.lowest);
        if (here != each.usual)
            text += (text.empty() ? "" : ", ") + each.name + ": " + std::to_string(here);
    }
    return left != 0 ? to_string(fid) : "{" + text + "}";
}

std::vector<FidRange> FidLayout::select(const Choices& choices) const {
    for (const auto& [name, values] : choices) {
        if (values.empty()) refuse_selection(field(name).name + ": no value");
        static_cast<void>(field(name));
    }
    std::vector<FidRange> fids{{}}; // of the bits below; bits of no field are 0
    for (auto each = fields_.rbegin(); each != fields_.rend(); ++each) {
        const auto chosen = choices.find(each->name);
        const SteppedRange usual{.first = each->usual, .last = each->usual};
        const auto values =
            values_of(*each, chosen == choices.end() ? std::vector{usual} : chosen->second);
        fids = combined(values, fids, each->lowest);
    }
    return normalised(fids);
}

const FidLayout& felix_layout() {
    static NeverDestroyed<FidLayout> layout{
        "felix",
        std::vector<FidLayout::Field>{{.name = "version", .lowest = 60, .bits = 4, .usual = 1},
                                      {.name = "detector", .lowest = 52, .bits = 8},
                                      {.name = "connector", .lowest = 36, .bits = 16},
                                      {.name = "virtual", .lowest = 35, .bits = 1},
                                      {.name = "link", .lowest = 22, .bits = 13},
                                      {.name = "elink", .lowest = 16, .bits = 6},
                                      {.name = "to_flx", .lowest = 15, .bits = 1},
                                      {.name = "protocol", .lowest = 8, .bits = 7},
                                      {.name = "stream", .lowest = 0, .bits = 8}}};
    return *layout;
}

std::vector<FidRange> masked_fids(std::uint64_t mask, std::uint64_t value) {
    if ((value & ~mask) != 0)
        refuse_selection("has bits in the value that the mask has not: no fid matches");
    // The bits below the mask's lowest bit form one range; each other free bit doubles the number
    // of ranges.
    const unsigned low = mask == 0 ? 64 : static_cast<unsigned>(std::countr_zero(mask));
    if (low == 64) return {{.first = Fid{0}, .last = Fid{UINT64_MAX}}};
    const std::uint64_t free = ~mask & ~all_ones(low);
    const auto doublings = static_cast<unsigned>(std::popcount(free));
    if (doublings > static_cast<unsigned>(std::countr_zero(selected_ranges_limit))) refuse_number();
    std::vector<FidRange> ranges;
    std::uint64_t bits = 0; // runs through all subsets of the free ones, ascending
    do {
        ranges.push_back({.first = Fid{value | bits}, .last = Fid{value | bits | all_ones(low)}});
        bits = (bits - free) & free;
    } while (bits != 0);
    return normalised(ranges);
}

std::vector<FidRange> stepped_fids(const SteppedRange& range) {
    static_cast<void>(size_of_range(range));
    std::vector<FidRange> fids;
    append_range(fids, range);
    return fids;
}

} // namespace netio::pubsub::inline v0_3
