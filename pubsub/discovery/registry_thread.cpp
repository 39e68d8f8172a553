// SPDX-License-Identifier: Apache-2.0
#include "pubsub/discovery/registry_thread.hpp"

#include "netio/base/destruction_watch.hpp"
#include "netio/base/signals_blocked.hpp"

#include <poll.h>
#include <utility>

namespace netio::pubsub::inline v0_3 {
namespace {

std::thread start_without_signals(std::function<void()> work) {
    const AllSignalsBlocked blocked;
    return std::thread{std::move(work)};
}

bool readable_within(int descriptor, std::chrono::milliseconds time) {
    pollfd one{.fd = descriptor, .events = POLLIN, .revents = 0};
    return ::poll(&one, 1, static_cast<int>(time.count())) > 0;
}

} // namespace

RegistryThread::RegistryThread(EventLoop& loop, std::unique_ptr<Registry> registry, Work work,
                               std::function<bool()> take)
    : loop_{loop}, shared_{std::make_shared<Shared>(std::move(registry))}, take_{std::move(take)},
      thread_{new std::thread{start_without_signals([shared = shared_, run = std::move(work)] {
          run(*shared);
          shared->done_.call();
      })}} {
    loop_.add(*this);
}

RegistryThread::~RegistryThread() {
    if (destroyed_ != nullptr) *destroyed_ = true;
    if (!loop_.may_destroy("Discovery or Announcer"))
        return; // the thread belongs to the parent process
    loop_.remove(*this);
    shared_->ended_ = true;
    shared_->registry().interrupt();
    if (readable_within(shared_->done_.descriptor(), end_wait)) {
        thread_->join();
    } else {
        thread_->detach();
    }
}

std::size_t RegistryThread::drain(std::size_t) {
    shared_->news_->answer();
    const DestructionWatch watch{destroyed_};
    const auto take = take_; // it may destroy this
    const bool more = take();
    if (watch.destroyed()) return 1;
    more_ = more;
    if (more_) loop_.activate(*this);
    return 1;
}

} // namespace netio::pubsub::inline v0_3
