// SPDX-License-Identifier: Apache-2.0
// Receives the byte stream of one peer into its own memory, and ends with it: stream_receiver
// HOST:PORT
#include "netio/fabric.hpp"
#include "stream/socket/stream_listener.hpp"

#include <cstdio>
#include <exception>
#include <memory>

namespace stream = netio::stream;

class Receiver final : private stream::StreamListener::Handler,
                       private stream::StreamSocket::Handler {
  public:
    Receiver(netio::Transport& transport, const netio::Address& address)
        : loop_{transport.loop()}, listener_{transport,
                                             {.listen = {address}, .allow_remote_anonymous = true},
                                             *this} {
        std::printf("listening at %s\n", to_string(listener_.endpoints().at(0).address).c_str());
        std::fflush(stdout);
    }
    bool ended_well() const { return ended_well_; }

  private:
    static constexpr std::size_t receive_count = 4;
    static constexpr std::size_t receive_bytes = 256 * 1024;

    void on_incoming(stream::IncomingStream& incoming) override {
        if (socket_ == nullptr) socket_ = incoming.accept({}, *this); // otherwise it is rejected
    }
    void on_connected(stream::StreamSocket&) override {
        for (std::size_t i = 0; i < receive_count; ++i)
            receive(netio::Cookie{i});
    }
    void on_received(stream::StreamSocket&, const stream::Received& received) override {
        bytes_ += received.bytes;
        if (!received.end_of_stream) receive(received.cookie); // into the same memory
    }
    void on_end_of_stream(stream::StreamSocket& socket) override { socket.close(); }
    void on_send_completed(stream::StreamSocket&, netio::Cookie,
                           netio::Completion::Outcome) override {} // nothing is sent
    void on_closed(stream::StreamSocket&, const netio::Closed& closed) override {
        ended_well_ = closed.reason == netio::CloseReason::orderly;
        std::printf("received %llu bytes: %s\n", static_cast<unsigned long long>(bytes_),
                    explain(closed).c_str());
        loop_.stop();
    }

    void receive(netio::Cookie cookie) {
        const netio::Slice slice =
            memory_.slice(static_cast<std::size_t>(cookie) * receive_bytes, receive_bytes);
        const netio::Status status = socket_->receive(slice, cookie, stream::Fill::some);
        if (status != netio::Status::ok) socket_->abort(); // closed: on_closed has the reason
    }

    netio::EventLoop& loop_;
    std::uint64_t bytes_ = 0;
    bool ended_well_ = false;
    // The peer writes into this memory.
    netio::RegisteredBuffer memory_{receive_count * receive_bytes, netio::Access::remote_write};
    std::unique_ptr<stream::StreamSocket> socket_;
    stream::StreamListener listener_;
};

int main(int argc, char** argv) try {
    netio::EventLoop loop;
    const auto transport = netio::open_fabric(loop);
    const Receiver receiver{*transport,
                            netio::parse_address(argc > 1 ? argv[1] : "127.0.0.1:12345")};
    loop.run();
    return receiver.ended_well() ? 0 : 1;
} catch (const std::exception& error) {
    std::fprintf(stderr, "stream_receiver: %s\n", error.what());
    return 1;
}
