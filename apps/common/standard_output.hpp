// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <unistd.h>

#include <cstdint>
#include <string_view>

namespace apps {

// How long a reader who stands still is waited for: until a signal asks for the end, or, while a
// loop runs that shall hear the first one when he has gone on, until the second.
enum class WaitUntil : std::uint8_t { first_signal, second_signal };

// Writes to standard output what the program was run for. Throws std::runtime_error if it does not
// arrive there: a report that nobody can read is a failure.
void print_report(std::string_view text, WaitUntil until = WaitUntil::first_signal,
                  int descriptor = STDOUT_FILENO);

} // namespace apps
