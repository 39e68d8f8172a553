// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace apps {

// Writes to standard output what the program was run for. Throws std::system_error if it does not
// arrive there: a report that nobody can read is a failure.
void print_report(std::string_view text);

} // namespace apps
