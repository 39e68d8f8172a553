// SPDX-License-Identifier: Apache-2.0

// NNG over tcp. Its publish/subscribe loses messages that do not fit into a subscriber's queue, so
// streams use push/pull with one socket per subscriber. Round trips: pair.

#include "bench/subject.hpp"

#include <atomic>
#include <memory>
#include <nng/nng.h>
#include <nng/protocol/pair0/pair.h>
#include <nng/protocol/pipeline0/pull.h>
#include <nng/protocol/pipeline0/push.h>
#include <nng/supplemental/util/platform.h>

namespace {

using bench::Arguments;

constexpr std::size_t head_bytes = sizeof(std::uint64_t); // the fid

void require(int result, const char* step) {
    if (result != 0) bench::fail(std::string{step} + ": " + ::nng_strerror(result));
}

std::string address(const Arguments& arguments, std::size_t offset) {
    return "tcp://127.0.0.1:" + std::to_string(arguments.port + offset);
}

::nng_msg* receive(::nng_socket socket) {
    ::nng_msg* message = nullptr;
    require(::nng_recvmsg(socket, &message, 0), "nng_recvmsg");
    return message;
}

::nng_msg* new_message(std::size_t size) {
    ::nng_msg* message = nullptr;
    require(::nng_msg_alloc(&message, size), "nng_msg_alloc");
    return message;
}

std::byte* bytes_of(::nng_msg* message) {
    return static_cast<std::byte*>(::nng_msg_body(message));
}

::nng_socket open(int (*protocol)(::nng_socket*)) {
    ::nng_socket socket;
    require(protocol(&socket), "cannot open a socket");
    require(::nng_socket_set_size(socket, NNG_OPT_RECVMAXSZ, 0), "no limit of size");
    return socket;
}

// Connections of a publisher's socket, which NNG reports on its own threads.
struct Pipes {
    std::atomic<int> joined{0};
    std::atomic<int> left{0};

    void watch(::nng_socket socket) {
        require(::nng_pipe_notify(
                    socket, NNG_PIPE_EV_ADD_POST,
                    [](::nng_pipe, ::nng_pipe_ev, void* pipes) {
                        ++static_cast<Pipes*>(pipes)->joined;
                    },
                    this),
                "nng_pipe_notify");
        require(
            ::nng_pipe_notify(
                socket, NNG_PIPE_EV_REM_POST,
                [](::nng_pipe, ::nng_pipe_ev, void* pipes) { ++static_cast<Pipes*>(pipes)->left; },
                this),
            "nng_pipe_notify");
    }
    static void wait_for(const std::atomic<int>& count, std::size_t expected) {
        while (count.load() < static_cast<int>(expected))
            ::nng_msleep(1);
    }
};

void publish(const Arguments& arguments) {
    std::vector<::nng_socket> sockets;
    Pipes pipes;
    for (std::size_t i = 0; i < arguments.subscribers; ++i) {
        sockets.push_back(open(::nng_push0_open));
        ::nng_socket_set_int(sockets.back(), NNG_OPT_SENDBUF, 1024);
        pipes.watch(sockets.back());
        require(::nng_listen(sockets.back(), address(arguments, i).c_str(), nullptr, 0), "listen");
    }
    bench::say("listening");
    Pipes::wait_for(pipes.joined, arguments.subscribers);
    bench::Source source{arguments};
    bench::run_source(
        source,
        [&] {
            for (const ::nng_socket socket : sockets) {
                ::nng_msg* const message = new_message(head_bytes + arguments.size);
                const std::uint64_t fid = source.fid();
                std::memcpy(bytes_of(message), &fid, head_bytes);
                source.prepare(bytes_of(message) + head_bytes);
                require(::nng_sendmsg(socket, message, 0), "nng_sendmsg");
            }
        },
        [] {});
    Pipes::wait_for(pipes.left, arguments.subscribers); // they disconnect after the last message
    source.report();
    ::nng_fini();
}

void subscribe(const Arguments& arguments) {
    const ::nng_socket socket = open(::nng_pull0_open);
    ::nng_socket_set_int(socket, NNG_OPT_RECVBUF, 1024);
    require(::nng_dial(socket, address(arguments, arguments.index).c_str(), nullptr, 0), "dial");
    bench::Sink sink{arguments};
    for (bool last = false; !last;) {
        ::nng_msg* const message = receive(socket);
        last = sink.take(bytes_of(message) + head_bytes, ::nng_msg_len(message) - head_bytes);
        ::nng_msg_free(message);
    }
    ::nng_close(socket);
    sink.report();
}

void measure_echo(const Arguments& arguments) {
    const ::nng_socket socket = open(::nng_pair0_open);
    require(::nng_listen(socket, address(arguments, 0).c_str(), nullptr, 0), "nng_listen");
    bench::say("listening");
    bench::RoundTrips trips{arguments};
    for (bool last = false; !last;) {
        ::nng_msg* const request = new_message(arguments.size);
        trips.prepare(bytes_of(request));
        require(::nng_sendmsg(socket, request, 0), "nng_sendmsg");
        ::nng_msg* const answer = receive(socket);
        last = trips.take(bytes_of(answer));
        ::nng_msg_free(answer);
    }
    trips.report();
}

void echo(const Arguments& arguments) {
    const ::nng_socket socket = open(::nng_pair0_open);
    Pipes pipes;
    pipes.watch(socket);
    require(::nng_dial(socket, address(arguments, 0).c_str(), nullptr, 0), "nng_dial");
    for (bool last = false; !last;) {
        ::nng_msg* const message = receive(socket);
        last = bench::is_last(bytes_of(message));
        require(::nng_sendmsg(socket, message, 0), "nng_sendmsg");
    }
    Pipes::wait_for(pipes.left, 1); // the last message has arrived
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
