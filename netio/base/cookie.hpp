// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "netio/base/require_cxx20.hpp"

#include <cstdint>

namespace netio::inline v0_3 {

// What names an operation in its completion; chosen by the caller, opaque to who carries it.
enum class Cookie : std::uint64_t {};

} // namespace netio::inline v0_3
