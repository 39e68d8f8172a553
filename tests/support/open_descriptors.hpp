// SPDX-License-Identifier: Apache-2.0
#pragma once

// The file descriptors that this process has open.

#include <dirent.h>

#include <cstdlib>
#include <set>

namespace netio::test {

inline std::set<int> open_descriptors() {
    std::set<int> descriptors;
    DIR* const directory = ::opendir("/proc/self/fd");
    while (const dirent* entry = ::readdir(directory)) {
        const int fd = std::atoi(entry->d_name);
        if (fd != ::dirfd(directory)) descriptors.insert(fd);
    }
    ::closedir(directory);
    return descriptors; // includes "." and "..", which read as 0
}

} // namespace netio::test
