// SPDX-License-Identifier: Apache-2.0
#include "apps/top/keys.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>

namespace apps::top {
namespace {

constexpr char escape = '\x1b';
constexpr char end_of_input = '\x04'; // Ctrl-D

constexpr std::array<std::pair<std::string_view, Key>, 22> keys{{
    {"q", Key::quit},
    {"Q", Key::quit},
    {"k", Key::up},
    {"\x1b[A", Key::up},
    {"\x1bOA", Key::up},
    {"j", Key::down},
    {"\x1b[B", Key::down},
    {"\x1bOB", Key::down},
    {"\n", Key::down},
    {"b", Key::page_up},
    {"\x1b[5~", Key::page_up},
    {" ", Key::page_down},
    {"f", Key::page_down},
    {"\x1b[6~", Key::page_down},
    {"g", Key::first},
    {"\x1b[H", Key::first},
    {"\x1bOH", Key::first},
    {"\x1b[1~", Key::first},
    {"G", Key::last},
    {"\x1b[F", Key::last},
    {"\x1bOF", Key::last},
    {"\x1b[4~", Key::last},
}};

std::optional<Key> key_of(std::string_view sequence) {
    if (sequence == std::string_view{&end_of_input, 1}) return Key::quit;
    const auto found = std::ranges::find(keys, sequence, &std::pair<std::string_view, Key>::first);
    return found == keys.end() ? std::nullopt : std::optional{found->second};
}

// ESC [ and ESC O are followed by parameters and end with a letter or a tilde.
bool is_whole(std::string_view sequence) {
    if (sequence.front() != escape) return true;
    if (sequence.size() == 1) return false;
    if (sequence[1] != '[' && sequence[1] != 'O') return true;
    return sequence.size() > 2 && sequence.back() >= '@' && sequence.back() <= '~';
}

} // namespace

std::vector<Key> KeyParser::parse(std::string_view bytes) {
    constexpr std::size_t longest = 16; // no key of a terminal is longer
    std::vector<Key> found;
    for (const char byte : bytes) {
        if (byte == escape) begun_.clear();
        begun_ += byte;
        if (!is_whole(begun_) && begun_.size() < longest) continue;
        if (const auto key = key_of(begun_)) found.push_back(*key);
        begun_.clear();
    }
    return found;
}

KeyMode::KeyMode(int terminal) : terminal_{::isatty(terminal) == 1 ? terminal : -1} {
    enter();
}

void KeyMode::enter() {
    // In the background, changing the terminal would stop the program.
    if (is_on_ || terminal_ < 0 || ::tcgetpgrp(terminal_) != ::getpgrp()) return;
    if (::tcgetattr(terminal_, &before_) != 0) return;
    termios one_by_one = before_;
    one_by_one.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    one_by_one.c_cc[VMIN] = 0; // a read never waits
    one_by_one.c_cc[VTIME] = 0;
    is_on_ = ::tcsetattr(terminal_, TCSANOW, &one_by_one) == 0;
}

void KeyMode::leave() {
    if (std::exchange(is_on_, false)) ::tcsetattr(terminal_, TCSANOW, &before_);
}

} // namespace apps::top
