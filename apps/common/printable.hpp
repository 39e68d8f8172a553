// SPDX-License-Identifier: Apache-2.0
#pragma once

// Text that a stranger has chosen, for logs and terminals.

#include <cstddef>
#include <string>
#include <string_view>

namespace apps {

// For logs and terminals: control characters, those that change the direction of writing, and what
// is no UTF-8 become '?', and what is longer is cut.
std::string printable(std::string_view text, std::size_t limit_bytes = 1024);

} // namespace apps
