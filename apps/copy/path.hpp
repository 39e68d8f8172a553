// SPDX-License-Identifier: Apache-2.0
#pragma once

// Whether a name that a stranger sends may be created beneath a folder: components joined by '/',
// relative, nothing that leads upwards, nothing that could be taken for a file of ours or that
// would harm a log. A matter of the text alone; symbolic links are the file system's
// (apps/copy/target_file.hpp).

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace apps::copy {

inline constexpr std::size_t name_limit_bytes = 1024;
// A component on all usual file systems, less what a partial file's name has besides.
inline constexpr std::size_t component_limit_bytes = 255 - 12;

enum class PathFlaw : std::uint8_t {
    none,
    empty,             // no name, an empty component, or a '/' at the end
    absolute,          // begins with '/'
    upwards,           // a component "." or ".."
    too_long,          // the whole or a component
    control_character, // below 0x20, or 0x7f
    partial,           // the name of a partial file
};

PathFlaw check_path(std::string_view path);
// What is wrong, as the end of a sentence that begins with the path.
std::string_view to_string(PathFlaw flaw);

// "a/b/c": {"a/b", "c"}; of a path without flaw.
struct SplitPath {
    std::string folder; // may be empty
    std::string leaf;
};
SplitPath split_path(std::string_view path);

// Under which the leaf is written until it is whole: ".LEAF.netio-part".
std::string partial_name(std::string_view leaf);

} // namespace apps::copy
