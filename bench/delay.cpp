// SPDX-License-Identifier: Apache-2.0

// Forwards TCP connections with a delay, like a path with long round trips: without loss, in order,
// and with a limit of the bytes in flight.
//
//     delay --listen 5001 --to 5000 [--host 127.0.0.1] [--delay-ms 10] [--room-mib 64]
//
// Four threads per connection. Runs until it is killed.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <functional>
#include <mutex>
#include <string_view>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;

struct Arguments {
    in_addr host{htonl(INADDR_LOOPBACK)}; // for both addresses
    std::uint16_t listen = 0;
    std::uint16_t to = 0;
    std::chrono::milliseconds delay{10};
    std::size_t room = std::size_t{64} << 20;
};

[[noreturn]] void fail(const char* what) {
    std::perror(what);
    std::exit(1);
}

Arguments parse(int argc, char** argv) {
    Arguments arguments;
    for (int i = 1; i + 1 < argc; i += 2) {
        const std::string_view name = argv[i];
        const unsigned long value = std::strtoul(argv[i + 1], nullptr, 10);
        if (name == "--host" && ::inet_pton(AF_INET, argv[i + 1], &arguments.host) != 1) {
            std::fprintf(stderr, "delay: %s is not an address\n", argv[i + 1]);
            std::exit(2);
        }
        if (name == "--listen") arguments.listen = static_cast<std::uint16_t>(value);
        if (name == "--to") arguments.to = static_cast<std::uint16_t>(value);
        if (name == "--delay-ms") arguments.delay = std::chrono::milliseconds{value};
        if (name == "--room-mib") arguments.room = std::size_t{value} << 20;
    }
    return arguments;
}

// One direction: a ring of bytes, and the times when its pieces are due.
class Way {
  public:
    Way(int from, int to, const Arguments& arguments)
        : from_{from}, to_{to}, delay_{arguments.delay}, ring_(arguments.room) {}

    void take() {
        while (true) {
            std::size_t begin = 0;
            std::size_t room = 0;
            {
                std::unique_lock lock{mutex_};
                changed_.wait(lock, [&] { return taken_ - given_ < ring_.size(); });
                begin = static_cast<std::size_t>(taken_ % ring_.size());
                room = std::min({static_cast<std::size_t>(ring_.size() - (taken_ - given_)),
                                 ring_.size() - begin, std::size_t{256} << 10});
            }
            const ssize_t got = ::recv(from_, ring_.data() + begin, room, 0);
            const std::lock_guard lock{mutex_};
            if (got > 0) taken_ += static_cast<std::uint64_t>(got);
            due_.push_back({got > 0 ? taken_ : no_more, Clock::now() + delay_});
            changed_.notify_all();
            if (got <= 0) return;
        }
    }

    void give() {
        while (true) {
            Piece piece;
            std::size_t begin = 0;
            {
                std::unique_lock lock{mutex_};
                changed_.wait(lock, [&] { return !due_.empty(); });
                piece = due_.front();
                due_.pop_front();
                begin = static_cast<std::size_t>(given_ % ring_.size());
            }
            std::this_thread::sleep_until(piece.due);
            if (piece.end == no_more) break;
            if (!send_all(begin, static_cast<std::size_t>(piece.end - given_))) break;
            const std::lock_guard lock{mutex_};
            given_ = piece.end;
            changed_.notify_all();
        }
        ::shutdown(to_, SHUT_WR);
    }

  private:
    struct Piece {
        std::uint64_t end = 0;
        Clock::time_point due;
    };
    static constexpr std::uint64_t no_more = UINT64_MAX;

    // A single receive never goes past the end of the ring.
    bool send_all(std::size_t begin, std::size_t bytes) {
        while (bytes > 0) {
            const ssize_t sent = ::send(to_, ring_.data() + begin, bytes, MSG_NOSIGNAL);
            if (sent <= 0) return false;
            begin += static_cast<std::size_t>(sent);
            bytes -= static_cast<std::size_t>(sent);
        }
        return true;
    }

    const int from_;
    const int to_;
    const std::chrono::milliseconds delay_;
    std::vector<char> ring_;
    std::mutex mutex_;
    std::condition_variable changed_;
    std::uint64_t taken_ = 0;
    std::uint64_t given_ = 0;
    std::deque<Piece> due_;
};

sockaddr_in at(in_addr host, std::uint16_t port) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr = host;
    return address;
}

void carry(int client, const Arguments& arguments) {
    const int server = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_in target = at(arguments.host, arguments.to);
    if (server < 0 ||
        ::connect(server, reinterpret_cast<const sockaddr*>(&target), sizeof target) != 0) {
        ::close(client);
        return;
    }
    const auto set = [&](int level, int name, int value) {
        for (const int socket : {client, server})
            ::setsockopt(socket, level, name, &value, sizeof value);
    };
    set(IPPROTO_TCP, TCP_NODELAY, 1);
    // A peer that was killed while its link was down sends nothing more; keep-alive detects it on
    // this side as on the other.
    set(SOL_SOCKET, SO_KEEPALIVE, 1);
    set(IPPROTO_TCP, TCP_KEEPIDLE, 5);
    set(IPPROTO_TCP, TCP_KEEPINTVL, 1);
    set(IPPROTO_TCP, TCP_KEEPCNT, 10);
    Way there{client, server, arguments};
    Way back{server, client, arguments};
    std::thread helpers[] = {std::thread{&Way::take, &there}, std::thread{&Way::give, &there},
                             std::thread{&Way::take, &back}, std::thread{&Way::give, &back}};
    for (std::thread& each : helpers)
        each.join();
    ::close(client);
    ::close(server);
}

} // namespace

int main(int argc, char** argv) {
    const Arguments arguments = parse(argc, argv);
    std::signal(SIGPIPE, SIG_IGN);
    const int listener = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const int on = 1;
    ::setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    const sockaddr_in place = at(arguments.host, arguments.listen);
    if (listener < 0 ||
        ::bind(listener, reinterpret_cast<const sockaddr*>(&place), sizeof place) != 0 ||
        ::listen(listener, 64) != 0) {
        fail("delay: listen");
    }
    std::printf("listening\n");
    std::fflush(stdout);
    while (true) {
        const int client = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
        if (client < 0) fail("delay: accept");
        std::thread{carry, client, std::cref(arguments)}.detach();
    }
}
