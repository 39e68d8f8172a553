// SPDX-License-Identifier: Apache-2.0

// Sockets over real tcp whose loop is embedded in the program's own epoll loop.

#include "netio/fabric.hpp"
#include "netio/messages/listen_socket.hpp"
#include "netio/messages/send_socket.hpp"

#include <gtest/gtest.h>

#include <linux/filter.h>
#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <memory>
#include <vector>

namespace netio::test::embedded_test {
namespace {

using namespace std::chrono_literals;

// The program's own loop: it sleeps until one of the embedded loops has work.
class OuterLoop {
  public:
    OuterLoop() : epoll_{epoll_create1(EPOLL_CLOEXEC)} {}
    ~OuterLoop() { close(epoll_); }
    OuterLoop(const OuterLoop&) = delete;
    OuterLoop& operator=(const OuterLoop&) = delete;

    void add(EventLoop& loop) {
        epoll_event event{.events = EPOLLIN, .data = {.ptr = &loop}};
        ASSERT_EQ(epoll_ctl(epoll_, EPOLL_CTL_ADD, loop.pollable_fd(), &event), 0);
        loops_.push_back(&loop);
    }
    bool run_until(const std::function<bool()>& done, Duration limit) {
        const TimePoint end = Clock::now() + limit;
        for (EventLoop* const loop : loops_)
            loop->dispatch();
        while (!done() && Clock::now() < end) {
            epoll_event event{};
            const auto left =
                std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
            const int count =
                epoll_wait(epoll_, &event, 1, static_cast<int>(std::max(left, 1ms).count()));
            if (count == 1) static_cast<EventLoop*>(event.data.ptr)->dispatch();
        }
        return done();
    }

  private:
    int epoll_;
    std::vector<EventLoop*> loops_;
};

struct Sender final : SendSocket::Handler {
    void on_connected(SendSocket&) override { connected = true; }
    void on_closed(SendSocket&, const Closed& why) override { closed.push_back(why); }
    bool connected = false;
    std::vector<Closed> closed;
};

struct Receiver final : ListenSocket::Handler {
    void on_connected(ReceiveSocket&) override { ++connected; }
    void on_message(ReceiveSocket&, std::span<const std::byte>,
                    std::optional<std::uint64_t>) override {
        ++messages;
    }
    int connected = 0;
    int messages = 0;
};

// Makes the kernel discard all data for the sockets accepted at this port, as if their host had
// vanished. Returns the number of such sockets.
int make_deaf(std::uint16_t port) {
    sock_filter drop_all{.code = BPF_RET | BPF_K, .jt = 0, .jf = 0, .k = 0};
    const sock_fprog program{.len = 1, .filter = &drop_all};
    int count = 0;
    for (int fd = 0; fd < 1024; ++fd) {
        sockaddr_in local{};
        sockaddr_in peer{};
        socklen_t size = sizeof(local);
        if (getsockname(fd, reinterpret_cast<sockaddr*>(&local), &size) != 0) continue;
        if (local.sin_family != AF_INET || ntohs(local.sin_port) != port) continue;
        size = sizeof(peer);
        if (getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &size) != 0) continue;
        if (setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program)) == 0) ++count;
    }
    return count;
}

// The outer loop sleeps nearly all the time, and this must not count as time in which the process
// did not look: with a heartbeat of one second, nine tenths did.
TEST(Embedded, AVanishedPeerIsJudgedSilent) {
    EventLoop near_loop;
    EventLoop far_loop;
    const auto near_transport = open_fabric(near_loop, {.provider = "tcp"});
    const auto far_transport = open_fabric(far_loop, {.provider = "tcp"});
    SessionOptions mute{.send_count = 16, .heartbeat = 0ms, .dead_after = 0ms};
    Receiver receiver;
    ListenSocket far{*far_transport, {.listen = {{"127.0.0.1", 0}}, .session = mute}, receiver};
    Sender sender;
    SendSocket near{*near_transport,
                    {.session = {.receive_buffer_bytes = 256,
                                 .receive_count = 16,
                                 .heartbeat = 1s,
                                 .dead_after = 2s,
                                 .connect_timeout = 60s},
                     .local_host = {}},
                    sender};
    OuterLoop outer;
    outer.add(near_loop);
    outer.add(far_loop);
    const Address address = far.endpoints().front().address;
    near.connect(address);
    ASSERT_TRUE(
        outer.run_until([&] { return receiver.connected == 1 || !sender.closed.empty(); }, 60s));
    ASSERT_TRUE(sender.connected);
    ASSERT_EQ(make_deaf(address.port), 1);
    ASSERT_TRUE(outer.run_until([&] { return !sender.closed.empty(); }, 15s));
    EXPECT_EQ(sender.closed[0].reason, CloseReason::silent) << sender.closed[0].detail;
}

// One port at an address of each family, one sender for each; all in one embedded loop.
TEST(Embedded, TwoFamiliesServeTheirSendersAndEndInOrder) {
    EventLoop loop;
    const auto transport = open_fabric(loop, {.provider = "tcp"});
    Receiver receiver;
    ListenSocket first{*transport, {.listen = {{"127.0.0.1", 0}}}, receiver};
    const std::uint16_t port = first.endpoints().front().address.port;
    ListenSocket second{*transport, {.listen = {{"::1", port}}}, receiver};
    OuterLoop outer;
    outer.add(loop);
    std::array<Sender, 2> senders;
    std::vector<std::unique_ptr<SendSocket>> sockets;
    for (std::size_t i = 0; i < 2; ++i) {
        sockets.push_back(
            std::make_unique<SendSocket>(*transport, SendSocket::Options{}, senders[i]));
        sockets[i]->connect({.host = i == 0 ? "127.0.0.1" : "::1", .port = port});
    }
    ASSERT_TRUE(outer.run_until(
        [&] { return senders[0].connected && senders[1].connected && receiver.connected == 2; },
        60s));
    const std::array<std::byte, 8> bytes{};
    for (const auto& socket : sockets) {
        ASSERT_EQ(socket->send_inline(bytes), Status::ok);
        socket->close();
    }
    ASSERT_TRUE(outer.run_until(
        [&] { return !senders[0].closed.empty() && !senders[1].closed.empty(); }, 60s));
    for (const Sender& sender : senders)
        EXPECT_EQ(sender.closed[0].reason, CloseReason::orderly) << sender.closed[0].detail;
    EXPECT_EQ(receiver.messages, 2);
}

} // namespace
} // namespace netio::test::embedded_test
