// SPDX-License-Identifier: Apache-2.0
#pragma once

// The keys of netio top, and the terminal that they are pressed on.

#include <termios.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace apps::top {

enum class Key : std::uint8_t { quit, up, down, page_up, page_down, first, last };

// Of the bytes that a terminal sends. A key that arrives in several pieces is understood with its
// last one; other bytes are passed over.
class KeyParser {
  public:
    std::vector<Key> parse(std::string_view bytes);

  private:
    std::string begun_; // the beginning of an escape sequence
};

// Gives the keys to the program one by one, without showing them, while it exists and the program
// is in the foreground of the terminal. Ctrl-C and Ctrl-Z stay signals.
class KeyMode {
  public:
    explicit KeyMode(int terminal);
    ~KeyMode() { leave(); }
    KeyMode(const KeyMode&) = delete;
    KeyMode& operator=(const KeyMode&) = delete;

    // Twice is legal. Without a terminal they do nothing.
    void enter();
    void leave();
    bool is_on() const noexcept { return is_on_; }

  private:
    int terminal_;
    termios before_{};
    bool is_on_ = false;
};

} // namespace apps::top
