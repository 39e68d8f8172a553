// SPDX-License-Identifier: Apache-2.0
#include "netio/loop/descriptor_watch.hpp"

#include <sys/epoll.h>
#include <utility>

namespace netio::inline v0_3 {

struct DescriptorWatch::Source final : EventSource, Retired {
    Source(int descriptor, Interest interested, std::function<void()> call)
        : fd{descriptor}, interest{interested}, handler{std::move(call)} {}

    int wait_fd() const noexcept override { return fd; }
    std::uint32_t wait_events() const noexcept override {
        return interest == Interest::readable ? EPOLLIN : EPOLLOUT;
    }
    std::size_t drain(std::size_t) override {
        // A newly added source is active, too, but only the first wait shows whether it is ready.
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
    loop_.retire(std::move(source_)); // its handler may be destroying this watch
}

} // namespace netio::inline v0_3
