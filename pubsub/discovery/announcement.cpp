// SPDX-License-Identifier: Apache-2.0
#include "pubsub/discovery/announcement.hpp"

#include "netio/access/host.hpp"
#include "netio/base/control_characters.hpp"
#include "pubsub/discovery/bounded_json.hpp"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <charconv>

namespace netio::pubsub::inline v0_3 {
namespace {

using nlohmann::json;

constexpr std::uint64_t format = 1;

[[noreturn]] void refuse(const std::string& place, const std::string& problem) {
    throw AnnouncementError{place + ": " + problem};
}

bool is_letter_or_digit(char c) noexcept {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

void check_text(const std::string& place, const std::string& text) {
    const std::string flaw = announced_text_flaw(text);
    if (!flaw.empty()) refuse(place, flaw);
}

void check_count(const std::string& place, std::size_t count, std::size_t limit) {
    if (count > limit) refuse(place, "more than " + std::to_string(limit));
}

std::string numbered(const char* list, std::size_t at) {
    return std::string{list} + "[" + std::to_string(at) + "]";
}

// --- reading --------------------------------------------------------------------------------

// The largest valid document has one group of four values per range.
constexpr JsonLimits document_limits{.depth = 8, .values = 4 * announced_ranges_limit + 4096};

json document_of(std::string_view text) {
    try {
        return parse_bounded(text, document_limits);
    } catch (const JsonError& error) {
        refuse("announcement", error.what());
    }
}

const json* find(const json& object, const char* key, json::value_t type, const char* expected) {
    const auto found = object.find(key);
    if (found == object.end()) return nullptr;
    const bool unsigned_for_signed =
        type == json::value_t::number_unsigned && found->is_number_unsigned();
    if (found->type() != type && !unsigned_for_signed) refuse(key, std::string{"not "} + expected);
    return &*found;
}

std::string text_of(const json& value, const std::string& place) {
    if (!value.is_string()) refuse(place, "not a text");
    const auto& text = value.get_ref<const std::string&>();
    check_text(place, text);
    return text;
}

std::string find_text(const json& object, const char* key) {
    const json* const value = find(object, key, json::value_t::string, "a text");
    return value != nullptr ? text_of(*value, key) : std::string{};
}

std::uint64_t find_number(const json& object, const char* key) {
    const json* const value = find(object, key, json::value_t::number_unsigned, "a number");
    if (value == nullptr) refuse(key, "is missing");
    return value->get<std::uint64_t>();
}

std::optional<std::uint64_t> parse_hex(std::string_view text) {
    if (!text.starts_with("0x")) return {};
    const char* const end = text.data() + text.size();
    std::uint64_t value = 0;
    const auto [stop, error] = std::from_chars(text.data() + 2, end, value, 16);
    if (error != std::errc{} || stop != end) return {};
    return value;
}

// Hexadecimal: 0x10 or 0x10-0x1f.
FidRange parse_range(const std::string& text, const std::string& place) {
    const std::size_t dash = text.find('-');
    const std::string_view whole = text;
    const auto first = parse_hex(whole.substr(0, dash));
    const auto last = dash == std::string::npos ? first : parse_hex(whole.substr(dash + 1));
    if (!first || !last) refuse(place, "not a range of fids in hexadecimal");
    if (*last < *first) refuse(place, "ends before it begins");
    return {.first = Fid{*first}, .last = Fid{*last}};
}

// Grouped by meaning: [{"meaning": "...", "ranges": ["0x0-0xf", ...]}, ...]
std::vector<AnnouncedFids> read_fids(const json& object) {
    std::vector<AnnouncedFids> fids;
    const json* const groups = find(object, "fids", json::value_t::array, "a list");
    if (groups == nullptr) return fids;
    check_count("fids", groups->size(), announced_ranges_limit);
    for (std::size_t at = 0; at < groups->size(); ++at) {
        const std::string place = numbered("fids", at);
        const json& group = (*groups)[at];
        if (!group.is_object()) refuse(place, "not an object");
        const std::string meaning = find_text(group, "meaning");
        const json* const ranges = find(group, "ranges", json::value_t::array, "a list");
        if (ranges == nullptr) refuse(place, "ranges is missing");
        check_count("fids", fids.size() + ranges->size(), announced_ranges_limit);
        for (const json& range : *ranges)
            fids.push_back({.fids = parse_range(text_of(range, place), place), .meaning = meaning});
    }
    return fids;
}

std::vector<std::string> read_addresses(const json& object) {
    std::vector<std::string> addresses;
    const json* const list = find(object, "addresses", json::value_t::array, "a list");
    if (list == nullptr) return addresses;
    check_count("addresses", list->size(), announced_addresses_limit);
    for (const json& each : *list)
        addresses.push_back(text_of(each, numbered("addresses", addresses.size())));
    return addresses;
}

std::map<std::string, std::string> read_parameters(const json& object) {
    std::map<std::string, std::string> parameters;
    const json* const map = find(object, "parameters", json::value_t::object, "an object");
    if (map == nullptr) return parameters;
    check_count("parameters", map->size(), announced_parameters_limit);
    for (const auto& [key, value] : map->items())
        parameters.emplace(key, text_of(value, "parameters"));
    return parameters;
}

// --- writing --------------------------------------------------------------------------------

json written(const std::vector<AnnouncedFids>& fids) {
    json groups = json::array();
    const std::string* meaning = nullptr; // of the last group
    for (const AnnouncedFids& each : fids) {
        if (meaning == nullptr || *meaning != each.meaning) {
            json group{{"ranges", json::array()}};
            if (!each.meaning.empty()) group["meaning"] = each.meaning;
            groups.push_back(std::move(group));
            meaning = &each.meaning;
        }
        groups.back()["ranges"].push_back(to_string(each.fids));
    }
    return groups;
}

} // namespace

// Control characters are rejected, because terminals would interpret them in a log.
std::string announced_text_flaw(std::string_view text) {
    if (text.size() > announced_text_limit)
        return "longer than " + std::to_string(announced_text_limit) + " bytes";
    if (has_unprintable(text)) return "a control character or an invisible character";
    return {};
}

bool is_announced_name(std::string_view name) noexcept {
    return !name.empty() && name.size() <= announced_name_limit &&
           is_letter_or_digit(name.front()) && std::ranges::all_of(name, [](char c) {
               return is_letter_or_digit(c) || c == '.' || c == '_' || c == '-';
           });
}

std::optional<Endpoint> parse_announced_address(std::string_view text) {
    const std::size_t colon = text.find(':');
    if (colon == 0 || colon == std::string_view::npos) return {};
    const std::string_view provider = text.substr(0, colon);
    if (!std::ranges::all_of(provider,
                             [](char c) { return is_letter_or_digit(c) || c == '_' || c == ';'; }))
        return {};
    try {
        Address address = parse_address(text.substr(colon + 1));
        if (address.port == 0) return {};
        return Endpoint{.provider = std::string{provider}, .address = std::move(address)};
    } catch (const std::invalid_argument&) {
        return {};
    }
}

std::string to_announced_address(const Endpoint& endpoint) {
    return endpoint.provider + ":" + to_string(endpoint.address);
}

void validate(const Announcement& announcement) {
    if (!is_announced_name(announcement.name)) {
        refuse("name", "not 1 to " + std::to_string(announced_name_limit) +
                           " letters, digits, '.', '_' and '-', beginning with a letter or digit");
    }
    check_count("fids", announcement.fids.size(), announced_ranges_limit);
    for (const AnnouncedFids& each : announcement.fids) {
        if (each.fids.last < each.fids.first) refuse("fids", "a range ends before it begins");
        check_text("fids", each.meaning);
    }
    check_count("addresses", announcement.addresses.size(), announced_addresses_limit);
    for (std::size_t at = 0; at < announcement.addresses.size(); ++at) {
        const std::string place = numbered("addresses", at);
        check_text(place, announcement.addresses[at]);
        if (!parse_announced_address(announcement.addresses[at]))
            refuse(place, "not PROVIDER:HOST:PORT");
    }
    check_count("parameters", announcement.parameters.size(), announced_parameters_limit);
    for (const auto& [key, value] : announcement.parameters) {
        check_text("parameters", key);
        check_text("parameters", value);
    }
    check_text("mode", announcement.mode);
    check_text("host", announcement.host);
    check_text("started", announcement.started);
    check_text("metrics", announcement.metrics);
    if (announcement.pid < 0) refuse("pid", "below zero");
    const bool has_lease = announcement.lease.count() != 0;
    if (has_lease && (announcement.lease < least_lease || announcement.lease > longest_lease))
        refuse("lease_ms", "not 100 to 3600000");
}

std::string to_text(const Announcement& announcement) {
    validate(announcement);
    json document{{"netio", format},
                  {"name", announcement.name},
                  {"instance", to_string(Fid{announcement.instance})},
                  {"counter", announcement.counter},
                  {"fids", written(announcement.fids)},
                  {"addresses", announcement.addresses},
                  {"mode", announcement.mode},
                  {"parameters", announcement.parameters},
                  {"host", announcement.host},
                  {"pid", announcement.pid},
                  {"started", announcement.started},
                  {"metrics", announcement.metrics}};
    if (announcement.lease.count() != 0) document["lease_ms"] = announcement.lease.count();
    std::string text = document.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
    if (text.size() > announcement_bytes_limit)
        refuse("announcement", "more than " + std::to_string(announcement_bytes_limit) + " bytes");
    return text;
}

Announcement parse_announcement(std::string_view text) {
    if (text.size() > announcement_bytes_limit)
        refuse("announcement", "more than " + std::to_string(announcement_bytes_limit) + " bytes");
    const json document = document_of(text);
    if (!document.is_object()) refuse("announcement", "not a whole JSON object");
    if (find_number(document, "netio") != format)
        refuse("netio", "a format that this version does not know");
    Announcement announcement;
    announcement.name = find_text(document, "name");
    const auto instance = parse_hex(find_text(document, "instance"));
    if (!instance) refuse("instance", "not a number in hexadecimal");
    announcement.instance = *instance;
    announcement.counter = find_number(document, "counter");
    announcement.fids = read_fids(document);
    announcement.addresses = read_addresses(document);
    announcement.mode = find_text(document, "mode");
    announcement.parameters = read_parameters(document);
    announcement.host = find_text(document, "host");
    const std::uint64_t pid = find_number(document, "pid");
    if (pid > INT32_MAX) refuse("pid", "too large");
    announcement.pid = static_cast<int>(pid);
    announcement.started = find_text(document, "started");
    announcement.metrics = find_text(document, "metrics");
    if (document.contains("lease_ms")) {
        const std::uint64_t lease = find_number(document, "lease_ms");
        if (lease > static_cast<std::uint64_t>(longest_lease.count()))
            refuse("lease_ms", "not 100 to 3600000");
        announcement.lease = std::chrono::milliseconds{lease};
    }
    validate(announcement);
    return announcement;
}

bool is_of_one_host(const Address& address) {
    if (address.host == "localhost") return true;
    const std::optional<access::Host> host = access::parse_host(address.host);
    return host &&
           (access::is_loopback(*host) || access::is_any(*host) || access::is_link_local(*host));
}

bool leads_there_from(std::string_view reader_host, const Announcement& announcement,
                      const Address& address) {
    const bool elsewhere = !announcement.host.empty() && announcement.host != reader_host;
    return !elsewhere || !is_of_one_host(address);
}

bool have_same_content(const Announcement& one, const Announcement& other) {
    Announcement same_lease = other;
    same_lease.counter = one.counter;
    return one == same_lease;
}

} // namespace netio::pubsub::inline v0_3
