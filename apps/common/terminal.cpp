// SPDX-License-Identifier: Apache-2.0
#include "apps/common/terminal.hpp"

#include "apps/common/io.hpp"
#include "netio/base/control_characters.hpp"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <poll.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <climits>
#include <csignal>
#include <ctime>
#include <iterator>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>

namespace apps {
namespace {

std::uint32_t code_of(std::string_view sequence) {
    const auto first = static_cast<unsigned char>(sequence.front());
    std::uint32_t code = sequence.size() == 1 ? first : first & (0x7fU >> sequence.size());
    for (const char c : sequence.substr(1))
        code = code << 6U | (static_cast<unsigned char>(c) & 0x3fU);
    return code;
}

bool is_layout(std::string_view sequence, Lines lines) {
    return lines == Lines::several && (sequence == "\n" || sequence == "\t");
}

bool is_shown(std::string_view sequence, Lines lines) {
    return is_layout(sequence, lines) || !netio::is_unprintable(sequence);
}

std::string escaped(std::string_view sequence) {
    if (sequence == "\n") return "\\n";
    if (sequence == "\r") return "\\r";
    if (sequence == "\t") return "\\t";
    const std::uint32_t code = code_of(sequence);
    if (code <= 0xffff) return fmt::format("\\u{:04x}", code);
    const std::uint32_t rest = code - 0x10000; // a surrogate pair, as in JSON
    return fmt::format("\\u{:04x}\\u{:04x}", 0xd800 + (rest >> 10U), 0xdc00 + (rest & 0x3ffU));
}

} // namespace

std::string printable(std::string_view text, std::size_t limit_bytes, Lines lines) {
    std::string out;
    while (!text.empty()) {
        const std::size_t length = netio::utf8_length(text);
        const std::string_view sequence = text.substr(0, std::max<std::size_t>(1, length));
        const bool shown = length > 0 && is_shown(sequence, lines);
        const std::string instead =
            shown        ? std::string{}
            : length > 0 ? escaped(sequence)
                         : fmt::format("\\x{:02x}", static_cast<unsigned char>(text.front()));
        const std::string_view piece = shown ? sequence : std::string_view{instead};
        if (out.size() + piece.size() > limit_bytes) break;
        out += piece;
        text.remove_prefix(sequence.size());
    }
    return out;
}

bool is_printable(std::string_view text, Lines lines) {
    while (!text.empty()) {
        const std::size_t length = netio::utf8_length(text);
        if (length == 0 || !is_shown(text.substr(0, length), lines)) return false;
        text.remove_prefix(length);
    }
    return true;
}

void print_report(std::string_view text, int descriptor) {
    constexpr std::string_view failure = "cannot write the report to standard output";
    spdlog::default_logger_raw()->flush();
    BackgroundWriter writer{DescriptorOutput{descriptor, failure}.write()};
    if (is_printable(text, Lines::several)) {
        writer.put(text);
    } else {
        writer.put(printable(text, std::string::npos, Lines::several));
    }
    if (!writer.wait())
        throw std::runtime_error{std::string{failure} +
                                 ": its reader is blocked, and a signal ended the wait"};
}

namespace {

// Returns whether a write would not block, now or after up to `patience`: a pipe then accepts
// PIPE_BUF bytes, a terminal 256. False for a stopped terminal (Ctrl-S). A descriptor with an error
// counts as ready, and the write reports the error.
bool takes_now(int descriptor, std::chrono::milliseconds patience = {}) noexcept {
    pollfd asked{.fd = descriptor, .events = POLLOUT, .revents = 0};
    int ready = 0;
    do {
        ready = ::poll(&asked, 1, static_cast<int>(patience.count()));
    } while (ready < 0 && errno == EINTR);
    return ready > 0;
}

constexpr std::chrono::seconds patience{1};
constexpr std::size_t terminal_piece = 256; // see takes_now()

// Blocks SIGPIPE, so that a closed reader is an error of the write and does not end the program.
class PipeSignalBlocked {
  public:
    PipeSignalBlocked() noexcept {
        ::sigemptyset(&pipe_);
        ::sigaddset(&pipe_, SIGPIPE);
        ::pthread_sigmask(SIG_BLOCK, &pipe_, &before_);
    }
    ~PipeSignalBlocked() {
        const timespec at_once{};
        if (::sigismember(&before_, SIGPIPE) == 0) ::sigtimedwait(&pipe_, nullptr, &at_once);
        ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
    }
    PipeSignalBlocked(const PipeSignalBlocked&) = delete;
    PipeSignalBlocked& operator=(const PipeSignalBlocked&) = delete;

  private:
    sigset_t pipe_{};
    sigset_t before_{};
};

// Returns an empty text if there is no memory to escape it.
std::string shown_of(std::string_view text) noexcept {
    try {
        return printable(text, PIPE_BUF, Lines::several);
    } catch (const std::bad_alloc&) {
        return {};
    }
}

} // namespace

void tell_standard_error(std::string_view text) noexcept {
    // A larger write could block.
    const std::size_t piece = ::isatty(STDERR_FILENO) == 1 ? terminal_piece : PIPE_BUF;
    const PipeSignalBlocked blocked;
    const std::string shown = shown_of(text);
    text = shown;
    auto wait = patience;
    while (!text.empty() && takes_now(STDERR_FILENO, std::exchange(wait, {}))) {
        const ssize_t written = ::write(STDERR_FILENO, text.data(), std::min(piece, text.size()));
        if (written <= 0) return;
        text.remove_prefix(static_cast<std::size_t>(written));
    }
}

std::size_t terminal_columns() {
    winsize size{};
    const bool known = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1;
    return known ? size.ws_col : 80;
}

std::string in_its_place(std::string_view line, std::size_t columns) {
    return "\r" + printable(line, columns - 1) + "\x1b[K";
}

bool put_on_terminal(std::string_view text) {
    bool taken = false;
    while (!text.empty() && takes_now(STDOUT_FILENO)) {
        const ssize_t written =
            ::write(STDOUT_FILENO, text.data(), std::min(terminal_piece, text.size()));
        if (written <= 0) break; // the terminal is closed; the report will fail, too
        text.remove_prefix(static_cast<std::size_t>(written));
        taken = true;
    }
    return taken;
}

} // namespace apps
