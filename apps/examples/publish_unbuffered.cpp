// SPDX-License-Identifier: Apache-2.0
// Publishes COUNT blocks under fid 1, zero-copy, after the first subscription; then ends in order:
// publish_unbuffered HOST:PORT COUNT [explicit]
//
// With explicit publishing nothing is queued for a subscriber that cannot receive a block at the
// moment, and this program decides when to retry.
#include "netio/fabric.hpp"
#include "netio/loop/signal_watch.hpp"
#include "pubsub/publisher/publish_socket.hpp"

#include <csignal>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string_view>
#include <utility>
#include <vector>

namespace pubsub = netio::pubsub;

class Source final : private pubsub::PublishSocket::Handler {
  public:
    Source(netio::Transport& transport, const netio::Address& address, std::uint64_t count,
           bool explicitly)
        : loop_{transport.loop()}, count_{count}, explicitly_{explicitly}, socket_{transport,
                                                                                   options(address),
                                                                                   *this} {
        for (std::size_t slot = 0; slot < slot_count; ++slot)
            free_.push_back(slot);
        std::printf("listening at %s\n", to_string(socket_.endpoints().at(0).address).c_str());
        std::fflush(stdout);
    }
    void close() { socket_.close(); }
    bool ended_well() const { return ended_well_; }

  private:
    static constexpr std::size_t slot_count = 16;
    static constexpr std::size_t block_bytes = 64 * 1024;

    static pubsub::PublishSocket::Options options(const netio::Address& address) {
        pubsub::PublishSocket::Options options;
        options.publisher.listen = {address};
        options.publisher.allow_remote_anonymous =
            true; // any peer that reaches the address may connect
        return options;
    }

    void on_subscribed(pubsub::Publisher&, const pubsub::SubscriberPeer&,
                       const pubsub::FidRange&) override {
        publish();
    }
    void on_writable(pubsub::Publisher&) override { publish(); }
    // The network has read the block: the slot may be filled again.
    void on_publish_completed(pubsub::PublishSocket&, netio::Cookie cookie,
                              const pubsub::PublicationOutcome&) override {
        free_.push_back(static_cast<std::size_t>(cookie));
        publish();
    }
    void on_closed(pubsub::Publisher&, const netio::Closed& closed) override {
        ended_well_ = closed.reason == netio::CloseReason::orderly;
        std::printf("published %llu blocks: %s\n", static_cast<unsigned long long>(next_),
                    explain(closed).c_str());
        loop_.stop();
    }

    void publish() {
        // The rest of the previous block must be sent first, because a newer block of this fid
        // would overtake it.
        if (ticket_.is_open() && socket_.resume(ticket_) == netio::Status::partial) return;
        while (next_ < count_ && !free_.empty() && !ticket_.is_open()) {
            const std::size_t slot = free_.back();
            const netio::Slice slice = memory_.slice(slot * block_bytes, block_bytes);
            std::memcpy(slice.data, &next_, sizeof next_);
            const netio::Status status = explicitly_ ? offer(slice, slot) : lend(slice, slot);
            // again: on_writable follows. no_subscribers: wait for the next one. Otherwise the
            // network uses the slot until on_publish_completed.
            if (status != netio::Status::ok) return;
            free_.pop_back();
            ++next_;
        }
        if (next_ == count_) socket_.close(); // finishes open tickets
    }
    // All subscribers receive it, some possibly later.
    netio::Status lend(const netio::Slice& slice, std::size_t slot) {
        return socket_.publish(1, slice, netio::Cookie{slot});
    }
    // Subscribers that can receive it now get it now.
    netio::Status offer(const netio::Slice& slice, std::size_t slot) {
        auto [status, ticket] = socket_.try_publish(1, slice, netio::Cookie{slot});
        if (status != netio::Status::partial) return status;
        ticket_ = std::move(ticket); // on_writable: resume
        return netio::Status::ok;
    }

    netio::EventLoop& loop_;
    std::uint64_t count_;
    bool explicitly_;
    std::uint64_t next_ = 0;
    bool ended_well_ = false;
    std::vector<std::size_t> free_;
    netio::RegisteredBuffer memory_{slot_count * block_bytes, netio::Access::send};
    pubsub::PublishTicket ticket_;
    pubsub::PublishSocket socket_; // last: destroyed before the memory that it sends from
};

int main(int argc, char** argv) try {
    netio::EventLoop loop;
    const auto transport = netio::open_fabric(loop);
    Source source{*transport, netio::parse_address(argc > 1 ? argv[1] : "127.0.0.1:12345"),
                  argc > 2 ? std::stoull(argv[2]) : 1000,
                  argc > 3 && std::string_view{argv[3]} == "explicit"};
    const netio::SignalWatch stop{loop, {SIGINT, SIGTERM}, [&](int) { source.close(); }};
    loop.run();
    return source.ended_well() ? 0 : 1;
} catch (const std::exception& error) {
    std::fprintf(stderr, "publish_unbuffered: %s\n", error.what());
    return 1;
}
