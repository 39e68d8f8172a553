// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>

namespace apps {

// Renames a file within a directory (AT_FDCWD: paths), and leaves a file that has the name `to`
// alone: then it fails with EEXIST. Where the file system or a seccomp filter has no renameat2(2)
// for it, it links the file to its new name, which does not replace either. 0, or -1 and errno.
inline int rename_without_replacing(int directory, const char* from, const char* to) noexcept {
    if (::renameat2(directory, from, directory, to, RENAME_NOREPLACE) == 0) return 0;
    if (errno != EINVAL && errno != ENOSYS && errno != EPERM) return -1;
    if (::linkat(directory, from, directory, to, 0) != 0) return -1;
    ::unlinkat(directory, from, 0);
    return 0;
}

} // namespace apps
