// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "netio/base/require_cxx20.hpp"

// What a shared library of ours offers: the classes and functions of the headers that
// cmake/public_headers.cmake names. Everything else is compiled hidden, so that nobody outside can
// come to depend on it.
#define NETIO_EXPORT [[gnu::visibility("default")]]
