// SPDX-License-Identifier: Apache-2.0

// Which peers a tcp listener admits, which it disconnects, and which sockets it leaves alone.

#include "tests/scenario/fabric/ends.hpp"
#include "tests/support/descriptor_limit.hpp"
#include "tests/support/open_descriptors.hpp"

#include <gmock/gmock.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <optional>

namespace netio::test::door_test {
namespace {

using testing::IsEmpty;

constexpr auto handshake_timeout = 50ms;
constexpr auto several_looks = 6 * handshake_timeout;

// A plain TCP socket of a peer that does not use libfabric.
class PlainSocket {
  public:
    explicit PlainSocket(int fd) : fd_{fd} { NETIO_CHECK(fd >= 0); }
    ~PlainSocket() { ::close(fd_); }
    PlainSocket(const PlainSocket&) = delete;
    PlainSocket& operator=(const PlainSocket&) = delete;

    static std::unique_ptr<PlainSocket> make() {
        return std::make_unique<PlainSocket>(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    }
    void bind(const Address& address) {
        const sockaddr_in name = name_of(address);
        NETIO_CHECK(::bind(fd_, reinterpret_cast<const sockaddr*>(&name), sizeof name) == 0);
    }
    void connect(const Address& address) {
        const sockaddr_in name = name_of(address);
        NETIO_CHECK(::connect(fd_, reinterpret_cast<const sockaddr*>(&name), sizeof name) == 0);
    }
    void listen(const Address& address) {
        bind(address);
        NETIO_CHECK(::listen(fd_, 8) == 0);
    }
    std::unique_ptr<PlainSocket> accept() {
        return std::make_unique<PlainSocket>(::accept4(fd_, nullptr, nullptr, SOCK_CLOEXEC));
    }
    bool is_over() const {
        char byte = 0;
        const auto got = ::recv(fd_, &byte, 1, MSG_DONTWAIT);
        return got == 0 || (got < 0 && errno != EAGAIN);
    }

  private:
    static sockaddr_in name_of(const Address& address) {
        sockaddr_in name{};
        name.sin_family = AF_INET;
        name.sin_port = htons(address.port);
        NETIO_CHECK(::inet_pton(AF_INET, address.host.c_str(), &name.sin_addr) == 1);
        return name;
    }
    int fd_;
};

Fabric impatient() {
    return Fabric{{.handshake_timeout = handshake_timeout}};
}

TEST(Door, AnUnfinishedHandshakeIsDisconnected) {
    Fabric fabric = impatient();
    Door door{*fabric.transport, {.host = "127.0.0.1", .port = 0}};
    const auto stranger = PlainSocket::make();
    stranger->connect(door.listener->address());
    EXPECT_TRUE(fabric.run_until([&] { return stranger->is_over(); }));
    EXPECT_THAT(door.ends, IsEmpty());
}

TEST(Door, AnUnfinishedHandshakeIsDisconnectedAtEveryHostAddress) {
    Fabric fabric = impatient();
    Door door{*fabric.transport, {.host = "0.0.0.0", .port = 0}};
    const auto stranger = PlainSocket::make();
    stranger->connect({.host = "127.0.0.1", .port = door.listener->address().port});
    EXPECT_TRUE(fabric.run_until([&] { return stranger->is_over(); }));
}

TEST(Door, TheOldestOfTooManyHandshakesOfAHostAreDisconnected) {
    Fabric fabric{{.handshake_timeout = 60s, .pending_handshakes_per_host = 3}};
    Door door{*fabric.transport, {.host = "127.0.0.1", .port = 0}};
    const auto other = PlainSocket::make();
    other->bind({.host = "127.0.0.2", .port = 0});
    other->connect(door.listener->address());
    std::vector<std::unique_ptr<PlainSocket>> strangers;
    for (int i = 0; i < 5; ++i) {
        strangers.push_back(PlainSocket::make());
        strangers.back()->connect(door.listener->address());
    }
    ASSERT_TRUE(
        fabric.run_until([&] { return strangers[0]->is_over() && strangers[1]->is_over(); }));
    const End honest{*fabric.transport, door.listener->address()};
    EXPECT_TRUE(fabric.run_until([&] { return honest.connected; }));
    EXPECT_TRUE(fabric.run_until([&] { return strangers[2]->is_over(); })) << "the honest one came";
    EXPECT_FALSE(strangers[3]->is_over());
    EXPECT_FALSE(strangers[4]->is_over());
    EXPECT_FALSE(other->is_over());
}

TEST(Door, AClosingListenerEndsUnfinishedHandshakes) {
    Fabric fabric{{.handshake_timeout = 60s}};
    std::optional<Door> door{std::in_place, *fabric.transport,
                             Address{.host = "127.0.0.1", .port = 0}};
    const auto before = open_descriptors();
    const auto first = PlainSocket::make();
    const auto second = PlainSocket::make();
    first->connect(door->listener->address());
    second->connect(door->listener->address());
    const TimePoint deadline = Clock::now() + 60s;
    while (open_descriptors().size() < before.size() + 4 && Clock::now() < deadline)
        fabric.loop.run_once(Clock::now() + 10ms);
    ASSERT_EQ(open_descriptors().size(), before.size() + 4) << "the provider has accepted both";
    door.reset();
    EXPECT_TRUE(first->is_over());
    EXPECT_TRUE(second->is_over());
}

TEST(Door, TwoListenersWithOnePortLeaveEachOthersPeersAlone) {
    Fabric fabric = impatient();
    Door one{*fabric.transport, {.host = "127.0.0.1", .port = 0}};
    const std::uint16_t port = one.listener->address().port;
    Door two{*fabric.transport, {.host = "127.0.0.2", .port = port}};
    const End first{*fabric.transport, {.host = "127.0.0.1", .port = port}};
    const End second{*fabric.transport, {.host = "127.0.0.2", .port = port}};
    ASSERT_TRUE(fabric.run_until([&] { return first.connected && second.connected; }));
    fabric.run_for(several_looks);
    EXPECT_THAT(first.closed, IsEmpty());
    EXPECT_THAT(second.closed, IsEmpty());
    for (const auto& end : {std::cref(one.ends), std::cref(two.ends)}) {
        ASSERT_EQ(end.get().size(), 1U);
        EXPECT_THAT(end.get().front()->closed, IsEmpty());
    }
}

TEST(Door, TwoTransportsOfOneProcessLeaveEachOthersPeersAlone) {
    Fabric here = impatient();
    Fabric there = impatient();
    Door one{*here.transport, {.host = "127.0.0.1", .port = 0}};
    const std::uint16_t port = one.listener->address().port;
    Door two{*there.transport, {.host = "127.0.0.2", .port = port}};
    const End first{*there.transport, {.host = "127.0.0.1", .port = port}};
    const End second{*here.transport, {.host = "127.0.0.2", .port = port}};
    const TimePoint end = Clock::now() + several_looks;
    while (!first.connected || !second.connected || Clock::now() < end) {
        here.loop.run_once(Clock::now() + 1ms);
        there.loop.run_once(Clock::now() + 1ms);
        ASSERT_LT(Clock::now(), end + 60s);
    }
    EXPECT_THAT(first.closed, IsEmpty());
    EXPECT_THAT(second.closed, IsEmpty());
}

TEST(Door, DoesNotCloseSocketsOfTheProgram) {
    Fabric fabric = impatient();
    Door door{*fabric.transport, {.host = "127.0.0.1", .port = 0}};
    const Address mine{.host = "127.0.0.3", .port = door.listener->address().port};
    const auto server = PlainSocket::make();
    server->listen(mine);
    const auto client = PlainSocket::make();
    client->connect(mine);
    const auto accepted = server->accept();
    const auto stranger = PlainSocket::make(); // so that there is a peer to look for
    stranger->connect(door.listener->address());
    ASSERT_TRUE(fabric.run_until([&] { return stranger->is_over(); }));
    fabric.run_for(several_looks);
    EXPECT_FALSE(client->is_over());
    EXPECT_FALSE(accepted->is_over());
}

TEST(Door, KnowsTheKernelSocketsOfBothEnds) {
    Fabric fabric;
    Door door{*fabric.transport, {.host = "127.0.0.1", .port = 0}};
    std::vector<std::unique_ptr<End>> ends;
    for (int i = 0; i < 10; ++i)
        ends.push_back(std::make_unique<End>(*fabric.transport, door.listener->address()));
    const auto all_connected = [&] {
        return door.ends.size() == ends.size() &&
               std::ranges::all_of(ends, [](const auto& end) { return end->connected; });
    };
    ASSERT_TRUE(fabric.run_until(all_connected));
    ASSERT_TRUE(fabric.run_until([&] {
        return std::ranges::all_of(door.ends, [](const auto& end) { return end->connected; });
    }));
    for (const auto& group : {std::cref(ends), std::cref(door.ends)}) {
        for (const auto& end : group.get())
            EXPECT_NE(end->connection->last_sign_of_life(1s), TimePoint::min());
    }
}

TEST(Door, AListenerWithoutDescriptorsToAcceptFailsAtTheStart) {
    const Fabric fabric;
    {
        const DescriptorLimit limit{24}; // enough to listen; the rest is a reserve
        try {
            const Door door{*fabric.transport, {.host = "127.0.0.1", .port = 0}};
            ADD_FAILURE() << "it listens";
        } catch (const FabricError& error) {
            EXPECT_THAT(error.what(),
                        testing::AllOf(testing::HasSubstr("cannot listen at 127.0.0.1"),
                                       testing::HasSubstr("ulimit -n")));
        }
    }
    const Door door{*fabric.transport, {.host = "127.0.0.1", .port = 0}};
}

TEST(Door, WithoutDescriptorsItPausesInsteadOfSpinning) {
    Fabric fabric;
    Door door{*fabric.transport, {.host = "127.0.0.1", .port = 0}};
    fabric.loop.run_once();
    const auto waiting = PlainSocket::make();
    {
        const auto none_left = PlainSocket::make();
        const DescriptorLimit limit{0};
        waiting->connect(door.listener->address());
        const std::uint64_t before = fabric.loop.wait_count();
        fabric.run_for(300ms);
        EXPECT_LE(fabric.loop.wait_count() - before, 40U);
    }
    const End peer{*fabric.transport, door.listener->address()};
    EXPECT_TRUE(fabric.run_until([&] { return peer.connected; })) << "it recovers";
}

} // namespace
} // namespace netio::test::door_test
