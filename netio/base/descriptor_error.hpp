// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "netio/base/status.hpp"

#include <cerrno>
#include <string>
#include <system_error>

namespace netio::inline v0_3 {

// Adds the remedy if the error number says that no descriptor was left.
inline std::string with_descriptor_remedy(std::string what, int error) {
    if (error == EMFILE) {
        what += "; no descriptors are left for the process: raise its limit (ulimit -n, or "
                "LimitNOFILE= of a systemd unit)";
    } else if (error == ENFILE) {
        what += "; no descriptors are left for this machine: raise its limit (sysctl fs.file-max)";
    }
    return what;
}

// For a system call that returns a new descriptor and has failed: uses its errno.
inline FabricError descriptor_error(const std::string& what) {
    const int error = errno;
    return {{error, std::system_category()}, with_descriptor_remedy(what, error)};
}

} // namespace netio::inline v0_3
