// SPDX-License-Identifier: Apache-2.0

// The poller that really sleeps: epoll (level-triggered), an eventfd to be woken from other
// threads, and a timerfd that stands for the deadline when the loop lives inside another one.

#include "netio/base/check.hpp"
#include "netio/base/status.hpp"
#include "netio/loop/event_loop.hpp"

#include <array>
#include <cerrno>
#include <ctime>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

namespace netio::inline v0_2 {
namespace {

class Descriptor {
  public:
    Descriptor(int fd, const char* step) : fd_{fd} {
        if (fd < 0) throw FabricError{{errno, std::system_category()}, step};
    }
    ~Descriptor() { ::close(fd_); }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;
    int get() const noexcept { return fd_; }

  private:
    int fd_;
};

timespec to_timespec(Duration duration) noexcept {
    const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(duration);
    return {static_cast<time_t>(seconds.count()), static_cast<long>((duration - seconds).count())};
}

class EpollPoller final : public Poller {
  public:
    EpollPoller()
        : epoll_{::epoll_create1(EPOLL_CLOEXEC), "cannot create an epoll descriptor"},
          wake_{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK), "cannot create an eventfd"},
          timer_{::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK),
                 "cannot create a timerfd"} {
        watch(wake_.get(), EPOLLIN, &wake_);
        watch(timer_.get(), EPOLLIN, &timer_);
    }

    TimePoint now() override { return Clock::now(); }

    void add(EventSource& source) override {
        NETIO_CHECK_MSG(source.wait_fd() >= 0, "this source cannot be waited for with epoll");
        watch(source.wait_fd(), source.wait_events(), &source);
    }

    void remove(EventSource& source) override {
        // The owner may have closed the descriptor, which removes it as well.
        ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, source.wait_fd(), nullptr);
    }

    void wait(TimePoint deadline, std::vector<EventSource*>& fired) override {
        const timespec timeout = to_timespec(until(deadline));
        const bool forever = deadline == TimePoint::max();
        const int count =
            ::epoll_pwait2(epoll_.get(), events_.data(), static_cast<int>(events_.size()),
                           forever ? nullptr : &timeout, nullptr);
        if (count < 0) {
            NETIO_CHECK_MSG(errno == EINTR, "epoll_pwait2 failed; this needs Linux 5.11");
            return;
        }
        for (int i = 0; i < count; ++i) {
            void* const tag = events_[static_cast<std::size_t>(i)].data.ptr;
            if (tag == &wake_) {
                clear(wake_.get());
            } else if (tag == &timer_) {
                clear(timer_.get());
                armed_ = TimePoint::max();
            } else {
                fired.push_back(static_cast<EventSource*>(tag));
            }
        }
    }

    void wake() noexcept override {
        const std::uint64_t one = 1;
        // EAGAIN means that the counter is full: the descriptor is readable, which is all we want.
        [[maybe_unused]] const auto written = ::write(wake_.get(), &one, sizeof one);
    }

    int pollable_fd(TimePoint deadline) override {
        if (deadline != armed_) {
            itimerspec when{};
            if (deadline != TimePoint::max()) {
                const Duration left = until(deadline);
                // Zero would disarm the timer.
                when.it_value = to_timespec(left > Duration{0} ? left : Duration{1});
            }
            NETIO_CHECK(::timerfd_settime(timer_.get(), 0, &when, nullptr) == 0);
            armed_ = deadline;
        }
        return epoll_.get();
    }

  private:
    static Duration until(TimePoint deadline) {
        if (deadline == TimePoint::max() || deadline == TimePoint::min()) return Duration{0};
        const Duration left = deadline - Clock::now();
        return left > Duration{0} ? left : Duration{0};
    }

    void watch(int fd, std::uint32_t events, void* tag) {
        epoll_event event{};
        event.events = events;
        event.data.ptr = tag;
        if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0) {
            throw FabricError{{errno, std::system_category()},
                              "cannot watch descriptor " + std::to_string(fd)};
        }
    }

    static void clear(int fd) noexcept {
        std::uint64_t count = 0;
        [[maybe_unused]] const auto got = ::read(fd, &count, sizeof count);
    }

    Descriptor epoll_;
    Descriptor wake_;
    Descriptor timer_;
    TimePoint armed_ = TimePoint::max();
    std::array<epoll_event, 64> events_{};
};

} // namespace

std::unique_ptr<Poller> make_epoll_poller() {
    return std::make_unique<EpollPoller>();
}

} // namespace netio::inline v0_2
