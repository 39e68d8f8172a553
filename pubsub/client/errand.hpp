// SPDX-License-Identifier: Apache-2.0
#pragma once

// Something that a client's thread is to do, and that any thread may ask for. However often it is
// asked for it waits once, so there is always room for it among the thread's tasks.

#include <atomic>
#include <functional>
#include <memory>
#include <utility>

namespace netio::pubsub::inline v0_2 {

// For the tasks of the client's own; false: the thread has ended.
using PostErrand = std::function<bool(std::function<void()>)>;

class Errand {
  public:
    Errand(PostErrand post, std::function<void()> run)
        : post_{std::move(post)}, run_{std::move(run)} {}

    // Any thread. `alive` is kept until it has run.
    void ask(std::shared_ptr<const void> alive = {}) {
        if (asked_.load() || asked_.exchange(true)) return;
        const bool posted = post_([this, alive = std::move(alive)] {
            asked_.store(false); // what is asked for from here on needs another look
            run_();
        });
        if (!posted) asked_.store(false);
    }

  private:
    PostErrand post_;
    std::function<void()> run_;
    std::atomic<bool> asked_{false};
};

} // namespace netio::pubsub::inline v0_2
