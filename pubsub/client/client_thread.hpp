// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a Client is made of: a loop on a thread of its own, its sockets, and what passes between
// them and other threads.

#include "pubsub/client/client.hpp"
#include "pubsub/client/client_publisher.hpp"
#include "pubsub/client/client_subscriber.hpp"
#include "pubsub/client/destinations.hpp"
#include "pubsub/client/errand.hpp"

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace netio::pubsub::inline v0_2 {

class ClientThread final {
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
    bool wait_for_subscribers(std::size_t count, std::chrono::milliseconds timeout) const;
    void announce(Announcement announcement);
    Destinations& destinations() noexcept { return destinations_; }
    MessageQueue& queue() noexcept { return subscriber_.queue(); }
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

    bool post_errand(std::function<void()> task);
    void run();
    void begin_to_close();
    void check_closed();

    Client::Options options_;
    EventLoop loop_;
    Tasks tasks_;
    Errand close_;
    // On its own thread.
    std::unique_ptr<Transport> transport_;
    std::unique_ptr<ClientPublisher> publisher_;
    ClientSubscriber subscriber_;
    Destinations destinations_;
    bool closing_ = false;
    std::thread thread_; // last: it uses the others
};

} // namespace netio::pubsub::inline v0_2
