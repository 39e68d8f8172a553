// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "netio/base/export.hpp"

// The version of these headers. The build takes the project's version from here.
#define NETIO_VERSION_MAJOR 0
#define NETIO_VERSION_MINOR 3
#define NETIO_VERSION_PATCH 0
// For comparisons: #if NETIO_VERSION >= NETIO_MAKE_VERSION(0, 3, 0)
#define NETIO_MAKE_VERSION(major, minor, patch) ((major)*1000000 + (minor)*1000 + (patch))
#define NETIO_VERSION                                                                              \
    NETIO_MAKE_VERSION(NETIO_VERSION_MAJOR, NETIO_VERSION_MINOR, NETIO_VERSION_PATCH)

namespace netio::inline v0_3 {

// The version of the linked library, as "MAJOR.MINOR.PATCH".
NETIO_EXPORT const char* version() noexcept;

} // namespace netio::inline v0_3
