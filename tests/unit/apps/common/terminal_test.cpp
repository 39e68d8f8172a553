// SPDX-License-Identifier: Apache-2.0
#include "apps/common/io.hpp"
#include "apps/common/report.hpp"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <limits>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>

namespace apps::terminal_test {
namespace {

constexpr std::size_t unlimited = std::numeric_limits<std::size_t>::max();

TEST(Printable, EscapesWhatActsOnATerminalOrForgesALine) {
    EXPECT_EQ(printable("a\x1b[2J\n"), "a\\u001b[2J\\n");
    EXPECT_EQ(printable("a\r\tb\x7f"), "a\\r\\tb\\u007f");
    EXPECT_EQ(printable("a\xc2\x9b"
                        "2J"),
              "a\\u009b2J")
        << "C1 as UTF-8";
    EXPECT_EQ(printable("a\x9b"
                        "2J\xff\xe2\x80"),
              "a\\x9b2J\\xff\\xe2\\x80")
        << "bytes that are not UTF-8, including C1";
    EXPECT_EQ(printable("a\xe2\x80\xae"
                        "b"),
              "a\\u202eb")
        << "right-to-left mark";
    EXPECT_EQ(printable("\xe2\x80\xa8"), "\\u2028") << "a line separator";
}

TEST(Printable, KeepsVisibleTextAndWhatIsEscaped) {
    const std::string text = "gr\xc3\xbc\xc3\x9f \xe2\x82\xac \xf0\x9f\x98\x80 C:\\temp \\u001b";
    EXPECT_EQ(printable(text), text);
    EXPECT_TRUE(is_printable(text));
    EXPECT_FALSE(is_printable(text + "\n"));
    EXPECT_FALSE(is_printable("\xff"));
    const std::string once = printable("\x1b\n\xff");
    EXPECT_EQ(printable(once), once);
}

TEST(Printable, KeepsTheLayoutOfATextOfSeveralLines) {
    EXPECT_EQ(printable("a\tb\n\x1b\n", unlimited, Lines::several), "a\tb\n\\u001b\n");
    EXPECT_TRUE(is_printable("a\tb\n", Lines::several));
    EXPECT_EQ(printable("a\rb", unlimited, Lines::several), "a\\rb") << "hides the text before it";
}

TEST(Printable, CutsAtTheLimitAndNeverWithinACharacter) {
    EXPECT_EQ(printable("abcdef", 3), "abc");
    EXPECT_EQ(printable("\xc3\xa4\xc3\xa4", 3), "\xc3\xa4");
    EXPECT_EQ(printable("a\x1b", 6), "a");
}

// The escapes are those of JSON: the report remains valid JSON, and a parser returns the original
// text.
TEST(Printable, LeavesAJsonTextAsItIsToItsReader) {
    std::string text = "\"\\ \n\x1b\x7f \xc2\x9b \xe2\x80\xae \xe2\x80\xa8 \xf0\x9f\x98\x80";
    const std::string line = printable(json_line(nlohmann::json{{"text", text}}), unlimited);
    EXPECT_TRUE(is_printable(line));
    EXPECT_EQ(nlohmann::json::parse(line)["text"], text) << line;
    const std::string odd = json_line(nlohmann::json{{"text", "a\xff"}});
    EXPECT_EQ(nlohmann::json::parse(odd)["text"], "a\xef\xbf\xbd") << "invalid UTF-8";
}

TEST(Printable, LeavesNothingThatActsInAnyText) {
    std::mt19937 random{1};
    for (int run = 0; run < 2000; ++run) {
        std::string text;
        for (auto left = random() % 40; left > 0; --left)
            text += static_cast<char>(random() % 3 == 0 ? random() : 0x80 + random() % 0x20);
        const std::string shown = printable(text);
        ASSERT_TRUE(is_printable(shown)) << shown;
        ASSERT_EQ(printable(shown), shown);
    }
}

using testing::HasSubstr;
using testing::ThrowsMessage;

// A full pipe without a reader, in a process whose loop has blocked the signals.
class StandardOutput : public testing::TestWithParam<int> {
  protected:
    StandardOutput() {
        ::sigemptyset(&signals_);
        ::sigaddset(&signals_, SIGINT);
        ::sigaddset(&signals_, SIGTERM);
        ::pthread_sigmask(SIG_BLOCK, &signals_, &before_);
        EXPECT_EQ(::pipe(ends_.data()), 0);
        ::fcntl(ends_[1], F_SETFL, O_NONBLOCK);
        const std::string page(4096, '.');
        while (::write(ends_[1], page.data(), page.size()) > 0) {
        }
        ::fcntl(ends_[1], F_SETFL, GetParam());
        ::alarm(60); // a test that blocks on the pipe would never end
    }
    ~StandardOutput() override {
        ::alarm(0);
        while (pending() != 0) {
        }
        ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
        for (const int end : ends_)
            ::close(end);
    }
    void print() { print_report(text_, ends_[1]); }
    static void send(int signal) { ::kill(::getpid(), signal); }
    // Takes a pending signal; 0: none is pending.
    int pending() const {
        const timespec at_once{};
        return std::max(0, ::sigtimedwait(&signals_, nullptr, &at_once));
    }

    const std::string text_ = std::string(300'000, 'x'); // more than the pipe holds
    std::array<int, 2> ends_{-1, -1};
    sigset_t signals_{};
    sigset_t before_{};
};

TEST_P(StandardOutput, ASignalEndsAWriteWhoseReaderDoesNotRead) {
    send(SIGTERM);
    EXPECT_THAT([this] { print(); },
                ThrowsMessage<std::runtime_error>(HasSubstr("its reader is blocked")));
    EXPECT_EQ(pending(), 0);
}

TEST_P(StandardOutput, FailsByAnErrorAndNoSignalWhenItsReaderIsGone) {
    ::close(ends_[0]);
    ends_[0] = -1;
    EXPECT_THAT([this] { print(); }, ThrowsMessage<std::runtime_error>(HasSubstr("Broken pipe")));
}

TEST_P(StandardOutput, ArrivesWholeWhenItsReaderGoesOn) {
    std::string read;
    std::thread reader{[&] {
        std::array<char, 4096> piece{};
        while (std::ranges::count(read, 'x') < std::ssize(text_)) {
            const ssize_t bytes = ::read(ends_[0], piece.data(), piece.size());
            if (bytes <= 0) break;
            read.append(piece.data(), static_cast<std::size_t>(bytes));
        }
    }};
    print();
    reader.join();
    EXPECT_EQ(read.substr(read.find_first_not_of('.')), text_);
}

TEST(Report, IsEscapedOnItsWayOut) {
    std::array<int, 2> ends{-1, -1};
    ASSERT_EQ(::pipe(ends.data()), 0);
    print_report("who\tdaq\x1b[2J \xc2\x9b\nnext\n", ends[1]);
    ::close(ends[1]);
    std::array<char, 128> piece{};
    const ssize_t bytes = ::read(ends[0], piece.data(), piece.size());
    ::close(ends[0]);
    ASSERT_GT(bytes, 0);
    EXPECT_EQ(std::string(piece.data(), static_cast<std::size_t>(bytes)),
              "who\tdaq\\u001b[2J \\u009b\nnext\n");
}

INSTANTIATE_TEST_SUITE_P(Blocking, StandardOutput, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(NonBlocking, StandardOutput, testing::Values(O_NONBLOCK));

TEST(TerminalLine, ReplacesThePreviousLine) {
    EXPECT_EQ(in_its_place("45%", 80), "\r45%\x1b[K");
}

TEST(TerminalLine, IsCutToWhatTheTerminalShowsInOneLine) {
    EXPECT_EQ(in_its_place("123456789", 10), "\r123456789\x1b[K");
    EXPECT_EQ(in_its_place("1234567890", 10), "\r123456789\x1b[K") << "the cursor needs a column";
    EXPECT_EQ(in_its_place("1234567890", 2), "\r1\x1b[K");
}

TEST(TerminalLine, ForeignNamesCannotLeaveTheLine) {
    EXPECT_EQ(in_its_place("a\nb\x1b[2J", 80), "\ra\\nb\\u001b[2J\x1b[K");
}

// A terminal as standard output, without a reader.
class UnreadTerminal {
  public:
    UnreadTerminal() : before_{::dup(STDOUT_FILENO)}, leader_{::posix_openpt(O_RDWR | O_NOCTTY)} {
        EXPECT_EQ(::grantpt(leader_.get()) + ::unlockpt(leader_.get()), 0);
        const Descriptor follower{::open(::ptsname(leader_.get()), O_RDWR | O_NOCTTY)};
        EXPECT_TRUE(follower.is_open());
        ::dup2(follower.get(), STDOUT_FILENO);
        ::alarm(60); // a test that blocks on the terminal would never end
    }
    ~UnreadTerminal() {
        ::alarm(0);
        ::dup2(before_.get(), STDOUT_FILENO);
    }
    UnreadTerminal(const UnreadTerminal&) = delete;
    UnreadTerminal& operator=(const UnreadTerminal&) = delete;

  private:
    Descriptor before_;
    Descriptor leader_;
};

TEST(TerminalLine, IsSkippedIfTheTerminalIsBlocked) {
    for (const std::size_t length : {1U, 100U, 255U, 1000U, 40'000U}) {
        const UnreadTerminal terminal;
        std::size_t lines = 0;
        while (put_on_terminal(std::string(length, 'x')))
            ++lines;
        EXPECT_GT(lines, 0U);
    }
}

} // namespace

} // namespace apps::terminal_test
