// SPDX-License-Identifier: Apache-2.0
#include "netio/access/rights.hpp"

#include <algorithm>

namespace netio::access::inline v0_2 {
namespace {

bool lies_in(std::string_view path, std::string_view folder) {
    if (folder == ".") return true;
    return path.size() > folder.size() + 1 && path.starts_with(folder) &&
           path[folder.size()] == '/';
}

// What one range makes of a wish; nothing: it is more than the range gives.
std::optional<Rights::Subscription> answer(const FidRight& right, std::optional<Patience> asked) {
    if (!right.patience) return Rights::Subscription{.permitted = true, .patience = asked};
    if (right.forced || !asked)
        return Rights::Subscription{.permitted = true, .patience = right.patience};
    if (*asked > *right.patience) return std::nullopt;
    return Rights::Subscription{.permitted = true, .patience = asked};
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
                                       std::optional<Patience> asked,
                                       std::size_t& steps) const noexcept {
    std::optional<Subscription> found;
    std::uint64_t next = first; // the first that nobody has looked at
    for (std::size_t at = fids_from(first, steps); at < fids.size(); ++at, ++steps) {
        const FidRight& right = fids[at];
        if (right.first > next) break;
        const auto one = answer(right, asked);
        if (!one || (found && found->patience != one->patience)) break;
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

} // namespace netio::access::inline v0_2
