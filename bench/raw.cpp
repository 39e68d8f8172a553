// SPDX-License-Identifier: Apache-2.0

// The lower limit of the cost: plain TCP sockets. `coalesced` copies messages, each with its length
// and fid, into blocks of 64 KiB that are sent at once; `unbatched` sends each message with its own
// call. `ticks` sends nothing. The receiver finds every message in the received data and visits it.

#include "bench/subject.hpp"

#include <array>

#include <cerrno>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

namespace {

using bench::Arguments;

constexpr std::size_t frame_head_bytes = 12; // length, fid
constexpr std::size_t batch_bytes = 65536;

sockaddr_in loopback(std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    address.sin_port = htons(port);
    return address;
}

int checked(int result, const char* step) {
    if (result < 0) bench::fail(std::string{step} + ": " + std::strerror(errno));
    return result;
}

int new_socket() {
    return checked(::socket(AF_INET, SOCK_STREAM, 0), "socket");
}

void without_delay(int fd) {
    const int on = 1;
    checked(::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on), "setsockopt");
}

std::vector<int> accept_all(const Arguments& arguments) {
    const int listener = new_socket();
    const int on = 1;
    checked(::setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on), "setsockopt");
    const sockaddr_in address = loopback(arguments.port);
    checked(::bind(listener, reinterpret_cast<const sockaddr*>(&address), sizeof address), "bind");
    checked(::listen(listener, 64), "listen");
    bench::say("listening");
    std::vector<int> connections;
    while (connections.size() < arguments.subscribers) {
        connections.push_back(checked(::accept(listener, nullptr, nullptr), "accept"));
        without_delay(connections.back());
    }
    return connections;
}

int connect_to(const Arguments& arguments) {
    const int fd = new_socket();
    const sockaddr_in address = loopback(arguments.port);
    checked(::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address), "connect");
    without_delay(fd);
    return fd;
}

void send_all(int fd, iovec* parts, std::size_t count) {
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = count;
    while (message.msg_iovlen > 0) {
        const auto sent = ::sendmsg(fd, &message, MSG_NOSIGNAL);
        if (sent < 0) bench::fail(std::string{"sendmsg: "} + std::strerror(errno));
        auto left = static_cast<std::size_t>(sent);
        while (message.msg_iovlen > 0 && left >= message.msg_iov->iov_len) {
            left -= message.msg_iov->iov_len;
            ++message.msg_iov;
            --message.msg_iovlen;
        }
        if (message.msg_iovlen == 0) return;
        message.msg_iov->iov_base = static_cast<std::byte*>(message.msg_iov->iov_base) + left;
        message.msg_iov->iov_len -= left;
    }
}

void write_head(std::byte* out, std::size_t size, std::uint64_t fid) {
    const auto length = static_cast<std::uint32_t>(size);
    std::memcpy(out, &length, sizeof length);
    std::memcpy(out + sizeof length, &fid, sizeof fid);
}

void publish_coalesced(const Arguments& arguments) {
    const std::vector<int> connections = accept_all(arguments);
    bench::Source source{arguments};
    std::vector<std::byte> message(arguments.size);
    std::vector<std::byte> batch(std::max(batch_bytes, frame_head_bytes + arguments.size));
    std::size_t used = 0;
    const auto flush = [&] {
        for (const int fd : connections) {
            iovec part{batch.data(), used};
            send_all(fd, &part, 1);
        }
        used = 0;
    };
    bench::run_source(
        source,
        [&] {
            if (used + frame_head_bytes + message.size() > batch.size()) flush();
            source.prepare(message.data());
            write_head(batch.data() + used, message.size(), source.fid());
            std::memcpy(batch.data() + used + frame_head_bytes, message.data(), message.size());
            used += frame_head_bytes + message.size();
        },
        flush);
    source.report();
}

void publish_unbatched(const Arguments& arguments) {
    const std::vector<int> connections = accept_all(arguments);
    bench::Source source{arguments};
    std::vector<std::byte> message(arguments.size);
    std::array<std::byte, frame_head_bytes> head{};
    std::vector<iovec> parts(1 + arguments.pieces);
    bench::run_source(
        source,
        [&] {
            source.prepare(message.data());
            write_head(head.data(), message.size(), source.fid());
            for (const int fd : connections) {
                parts[0] = {head.data(), head.size()};
                for (std::size_t i = 0; i < arguments.pieces; ++i) {
                    const auto [at, bytes] = bench::piece_of(arguments, i);
                    parts[1 + i] = {message.data() + at, bytes};
                }
                send_all(fd, parts.data(), parts.size());
            }
        },
        [] {});
    source.report();
}

// Wakes as often as a paced publisher, and sends nothing. The difference to a paced publisher is
// the cost of sending.
void only_tick(const Arguments& arguments) {
    bench::say("listening");
    bench::Source source{arguments};
    std::vector<std::byte> message(arguments.size);
    bench::run_source(
        source, [&] { source.prepare(message.data()); }, [] {});
    source.report();
}

void receive_all(const Arguments& arguments) {
    const int fd = connect_to(arguments);
    bench::Sink sink{arguments};
    const std::size_t frame = frame_head_bytes + arguments.size;
    // One large message is read at a time, and as many small ones as are available.
    std::vector<std::byte> buffer(frame > batch_bytes ? frame : 2 * batch_bytes);
    for (std::size_t used = 0;;) {
        const auto got = ::recv(fd, buffer.data() + used, buffer.size() - used, 0);
        if (got <= 0) bench::fail("the publisher has disconnected");
        used += static_cast<std::size_t>(got);
        std::size_t at = 0;
        while (used - at >= frame_head_bytes) {
            std::uint32_t length = 0;
            std::memcpy(&length, buffer.data() + at, sizeof length);
            if (used - at - frame_head_bytes < length) break;
            if (sink.take(buffer.data() + at + frame_head_bytes, length)) return sink.report();
            at += frame_head_bytes + length;
        }
        used -= at;
        if (at > 0 && used > 0) std::memmove(buffer.data(), buffer.data() + at, used);
    }
}

// --- round trips ------------------------------------------------------------------------------

void receive_exactly(int fd, std::span<std::byte> out, bool busy) {
    while (!out.empty()) {
        const auto got = ::recv(fd, out.data(), out.size(), busy ? MSG_DONTWAIT : 0);
        if (got < 0 && errno == EAGAIN) continue;
        if (got <= 0) bench::fail("the peer has disconnected");
        out = out.subspan(static_cast<std::size_t>(got));
    }
}

void send_message(int fd, std::span<std::byte> message) {
    iovec part{message.data(), message.size()};
    send_all(fd, &part, 1);
}

void measure_echo(const Arguments& arguments) {
    const int fd = accept_all(arguments).front();
    const bool busy = arguments.mode == "busy";
    bench::RoundTrips trips{arguments};
    std::vector<std::byte> message(arguments.size);
    do {
        trips.prepare(message.data());
        send_message(fd, message);
        receive_exactly(fd, message, busy);
    } while (!trips.take(message.data()));
    trips.report();
}

void echo(const Arguments& arguments) {
    const int fd = connect_to(arguments);
    const bool busy = arguments.mode == "busy";
    std::vector<std::byte> message(arguments.size);
    do {
        receive_exactly(fd, message, busy);
        send_message(fd, message);
    } while (!bench::is_last(message.data()));
}

} // namespace

int main(int argc, char** argv) {
    const Arguments arguments = bench::parse(argc, argv);
    if (arguments.pattern == "echo") {
        arguments.publish ? measure_echo(arguments) : echo(arguments);
    } else if (!arguments.publish) {
        receive_all(arguments);
    } else if (arguments.form == "ticks") {
        only_tick(arguments);
    } else if (arguments.form == "unbatched") {
        publish_unbatched(arguments);
    } else {
        publish_coalesced(arguments);
    }
}
