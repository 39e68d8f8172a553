// SPDX-License-Identifier: Apache-2.0
#include "apps/common/standard_output.hpp"

#include <gmock/gmock.h>

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <ctime>
#include <stdexcept>
#include <string>
#include <thread>

namespace apps {
namespace {

using testing::HasSubstr;
using testing::ThrowsMessage;

// A pipe that takes no more before somebody reads, in a process whose loop has blocked the signals.
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
        ::alarm(60); // whoever waits for the pipe waits for ever
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
    // Takes it; 0: none.
    int pending() const {
        const timespec at_once{};
        return std::max(0, ::sigtimedwait(&signals_, nullptr, &at_once));
    }

    const std::string text_ = std::string(300'000, 'x'); // more than the pipe takes
    std::array<int, 2> ends_{-1, -1};
    sigset_t signals_{};
    sigset_t before_{};
};

TEST_P(StandardOutput, IsGivenUpAtASignalWhileItsReaderTakesNothing) {
    send(SIGTERM);
    EXPECT_THAT([this] { print(); },
                ThrowsMessage<std::runtime_error>(HasSubstr("its reader takes nothing")));
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

} // namespace
} // namespace apps
