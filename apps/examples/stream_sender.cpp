// SPDX-License-Identifier: Apache-2.0
// Sends COUNT blocks as a byte stream to a stream_receiver, zero-copy, and ends in order:
// stream_sender HOST:PORT COUNT
#include "netio/fabric.hpp"
#include "stream/socket/stream_socket.hpp"

#include <cstdio>
#include <exception>
#include <string>

namespace stream = netio::stream;

class Sender final : private stream::StreamSocket::Handler {
  public:
    Sender(netio::Transport& transport, const netio::Address& receiver, std::uint64_t count)
        : loop_{transport.loop()}, count_{count}, socket_{transport, {}, *this} {
        socket_.connect(receiver);
    }
    bool ended_well() const { return ended_well_; }

  private:
    static constexpr std::size_t slot_count = 4;
    static constexpr std::size_t block_bytes = 256 * 1024;

    void on_connected(stream::StreamSocket&) override { send(); }
    // The slot may be filled again: the block has been sent.
    void on_send_completed(stream::StreamSocket&, netio::Cookie,
                           netio::Completion::Outcome outcome) override {
        if (outcome != netio::Completion::Outcome::done) return; // on_closed has the reason
        ++completed_;
        send();
    }
    void on_received(stream::StreamSocket&, const stream::Received&) override {
    } // no receive is posted
    void on_closed(stream::StreamSocket&, const netio::Closed& closed) override {
        // The receiver's user has received every byte.
        ended_well_ = completed_ == count_ && closed.reason == netio::CloseReason::orderly;
        std::printf("sent %llu blocks: %s\n", static_cast<unsigned long long>(completed_),
                    explain(closed).c_str());
        loop_.stop();
    }

    // Sends complete in order, so the slots are used in turn.
    void send() {
        while (next_ < count_ && next_ - completed_ < slot_count) {
            const netio::Slice slice = memory_.slice(next_ % slot_count * block_bytes, block_bytes);
            if (socket_.send(slice, netio::Cookie{next_}) != netio::Status::ok) return;
            ++next_;
        }
        if (completed_ == count_) socket_.close();
    }

    netio::EventLoop& loop_;
    std::uint64_t count_;
    std::uint64_t next_ = 0;
    std::uint64_t completed_ = 0;
    bool ended_well_ = false;
    netio::RegisteredBuffer memory_{slot_count * block_bytes};
    stream::StreamSocket socket_; // last: destroyed before the memory that it sends from
};

int main(int argc, char** argv) try {
    netio::EventLoop loop;
    const auto transport = netio::open_fabric(loop);
    const Sender sender{*transport, netio::parse_address(argc > 1 ? argv[1] : "127.0.0.1:12345"),
                        argc > 2 ? std::stoull(argv[2]) : 100};
    loop.run();
    return sender.ended_well() ? 0 : 1;
} catch (const std::exception& error) {
    std::fprintf(stderr, "stream_sender: %s\n", error.what());
    return 1;
}
