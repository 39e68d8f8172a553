// SPDX-License-Identifier: Apache-2.0
#pragma once

// Bytes as people read them: sixteen a line, where they are, in hexadecimal, and what of them is
// text. No I/O.

#include <cstddef>
#include <span>
#include <string>

namespace apps {

// Of the first `shown_bytes` of them, and how many more there are.
std::string hex_lines(std::span<const std::byte> bytes, std::size_t shown_bytes);

} // namespace apps
