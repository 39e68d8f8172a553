// SPDX-License-Identifier: Apache-2.0
#pragma once

// Checks whether a name from an untrusted peer may be created beneath a folder: relative components
// joined by '/', without components that lead upwards, reserved names, or characters that could
// corrupt a log. Checks the text only; the file system handles symbolic links
// (apps/copy/target_file.hpp).

#include "apps/common/io.hpp"

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

// The folder that a copy server writes to, and the only access to it. Everything that is opened
// stays beneath it, for any name, including "..", symbolic links and concurrent renames
// (openat2(2), RESOLVE_BENEATH). On kernels without openat2, symbolic links to folders are not
// followed. Any thread.

class ServedFolder {
  public:
    // Throws std::system_error if it is not a folder or cannot be written to.
    explicit ServedFolder(const std::string& path);

    // Opens a folder beneath it, by a relative path; empty: the served folder. `within` is a folder
    // with which the path begins and which it must not leave; empty or ".": the served folder.
    // Throws std::system_error that names the folder.
    Descriptor open_folder(const std::string& relative, const std::string& within = {}) const;
    // A warning about missing features of this folder's file system; empty: none.
    const std::string& limitation() const noexcept { return limitation_; }

  private:
    Descriptor root_;
    std::string limitation_;
};

} // namespace apps::copy
