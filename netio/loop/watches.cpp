// SPDX-License-Identifier: Apache-2.0

// Foreign descriptors and operating-system signals as sources of the event loop.

#include "netio/base/status.hpp"
#include "netio/loop/event_loop.hpp"

#include <cerrno>
#include <csignal>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>
#include <utility>

namespace netio::inline v0_2 {

struct DescriptorWatch::Source final : EventSource, Retired {
    Source(int descriptor, Interest interested, std::function<void()> call)
        : fd{descriptor}, interest{interested}, handler{std::move(call)} {}

    int wait_fd() const noexcept override { return fd; }
    std::uint32_t wait_events() const noexcept override {
        return interest == Interest::readable ? EPOLLIN : EPOLLOUT;
    }
    std::size_t drain(std::size_t) override {
        // A source is active when it was just added, too; the first wait tells whether it is ready.
        if (!std::exchange(waited, true)) return 0;
        handler();
        return 1;
    }
    bool may_sleep() override { return true; }

    int fd;
    Interest interest;
    std::function<void()> handler;
    bool waited = false;
};

DescriptorWatch::DescriptorWatch(EventLoop& loop, int fd, Interest interest,
                                 std::function<void()> handler)
    : loop_{loop}, source_{std::make_unique<Source>(fd, interest, std::move(handler))} {
    loop_.add(*source_);
}

DescriptorWatch::~DescriptorWatch() {
    loop_.remove(*source_);
    loop_.retire(std::move(source_)); // its handler may be what destroys us
}

struct SignalWatch::Descriptor {
    explicit Descriptor(const std::vector<int>& signals) {
        sigemptyset(&mask);
        for (const int signal : signals)
            sigaddset(&mask, signal);
        pthread_sigmask(SIG_BLOCK, &mask, &previous);
        fd = ::signalfd(-1, &mask, SFD_CLOEXEC | SFD_NONBLOCK);
        if (fd < 0) {
            const int error = errno;
            pthread_sigmask(SIG_SETMASK, &previous, nullptr);
            throw FabricError{{error, std::system_category()}, "cannot create a signalfd"};
        }
    }
    ~Descriptor() {
        ::close(fd);
        pthread_sigmask(SIG_SETMASK, &previous, nullptr);
    }
    Descriptor(const Descriptor&) = delete;
    Descriptor& operator=(const Descriptor&) = delete;

    // The next pending signal, or 0.
    int next() const noexcept {
        signalfd_siginfo info{};
        return ::read(fd, &info, sizeof info) == sizeof info ? static_cast<int>(info.ssi_signo) : 0;
    }

    sigset_t mask{};
    sigset_t previous{};
    int fd = -1;
};

SignalWatch::SignalWatch(EventLoop& loop, const std::vector<int>& signals,
                         std::function<void(int)> handler)
    : descriptor_{std::make_unique<Descriptor>(signals)} {
    // One signal a turn, so that a handler may destroy the watch; level triggering brings the next.
    watch_ = std::make_unique<DescriptorWatch>(
        loop, descriptor_->fd, DescriptorWatch::Interest::readable,
        [descriptor = descriptor_.get(), handler = std::move(handler)] {
            if (const int signal = descriptor->next(); signal != 0) handler(signal);
        });
}

SignalWatch::~SignalWatch() = default;

} // namespace netio::inline v0_2
