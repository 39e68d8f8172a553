// SPDX-License-Identifier: Apache-2.0
#include "netio/access/rights.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <set>
#include <stdexcept>
#include <utility>

namespace netio::access::inline v0_3 {
namespace {

bool lies_in(std::string_view path, std::string_view folder) {
    if (folder == ".") return true;
    return path.size() > folder.size() + 1 && path.starts_with(folder) &&
           path[folder.size()] == '/';
}

// The answer of one range to a request; `nullopt` if the request exceeds the right.
std::optional<Rights::Subscription> answer(const FidRight& right, std::optional<SlowPolicy> asked) {
    if (!right.slow_policy) return Rights::Subscription{.permitted = true, .slow_policy = asked};
    if (right.forced || !asked)
        return Rights::Subscription{.permitted = true, .slow_policy = right.slow_policy};
    if (*asked > *right.slow_policy) return std::nullopt;
    return Rights::Subscription{.permitted = true, .slow_policy = asked};
}

} // namespace

bool Rights::may_use(std::uint8_t service) const noexcept {
    return std::ranges::binary_search(services, service);
}

std::size_t Rights::fids_from(std::uint64_t first, std::size_t& steps) const noexcept {
    const auto found = std::ranges::partition_point(fids, [&](const FidRight& right) {
        ++steps;
        return right.last < first;
    });
    return static_cast<std::size_t>(found - fids.begin());
}

Rights::Subscription Rights::subscribe(std::uint64_t first, std::uint64_t last,
                                       std::optional<SlowPolicy> asked,
                                       std::size_t& steps) const noexcept {
    std::optional<Subscription> found;
    std::uint64_t next = first; // the first fid that no entry has covered yet
    for (std::size_t at = fids_from(first, steps); at < fids.size(); ++at, ++steps) {
        const FidRight& right = fids[at];
        if (right.first > next) break;
        const auto one = answer(right, asked);
        if (!one || (found && found->slow_policy != one->slow_policy)) break;
        found = one;
        if (right.last >= last) return *found;
        next = right.last + 1;
    }
    return {};
}

const FolderRight* Rights::folder_for(std::string_view path, bool over_another) const noexcept {
    const FolderRight* widest = nullptr;
    for (const FolderRight& right : folders) {
        const bool is_enough = !over_another || right.may == FolderRight::May::overwrite;
        if (!is_enough || !lies_in(path, right.folder)) continue;
        const bool is_wider =
            widest == nullptr || right.folder == "." ||
            (widest->folder != "." && right.folder.size() < widest->folder.size());
        if (is_wider) widest = &right;
    }
    return widest;
}

namespace {

using namespace std::string_literals;

constexpr std::array<std::pair<std::string_view, std::uint8_t>, 4> service_names{
    {{"messages", 1}, {"pubsub", 2}, {"stream", 3}, {"probe", 4}}};
constexpr std::array<std::pair<std::string_view, SlowPolicy>, 4> slow_policy_names{
    {{"drop", SlowPolicy::drop},
     {"newest", SlowPolicy::newest},
     {"disconnect", SlowPolicy::disconnect},
     {"block", SlowPolicy::block}}};
constexpr std::uint32_t most_connections = 4096;

// The word in an error message. A long word, one with control characters, or a misplaced secret is
// not shown.
std::string shown(std::string_view word) {
    const bool plain =
        std::ranges::all_of(word, [](char each) { return each > ' ' && each <= '~'; });
    if (!plain || word.size() > 40 || word.find("nk1-") != word.npos) return "this";
    return "'" + std::string{word} + "'";
}

[[noreturn]] void refuse(const std::string& what) {
    throw std::invalid_argument{what};
}

// Calls take(piece) for each piece between separators, including empty ones.
template <typename Take>
void for_each_piece(std::string_view list, char separator, Take take) {
    for (;;) {
        const std::size_t at = list.find(separator);
        take(list.substr(0, at));
        if (at == list.npos) return;
        list.remove_prefix(at + 1);
    }
}

template <typename Number>
Number parse_number(std::string_view text, const std::string& expected) {
    const bool hex = text.starts_with("0x");
    if (hex) text.remove_prefix(2);
    Number value = 0;
    const char* const end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value, hex ? 16 : 10);
    if (error != std::errc{} || stop != end) refuse(expected);
    return value;
}

std::vector<std::uint8_t> parse_services(std::string_view list) {
    std::set<std::uint8_t> services;
    for_each_piece(list, ',', [&](std::string_view piece) {
        const auto* const found =
            std::ranges::find(service_names, piece, [](const auto& each) { return each.first; });
        if (piece == "all") {
            for (const auto& [name, service] : service_names)
                services.insert(service);
        } else if (found != service_names.end()) {
            services.insert(found->second);
        } else {
            refuse("there is no service " + shown(piece) +
                   "; allowed: messages, pubsub, stream, probe, all");
        }
    });
    return {services.begin(), services.end()};
}

FidRight parse_fid_right(std::string_view piece) {
    const std::string expected =
        shown(piece) + " is no range of fids; allowed: 7, 0-63, 0x100-0x1ff, each also with "
                       ":drop, :newest, :disconnect or :block, and ! after it";
    FidRight right;
    const std::size_t colon = piece.find(':');
    if (colon != piece.npos) {
        std::string_view word = piece.substr(colon + 1);
        right.forced = word.ends_with('!');
        if (right.forced) word.remove_suffix(1);
        const auto* const found =
            std::ranges::find(slow_policy_names, word, [](const auto& each) { return each.first; });
        if (found == slow_policy_names.end()) refuse(expected);
        right.slow_policy = found->second;
    }
    const std::string_view range = piece.substr(0, colon);
    const std::size_t dash = range.find('-');
    right.first = parse_number<std::uint64_t>(range.substr(0, dash), expected);
    right.last = dash == range.npos ? right.first
                                    : parse_number<std::uint64_t>(range.substr(dash + 1), expected);
    if (right.last < right.first) refuse(shown(piece) + " ends before it begins");
    return right;
}

std::vector<FidRight> parse_fids(std::string_view list) {
    std::vector<FidRight> fids;
    for_each_piece(list, ',',
                   [&](std::string_view piece) { fids.push_back(parse_fid_right(piece)); });
    std::ranges::sort(fids, {}, &FidRight::first);
    for (std::size_t at = 1; at < fids.size(); ++at) {
        if (fids[at].first <= fids[at - 1].last)
            refuse("two of the ranges of fids overlap; write each fid once");
    }
    return fids;
}

FolderRight parse_folder(std::string_view text) {
    FolderRight right;
    constexpr std::string_view overwrite = ":overwrite";
    if (text.ends_with(overwrite)) {
        right.may = FolderRight::May::overwrite;
        text.remove_suffix(overwrite.size());
    }
    const std::string expected = shown(text) + " is no folder below the served one; allowed: "
                                               "incoming, data/run7, or . for all of it, each "
                                               "also with :overwrite";
    if (text != ".") {
        for_each_piece(text, '/', [&](std::string_view step) {
            const bool plain = std::ranges::all_of(
                step, [](char each) { return each > ' ' && each <= '~' && each != ':'; });
            if (step.empty() || step == "." || step == ".." || !plain) refuse(expected);
        });
    }
    right.folder = text;
    return right;
}

void take(std::string_view word, std::string_view key, Rights& rights) {
    const std::string_view value = word.substr(std::min(word.size(), key.size() + 1));
    if (key == "services") {
        rights.services = parse_services(value);
    } else if (key == "fids") {
        rights.fids = parse_fids(value);
    } else if (key == "folder") {
        rights.folders.push_back(parse_folder(value));
    } else if (key == "connections") {
        const std::string expected =
            "connections= takes a number from 1 to " + std::to_string(most_connections);
        rights.connections = parse_number<std::uint32_t>(value, expected);
        if (rights.connections < 1 || rights.connections > most_connections) refuse(expected);
    } else if (word == "rma") {
        rights.rma = true;
    } else {
        refuse(shown(word) + " is no right; allowed: services=, fids=, folder=, connections=, rma");
    }
}

template <typename Names, typename Value>
std::string name_of(const Names& names, Value value) {
    const auto* const found =
        std::ranges::find(names, value, [](const auto& each) { return each.second; });
    return found == names.end() ? "?" : std::string{found->first};
}

std::string to_string(const FidRight& right) {
    std::string text = std::to_string(right.first);
    if (right.last != right.first) text += "-" + std::to_string(right.last);
    if (right.slow_policy) text += ":" + name_of(slow_policy_names, *right.slow_policy);
    return text + (right.forced ? "!" : "");
}

} // namespace

Rights parse_rights(std::string_view words) {
    Rights rights;
    std::set<std::string_view> seen;
    for (;;) {
        const std::size_t begin = words.find_first_not_of(" \t");
        if (begin == words.npos) break;
        words.remove_prefix(begin);
        const std::string_view word = words.substr(0, words.find_first_of(" \t"));
        words.remove_prefix(word.size());
        const std::string_view key = word.substr(0, word.find('='));
        take(word, key, rights);
        if (key != "folder" && !seen.insert(key).second)
            refuse("'" + std::string{key} + "' occurs twice");
    }
    if (rights.services.empty()) {
        refuse("no service is named, so the key would be useless; add services=, such as "
               "services=pubsub");
    }
    return rights;
}

std::string to_string(const Rights& rights) {
    std::string text = "services=";
    for (const std::uint8_t service : rights.services)
        text += (text.back() == '=' ? "" : ",") + name_of(service_names, service);
    for (const FidRight& right : rights.fids)
        text += (&right == rights.fids.data() ? " fids="s : ","s) + to_string(right);
    for (const FolderRight& right : rights.folders) {
        text += " folder=" + right.folder;
        if (right.may == FolderRight::May::overwrite) text += ":overwrite";
    }
    text += " connections=" + std::to_string(rights.connections);
    return text + (rights.rma ? " rma" : "");
}

} // namespace netio::access::inline v0_3
