// SPDX-License-Identifier: Apache-2.0
// Sends COUNT blocks to a message_receiver, zero-copy, and ends in order:
// message_sender HOST:PORT COUNT
#include "netio/fabric.hpp"
#include "netio/messages/send_socket.hpp"

#include <cstdio>
#include <cstring>
#include <exception>
#include <string>
#include <vector>

class Sender final : private netio::SendSocket::Handler {
  public:
    Sender(netio::Transport& transport, const netio::Address& receiver, std::uint64_t count)
        : loop_{transport.loop()}, count_{count}, socket_{transport, {}, *this} {
        for (std::size_t slot = 0; slot < slot_count; ++slot)
            free_.push_back(slot);
        socket_.connect(receiver);
    }
    bool ended_well() const { return ended_well_; }

  private:
    static constexpr std::size_t slot_count = 16;
    static constexpr std::size_t block_bytes = 16 * 1024;

    void on_connected(netio::SendSocket&) override { send(); }
    void on_writable(netio::SendSocket&) override { send(); }
    void on_send_completed(netio::SendSocket&, netio::Cookie cookie,
                           netio::Completion::Outcome outcome) override {
        if (outcome != netio::Completion::Outcome::done) return; // on_closed has the reason
        free_.push_back(static_cast<std::size_t>(cookie));
        send();
    }
    void on_closed(netio::SendSocket&, const netio::Closed& closed) override {
        // The receiver has received everything, and has confirmed it.
        ended_well_ = next_ == count_ && closed.reason == netio::CloseReason::orderly;
        std::printf("sent %llu blocks: %s\n", static_cast<unsigned long long>(next_),
                    explain(closed).c_str());
        loop_.stop();
    }

    void send() {
        while (next_ < count_ && !free_.empty()) {
            const std::size_t slot = free_.back();
            const netio::Slice slice = memory_.slice(slot * block_bytes, block_bytes);
            std::memcpy(slice.data, &next_, sizeof next_);
            // again: on_writable follows. closed: on_closed follows.
            if (socket_.send(slice, netio::Cookie{slot}) != netio::Status::ok) return;
            free_.pop_back();
            ++next_;
        }
        if (next_ == count_ && !closing_) {
            closing_ = true;
            socket_.close(); // everything sent before arrives first
        }
    }

    netio::EventLoop& loop_;
    std::uint64_t count_;
    std::uint64_t next_ = 0;
    bool closing_ = false;
    bool ended_well_ = false;
    std::vector<std::size_t> free_;
    netio::RegisteredBuffer memory_{slot_count * block_bytes, netio::Access::send};
    netio::SendSocket socket_; // last: destroyed before the memory that it sends from
};

int main(int argc, char** argv) try {
    netio::EventLoop loop;
    const auto transport = netio::open_fabric(loop);
    const Sender sender{*transport, netio::parse_address(argc > 1 ? argv[1] : "127.0.0.1:12345"),
                        argc > 2 ? std::stoull(argv[2]) : 1000};
    loop.run();
    return sender.ended_well() ? 0 : 1;
} catch (const std::exception& error) {
    std::fprintf(stderr, "message_sender: %s\n", error.what());
    return 1;
}
