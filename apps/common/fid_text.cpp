// SPDX-License-Identifier: Apache-2.0
#include "apps/common/fid_text.hpp"

#include "apps/common/cli.hpp"
#include "apps/common/logging.hpp"
#include "netio/fabric.hpp"
#include "pubsub/core/fid_ranges.hpp"

#include <fmt/format.h>

#include <charconv>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

namespace apps {
namespace {

using netio::pubsub::FidLayout;
using netio::pubsub::FidRange;
using netio::pubsub::SteppedRange;

constexpr std::string_view mask_word = "mask:";

[[noreturn]] void refuse_piece(std::string_view piece, const std::string& problem) {
    throw std::invalid_argument{
        "'" + std::string{piece} + "' " + problem +
        "; allowed: a fid in decimal or hex (7, 0x1f), a range (0-63, 0-63/2), {detector: 3, link: "
        "0-23}, mask:0xf0=0x30, or several with commas"};
}

std::string_view trimmed(std::string_view text) {
    while (!text.empty() && (text.front() == ' ' || text.front() == '\t'))
        text.remove_prefix(1);
    while (!text.empty() && (text.back() == ' ' || text.back() == '\t'))
        text.remove_suffix(1);
    return text;
}

std::uint64_t parse_number(std::string_view text, std::string_view piece) {
    const bool hex = text.starts_with("0x") || text.starts_with("0X");
    const std::string_view digits = hex ? text.substr(2) : text;
    std::uint64_t value = 0;
    const char* const end = digits.data() + digits.size();
    const auto [stop, error] = std::from_chars(digits.data(), end, value, hex ? 16 : 10);
    if (error == std::errc::result_out_of_range) refuse_piece(piece, "does not fit into 64 bits");
    if (error != std::errc{} || stop != end) refuse_piece(piece, "is not a fid");
    return value;
}

// 7, 0-63, 0-63/2
SteppedRange parse_range(std::string_view piece) {
    const std::size_t dash = piece.find('-');
    if (dash == std::string_view::npos) {
        const std::uint64_t number = parse_number(piece, piece);
        return {.first = number, .last = number};
    }
    const std::size_t slash = piece.find('/', dash);
    const std::string_view last = slash == std::string_view::npos
                                      ? piece.substr(dash + 1)
                                      : piece.substr(dash + 1, slash - dash - 1);
    SteppedRange range{.first = parse_number(trimmed(piece.substr(0, dash)), piece),
                       .last = parse_number(trimmed(last), piece)};
    if (slash != std::string_view::npos)
        range.step = parse_number(trimmed(piece.substr(slash + 1)), piece);
    if (range.last < range.first) refuse_piece(piece, "ends before it begins");
    return range;
}

// Removes and returns the part before the first comma outside of brackets; the rest stays in
// `text`. After the last part `text` is nullopt.
std::optional<std::string_view> take_piece(std::optional<std::string_view>& text) {
    if (!text) return {};
    int depth = 0;
    for (std::size_t at = 0; at < text->size(); ++at) {
        const char c = (*text)[at];
        if (c == '{' || c == '[') ++depth;
        if (c == '}' || c == ']') --depth;
        if (c != ',' || depth > 0) continue;
        const std::string_view piece = text->substr(0, at);
        text->remove_prefix(at + 1);
        return trimmed(piece);
    }
    const std::string_view piece = *text;
    text.reset();
    return trimmed(piece);
}

std::optional<std::string_view> within(std::string_view text, char open, char close) {
    if (text.size() < 2 || text.front() != open || text.back() != close) return {};
    return trimmed(text.substr(1, text.size() - 2));
}

// 3, 0-23, any, [0-7, 16]
std::vector<SteppedRange> parse_values(std::string_view text, const FidLayout::Field& field) {
    if (text == "any") {
        return {{.first = 0,
                 .last = field.bits >= 64 ? UINT64_MAX : (std::uint64_t{1} << field.bits) - 1}};
    }
    const auto list = within(text, '[', ']');
    std::optional<std::string_view> left = list ? *list : text;
    std::vector<SteppedRange> values;
    while (const auto each = take_piece(left))
        values.push_back(parse_range(*each));
    return values;
}

std::vector<FidRange> parse_fields(std::string_view inside, std::string_view piece,
                                   const FidLayout& layout) {
    FidLayout::Choices choices;
    std::optional<std::string_view> left = inside;
    while (const auto each = take_piece(left)) {
        const std::size_t colon = each->find(':');
        if (colon == std::string_view::npos) refuse_piece(piece, "has no FIELD: VALUES");
        const std::string name{trimmed(each->substr(0, colon))};
        const auto& fields = layout.fields();
        std::string names;
        const FidLayout::Field* known = nullptr;
        for (const FidLayout::Field& field : fields) {
            if (field.name == name) known = &field;
            names += (names.empty() ? "" : ", ") + field.name;
        }
        if (known == nullptr)
            refuse_piece(piece,
                         fmt::format("has no field '{}' of {}: {}", name, layout.name(), names));
        const auto values = parse_values(trimmed(each->substr(colon + 1)), *known);
        if (!choices.emplace(name, values).second) refuse_piece(piece, "has '" + name + "' twice");
    }
    return layout.select(choices);
}

std::vector<FidRange> parse_piece(std::string_view piece) {
    try {
        if (const auto fields = within(piece, '{', '}'))
            return parse_fields(*fields, piece, netio::pubsub::felix_layout());
        if (piece.starts_with(mask_word)) {
            const std::string_view mask = piece.substr(mask_word.size());
            const std::size_t equals = mask.find('=');
            if (equals == std::string_view::npos) refuse_piece(piece, "has no MASK=VALUE");
            return netio::pubsub::masked_fids(
                parse_number(trimmed(mask.substr(0, equals)), piece),
                parse_number(trimmed(mask.substr(equals + 1)), piece));
        }
        return netio::pubsub::stepped_fids(parse_range(piece));
    } catch (const std::invalid_argument& error) {
        const std::string_view what = error.what();
        if (what.find("; allowed: ") != std::string_view::npos) throw;
        refuse_piece(piece, std::string{what});
    }
}

} // namespace

std::vector<FidRange> parse_fids(std::string_view text) {
    std::vector<FidRange> ranges;
    std::optional<std::string_view> left = text;
    while (const auto piece = take_piece(left)) {
        const std::vector<FidRange> some = parse_piece(*piece);
        ranges.insert(ranges.end(), some.begin(), some.end());
        if (ranges.size() > netio::pubsub::selected_ranges_limit)
            refuse_piece(*piece, "and the parts before it are more than " +
                                     std::to_string(netio::pubsub::selected_ranges_limit) +
                                     " ranges");
    }
    return netio::pubsub::normalised(ranges);
}

std::vector<FidRange> parse_fids(const std::vector<std::string>& texts) {
    std::vector<FidRange> ranges;
    for (const std::string& text : texts) {
        const std::vector<FidRange> some = parse_fids(text);
        ranges.insert(ranges.end(), some.begin(), some.end());
    }
    return netio::pubsub::normalised(ranges);
}

const FidLayout* find_layout(std::string_view name) {
    if (name.empty()) return nullptr;
    if (name == netio::pubsub::felix_layout().name()) return &netio::pubsub::felix_layout();
    throw std::invalid_argument{"'" + std::string{name} + "' is not a fid layout; allowed: felix"};
}

std::string shown(const FidRange& range, const FidLayout* layout) {
    if (layout == nullptr) return to_string(range);
    if (range.first == range.last) return layout->print(range.first);
    return layout->print(range.first) + "-" + layout->print(range.last);
}

netio::pubsub::FidQuery::Result ask_fids(const FidsArguments& arguments,
                                         std::vector<netio::pubsub::FidRange> near) {
    netio::EventLoop loop;
    const LogObserver observer{loop};
    const auto transport = netio::open_fabric(loop, {.provider = arguments.provider});
    netio::pubsub::FidQuery::Result result;
    const netio::pubsub::FidQuery query{*transport,
                                        {.publisher = peer_address(arguments.publisher),
                                         .key = client_key(arguments.key),
                                         .near = std::move(near)},
                                        [&](const netio::pubsub::FidQuery::Result& found) {
                                            result = found;
                                            loop.stop();
                                        }};
    loop.run();
    return result;
}

} // namespace apps
