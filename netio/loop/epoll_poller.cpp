// SPDX-License-Identifier: Apache-2.0

// The poller of real time: epoll (level-triggered), an eventfd for wake-ups from other threads, and
// a timerfd for the deadline if the loop runs inside another one.

#include "netio/base/check.hpp"
#include "netio/base/descriptor_error.hpp"
#include "netio/base/status.hpp"
#include "netio/loop/event_source.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <ctime>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>
#include <unordered_map>

namespace netio::inline v0_3 {
namespace {

class Descriptor {
  public:
    Descriptor(int fd, const char* step) : fd_{fd} {
        if (fd < 0) throw descriptor_error(step);
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
        control(EPOLL_CTL_ADD, wake_.get(), EPOLLIN);
        control(EPOLL_CTL_ADD, timer_.get(), EPOLLIN);
    }

    TimePoint now() override { return Clock::now(); }

    void add(EventSource& source) override {
        const int fd = source.wait_fd();
        if (fd < 0) throw cannot_watch(fd, EBADF);
        Sources& sources = sources_[fd];
        sources.push_back(&source);
        try {
            watch(fd, sources);
        } catch (...) {
            remove(source);
            throw;
        }
    }

    void remove(EventSource& source) override {
        const auto found = sources_.find(source.wait_fd());
        if (found == sources_.end()) return;
        std::erase(found->second, &source);
        if (found->second.empty()) {
            // The owner may have closed the descriptor, which removes it as well.
            ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, found->first, nullptr);
            sources_.erase(found);
        } else {
            control(EPOLL_CTL_MOD, found->first, interest(found->second));
        }
    }

    void wait(TimePoint deadline, std::vector<EventSource*>& fired) override {
        const int count = wait_for_events(deadline);
        if (count < 0) {
            NETIO_CHECK_MSG(errno == EINTR, "waiting with epoll failed");
            return;
        }
        for (int i = 0; i < count; ++i) {
            const epoll_event& event = events_[static_cast<std::size_t>(i)];
            if (event.data.fd == wake_.get()) {
                clear(wake_.get());
            } else if (event.data.fd == timer_.get()) {
                clear(timer_.get());
                armed_ = TimePoint::max();
            } else {
                fire(event, fired);
            }
        }
    }

    void wake() noexcept override {
        const std::uint64_t one = 1;
        // EAGAIN means that the counter is full: the descriptor is readable, which is enough.
        [[maybe_unused]] const auto written = ::write(wake_.get(), &one, sizeof one);
    }

    int pollable_fd(TimePoint deadline) override {
        arm_timer(deadline);
        return epoll_.get();
    }

  private:
    using Sources = std::vector<EventSource*>;

    static Duration until(TimePoint deadline) {
        if (deadline == TimePoint::max() || deadline == TimePoint::min()) return Duration{0};
        const Duration left = deadline - Clock::now();
        return left > Duration{0} ? left : Duration{0};
    }

    int wait_for_events(TimePoint deadline) {
        const auto capacity = static_cast<int>(events_.size());
        const Duration left = until(deadline);
        const bool forever = deadline == TimePoint::max();
        // Milliseconds are too coarse for other time-outs.
        if (forever || left == Duration{0}) {
            return ::epoll_wait(epoll_.get(), events_.data(), capacity, forever ? -1 : 0);
        }
#ifdef SYS_epoll_pwait2
        if (has_fine_wait_) {
            const timespec timeout = to_timespec(left);
            const auto count = ::syscall(SYS_epoll_pwait2, epoll_.get(), events_.data(), capacity,
                                         &timeout, nullptr, std::size_t{0});
            // Kernels before Linux 5.11 do not have epoll_pwait2, and sandboxes may not allow it.
            if (count >= 0 || (errno != ENOSYS && errno != EPERM)) return static_cast<int>(count);
            has_fine_wait_ = false;
        }
#endif
        arm_timer(deadline);
        return ::epoll_wait(epoll_.get(), events_.data(), capacity, -1);
    }

    void fire(const epoll_event& event, std::vector<EventSource*>& fired) {
        const auto found = sources_.find(event.data.fd);
        if (found == sources_.end()) return; // its owner closed it too early
        for (EventSource* const source : found->second) {
            // An error is reported to all sources of the descriptor.
            const std::uint32_t wanted = source->wait_events() | EPOLLERR | EPOLLHUP;
            if ((event.events & wanted) != 0) fired.push_back(source);
        }
    }

    void arm_timer(TimePoint deadline) {
        if (deadline == armed_) return;
        itimerspec when{};
        if (deadline != TimePoint::max()) {
            const Duration left = until(deadline);
            // Zero would disarm the timer.
            when.it_value = to_timespec(left > Duration{0} ? left : Duration{1});
        }
        NETIO_CHECK(::timerfd_settime(timer_.get(), 0, &when, nullptr) == 0);
        armed_ = deadline;
    }

    static std::uint32_t interest(const Sources& sources) {
        std::uint32_t events = 0;
        for (const EventSource* const source : sources)
            events |= source->wait_events();
        return events;
    }

    void watch(int fd, const Sources& sources) {
        // After a descriptor was closed, epoll does not know its number any more.
        if (sources.size() > 1 && control(EPOLL_CTL_MOD, fd, interest(sources))) return;
        if (!control(EPOLL_CTL_ADD, fd, interest(sources))) {
            throw cannot_watch(fd, errno);
        }
    }

    static FabricError cannot_watch(int fd, int error) {
        return {{error, std::system_category()}, "cannot watch descriptor " + std::to_string(fd)};
    }

    bool control(int operation, int fd, std::uint32_t events) noexcept {
        epoll_event event{};
        event.events = events;
        event.data.fd = fd;
        return ::epoll_ctl(epoll_.get(), operation, fd, &event) == 0;
    }

    static void clear(int fd) noexcept {
        std::uint64_t count = 0;
        [[maybe_unused]] const auto got = ::read(fd, &count, sizeof count);
    }

    Descriptor epoll_;
    Descriptor wake_;
    Descriptor timer_;
    TimePoint armed_ = TimePoint::max();
    bool has_fine_wait_ = true;
    std::unordered_map<int, Sources> sources_; // by descriptor
    std::array<epoll_event, 64> events_{};
};

} // namespace

std::unique_ptr<Poller> make_epoll_poller() {
    return std::make_unique<EpollPoller>();
}

} // namespace netio::inline v0_3
