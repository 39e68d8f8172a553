// SPDX-License-Identifier: Apache-2.0
#include "apps/publish/loop_thread.hpp"

#include "netio/base/check.hpp"
#include "netio/base/signals_blocked.hpp"

#include <chrono>
#include <exception>
#include <future>
#include <optional>
#include <utility>

namespace apps {
namespace {
constexpr std::chrono::seconds tell_interval{1};
}

LoopThread::LoopThread(PublishLoop::Options options, const PublishArguments& arguments,
                       netio::EventLoop& owner, Events events)
    : options_{std::move(options)}, owner_{owner}, events_{std::move(events)} {
    std::promise<void> listens;
    std::future<void> made = listens.get_future();
    // The promise is the thread's: it is still in it when the one who waits has gone on.
    auto work = [this, &arguments, listens = std::move(listens)]() mutable {
        try {
            loop_ = std::make_unique<PublishLoop>(options_, arguments,
                                                  [this] { loop_->loop().stop(); });
            loop_->open();
        } catch (...) {
            return listens.set_exception(std::current_exception());
        }
        listens.set_value();
        run();
    };
    {
        const netio::AllSignalsBlocked blocked;
        thread_ = std::thread{std::move(work)};
    }
    try {
        made.get();
    } catch (...) {
        thread_.join();
        throw;
    }
}

LoopThread::~LoopThread() {
    stop();
    join();
}

void LoopThread::run() {
    std::optional<netio::Timer> tell;
    if (events_.on_sums) {
        tell.emplace(loop_->loop(), [this, &tell] {
            // Where the owner has no room for it, it learns the next.
            static_cast<void>(
                owner_.post([told = events_.on_sums, sums = loop_->sums()] { told(sums); }));
            tell->start(tell_interval);
        });
        tell->start(tell_interval);
    }
    loop_->loop().run();
    const bool told = owner_.post(events_.on_ended);
    NETIO_CHECK_MSG(told, "the first loop has no room for the end of another");
}

void LoopThread::start() {
    const bool posted = loop_->loop().post([this] { loop_->start(); });
    NETIO_CHECK_MSG(posted, "a loop has no room for its beginning");
}

void LoopThread::end(std::string_view why) {
    const bool posted = loop_->loop().post([this, why = std::string{why}] { loop_->end(why); });
    NETIO_CHECK_MSG(posted, "a loop has no room for its end");
}

void LoopThread::stop() noexcept {
    loop_->loop().stop();
}

void LoopThread::join() {
    if (thread_.joinable()) thread_.join();
}

} // namespace apps
