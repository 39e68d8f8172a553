// SPDX-License-Identifier: Apache-2.0
#pragma once

// Output for people: escaping, reports, standard error, and the status line of a terminal.
//
// External text (from a peer, a server, a file, the command line) is escaped once, at the sink: by
// the log (apps/common/logging.hpp), by print_report() and tell_standard_error(), and by code
// that puts it into a line of a table.

#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace apps {

// Whether line ends and tabs belong to the layout of the text, or are part of external text.
enum class Lines : std::uint8_t { one, several };

// Returns the text without invisible characters and without characters that control a terminal or
// forge a line. Line ends and tabs become \n, \r and \t; other characters listed in
// netio/base/control_characters.hpp become \uXXXX, as in JSON, so that a JSON text stays valid;
// bytes that are not UTF-8 become \xXX. Escaped text is unchanged. The result has at most
// `limit_bytes`.
std::string printable(std::string_view text, std::size_t limit_bytes = 1024,
                      Lines lines = Lines::one);
// Returns whether printable() would return the text unchanged, apart from its length limit.
bool is_printable(std::string_view text, Lines lines = Lines::one);

// Writes the result of a program to standard output, after the log lines that explain it. Escapes
// the text, but keeps line ends and tabs. Waits for a slow reader until a signal asks the program
// to end. Throws std::runtime_error if the text cannot be written: a lost report is a failure.
void print_report(std::string_view text, int descriptor = STDOUT_FILENO);

// Writes one or two lines to standard error, for messages that cannot go to the log. Stops trying
// after one second: a stopped reader, a closed pipe or a full disk never blocks the program. Any
// thread. Escapes as print_report().
void tell_standard_error(std::string_view text) noexcept;

// Returns the width of standard output's terminal; 80 if it is unknown.
std::size_t terminal_columns();

// Returns the sequence that replaces the current line by `line`: return to its start and clear the
// rest. `line` is cut to `columns` (at least 2), because a wrapped line could not be replaced.
std::string in_its_place(std::string_view line, std::size_t columns);

// Writes as much to standard output's terminal as it accepts now: a stopped terminal does not block
// the program. Returns whether the terminal accepted anything.
bool put_on_terminal(std::string_view text);

} // namespace apps
