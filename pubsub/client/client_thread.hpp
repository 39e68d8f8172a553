// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a Client is made of: a loop on a thread of its own, its sockets, and what passes between
// them and other threads.

#include "pubsub/client/client.hpp"
#include "pubsub/client/destinations.hpp"
#include "pubsub/client/message_queue.hpp"
#include "pubsub/client/outbox.hpp"
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
    explicit ClientThread(Client::Options options);
    ~ClientThread();
    ClientThread(const ClientThread&) = delete;
    ClientThread& operator=(const ClientThread&) = delete;

    // Any thread. False: it will not run.
    bool post(std::function<void()> task);
    // The answer is `pending` when it has not come until `end`.
    bool subscribe(std::vector<FidRange> fids, std::optional<SlowPolicy> policy,
                   Client::OnAnswer answer, TimePoint end);
    bool unsubscribe(const FidRange& fids);
    Status publish(Fid fid, std::span<const std::byte> message, std::uint8_t status);
    Destinations& destinations() noexcept { return destinations_; }
    MessageQueue& queue() noexcept { return queue_; }
    bool is_own_thread() const noexcept { return std::this_thread::get_id() == thread_.get_id(); }
    void close();
    Client::Counters counters() const;
    const std::vector<Endpoint>& endpoints() const noexcept { return endpoints_; }

  private:
    struct Publication {
        Fid fid{};
        std::uint8_t status = 0;
        std::vector<std::byte> bytes;
    };
    struct Counted {
        std::atomic<std::uint64_t> messages{0};
        std::atomic<std::uint64_t> missed{0};
        std::atomic<std::uint64_t> restarts{0};
        std::atomic<std::uint64_t> published{0};
    };
    // On its own thread.
    struct Sockets {
        std::unique_ptr<Transport> transport;
        std::unique_ptr<Discovery> bus;
        std::unique_ptr<BufferedPublishSocket> publisher;
        std::unique_ptr<Subscriptions> subscriptions;
        bool closing = false;
    };
    struct Endings { // that have not come yet
        bool subscriptions = false;
        bool publisher = false;
    };

    struct PublisherEvents final : Publisher::Handler {
        explicit PublisherEvents(ClientThread& its_owner) : owner{its_owner} {}
        void on_writable(Publisher&) override { owner.drain_outbox(); }
        void on_closed(Publisher&, const Closed&) override {
            owner.endings_.publisher = false;
            owner.check_closed();
        }
        ClientThread& owner;
    };

    void run();
    void ask(const std::vector<FidRange>& fids, std::optional<SlowPolicy> policy,
             const Client::OnAnswer& answer, TimePoint end);
    void drop_expired();
    void drain_outbox();
    void begin_to_close();
    void check_closed();
    void put(Subscriptions& all, Fid fid, std::span<const std::byte> message, std::uint8_t status);

    void on_connected(Subscriptions&, const Subscriptions::Source& source,
                      const std::string& provider) override;
    void on_subscribed(Subscriptions&, const Subscriptions::Source&,
                       const FidRange& range) override;
    void on_refused(Subscriptions&, const Subscriptions::Source&, const FidRange& range,
                    Subscriptions::Refusal) override;
    void on_message(Subscriptions& all, Fid fid, std::span<const std::byte> message,
                    std::uint8_t status) override;
    void on_gap(Subscriptions&, Fid, std::uint64_t count) override;
    void on_missed(Subscriptions&, Fid, std::uint64_t count) override;
    void on_publisher_changed(Subscriptions&, const Subscriptions::Source& source,
                              const PublisherChange& change) override;
    void on_closed(Subscriptions&, const Subscriptions::Source& source,
                   const Subscriptions::Ending& ending) override;
    void on_contest(Subscriptions&, const Subscriptions::Contest& contest) override;
    void on_trouble(Subscriptions&, const std::string& what) override;
    void on_ended(Subscriptions&) override;

    Client::Options options_;
    EventLoop loop_;
    AnswerBook<Client::OnAnswer> answers_{options_.answer_limit};
    Timer first_expires_{loop_, [this] { drop_expired(); }};
    Outbox<Publication> outbox_;
    MessageQueue queue_;
    Counted counted_;
    std::vector<Endpoint> endpoints_;
    PublisherEvents publisher_events_{*this};
    Sockets sockets_;
    Destinations destinations_; // behind the transport
    Endings endings_;
    Timer turn_end_{loop_, [this] { // what this turn has brought is there for others
                        if (!queue_.hand_over()) sockets_.subscriptions->pause();
                    }};
    std::mutex mutex_;   // of ended_, and of who joins
    bool ended_ = false; // nothing posted from now on will run
    std::thread thread_; // last: it uses the others
};

} // namespace netio::pubsub::inline v0_2
