// SPDX-License-Identifier: Apache-2.0
#include "apps/copy/path.hpp"

#include "netio/base/control_characters.hpp"

namespace apps::copy {
namespace {

constexpr std::string_view partial_suffix = ".netio-part";
static_assert(component_limit_bytes + 1 + partial_suffix.size() == 255);

PathFlaw check_component(std::string_view component) {
    if (component.empty()) return PathFlaw::empty;
    if (component == "." || component == "..") return PathFlaw::upwards;
    if (component.size() > component_limit_bytes) return PathFlaw::too_long;
    if (component.ends_with(partial_suffix)) return PathFlaw::partial;
    return PathFlaw::none;
}

} // namespace

PathFlaw check_path(std::string_view path) {
    if (path.empty()) return PathFlaw::empty;
    if (path.front() == '/') return PathFlaw::absolute;
    if (path.size() > name_limit_bytes) return PathFlaw::too_long;
    if (netio::has_unprintable(path)) return PathFlaw::control_character;
    for (;;) {
        const std::size_t slash = path.find('/');
        const PathFlaw flaw = check_component(path.substr(0, slash));
        if (flaw != PathFlaw::none || slash == std::string_view::npos) return flaw;
        path.remove_prefix(slash + 1);
    }
}

std::string_view to_string(PathFlaw flaw) {
    switch (flaw) {
    case PathFlaw::none:
        return "is valid";
    case PathFlaw::empty:
        return "is empty or has an empty component";
    case PathFlaw::absolute:
        return "begins with '/'; names are relative to the served folder";
    case PathFlaw::upwards:
        return "has a component '.' or '..'";
    case PathFlaw::too_long:
        return "is too long; allowed: 1024 bytes, 243 in a component";
    case PathFlaw::control_character:
        return "has a control character, or an invisible one: zero-width, or one that changes the "
               "direction of writing";
    case PathFlaw::partial:
        return "ends in .netio-part, which is reserved for partial files";
    }
    return "is not allowed";
}

SplitPath split_path(std::string_view path) {
    const std::size_t slash = path.rfind('/');
    if (slash == std::string_view::npos) return {.folder = {}, .leaf = std::string{path}};
    return {.folder = std::string{path.substr(0, slash)},
            .leaf = std::string{path.substr(slash + 1)}};
}

std::string partial_name(std::string_view leaf) {
    return "." + std::string{leaf} + std::string{partial_suffix};
}

} // namespace apps::copy
