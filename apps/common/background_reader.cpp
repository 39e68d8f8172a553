// SPDX-License-Identifier: Apache-2.0
#include "apps/common/background_reader.hpp"

#include "apps/common/descriptor.hpp"
#include "apps/common/thread_without_signals.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cerrno>
#include <condition_variable>
#include <mutex>
#include <system_error>
#include <utility>
#include <vector>

namespace apps {

struct BackgroundReader::Shared {
    Shared(int descriptor, std::string whose)
        : place{std::move(whose)}, input{::fcntl(descriptor, F_DUPFD_CLOEXEC, 0)},
          event{::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)}, next(piece_bytes), given(piece_bytes) {
        if (!event.is_open())
            throw std::system_error{errno, std::generic_category(),
                                    "cannot begin a thread for input"};
    }

    void serve() {
        for (;;) {
            const ssize_t got = ::read(input.get(), next.data(), next.size());
            if (got < 0 && errno == EINTR) continue;
            if (got < 0 && errno == EAGAIN) { // another process has made it non-blocking
                pollfd waiting{.fd = input.get(), .events = POLLIN, .revents = 0};
                ::poll(&waiting, 1, -1);
                continue;
            }
            const int error = got < 0 ? errno : 0;
            std::unique_lock lock{mutex};
            if (error != 0) failure = place + ": " + std::generic_category().message(error);
            filled = got > 0 ? static_cast<std::size_t>(got) : 0;
            at_end = got <= 0;
            ::eventfd_write(event.get(), 1);
            if (at_end) return;
            changed.wait(lock, [this] { return filled == 0 || dropped; });
            if (dropped) return;
        }
    }

    const std::string place;
    const Descriptor input;
    const Descriptor event;
    mutable std::mutex mutex;
    std::condition_variable changed;
    std::vector<std::byte> next; // the thread's while `filled` is 0
    std::size_t filled = 0;
    std::vector<std::byte> given; // the owner's
    std::string failure;
    bool at_end = false;
    bool dropped = false; // the owner is gone
};

BackgroundReader::BackgroundReader(int descriptor, std::string place)
    : shared_{std::make_shared<Shared>(descriptor, std::move(place))} {
    start_thread_without_signals([shared = shared_] { shared->serve(); });
}

BackgroundReader::~BackgroundReader() {
    const std::lock_guard lock{shared_->mutex};
    shared_->dropped = true;
    shared_->changed.notify_one();
}

std::span<const std::byte> BackgroundReader::take() {
    const std::lock_guard lock{shared_->mutex};
    const std::size_t bytes = std::exchange(shared_->filled, 0);
    if (bytes == 0) return {}; // the thread may be reading into `next`
    std::swap(shared_->next, shared_->given);
    shared_->changed.notify_one();
    return std::span{shared_->given}.first(bytes);
}

bool BackgroundReader::has_ended() const {
    const std::lock_guard lock{shared_->mutex};
    return shared_->at_end && shared_->filled == 0;
}

std::string BackgroundReader::failure() const {
    const std::lock_guard lock{shared_->mutex};
    return shared_->failure;
}

int BackgroundReader::event_descriptor() const noexcept {
    return shared_->event.get();
}

void BackgroundReader::clear_event() noexcept {
    eventfd_t count = 0;
    ::eventfd_read(shared_->event.get(), &count);
}

} // namespace apps
