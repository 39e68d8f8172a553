// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a program says elsewhere than in its log: before there is one, or as it cannot be written.

#include <string_view>

namespace apps {

// One write to standard error, if that takes it within a second: a reader who stands still, one who
// has gone, and a disk that is full keep the program from nothing. Any thread; a line or two.
// Escapes as print_report().
void tell_standard_error(std::string_view text) noexcept;

} // namespace apps
