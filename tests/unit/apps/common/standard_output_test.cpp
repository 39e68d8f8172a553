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
    void print(WaitUntil until) { print_report(text_, until, ends_[1]); }
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

TEST_P(StandardOutput, ThatNobodyReadsIsGivenUpAtTheSignalThatIsTheLast) {
    const auto given_up = [](auto call) {
        EXPECT_THAT(call, ThrowsMessage<std::runtime_error>(HasSubstr("nobody reads it")));
    };
    send(SIGTERM);
    given_up([this] { print(WaitUntil::first_signal); });
    EXPECT_EQ(pending(), 0);
    send(SIGINT);
    send(SIGTERM);
    given_up([this] { print(WaitUntil::second_signal); });
    EXPECT_EQ(pending(), 0);
}

TEST_P(StandardOutput, ArrivesWholeWhereItsReaderGoesOnAndTheLoopHearsTheFirstSignal) {
    send(SIGINT);
    std::string read;
    std::thread reader{[&] {
        std::array<char, 4096> piece{};
        while (std::ranges::count(read, 'x') < std::ssize(text_)) {
            const ssize_t bytes = ::read(ends_[0], piece.data(), piece.size());
            if (bytes <= 0) break;
            read.append(piece.data(), static_cast<std::size_t>(bytes));
        }
    }};
    print(WaitUntil::second_signal);
    reader.join();
    EXPECT_EQ(read.substr(read.find_first_not_of('.')), text_);
    EXPECT_EQ(pending(), SIGINT);
}

INSTANTIATE_TEST_SUITE_P(Blocking, StandardOutput, testing::Values(0));
INSTANTIATE_TEST_SUITE_P(NonBlocking, StandardOutput, testing::Values(O_NONBLOCK));

} // namespace
} // namespace apps
