// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a Client is made of: a loop on a thread of its own, its sockets, and what passes between
// them and other threads.

#include "pubsub/client/client.hpp"
#include "pubsub/client/client_publisher.hpp"
#include "pubsub/client/destinations.hpp"
#include "pubsub/client/errand.hpp"
#include "pubsub/client/message_queue.hpp"
#include "pubsub/core/answer_book.hpp"

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace netio::pubsub::inline v0_2 {

class ClientThread final : private Subscriptions::Handler {
  public:
    ClientThread(Client::Options options, Client::Events events);
    ~ClientThread();
    ClientThread(const ClientThread&) = delete;
    ClientThread& operator=(const ClientThread&) = delete;

    // Any thread. False: it will not run. So many at a time as `loop.post_limit` says.
    bool post(std::function<void()> task);
    // The answer is `pending` when it has not come until `end`.
    bool subscribe(std::vector<FidRange> fids, std::optional<SlowPolicy> policy,
                   Client::OnAnswer answer, TimePoint end);
    bool unsubscribe(const FidRange& fids);
    Status publish(Fid fid, std::span<const std::byte> message, std::uint8_t status);
    void announce(Announcement announcement);
    Destinations& destinations() noexcept { return destinations_; }
    MessageQueue& queue() noexcept { return queue_; }
    bool is_own_thread() const noexcept { return std::this_thread::get_id() == thread_.get_id(); }
    void close();
    Client::Counters counters() const;
    std::vector<Endpoint> endpoints() const;

  private:
    // Beside the tasks of others there is room for the errands.
    struct Tasks {
        std::mutex mutex; // of `ended`, and of who joins
        bool ended = false;
        std::atomic<std::size_t> waiting{0}; // of others
    };
    struct Counted {
        std::atomic<std::uint64_t> messages{0};
        std::atomic<std::uint64_t> missed{0};
        std::atomic<std::uint64_t> restarts{0};
        std::atomic<std::uint64_t> unknown_tails{0};
        std::atomic<std::uint64_t> refused{0};
        std::atomic<std::uint64_t> disconnected{0};
    };
    // On its own thread.
    struct Sockets {
        std::unique_ptr<Transport> transport;
        std::unique_ptr<Discovery> bus;
        std::unique_ptr<ClientPublisher> publisher;
        std::unique_ptr<Subscriptions> subscriptions;
        bool closing = false;
        bool left = false; // the publishers: nobody read what they sent
    };
    struct Endings { // that have not come yet
        bool subscriptions = false;
        bool publisher = false;
    };

    bool post_errand(std::function<void()> task);
    void run();
    void ask(const std::vector<FidRange>& fids, std::optional<SlowPolicy> policy,
             const Client::OnAnswer& answer, TimePoint end);
    void drop_expired();
    void begin_to_close();
    void check_closed();
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
    void on_message(Subscriptions& all, Fid fid, std::span<const std::byte> message,
                    std::uint8_t status) override;
    void on_gap(Subscriptions&, Fid fid, std::uint64_t count) override { add_missed(fid, count); }
    void on_missed(Subscriptions&, Fid fid, std::uint64_t count) override {
        add_missed(fid, count);
    }
    void on_publisher_changed(Subscriptions&, const Subscriptions::Source& source,
                              const PublisherChange& change) override;
    void on_closed(Subscriptions&, const Subscriptions::Source& source,
                   const Subscriptions::Ending& ending) override;
    void on_contest(Subscriptions&, const Subscriptions::Contest& contest) override;
    void on_trouble(Subscriptions&, const std::string& what) override;
    void on_ended(Subscriptions&) override;

    Client::Options options_;
    Client::Events events_;
    EventLoop loop_;
    Tasks tasks_;
    Errand close_;
    Errand resume_;
    AnswerBook<Client::OnAnswer> answers_{options_.answer_limit};
    Timer first_expires_{loop_, [this] { drop_expired(); }};
    MessageQueue queue_;
    Counted counted_;
    Sockets sockets_;
    Destinations destinations_; // behind the transport
    Endings endings_;
    Timer turn_end_{loop_, [this] { // what this turn has brought is there for others
                        if (!queue_.hand_over()) hold_up();
                    }};
    Timer patience_{loop_, [this] { leave(); }};
    std::thread thread_; // last: it uses the others
};

} // namespace netio::pubsub::inline v0_2
