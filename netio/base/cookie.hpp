// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "netio/base/require_cxx20.hpp"

#include <cstdint>

namespace netio::inline v0_3 {

// Identifies an operation in its completion. The caller chooses the value; the library does not
// interpret it.
enum class Cookie : std::uint64_t {};

} // namespace netio::inline v0_3
