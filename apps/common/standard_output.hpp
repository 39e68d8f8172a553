// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <string_view>

namespace apps {

// Writes to standard output what the program was run for, after the lines of the log that explain
// it. Escapes what acts on a terminal or cannot be seen (apps/common/printable.hpp), but for ends
// of lines and tabs. Waits for a reader that takes nothing until a signal asks for the end. Throws
// std::runtime_error if the text cannot be written: a report that is lost is a failure.
void print_report(std::string_view text, int descriptor = STDOUT_FILENO);

} // namespace apps
