// SPDX-License-Identifier: Apache-2.0
#pragma once

// Where a client publishes: a bounded queue that any thread fills, and the socket of the client's
// thread.

#include "pubsub/client/client.hpp"
#include "pubsub/client/errand.hpp"
#include "pubsub/client/outbox.hpp"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace netio::pubsub::inline v0_2 {

class ClientPublisher final : private Publisher::Handler {
  public:
    // `ended`: after close(), on the client's thread.
    struct Calls {
        PostErrand post;
        std::function<void()> ended;
    };
    // Throws what the socket throws.
    ClientPublisher(Transport& transport, const BufferedPublishSocket::Options& options,
                    std::size_t queue_bytes, Calls calls);

    // Any thread.
    Status publish(Fid fid, std::span<const std::byte> message, std::uint8_t status);
    void take_no_more() { outbox_.close(); }
    const std::vector<Endpoint>& endpoints() const noexcept { return endpoints_; }
    std::uint64_t published() const noexcept { return published_.load(std::memory_order_relaxed); }

    // The client's thread. In order, with what waits.
    void close();

  private:
    struct Publication {
        Fid fid{};
        std::uint8_t status = 0;
        std::vector<std::byte> bytes;
    };

    void drain();
    bool publish(const Publication& item);

    void on_writable(Publisher&) override { drain(); }
    void on_closed(Publisher&, const Closed&) override { calls_.ended(); }

    EventLoop& loop_;
    std::optional<std::vector<FidRange>> owned_;
    Outbox<Publication> outbox_;
    Calls calls_;
    Errand errand_;
    Timer go_on_;
    bool closing_ = false;
    std::atomic<std::uint64_t> published_{0};
    BufferedPublishSocket socket_;
    std::vector<Endpoint> endpoints_;
};

} // namespace netio::pubsub::inline v0_2
