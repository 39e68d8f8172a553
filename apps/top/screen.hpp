// SPDX-License-Identifier: Apache-2.0
#pragma once

// What netio top shows on a terminal. Each program has its part of the screen, and all of them are
// scrolled together. Where there are more programs than lines, the programs are scrolled. The last
// line says how much is hidden. No I/O.

#include "apps/top/table.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace apps::top {

struct Window {
    std::size_t width = 80;
    std::size_t height = 24;
    std::size_t scroll = 0; // lines, from the beginning; more than there are: to the end
    bool has_keys = false;
};

struct Screen {
    std::vector<std::string> lines; // at most `height`, of at most `width` columns
    std::size_t scroll_limit = 0;   // scrolling further changes nothing
    std::size_t page = 1;           // lines that a page scrolls
};

Screen screen_of(const std::vector<Look>& looks, const Window& window);

} // namespace apps::top
