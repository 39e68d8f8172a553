// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a client subscribes to: who waits for which answer, and where messages go.

#include "pubsub/client/client.hpp"
#include "pubsub/client/errand.hpp"
#include "pubsub/client/message_queue.hpp"
#include "pubsub/core/answer_book.hpp"

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace netio::pubsub::inline v0_2 {

class ClientSubscriber final : private Subscriptions::Handler {
  public:
    // On the client's thread, but for `post`; `ended` after close().
    struct Calls {
        PostErrand post;
        std::function<void(const std::string&)> tell; // a line for people
        std::function<void()> ended;
    };
    // The options outlive it. Throws std::invalid_argument: one of them.
    ClientSubscriber(EventLoop& loop, const Client::Options& options, Client::Events events,
                     Calls calls);
    // If there is anybody to ask. Throws what Subscriptions and the bus do.
    void open(Transport& transport);

    // Any thread.
    MessageQueue& queue() noexcept { return queue_; }
    void add_to(Client::Counters& counters) const;

    // The client's thread. The answer is `pending` when it has not come until `end`.
    void ask(const std::vector<FidRange>& fids, std::optional<SlowPolicy> policy,
             const Client::OnAnswer& answer, TimePoint end);
    void unsubscribe(const FidRange& fids);
    void close();
    bool is_over() const noexcept { return over_; }
    // Nothing comes any more, whether it is over or not.
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
    // Nothing more is to come until there is room.
    void hold_up();
    void go_on();
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
    Calls calls_;
    Errand resume_;
    AnswerBook<Client::OnAnswer> answers_;
    Timer first_expires_;
    MessageQueue queue_;
    Counted counted_;
    Timer turn_end_;
    Timer patience_;
    bool closing_ = false;
    bool left_ = false; // the publishers: nobody read what they sent
    bool over_ = true;
    std::unique_ptr<Discovery> bus_;
    std::unique_ptr<Subscriptions> subscriptions_;
};

} // namespace netio::pubsub::inline v0_2
