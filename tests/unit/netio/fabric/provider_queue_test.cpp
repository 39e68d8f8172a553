// SPDX-License-Identifier: Apache-2.0
#include "netio/fabric/provider_queue.hpp"

#include <gtest/gtest.h>

#include <array>
#include <sys/epoll.h>
#include <unistd.h>

namespace netio::fabric::provider_queue_test {
namespace {

class SignalPipe : public testing::Test {
  protected:
    SignalPipe() {
        EXPECT_EQ(::pipe(one_.data()), 0);
        EXPECT_EQ(::pipe(other_.data()), 0);
    }
    ~SignalPipe() override {
        for (const int fd : {one_[0], one_[1], other_[0], other_[1], epoll_})
            ::close(fd);
    }
    void wait_for(int fd) {
        epoll_event event{};
        event.events = EPOLLIN;
        ASSERT_EQ(::epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event), 0);
    }
    int ready() {
        epoll_event event{};
        return ::epoll_wait(epoll_, &event, 1, 0);
    }
    static void write_to(const std::array<int, 2>& pipe) { ASSERT_EQ(::write(pipe[1], "x", 1), 1); }

    int epoll_ = ::epoll_create1(EPOLL_CLOEXEC);
    std::array<int, 2> one_{};
    std::array<int, 2> other_{};
};

TEST_F(SignalPipe, WakesNothingAfterItsRemoval) {
    wait_for(one_[0]);
    write_to(one_);
    ASSERT_EQ(ready(), 1);
    EXPECT_TRUE(take_out_signal_pipe(epoll_));
    EXPECT_EQ(ready(), 0);
    wait_for(other_[0]);
    write_to(other_);
    EXPECT_EQ(ready(), 1) << "a descriptor that is added later wakes";
}

TEST_F(SignalPipe, StaysIfThereIsAnotherDescriptor) {
    wait_for(one_[0]);
    wait_for(other_[0]);
    EXPECT_FALSE(take_out_signal_pipe(epoll_));
    write_to(other_);
    EXPECT_EQ(ready(), 1);
}

TEST_F(SignalPipe, IsNotSearchedInOtherDescriptors) {
    EXPECT_FALSE(take_out_signal_pipe(epoll_)) << "it has no descriptors";
    EXPECT_FALSE(take_out_signal_pipe(one_[0]));
    EXPECT_FALSE(take_out_signal_pipe(-1));
}

} // namespace
} // namespace netio::fabric::provider_queue_test
