// SPDX-License-Identifier: Apache-2.0
#include "apps/common/fid_spec.hpp"

#include "pubsub/core/fid_ranges.hpp"

#include <charconv>
#include <stdexcept>
#include <string>

namespace apps {
namespace {

using netio::pubsub::Fid;
using netio::pubsub::FidRange;

[[noreturn]] void refuse(std::string_view piece, const char* problem) {
    throw std::invalid_argument{"'" + std::string{piece} + "' " + problem +
                                "; allowed: a fid in decimal or hex (7, 0x1f), a range (0-63), or "
                                "several with commas"};
}

std::string_view trimmed(std::string_view text) {
    while (!text.empty() && (text.front() == ' ' || text.front() == '\t'))
        text.remove_prefix(1);
    while (!text.empty() && (text.back() == ' ' || text.back() == '\t'))
        text.remove_suffix(1);
    return text;
}

Fid parse_fid(std::string_view text, std::string_view piece) {
    const bool hex = text.starts_with("0x") || text.starts_with("0X");
    const std::string_view digits = hex ? text.substr(2) : text;
    std::uint64_t value = 0;
    const char* const end = digits.data() + digits.size();
    const auto [stop, error] = std::from_chars(digits.data(), end, value, hex ? 16 : 10);
    if (error == std::errc::result_out_of_range) refuse(piece, "does not fit into 64 bits");
    if (error != std::errc{} || stop != end) refuse(piece, "is not a fid");
    return Fid{value};
}

FidRange parse_piece(std::string_view piece) {
    const std::size_t dash = piece.find('-');
    if (dash == std::string_view::npos) {
        const Fid fid = parse_fid(piece, piece);
        return {.first = fid, .last = fid};
    }
    const FidRange range{.first = parse_fid(trimmed(piece.substr(0, dash)), piece),
                         .last = parse_fid(trimmed(piece.substr(dash + 1)), piece)};
    if (range.last < range.first) refuse(piece, "ends before it begins");
    return range;
}

} // namespace

std::vector<FidRange> parse_fids(std::string_view text) {
    std::vector<FidRange> ranges;
    for (;;) {
        const std::size_t comma = text.find(',');
        ranges.push_back(parse_piece(trimmed(text.substr(0, comma))));
        if (comma == std::string_view::npos) return netio::pubsub::normalised(ranges);
        text.remove_prefix(comma + 1);
    }
}

} // namespace apps
