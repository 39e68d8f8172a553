// SPDX-License-Identifier: Apache-2.0
#include "netio/loop/process.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <string>

namespace netio::signal_handlers_test {
namespace {

void of_the_program(int) {}

using Handler = void (*)(int);

Handler handler_of(int signal) {
    struct sigaction action {};
    EXPECT_EQ(::sigaction(signal, nullptr, &action), 0);
    return action.sa_handler;
}

// The handler of a signal is restored at the end.
class SignalHandlers : public testing::TestWithParam<Handler> {
  protected:
    SignalHandlers() { ::sigaction(SIGTERM, nullptr, &before_); }
    ~SignalHandlers() override { ::sigaction(SIGTERM, &before_, nullptr); }

  private:
    struct sigaction before_ {};
};

TEST_P(SignalHandlers, InstalledByTheProgramStay) {
    ASSERT_NE(std::signal(SIGTERM, GetParam()), SIG_ERR);
    undo_foreign_signal_handlers();
    EXPECT_EQ(handler_of(SIGTERM), GetParam());
    {
        const KeptSignalHandlers kept;
        EXPECT_EQ(handler_of(SIGTERM), GetParam());
    }
    EXPECT_EQ(handler_of(SIGTERM), GetParam());
}

// Only a library that is known for it loses the handler that it installed.
TEST_P(SignalHandlers, InstalledInTheMeantimeStay) {
    ASSERT_NE(std::signal(SIGTERM, SIG_DFL), SIG_ERR);
    {
        const KeptSignalHandlers kept;
        ASSERT_NE(std::signal(SIGTERM, GetParam()), SIG_ERR);
    }
    EXPECT_EQ(handler_of(SIGTERM), GetParam());
}

INSTANTIATE_TEST_SUITE_P(Handlers, SignalHandlers,
                         testing::Values(SIG_DFL, SIG_IGN, of_the_program),
                         [](const testing::TestParamInfo<Handler>& each) {
                             return std::string{each.param == SIG_DFL   ? "Default"
                                                : each.param == SIG_IGN ? "Ignored"
                                                                        : "Own"};
                         });

} // namespace
} // namespace netio::signal_handlers_test
