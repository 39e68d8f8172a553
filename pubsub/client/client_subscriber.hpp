// SPDX-License-Identifier: Apache-2.0
#pragma once

// The subscribing part of a client: its subscriptions, the calls that wait for their answers, and
// the queue for messages.

#include "pubsub/client/client.hpp"
#include "pubsub/client/client_queues.hpp"
#include "pubsub/client/message_queue.hpp"

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace netio::pubsub::inline v0_3 {

class ClientSubscriber final : private Subscriptions::Handler {
  public:
    // The options must outlive it. Throws std::invalid_argument for an invalid option.
    ClientSubscriber(EventLoop& loop, const Client::Options& options, Client::Events events,
                     const ClientCalls& calls);
    // Does nothing without publishers and a bus. Throws what Subscriptions and the bus throw.
    void open(Transport& transport);

    // Any thread.
    MessageQueue& queue() noexcept { return queue_; }
    void add_to(Client::Counters& counters) const;

    // The client's thread. The answer is `pending` if there is none until `end`.
    void subscribe(const std::vector<FidRange>& fids, std::optional<SlowPolicy> policy,
                   const Client::OnAnswer& answer, TimePoint end);
    void unsubscribe(const FidRange& fids);
    void close();
    bool is_over() const noexcept { return over_; }
    // Ends at once: no message follows.
    void end();

  private:
    struct Counted {
        std::atomic<std::uint64_t> messages{0};
        std::atomic<std::uint64_t> missed{0};
        std::atomic<std::uint64_t> restarts{0};
        std::atomic<std::uint64_t> unknown_tails{0};
        std::atomic<std::uint64_t> refused{0};
        std::atomic<std::uint64_t> disconnected{0};
    };

    void drop_expired();
    // Pauses the subscriptions until the queue has space.
    void pause();
    void resume();
    void leave();
    void add_missed(Fid fid, std::uint64_t count);
    void put(Fid fid, std::span<const std::byte> message, std::uint8_t status);

    void on_connected(Subscriptions&, const Subscriptions::Source& source,
                      const std::string& provider) override;
    void on_subscribed(Subscriptions&, const Subscriptions::Source&,
                       const FidRange& range) override;
    void on_refused(Subscriptions&, const Subscriptions::Source& source, const FidRange& range,
                    Subscriptions::Refusal refusal) override;
    void on_message(Subscriptions& all, const Subscriptions::Source&, Fid fid,
                    std::span<const std::byte> message, std::uint8_t status) override;
    void on_gap(Subscriptions&, const Subscriptions::Source&, Fid fid,
                std::uint64_t count) override {
        add_missed(fid, count);
    }
    void on_missed(Subscriptions&, const Subscriptions::Source&, Fid fid,
                   std::uint64_t count) override {
        add_missed(fid, count);
    }
    void on_publisher_changed(Subscriptions&, const Subscriptions::Source& source,
                              const PublisherChange& change) override;
    void on_nothing_published(Subscriptions&, const Subscriptions::Source& source,
                              const FidQuery::Near& near) override;
    void on_closed(Subscriptions&, const Subscriptions::Source& source,
                   const Subscriptions::Ending& ending) override;
    void on_contest(Subscriptions&, const Subscriptions::Contest& contest) override;
    void on_trouble(Subscriptions&, const std::string& what) override;
    void on_ended(Subscriptions&) override;

    const Client::Options& options_;
    Client::Events events_;
    ClientCalls calls_;
    CoalescedTask resume_;
    PendingSubscribes<Client::OnAnswer> pending_;
    Timer first_expires_;
    MessageQueue queue_;
    Counted counted_;
    Timer turn_end_;
    Timer disconnect_; // if the queue stays full
    bool closing_ = false;
    bool left_ = false; // the publishers, because the queue stayed full
    bool over_ = true;
    std::unique_ptr<Discovery> bus_;
    std::unique_ptr<Subscriptions> subscriptions_;
};

} // namespace netio::pubsub::inline v0_3
