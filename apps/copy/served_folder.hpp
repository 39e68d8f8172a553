// SPDX-License-Identifier: Apache-2.0
#pragma once

// The folder that a copy server writes to, and the only access to it. Everything that is opened
// stays beneath it, for any name, including "..", symbolic links and concurrent renames
// (openat2(2), RESOLVE_BENEATH). On kernels without openat2, symbolic links to folders are not
// followed. Any thread.

#include "apps/common/io.hpp"

#include <string>

namespace apps::copy {

class ServedFolder {
  public:
    // Throws std::system_error if it is not a folder or cannot be written to.
    explicit ServedFolder(const std::string& path);

    // Opens a folder beneath it, by a relative path; empty: the served folder. `within` is a folder
    // with which the path begins and which it must not leave; empty or ".": the served folder.
    // Throws std::system_error that names the folder.
    Descriptor open_folder(const std::string& relative, const std::string& within = {}) const;
    // A warning about missing features of this folder's file system; empty: none.
    const std::string& shortcoming() const noexcept { return shortcoming_; }

  private:
    Descriptor root_;
    std::string shortcoming_;
};

} // namespace apps::copy
