// SPDX-License-Identifier: Apache-2.0

// ZeroMQ, publish/subscribe over tcp: XPUB that blocks instead of dropping, with the fid as the
// topic before the message. Round trips: PAIR sockets.

#include "bench/subject.hpp"

#include <zmq.h>

namespace {

using bench::Arguments;

constexpr std::size_t topic_bytes = sizeof(std::uint64_t);
// Limit of queued messages; with the default of 1000 small messages block each other.
constexpr int queue_limit = 100'000;

int checked(int result, const char* step) {
    if (result < 0) bench::fail(std::string{step} + ": " + ::zmq_strerror(::zmq_errno()));
    return result;
}

class Socket {
  public:
    Socket(int type, const Arguments& arguments)
        : context_{::zmq_ctx_new()}, socket_{::zmq_socket(context_, type)}, busy_{arguments.mode ==
                                                                                  "busy"} {
        const std::size_t limit = std::max<std::size_t>(
            16, std::min<std::size_t>(queue_limit, (std::size_t{64} << 20) / arguments.size));
        set(ZMQ_SNDHWM, static_cast<int>(limit));
        set(ZMQ_RCVHWM, static_cast<int>(limit));
        address_ = "tcp://127.0.0.1:" + std::to_string(arguments.port);
    }
    // Waits until everything sent has arrived.
    ~Socket() {
        ::zmq_close(socket_);
        ::zmq_ctx_term(context_);
    }
    Socket(const Socket&) = delete;
    Socket& operator=(const Socket&) = delete;

    void set(int option, int value) {
        checked(::zmq_setsockopt(socket_, option, &value, sizeof value), "zmq_setsockopt");
    }
    void subscribe(const void* topic, std::size_t size) {
        checked(::zmq_setsockopt(socket_, ZMQ_SUBSCRIBE, topic, size), "subscribe");
    }
    void bind() { checked(::zmq_bind(socket_, address_.c_str()), "zmq_bind"); }
    void connect() { checked(::zmq_connect(socket_, address_.c_str()), "zmq_connect"); }
    void send(::zmq_msg_t& message) { checked(::zmq_msg_send(&message, socket_, 0), "send"); }
    void receive(::zmq_msg_t& message) {
        while (::zmq_msg_recv(&message, socket_, busy_ ? ZMQ_DONTWAIT : 0) < 0) {
            if (!busy_ || ::zmq_errno() != EAGAIN) checked(-1, "zmq_msg_recv");
        }
    }

  private:
    void* context_;
    void* socket_;
    bool busy_;
    std::string address_;
};

std::byte* bytes_of(::zmq_msg_t& message) {
    return static_cast<std::byte*>(::zmq_msg_data(&message));
}

void publish(const Arguments& arguments) {
    bench::Source source{arguments};
    {
        Socket socket{ZMQ_XPUB, arguments};
        socket.set(ZMQ_XPUB_NODROP, 1);
        socket.set(ZMQ_XPUB_VERBOSE,
                   1); // report every subscription, not only the first of its kind
        socket.bind();
        bench::say("listening");
        const std::size_t topics = arguments.each_fid ? arguments.fids : 1;
        ::zmq_msg_t message;
        for (std::size_t i = 0; i < topics * arguments.subscribers; ++i) {
            ::zmq_msg_init(&message);
            socket.receive(message);
            ::zmq_msg_close(&message);
        }
        bench::run_source(
            source,
            [&] {
                // Built in place in ZeroMQ's memory, without a copy.
                ::zmq_msg_init_size(&message, topic_bytes + arguments.size);
                const std::uint64_t fid = source.fid();
                std::memcpy(bytes_of(message), &fid, topic_bytes);
                source.prepare(bytes_of(message) + topic_bytes);
                socket.send(message);
            },
            [] {});
    }
    source.report();
}

void subscribe(const Arguments& arguments) {
    Socket socket{ZMQ_SUB, arguments};
    if (arguments.each_fid) {
        for (std::size_t i = 0; i < arguments.fids; ++i) {
            const std::uint64_t fid = bench::fid_at(i);
            socket.subscribe(&fid, sizeof fid);
        }
    } else {
        socket.subscribe(nullptr, 0);
    }
    socket.connect();
    bench::Sink sink{arguments};
    ::zmq_msg_t message;
    for (bool last = false; !last;) {
        ::zmq_msg_init(&message);
        socket.receive(message);
        last = sink.take(bytes_of(message) + topic_bytes, ::zmq_msg_size(&message) - topic_bytes);
        ::zmq_msg_close(&message);
    }
    sink.report();
}

void measure_echo(const Arguments& arguments) {
    Socket socket{ZMQ_PAIR, arguments};
    socket.bind();
    bench::say("listening");
    bench::RoundTrips trips{arguments};
    ::zmq_msg_t message;
    for (bool last = false; !last;) {
        ::zmq_msg_init_size(&message, arguments.size);
        trips.prepare(bytes_of(message));
        socket.send(message);
        ::zmq_msg_init(&message);
        socket.receive(message);
        last = trips.take(bytes_of(message));
        ::zmq_msg_close(&message);
    }
    trips.report();
}

void echo(const Arguments& arguments) {
    Socket socket{ZMQ_PAIR, arguments};
    socket.connect();
    ::zmq_msg_t message;
    for (bool last = false; !last;) {
        ::zmq_msg_init(&message);
        socket.receive(message);
        last = bench::is_last(bytes_of(message));
        socket.send(message);
    }
}

} // namespace

int main(int argc, char** argv) {
    const Arguments arguments = bench::parse(argc, argv);
    if (arguments.pattern == "echo") {
        (arguments.publish ? measure_echo : echo)(arguments);
    } else {
        (arguments.publish ? publish : subscribe)(arguments);
    }
}
