// SPDX-License-Identifier: Apache-2.0
#pragma once

// A line of a terminal that is written again and again in its place.

#include <cstddef>
#include <string>
#include <string_view>

namespace apps {

// How wide standard output's terminal is; 80 where that is not known.
std::size_t terminal_columns();

// What puts `line` in the place of the one before: back to the beginning, and what was longer
// before is cleared. It is cut to what `columns` (2 at least) show in one line, for what goes on in
// the next could not be taken back.
std::string in_its_place(std::string_view line, std::size_t columns);

// Writes it to standard output's terminal, as far as that takes it now: one that is stopped, or
// whose other end does not answer, holds up nobody who shows something there. Whether it took any.
bool put_on_terminal(std::string_view text);

} // namespace apps
