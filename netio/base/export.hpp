// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "netio/base/require_cxx20.hpp"

// Marks what the shared libraries export: the classes and functions of the headers in
// cmake/public_headers.cmake. All other symbols are hidden, so that programs cannot depend on them.
#define NETIO_EXPORT [[gnu::visibility("default")]]
