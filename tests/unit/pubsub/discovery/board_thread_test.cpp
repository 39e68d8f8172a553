// SPDX-License-Identifier: Apache-2.0
#include "pubsub/discovery/board_thread.hpp"

#include <gtest/gtest.h>

#include <csignal>
#include <future>

namespace netio::pubsub {
namespace {

class NoBoard final : public Board {
  public:
    void put(const std::string&, const std::string&) override {}
    bool keep(const std::string&) override { return false; }
    std::optional<std::string> get(const std::string&) override { return {}; }
    void remove(const std::string&) override {}
    void look(Visitor&) override {}
    void wait(TimePoint) override {}
    void interrupt() noexcept override {}
};

// A signal whose handler belongs to the program must not run beside it, on a thread that it does
// not know.
TEST(BoardThread, TakesNoneOfTheProgramsSignals) {
    sigset_t before{};
    ASSERT_EQ(::pthread_sigmask(SIG_BLOCK, nullptr, &before), 0);
    std::promise<sigset_t> seen;
    EventLoop loop;
    const BoardThread thread{loop, std::make_unique<NoBoard>(),
                             [&seen](BoardThread::Place&) {
                                 sigset_t blocked{};
                                 ::pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
                                 seen.set_value(blocked);
                             },
                             [] { return false; }};
    const sigset_t blocked = seen.get_future().get();
    sigset_t after{};
    ASSERT_EQ(::pthread_sigmask(SIG_BLOCK, nullptr, &after), 0);
    for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGALRM, SIGCHLD}) {
        EXPECT_EQ(::sigismember(&blocked, signal), 1) << signal;
        EXPECT_EQ(::sigismember(&after, signal), ::sigismember(&before, signal))
            << signal << ": the program's own thread takes it as before";
    }
}

} // namespace
} // namespace netio::pubsub
