// SPDX-License-Identifier: Apache-2.0
#pragma once

// The folder that a copy server writes to, and the only way into it: what is opened beneath it
// stays beneath it whatever the name, "..", symbolic links and renames meanwhile included
// (openat2(2), RESOLVE_BENEATH). Where the kernel does not have that, symbolic links to folders are
// not followed at all. Any thread.

#include "apps/common/io.hpp"

#include <string>

namespace apps::copy {

class ServedFolder {
  public:
    // Throws std::system_error: it is no folder, or cannot be written to.
    explicit ServedFolder(const std::string& path);

    // A folder beneath it, by a relative path; empty: itself. `within`: a folder beneath it that
    // the path begins with, and that nothing leads out of; empty or ".": itself. Throws
    // std::system_error naming it.
    Descriptor open_folder(const std::string& relative, const std::string& within = {}) const;
    // What this folder's file system lacks, as a warning; empty: nothing.
    const std::string& shortcoming() const noexcept { return shortcoming_; }

  private:
    Descriptor root_;
    std::string shortcoming_;
};

} // namespace apps::copy
