// SPDX-License-Identifier: Apache-2.0
#include "apps/list/listing.hpp"

#include "apps/common/fid_text.hpp"
#include "apps/common/report.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <set>

namespace apps {
namespace {

using Json = nlohmann::ordered_json;
using netio::pubsub::AnnouncedFids;
using netio::pubsub::Announcement;
using netio::pubsub::FidLayout;
using netio::pubsub::FidRange;

constexpr std::size_t shown_ranges = 8; // per meaning; the JSON has all ranges

std::string fids_of_one_meaning(const std::vector<const AnnouncedFids*>& fids,
                                const FidLayout* layout) {
    std::string line;
    for (std::size_t at = 0; at < std::min(fids.size(), shown_ranges); ++at)
        line += (at == 0 ? "" : ", ") + shown(fids[at]->fids, layout);
    if (fids.size() > shown_ranges)
        line += fmt::format(" and {} more ranges", fids.size() - shown_ranges);
    return line;
}

Json as_json(const Announcement& announcement) {
    Json fids = Json::array();
    for (const AnnouncedFids& each : announcement.fids) {
        fids.push_back({{"first", to_string(each.fids.first)},
                        {"last", to_string(each.fids.last)},
                        {"meaning", each.meaning}});
    }
    return {{"name", announcement.name},
            {"instance", fmt::format("{:#x}", announcement.instance)},
            {"host", announcement.host},
            {"pid", announcement.pid},
            {"started", announcement.started},
            {"mode", announcement.mode},
            {"addresses", announcement.addresses},
            {"fids", std::move(fids)},
            {"parameters", announcement.parameters},
            {"metrics", announcement.metrics}};
}

} // namespace

std::string listed_as_text(const Announcement& announcement, const FidLayout* layout) {
    std::string text =
        fmt::format("{}: {}, host {}, process {}, since {}\n", announcement.name, announcement.mode,
                    announcement.host, announcement.pid, announcement.started);
    text += fmt::format("  at {}\n", fmt::join(announcement.addresses, ", "));
    std::map<std::string, std::vector<const AnnouncedFids*>> by_meaning;
    for (const AnnouncedFids& each : announcement.fids)
        by_meaning[each.meaning].push_back(&each);
    for (const auto& [meaning, fids] : by_meaning)
        text += fmt::format("  fids {}{}{}\n", fids_of_one_meaning(fids, layout),
                            meaning.empty() ? "" : ": ", meaning);
    if (!announcement.metrics.empty()) text += fmt::format("  metrics {}\n", announcement.metrics);
    return text;
}

std::string listed_as_json(const Announcement& announcement, std::string_view event) {
    const Json body = as_json(announcement);
    if (event.empty()) return json_line(body);
    Json object{{"role", "list"}, {"report_version", report_version}, {"event", event}};
    object.update(body);
    return json_line(object);
}

std::string gone_as_json(const std::string& name) {
    return json_line(Json{
        {"role", "list"}, {"report_version", report_version}, {"event", "gone"}, {"name", name}});
}

std::string listed_as_json(const Publishers& publishers) {
    Json list = Json::array();
    for (const auto& [name, announcement] : publishers)
        list.push_back(as_json(announcement));
    return json_line(Json{
        {"role", "list"}, {"report_version", report_version}, {"publishers", std::move(list)}});
}

std::string listed_as_text(const PublishedFids& published, const FidLayout* layout) {
    if (published.fids.empty())
        return published.publisher + ": no fids are published there that this client may read\n";
    std::string text =
        fmt::format("{} ({}): {} range{} of fids{}\n", published.publisher, published.provider,
                    published.fids.size(), published.fids.size() == 1 ? "" : "s",
                    published.is_complete ? "" : ", and more that are not shown");
    for (const FidRange& range : published.fids)
        text += fmt::format("  {}\n", shown(range, layout));
    return text;
}

std::string listed_as_json(const PublishedFids& published) {
    Json fids = Json::array();
    for (const FidRange& range : published.fids)
        fids.push_back({{"first", to_string(range.first)}, {"last", to_string(range.last)}});
    return json_line(Json{{"role", "list"},
                          {"report_version", report_version},
                          {"publisher", published.publisher},
                          {"provider", published.provider},
                          {"complete", published.is_complete},
                          {"fids", std::move(fids)}});
}

bool has_any(const FidRange& range, const std::vector<FidRange>& fids) {
    return std::ranges::any_of(fids, [&](const FidRange& wanted) {
        return wanted.first <= range.last && range.first <= wanted.last;
    });
}

bool has_any(const Announcement& announcement, const std::vector<FidRange>& fids) {
    return fids.empty() || std::ranges::any_of(announcement.fids, [&](const AnnouncedFids& each) {
               return has_any(each.fids, fids);
           });
}

std::vector<std::string> shared_fids(const Publishers& publishers, std::size_t limit) {
    struct Claim {
        FidRange fids;
        const std::string* name;
    };
    std::vector<Claim> claims;
    for (const auto& [name, announcement] : publishers)
        for (const AnnouncedFids& each : announcement.fids)
            claims.push_back({.fids = each.fids, .name = &name});
    std::ranges::sort(claims, {}, [](const Claim& claim) { return claim.fids.first; });
    std::vector<std::string> lines;
    std::set<std::pair<const std::string*, const std::string*>> told;
    // The earlier claim with the highest end.
    const Claim* farthest = nullptr;
    for (const Claim& claim : claims) {
        if (farthest != nullptr && claim.fids.first <= farthest->fids.last &&
            farthest->name != claim.name && told.emplace(farthest->name, claim.name).second) {
            if (lines.size() >= limit) return lines;
            lines.push_back(fmt::format("{} is announced by {} and by {}",
                                        to_string(claim.fids.first), *farthest->name, *claim.name));
        }
        if (farthest == nullptr || farthest->fids.last < claim.fids.last) farthest = &claim;
    }
    return lines;
}

} // namespace apps
