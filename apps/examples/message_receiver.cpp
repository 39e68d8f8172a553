// SPDX-License-Identifier: Apache-2.0
// Receives messages, buffered and unbuffered, from any number of senders, and ends after the last
// sender has closed: message_receiver HOST:PORT
#include "netio/base/observer.hpp"
#include "netio/fabric.hpp"
#include "netio/loop/signal_watch.hpp"
#include "netio/messages/listen_socket.hpp"

#include <csignal>
#include <cstdio>
#include <exception>

// Logs rejected peers, and accept failures that only the operator of this machine can fix.
struct Log final : netio::Observer {
    void on_accept_failed(const netio::AcceptFailed& event) override {
        std::fprintf(stderr, "%s was rejected: %s\n", event.peer.c_str(), event.why.what());
    }
    void on_peer_rejected(const netio::PeerRejected& event) override {
        std::fprintf(stderr, "%s was rejected: %s\n", event.peer.c_str(), event.why.c_str());
    }
};

struct Receiver final : netio::ListenSocket::Handler {
    explicit Receiver(netio::EventLoop& its_loop) : loop{its_loop} {}

    void on_connected(netio::ReceiveSocket&) override { ++senders; }
    // The bytes are valid during the call only.
    void on_message(netio::ReceiveSocket&, std::span<const std::byte> message,
                    std::optional<std::uint64_t>) override {
        ++messages;
        bytes += message.size();
    }
    void on_closed(netio::ReceiveSocket& sender, const netio::Closed& closed) override {
        std::printf("%s: %s\n", sender.peer_address().c_str(), explain(closed).c_str());
        failed = failed || closed.reason != netio::CloseReason::orderly;
        if (--senders == 0) loop.stop();
    }
    // Called after close() below: every sender knows what was received, and has had its on_closed.
    void on_listen_closed(netio::ListenSocket&, const netio::Closed&) override { loop.stop(); }

    netio::EventLoop& loop;
    int senders = 0;
    bool failed = false;
    unsigned long long messages = 0;
    unsigned long long bytes = 0;
};

int main(int argc, char** argv) try {
    Log log;
    netio::EventLoop loop{{.observer = &log}};
    const auto transport = netio::open_fabric(loop);
    Receiver receiver{loop};
    netio::ListenSocket::Options options;
    options.listen = {netio::parse_address(argc > 1 ? argv[1] : "127.0.0.1:12345")};
    options.allow_remote_anonymous = argc > 1; // any peer that reaches the address may connect
    netio::ListenSocket socket{*transport, options, receiver};
    std::printf("listening at %s\n", to_string(socket.endpoints().at(0).address).c_str());
    std::fflush(stdout);
    const netio::SignalWatch stop{loop, {SIGINT, SIGTERM}, [&](int) { socket.close(); }};
    loop.run();
    std::printf("received %llu messages, %llu bytes\n", receiver.messages, receiver.bytes);
    return receiver.failed ? 1 : 0;
} catch (const std::exception& error) {
    std::fprintf(stderr, "message_receiver: %s\n", error.what());
    return 1;
}
