// SPDX-License-Identifier: Apache-2.0

// IPv6 link-local addresses, which are valid only together with an interface (the zone). Each test
// has its own network namespace with one such address on the loopback interface.

#include "netio/fabric.hpp"
#include "netio/messages/buffered_send_socket.hpp"
#include "tests/scenario/fabric/ends.hpp"
#include "tests/scenario/messages/receiver.hpp"
#include "tests/support/protected_bed.hpp"

#include <gmock/gmock.h>

#include <arpa/inet.h>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace netio::test::link_local_test {
namespace {

// from <linux/ipv6.h>, which conflicts with <netinet/in.h>
struct InterfaceAddress {
    in6_addr address{};
    std::uint32_t prefix_bits = 0;
    int interface = 0;
};

// The kernel makes a new address usable in a work queue, which may be late on a busy machine.
bool wait_until_usable(const in6_addr& address) {
    sockaddr_in6 place{};
    place.sin6_family = AF_INET6;
    place.sin6_addr = address;
    place.sin6_scope_id = 1;
    const TimePoint deadline = Clock::now() + std::chrono::seconds{60};
    while (Clock::now() < deadline) {
        const int socket = ::socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0);
        const bool is_usable =
            ::bind(socket, reinterpret_cast<const sockaddr*>(&place), sizeof place) == 0;
        const bool may_become = errno == EADDRNOTAVAIL;
        ::close(socket);
        if (is_usable) return true;
        if (!may_become) return false;
        std::this_thread::yield();
    }
    return false;
}

// Moves the process into its own network namespace. Returns false if this is not permitted.
bool make_own_network() {
    if (::unshare(CLONE_NEWNET) != 0 && ::unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) return false;
    const int socket = ::socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    ifreq loopback{};
    std::strcpy(loopback.ifr_name, "lo");
    loopback.ifr_flags = IFF_UP;
    InterfaceAddress added{.prefix_bits = 64, .interface = 1};
    ::inet_pton(AF_INET6, "fe80::1", &added.address);
    const bool done =
        ::ioctl(socket, SIOCSIFFLAGS, &loopback) == 0 && ::ioctl(socket, SIOCSIFADDR, &added) == 0;
    ::close(socket);
    return done && wait_until_usable(added.address);
}

// Does not remove the link-local address.
bool remove_address(const char* address, std::uint32_t prefix_bits) {
    const int socket = ::socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    InterfaceAddress removed{.prefix_bits = prefix_bits, .interface = 1};
    ::inet_pton(AF_INET6, address, &removed.address);
    const bool done = ::ioctl(socket, SIOCDIFADDR, &removed) == 0;
    ::close(socket);
    return done;
}

bool may_have_own_network() {
    const pid_t child = ::fork();
    if (child == 0) ::_exit(make_own_network() ? 0 : 1);
    int status = 0;
    return child > 0 && ::waitpid(child, &status, 0) == child && status == 0;
}

class LinkLocal : public testing::Test {
  protected:
    void SetUp() override {
        if (!may_have_own_network())
            GTEST_SKIP() << "needs its own network namespace with IPv6, as with root and in CI";
    }
    // Runs `body` in a process with such a network and returns its error text.
    static void in_own_network(const std::function<std::string()>& body) {
        EXPECT_EXIT(
            {
                std::string problem = "no network";
                if (make_own_network()) problem = body();
                std::fputs(problem.c_str(), stderr);
                ::_exit(problem.empty() ? 0 : 1);
            },
            testing::ExitedWithCode(0), "");
    }
};

struct Sender final : BufferedSendSocket::Handler {
    void on_connected(BufferedSendSocket&) override { connected = true; }
    void on_closed(BufferedSendSocket&, const Closed& why) override { closed = to_string(why); }
    bool connected = false;
    std::string closed;
};

// Returns an empty text if a message has arrived and each side has named the other with its zone.
std::string exchange(const Address& local, std::optional<access::Protection> level) {
    Fabric fabric;
    std::optional<AgreedKeys> keys;
    if (level) keys.emplace(fabric.loop, *level);
    ListenSocket::Options listening{.listen = {local}, .allow_remote_anonymous = true};
    BufferedSendSocket::Options sending;
    // A busy machine must not end the attempt before run_until() does.
    sending.socket.session.connect_timeout = std::chrono::seconds{60};
    sending.socket.session.handshake_timeout = std::chrono::seconds{60};
    listening.session.handshake_timeout = std::chrono::seconds{60};
    if (keys) {
        listening.keys = keys->server();
        sending.socket.key = keys->client();
    }
    Receiver receiver;
    std::string peer;
    receiver.at_connected = [&](ReceiveSocket& socket) { peer = socket.peer_address(); };
    const ListenSocket listener{*fabric.transport, listening, receiver};
    const Address address = listener.endpoints().front().address;
    if (address.host != "fe80::1%lo") return "it listens at " + to_string(address);
    Sender sender;
    BufferedSendSocket socket{*fabric.transport, sending, sender};
    socket.connect(address);
    if (!fabric.run_until([&] { return sender.connected || !sender.closed.empty(); }) ||
        !sender.closed.empty())
        return "not connected: " + sender.closed;
    if (socket.send(std::array<std::byte, 40>{}) != Status::ok) return "not sent";
    socket.flush();
    if (!fabric.run_until([&] { return !receiver.messages.empty(); })) return "nothing arrives";
    return peer.starts_with("[fe80::1%lo]:") ? "" : "the peer is shown as " + peer;
}

TEST_F(LinkLocal, AnAddressLeadsToItsListenerAsItIsShown) {
    in_own_network([] { return exchange({.host = "fe80::1%lo", .port = 0}, std::nullopt); });
    in_own_network([] { return exchange({.host = "fe80::1%1", .port = 0}, std::nullopt); });
}

TEST_F(LinkLocal, KeysAreProvedBetweenSuchAddresses) {
    for (const access::Protection level : {access::Protection::peers, access::Protection::privacy})
        in_own_network([&] { return exchange({.host = "fe80::1%lo", .port = 0}, level); });
}

TEST_F(LinkLocal, AnInterfaceWithoutAnyOtherAddressStandsForIt) {
    in_own_network([]() -> std::string {
        if (host_at_interface("lo") != "127.0.0.1") return "IPv4 does not come first";
        if (!remove_address("::1", 128)) return "::1 stays";
        Fabric fabric;
        Receiver receiver;
        const ListenSocket listener{
            *fabric.transport,
            {.listen = {{.host = "fe80::1%lo", .port = 0}}, .allow_remote_anonymous = true},
            receiver};
        Sender sender;
        BufferedSendSocket::Options from_lo;
        from_lo.socket.local_host = "lo"; // of the same family as the peer's address
        BufferedSendSocket socket{*fabric.transport, from_lo, sender};
        socket.connect(listener.endpoints().front().address);
        fabric.run_until([&] { return sender.connected || !sender.closed.empty(); });
        return sender.closed;
    });
}

TEST_F(LinkLocal, AnAddressWithoutItsInterfaceIsRefusedWithTheRemedy) {
    constexpr const char* remedy = "link-local address and needs its interface: fe80::1%INTERFACE";
    in_own_network([] {
        Fabric fabric;
        Sender sender;
        BufferedSendSocket socket{*fabric.transport, {}, sender};
        socket.connect({.host = "fe80::1", .port = 1});
        fabric.run_until([&] { return !sender.closed.empty(); });
        return sender.closed.find(remedy) == std::string::npos ? sender.closed : "";
    });
    in_own_network([]() -> std::string {
        Fabric fabric;
        Receiver receiver;
        try {
            const ListenSocket listener{
                *fabric.transport,
                {.listen = {{.host = "fe80::1", .port = 0}}, .allow_remote_anonymous = true},
                receiver};
        } catch (const FabricError& error) {
            const std::string what = error.what();
            return what.find(remedy) == std::string::npos ? what : "";
        }
        return "it listens";
    });
}

TEST_F(LinkLocal, TheListOfAddressesShowsTheirInterface) {
    in_own_network([] {
        std::string shown;
        for (const FabricDescription& each : describe_fabric())
            for (const std::string& address : each.addresses)
                shown += address + " ";
        return shown.find("fe80::1%lo ") == std::string::npos &&
                       shown.find("fe80::1") != std::string::npos
                   ? shown
                   : "";
    });
}

} // namespace
} // namespace netio::test::link_local_test
