// SPDX-License-Identifier: Apache-2.0
#include "pubsub/discovery/board_thread.hpp"

#include "netio/base/destruction_watch.hpp"
#include "netio/base/signals_blocked.hpp"

#include <poll.h>
#include <utility>

namespace netio::pubsub::inline v0_2 {
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

BoardThread::BoardThread(EventLoop& loop, std::unique_ptr<Board> board, Work work,
                         std::function<bool()> take)
    : loop_{loop}, place_{std::make_shared<Place>(std::move(board))}, take_{std::move(take)},
      thread_{new std::thread{start_without_signals([place = place_, run = std::move(work)] {
          run(*place);
          place->done_.call();
      })}} {
    loop_.add(*this);
}

BoardThread::~BoardThread() {
    if (destroyed_ != nullptr) *destroyed_ = true;
    if (!loop_.may_destroy("Discovery or Announcer")) return; // the thread is the parent's
    loop_.remove(*this);
    place_->ended_ = true;
    place_->board().interrupt();
    if (readable_within(place_->done_.descriptor(), end_wait)) {
        thread_->join();
    } else {
        thread_->detach();
    }
}

std::size_t BoardThread::drain(std::size_t) {
    place_->news_->answer();
    const DestructionWatch watch{destroyed_};
    const auto take = take_; // it may destroy this
    const bool more = take();
    if (watch.destroyed()) return 1;
    more_ = more;
    if (more_) loop_.activate(*this);
    return 1;
}

} // namespace netio::pubsub::inline v0_2
