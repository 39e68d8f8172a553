// SPDX-License-Identifier: Apache-2.0
#pragma once

// Text from outside (a peer, a server, a file, the command line) on its way to people. It is
// escaped once, where it leaves the program: by the log (apps/program/background_log.hpp), by
// print_report() and tell_standard_error(), and by code that puts it into a line of a table.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace apps {

// Whether ends of lines and tabs belong to the layout of the text, or are part of foreign text.
enum class Lines : std::uint8_t { one, several };

// The text without what acts on a terminal, forges a line or cannot be seen. Ends of lines and tabs
// become \n, \r and \t; other control characters and characters that
// netio/base/control_characters.hpp lists become \uXXXX, as in JSON, so that a JSON text stays one;
// bytes that are not UTF-8 become \xXX. What is already escaped stays as it is. The result has at
// most `limit_bytes`.
std::string printable(std::string_view text, std::size_t limit_bytes = 1024,
                      Lines lines = Lines::one);
// Whether printable() would return the text as it is, if it is not too long.
bool is_printable(std::string_view text, Lines lines = Lines::one);

} // namespace apps
