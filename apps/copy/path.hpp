// SPDX-License-Identifier: Apache-2.0
#pragma once

// Checks whether a name from an untrusted peer may be created beneath a folder: relative components
// joined by '/', without components that lead upwards, reserved names, or characters that could
// corrupt a log. Checks the text only; the file system handles symbolic links
// (apps/copy/target_file.hpp).

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace apps::copy {

inline constexpr std::size_t name_limit_bytes = 1024;
// Limit of a component on all common file systems, minus the additional characters of a partial
// file's name.
inline constexpr std::size_t component_limit_bytes = 255 - 12;

enum class PathFlaw : std::uint8_t {
    none,
    empty,             // no name, an empty component, or a final '/'
    absolute,          // begins with '/'
    upwards,           // a component "." or ".."
    too_long,          // the path or a component
    control_character, // below 0x20, or 0x7f
    partial,           // the name of a partial file
};

PathFlaw check_path(std::string_view path);
// Describes the flaw, as the end of a sentence that begins with the path.
std::string_view to_string(PathFlaw flaw);

// Splits a valid path: "a/b/c" becomes {"a/b", "c"}.
struct SplitPath {
    std::string folder; // may be empty
    std::string leaf;
};
SplitPath split_path(std::string_view path);

// Returns the name under which the leaf is written until it is complete: ".LEAF.netio-part".
std::string partial_name(std::string_view leaf);

} // namespace apps::copy
