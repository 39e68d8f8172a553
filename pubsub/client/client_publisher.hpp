// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where a client publishes: a bounded queue that any thread fills, the socket of the client's
// thread, and its place on a bus.

#include "netio/session/drain_timer.hpp"
#include "pubsub/client/client.hpp"
#include "pubsub/client/errand.hpp"
#include "pubsub/client/fid_outbox.hpp"
#include "pubsub/client/wanted_fids.hpp"
#include "pubsub/discovery/bus.hpp"
#include "pubsub/discovery/discovery.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace netio::pubsub::inline v0_2 {

class ClientPublisher final : private Publisher::Handler, private Announcer::Handler {
  public:
    // On the client's thread, but for `post`; `ended` after close().
    struct Calls {
        PostErrand post;
        std::function<void(const std::string&)> tell; // a line for people
        std::function<void()> ended;
    };
    // `bus`: that it is announced on, if it is. Throws what the socket throws.
    ClientPublisher(Transport& transport, const BufferedPublishSocket::Options& options,
                    std::size_t queue_bytes, std::string bus, Calls calls);

    // Any thread. As Client's.
    Status publish(Fid fid, std::span<const std::byte> message, std::uint8_t status);
    bool wait_for_subscribers(std::size_t count, std::chrono::milliseconds timeout) const {
        return wanted_.wait_for_subscribers(count, timeout);
    }
    void take_no_more() {
        outbox_.close();
        wanted_.end();
    }
    // As Client's.
    void announce(Announcement announcement);
    const std::vector<Endpoint>& endpoints() const noexcept { return endpoints_; }
    std::uint64_t published() const noexcept { return published_.load(std::memory_order_relaxed); }
    std::uint64_t unpublished() const noexcept {
        return unpublished_.load(std::memory_order_relaxed);
    }

    // The client's thread. In order, with what waits, as far as there is room for it in time.
    void close();
    bool is_over() const noexcept { return over_; }

  private:
    struct Announced {
        const std::uint64_t instance = draw_instance(); // for all of its life
        const std::string bus;
        std::mutex mutex; // of the next one
        std::optional<Announcement> next;
        std::string name;
        std::unique_ptr<Announcer> announcer;
    };

    void announce_next();
    void drain();
    void give_up();
    bool publish(const Publication& item);

    void on_subscribed(Publisher&, const SubscriberPeer& peer, const FidRange& range) override {
        wanted_.subscribe(peer.id, range);
    }
    void on_unsubscribed(Publisher&, const SubscriberPeer& peer, const FidRange& range) override {
        wanted_.unsubscribe(peer.id, range);
    }
    void on_writable(Publisher&) override {
        outbox_.wake();
        drain();
    }
    void on_closed(Publisher&, const Closed&) override {
        over_ = true;
        calls_.ended();
    }
    void on_trouble(const std::string& what) override { calls_.tell(what); }

    EventLoop& loop_;
    std::optional<std::vector<FidRange>> owned_;
    FidOutbox outbox_;
    WantedFids wanted_;
    Calls calls_;
    Errand errand_;
    Timer go_on_;
    DrainTimeout wait_; // at the end, for room
    bool closing_ = false;
    bool over_ = false;
    std::atomic<std::uint64_t> published_{0};
    std::atomic<std::uint64_t> unpublished_{0}; // of what was taken
    BufferedPublishSocket socket_;
    std::vector<Endpoint> endpoints_;
    std::map<std::string, std::string> parameters_; // that are announced
    Announced announced_;
    Errand announce_;
};

} // namespace netio::pubsub::inline v0_2
