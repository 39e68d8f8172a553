// SPDX-License-Identifier: Apache-2.0
#include "pubsub/discovery/directory_registry.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <csignal>
#include <future>
#include <memory>

namespace netio::pubsub::registry_thread_test {
namespace {

class EmptyRegistry : public Registry {
  public:
    void put(const std::string&, const std::string&) override {}
    bool keep(const std::string&) override { return false; }
    std::optional<std::string> get(const std::string&) override { return {}; }
    void remove(const std::string&) override {}
    void look(Visitor&) override {}
    void wait(TimePoint) override {}
    void interrupt() noexcept override {}
};

// Exists as long as its thread uses it.
class DetachedRegistry final : public EmptyRegistry {
  public:
    explicit DetachedRegistry(std::promise<void>& gone) : gone_{gone} {}
    ~DetachedRegistry() override { gone_.set_value(); }

  private:
    std::promise<void>& gone_;
};

// A signal handler of the program must not run on a thread that the program does not know.
TEST(RegistryThread, TakesNoneOfTheProgramsSignals) {
    sigset_t before{};
    ASSERT_EQ(::pthread_sigmask(SIG_BLOCK, nullptr, &before), 0);
    std::promise<sigset_t> seen;
    EventLoop loop;
    const RegistryThread thread{loop, std::make_unique<EmptyRegistry>(),
                                [&seen](RegistryThread::Shared&) {
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
            << signal << ": the program's own thread handles it as before";
    }
}

// For example because a file server does not answer.
TEST(RegistryThread, AThreadThatDoesNotEndKeepsItsRegistry) {
    std::promise<void> gone;
    std::promise<void> go_on;
    bool has_ended = false;
    {
        EventLoop loop;
        std::promise<void> begun;
        const RegistryThread thread{
            loop, std::make_unique<DetachedRegistry>(gone),
            [&, may_go = go_on.get_future().share()](RegistryThread::Shared&) {
                begun.set_value();
                may_go.get();
                has_ended = true;
            },
            [] { return false; }};
        begun.get_future().get();
    }
    std::future<void> is_gone = gone.get_future();
    EXPECT_NE(is_gone.wait_for(std::chrono::seconds{0}), std::future_status::ready);
    go_on.set_value();
    is_gone.get();
    EXPECT_TRUE(has_ended);
}

} // namespace
} // namespace netio::pubsub::registry_thread_test
