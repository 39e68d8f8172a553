// SPDX-License-Identifier: Apache-2.0
#include "apps/common/terminal_line.hpp"

#include "apps/common/printable.hpp"
#include "apps/common/takes_now.hpp"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>

namespace apps {

std::size_t terminal_columns() {
    winsize size{};
    const bool known = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
    return known ? size.ws_col : 80;
}

std::string in_its_place(std::string_view line, std::size_t columns) {
    return "\r" + printable(line, columns - 1) + "\x1b[K";
}

bool put_on_terminal(std::string_view text) {
    constexpr std::size_t piece = 256; // of more, some might wait for room
    bool taken = false;
    while (!text.empty() && takes_now(STDOUT_FILENO)) {
        const ssize_t written = ::write(STDOUT_FILENO, text.data(), std::min(piece, text.size()));
        if (written <= 0) break; // it is gone, which the report will say
        text.remove_prefix(static_cast<std::size_t>(written));
        taken = true;
    }
    return taken;
}

} // namespace apps
