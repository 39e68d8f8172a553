// SPDX-License-Identifier: Apache-2.0
#include "apps/common/terminal_line.hpp"

#include "apps/common/printable.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

namespace apps {

std::size_t terminal_columns() {
    winsize size{};
    const bool known = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
    return known ? size.ws_col : 80;
}

std::string in_its_place(std::string_view line, std::size_t columns) {
    return "\r" + printable(line, columns - 1) + "\x1b[K";
}

} // namespace apps
