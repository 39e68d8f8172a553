// SPDX-License-Identifier: Apache-2.0
#pragma once

// The publishing part of a client: a bounded queue that any thread fills, a publish socket on the
// client's thread, and the announcement of the socket on a bus.

#include "netio/session/drain_timer.hpp"
#include "pubsub/client/client.hpp"
#include "pubsub/client/client_queues.hpp"
#include "pubsub/discovery/bus.hpp"
#include "pubsub/discovery/discovery.hpp"

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace netio::pubsub::inline v0_3 {

class ClientPublisher final : private Publisher::Handler, private Announcer::Handler {
  public:
    // `bus`: to announce on; may be empty. Throws what the socket throws.
    ClientPublisher(Transport& transport, const BufferedPublishSocket::Options& options,
                    std::size_t queue_bytes, std::string bus, const ClientCalls& calls);

    // Any thread, as the functions of Client.
    Status publish(Fid fid, std::span<const std::byte> message, std::uint8_t status);
    bool wait_for_subscribers(std::size_t count, std::chrono::milliseconds timeout) const {
        return wanted_.wait_for_subscribers(count, timeout);
    }
    void take_no_more() {
        queue_.close();
        wanted_.end();
    }
    void announce(Announcement announcement);
    const std::vector<Endpoint>& endpoints() const noexcept { return endpoints_; }
    std::uint64_t published() const noexcept { return published_.load(std::memory_order_relaxed); }
    std::uint64_t unpublished() const noexcept {
        return unpublished_.load(std::memory_order_relaxed);
    }

    // The client's thread. Publishes queued messages, as far as there is space in time, and closes.
    void close();
    bool is_over() const noexcept { return over_; }

  private:
    struct Announced {
        const std::uint64_t instance = draw_instance(); // the same for all announcements
        const std::string bus;
        std::mutex mutex; // of `next`
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
        queue_.wake();
        drain();
    }
    void on_closed(Publisher&, const Closed&) override {
        over_ = true;
        calls_.ended();
    }
    void on_trouble(const std::string& what) override { calls_.report(what); }

    EventLoop& loop_;
    std::optional<std::vector<FidRange>> owned_;
    ClientPublishQueue queue_;
    WantedFids wanted_;
    ClientCalls calls_;
    CoalescedTask drain_;
    Timer continue_;
    DrainTimeout wait_; // for space, after close()
    bool closing_ = false;
    bool over_ = false;
    std::atomic<std::uint64_t> published_{0};
    std::atomic<std::uint64_t> unpublished_{0}; // discarded from the queue
    BufferedPublishSocket socket_;
    std::vector<Endpoint> endpoints_;
    std::map<std::string, std::string> parameters_; // to be announced
    Announced announced_;
    CoalescedTask announce_;
};

} // namespace netio::pubsub::inline v0_3
