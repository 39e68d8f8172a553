// SPDX-License-Identifier: Apache-2.0
#pragma once

// A registry controlled by the test: its events are delivered from the loop, in order. During a
// partition it collects changes; when the partition ends it reports them as a reader that looks
// again would see them.

#include "netio/loop/event_loop.hpp"
#include "pubsub/discovery/discovery.hpp"

#include <chrono>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace netio::test {

class SimDiscovery final : public pubsub::Discovery {
  public:
    explicit SimDiscovery(EventLoop& loop) : turn_{loop, [this] { tell(); }} {}

    void watch(Handler& handler) override {
        handler_ = &handler;
        wake();
    }

    void unwatch() noexcept override { handler_ = nullptr; }

    // Announces a publisher to the readers.
    void announce(pubsub::Announcement announcement) {
        there_[announcement.name] = std::move(announcement);
        wake();
    }
    void expire(const std::string& name) {
        there_.erase(name);
        wake();
    }
    void trouble(std::string what) {
        troubles_.push_back(std::move(what));
        wake();
    }
    void partition() { cut_off_ = true; }
    void heal() {
        cut_off_ = false;
        wake();
    }

  private:
    void wake() {
        if (!cut_off_ && handler_ != nullptr) turn_.start(std::chrono::nanoseconds::zero());
    }
    // Delivers one event per turn, because its handler may destroy this object.
    void tell() {
        if (cut_off_ || handler_ == nullptr) return;
        if (!troubles_.empty()) {
            const std::string what = std::move(troubles_.front());
            troubles_.erase(troubles_.begin());
            wake();
            return handler_->on_warning(what);
        }
        for (const auto& [name, announcement] : told_) {
            if (there_.contains(name)) continue;
            const std::string gone = name;
            told_.erase(gone);
            wake();
            return handler_->on_gone(gone);
        }
        for (const auto& [name, announcement] : there_) {
            const auto told = told_.find(name);
            if (told != told_.end() && told->second == announcement) continue;
            told_[name] = announcement;
            const pubsub::Announcement copy = announcement;
            wake();
            return handler_->on_announced(copy);
        }
        if (!std::exchange(caught_up_, true)) handler_->on_caught_up();
    }

    Handler* handler_ = nullptr;
    bool cut_off_ = false;
    bool caught_up_ = false;
    std::map<std::string, pubsub::Announcement> there_;
    std::map<std::string, pubsub::Announcement> told_;
    std::vector<std::string> troubles_;
    Timer turn_;
};

} // namespace netio::test
