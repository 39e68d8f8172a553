// SPDX-License-Identifier: Apache-2.0
// Sockets of every kind on one loop: a subscriber forwards each message to a message receiver,
// which forwards it to a byte stream, a hundred times. Needs no other program: all_on_one_loop
#include "netio/fabric.hpp"
#include "netio/messages/buffered_send_socket.hpp"
#include "netio/messages/listen_socket.hpp"
#include "pubsub/publisher/buffered_publish_socket.hpp"
#include "pubsub/subscriber/subscribe_socket.hpp"
#include "stream/socket/stream_listener.hpp"

#include <cstdio>
#include <cstring>
#include <exception>
#include <functional>
#include <memory>
#include <optional>
#include <utility>

namespace pubsub = netio::pubsub;
namespace stream = netio::stream;

namespace {

constexpr std::uint64_t rounds = 100;

template <typename Options>
Options listening() {
    Options options;
    options.listen = {{"127.0.0.1", 0}};
    return options;
}

// Publishes each number after the previous one has reached the destination.
class Origin final : private pubsub::Publisher::Handler {
  public:
    explicit Origin(netio::Transport& transport)
        : socket_{transport, {.publisher = listening<pubsub::Publisher::Options>()}, *this} {}
    netio::Address address() const { return socket_.endpoints().at(0).address; }
    bool publish(std::uint64_t number) {
        const auto bytes = std::as_bytes(std::span{&number, 1});
        return socket_.publish(1, bytes) == netio::Status::ok;
    }

  private:
    void on_subscribed(pubsub::Publisher&, const pubsub::SubscriberPeer&,
                       const pubsub::FidRange&) override {
        if (!publish(1)) std::fputs("the first number was refused\n", stderr);
    }
    pubsub::BufferedPublishSocket socket_;
};

// From the subscription to a message.
class Relay final : private pubsub::SubscribeSocket::Handler,
                    private netio::BufferedSendSocket::Handler {
  public:
    Relay(netio::Transport& transport, const netio::Address& publisher,
          const netio::Address& receiver)
        : sender_{transport, {}, *this}, subscriber_{transport, {.publisher = publisher}, *this} {
        sender_.connect(receiver);
    }

  private:
    void on_connected(netio::BufferedSendSocket&) override { subscriber_.subscribe({1, 1}); }
    void on_message(pubsub::SubscribeSocket&, pubsub::Fid, std::span<const std::byte> message,
                    std::uint8_t) override {
        if (sender_.send(message) != netio::Status::ok) std::fputs("a message is lost\n", stderr);
    }
    void on_connected(pubsub::SubscribeSocket&) override {}
    void on_writable(netio::BufferedSendSocket&) override {}
    void on_closed(netio::BufferedSendSocket&, const netio::Closed&) override {}
    void on_closed(pubsub::SubscribeSocket&, const netio::Closed&, bool) override {}

    netio::BufferedSendSocket sender_;
    pubsub::SubscribeSocket subscriber_;
};

// From a message to the stream.
class Uplink final : private netio::ListenSocket::Handler, private stream::StreamSocket::Handler {
  public:
    // Calls `when_ready` once bytes can be sent: sending over a stream before that is refused.
    Uplink(netio::Transport& transport, const netio::Address& end, std::function<void()> when_ready)
        : when_ready_{std::move(when_ready)}, stream_{transport, {}, *this},
          listener_{transport, listening<netio::ListenSocket::Options>(), *this} {
        stream_.connect(end);
    }
    netio::Address address() const { return listener_.endpoints().at(0).address; }

  private:
    void on_connected(netio::ReceiveSocket&) override {}
    void on_connected(stream::StreamSocket&) override { when_ready_(); }
    void on_message(netio::ReceiveSocket&, std::span<const std::byte> message,
                    std::optional<std::uint64_t>) override {
        std::memcpy(memory_.data(), message.data(),
                    message.size()); // one message is in flight at a time
        const netio::Status status =
            stream_.send(memory_.slice(0, message.size()), netio::Cookie{1});
        if (status != netio::Status::ok) std::fputs("bytes are lost\n", stderr);
    }
    void on_closed(netio::ReceiveSocket&, const netio::Closed&) override {}
    void on_send_completed(stream::StreamSocket&, netio::Cookie,
                           netio::Completion::Outcome) override {}
    void on_received(stream::StreamSocket&, const stream::Received&) override {}
    void on_closed(stream::StreamSocket&, const netio::Closed&) override {}

    std::function<void()> when_ready_;
    netio::RegisteredBuffer memory_{4096};
    stream::StreamSocket stream_;
    netio::ListenSocket listener_;
};

// The end of the stream, which triggers the next number.
class Destination final : private stream::StreamListener::Handler,
                          private stream::StreamSocket::Handler {
  public:
    Destination(netio::Transport& transport, Origin& origin)
        : loop_{transport.loop()}, origin_{origin}, listener_{transport,
                                                              {.listen = {{"127.0.0.1", 0}}},
                                                              *this} {}
    netio::Address address() const { return listener_.endpoints().at(0).address; }
    std::uint64_t arrived() const { return arrived_; }

  private:
    void on_incoming(stream::IncomingStream& incoming) override {
        stream_ = incoming.accept({}, *this);
    }
    void on_connected(stream::StreamSocket&) override { receive(); }
    void on_received(stream::StreamSocket&, const stream::Received& received) override {
        if (received.outcome != netio::Completion::Outcome::done) return;
        std::memcpy(&arrived_, memory_.data(), sizeof arrived_);
        receive();
        if (arrived_ == rounds || !origin_.publish(arrived_ + 1)) loop_.stop();
    }
    void on_send_completed(stream::StreamSocket&, netio::Cookie,
                           netio::Completion::Outcome) override {}
    void on_closed(stream::StreamSocket&, const netio::Closed&) override { loop_.stop(); }
    void receive() {
        const netio::Slice slice = memory_.slice(0, sizeof arrived_);
        if (stream_->receive(slice, netio::Cookie{1}, stream::Fill::all) != netio::Status::ok)
            loop_.stop();
    }

    netio::EventLoop& loop_;
    Origin& origin_;
    std::uint64_t arrived_ = 0;
    netio::RegisteredBuffer memory_{4096, netio::Access::remote_write};
    std::unique_ptr<stream::StreamSocket> stream_;
    stream::StreamListener listener_;
};

} // namespace

int main() try {
    netio::EventLoop loop;
    const auto transport = netio::open_fabric(loop);
    Origin origin{*transport};
    const Destination destination{*transport, origin};
    std::optional<Relay> relay;
    std::optional<Uplink> uplink;
    uplink.emplace(*transport, destination.address(),
                   [&] { relay.emplace(*transport, origin.address(), uplink->address()); });
    loop.run();
    std::printf("%llu numbers went round\n",
                static_cast<unsigned long long>(destination.arrived()));
    return destination.arrived() == rounds ? 0 : 1;
} catch (const std::exception& error) {
    std::fprintf(stderr, "all_on_one_loop: %s\n", error.what());
    return 1;
}
