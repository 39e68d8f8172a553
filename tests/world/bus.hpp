// SPDX-License-Identifier: Apache-2.0
#pragma once

// The registry of a world: texts under names. Every process reads and writes them with the
// product's own reader and writer, over a path that may be cut. Only these judge whether a lease is
// valid.

#include "netio/loop/event_loop.hpp"
#include "pubsub/discovery/discovery.hpp"
#include "pubsub/discovery/registry_reader.hpp"
#include "pubsub/discovery/registry_writer.hpp"

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

namespace netio::world {

using BusTexts = std::map<std::string, std::string>;
inline constexpr std::chrono::milliseconds bus_lease{1500};

// The view of one process.
class BusView final : public pubsub::Registry {
  public:
    explicit BusView(BusTexts& texts) : texts_{texts} {}

    void cut(bool is_cut) noexcept { cut_ = is_cut; }

    void put(const std::string& name, const std::string& text) override {
        reach();
        texts_[name] = text;
    }
    bool keep(const std::string&) override { return false; }
    std::optional<std::string> get(const std::string& name) override {
        reach();
        const auto found = texts_.find(name);
        return found == texts_.end() ? std::nullopt : std::optional{found->second};
    }
    void remove(const std::string& name) override {
        reach();
        texts_.erase(name);
    }
    void look(Visitor& visitor) override {
        reach();
        for (auto seen = seen_.begin(); seen != seen_.end();) {
            const bool gone = !texts_.contains(seen->first);
            if (gone) visitor.on_removed(seen->first);
            seen = gone ? seen_.erase(seen) : std::next(seen);
        }
        for (const auto& [name, text] : texts_) {
            if (std::exchange(seen_[name], text) != text) visitor.on_text(name, text);
        }
    }
    void wait(TimePoint) override {}
    void interrupt() noexcept override {}

  private:
    void reach() const {
        if (cut_) throw pubsub::RegistryError{"the bus is cut off"};
    }

    BusTexts& texts_;
    BusTexts seen_;
    bool cut_ = false;
};

// The registry entry of a publisher while it lives; a killed process leaves its text in place.
class BusPlace {
  public:
    BusPlace(EventLoop& loop, BusView& view, pubsub::Announcement announcement)
        : loop_{loop}, view_{view}, writer_{std::move(announcement), bus_lease}, due_{loop, [this] {
                                                                                          refresh();
                                                                                      }} {
        refresh();
    }
    void withdraw() {
        due_.cancel();
        writer_.withdraw(view_);
    }

  private:
    void refresh() {
        writer_.refresh(view_, loop_.now());
        due_.start(bus_lease / 3);
    }

    EventLoop& loop_;
    BusView& view_;
    pubsub::RegistryWriter writer_;
    Timer due_;
};

class BusWatch final : public pubsub::Discovery {
  public:
    BusWatch(EventLoop& loop, BusView& view)
        : loop_{loop}, view_{view}, due_{loop, [this] { look(); }} {}

    void watch(Handler& handler) override {
        handler_ = &handler;
        due_.start(Duration::zero());
    }

    void unwatch() noexcept override { handler_ = nullptr; }

  private:
    void look() {
        if (handler_ == nullptr) return;
        reader_.look(view_, loop_.now());
        due_.start(bus_lease / 6);
        pubsub::RegistryChanges news = reader_.take_news();
        for (const std::string& trouble : news.troubles)
            if (handler_ != nullptr) handler_->on_warning(trouble);
        for (const auto& [name, announcement] : news.publishers) {
            if (handler_ == nullptr) return;
            if (announcement) {
                handler_->on_announced(*announcement);
            } else {
                handler_->on_gone(name);
            }
        }
    }

    EventLoop& loop_;
    BusView& view_;
    Handler* handler_ = nullptr;
    pubsub::RegistryReader reader_{bus_lease, 64};
    Timer due_;
};

} // namespace netio::world
