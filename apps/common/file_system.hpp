// SPDX-License-Identifier: Apache-2.0
#pragma once

// System calls on files that some file systems do not have: locks (Lustre without -o flock, NFS
// without lockd, FUSE), fsync of a folder (SMB). Each reports "not available here" apart from
// failure, so that the caller can go on without.

#include <cerrno>
#include <string>
#include <system_error>

#include <sys/file.h>
#include <unistd.h>

namespace apps {

// "WHAT: REASON" of errno.
[[noreturn]] inline void throw_errno(const std::string& what) {
    throw std::system_error{errno, std::generic_category(), what};
}

enum class LockOutcome : unsigned char {
    taken,
    held, // by another open file, here or in another process
    unavailable,
};
enum class LockWait : unsigned char { no, yes };

// An exclusive lock (flock(2)) that belongs to the open file. Only EWOULDBLOCK means that another
// holds it. With `unavailable`, errno is the reason.
inline LockOutcome lock_file(int fd, LockWait wait) noexcept {
    const int operation = wait == LockWait::yes ? LOCK_EX : LOCK_EX | LOCK_NB;
    for (;;) {
        if (::flock(fd, operation) == 0) return LockOutcome::taken;
        if (errno == EWOULDBLOCK) return LockOutcome::held;
        if (errno != EINTR) return LockOutcome::unavailable;
    }
}

// A warning: "FOLDER: its file system has no locks (REASON); CONSEQUENCE".
inline std::string no_locks_text(const std::string& folder, int error,
                                 const std::string& consequence) {
    return folder + ": its file system has no locks (" + std::generic_category().message(error) +
           "); " + consequence;
}

// Whether an errno of fsync(2) means that there is nothing to call here, rather than that bytes are
// lost.
inline bool has_no_sync(int error) noexcept {
    return error == EINVAL || error == ENOSYS || error == EOPNOTSUPP || error == EBADF ||
           error == EISDIR || error == EROFS || error == EACCES || error == EPERM;
}

// Waits until the names in a folder are on the disk, where its file system can do that. False:
// errno says why it failed.
inline bool sync_folder(int fd) noexcept {
    return ::fsync(fd) == 0 || has_no_sync(errno);
}

// The same for what was written to a file.
inline bool sync_file(int fd) noexcept {
    return ::fsync(fd) == 0 || errno == EINVAL || errno == ENOSYS || errno == EOPNOTSUPP;
}

} // namespace apps
