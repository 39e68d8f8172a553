// SPDX-License-Identifier: Apache-2.0
#include "apps/top/background_look.hpp"

#include "apps/common/descriptor.hpp"
#include "apps/common/thread_without_signals.hpp"
#include "apps/top/asking.hpp"

#include <sys/eventfd.h>

#include <cerrno>
#include <mutex>
#include <system_error>
#include <utility>

namespace apps::top {

struct BackgroundLook::Shared {
    Shared() : event{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)} {
        if (!event.is_open())
            throw std::system_error{errno, std::generic_category(), "cannot begin to look"};
    }
    std::vector<Look> take() {
        eventfd_t count = 0;
        ::eventfd_read(event.get(), &count);
        const std::lock_guard lock{mutex};
        return std::move(looks);
    }

    const Descriptor event;
    std::mutex mutex;
    std::vector<Look> looks;
};

BackgroundLook::BackgroundLook(netio::EventLoop& loop,
                               std::function<void(std::vector<Look>)> on_seen)
    : shared_{std::make_shared<Shared>()}, watch_{loop, shared_->event.get(),
                                                  netio::DescriptorWatch::Interest::readable,
                                                  [this, on_seen = std::move(on_seen)] {
                                                      on_seen(shared_->take());
                                                  }} {}

void BackgroundLook::start(std::vector<std::string> sources) {
    start_thread_without_signals(
        [shared = shared_, sources = std::move(sources), names = names_]() mutable {
            std::vector<Look> looks = look_at(sources, names);
            const std::lock_guard lock{shared->mutex};
            shared->looks = std::move(looks);
            ::eventfd_write(shared->event.get(), 1);
        });
}

} // namespace apps::top
