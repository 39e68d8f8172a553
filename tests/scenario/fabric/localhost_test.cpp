// SPDX-License-Identifier: Apache-2.0

// The name of this host resolves to an address of each family, as on most machines; the listener
// uses only one of them.

#include "netio/messages/listen_socket.hpp"
#include "netio/messages/send_socket.hpp"
#include "tests/scenario/fabric/ends.hpp"

#include <gmock/gmock.h>

#include <dlfcn.h>
#include <netdb.h>

#include <string_view>

// The C library's answers except for one name, independent of this machine's files. The linker
// finds this function before the C library's.
extern "C" int getaddrinfo(const char* name, const char* service, const addrinfo* hints,
                           addrinfo** result) {
    using GetAddrInfo = int (*)(const char*, const char*, const addrinfo*, addrinfo**);
    static const auto of_the_library =
        reinterpret_cast<GetAddrInfo>(::dlsym(RTLD_NEXT, "getaddrinfo"));
    if (name == nullptr || std::string_view{name} != "both.test")
        return of_the_library(name, service, hints, result);
    addrinfo* second = nullptr;
    const int failure = of_the_library("127.0.0.1", service, hints, &second);
    if (failure != 0) return failure;
    if (of_the_library("::1", service, hints, result) != 0) {
        *result = second;
        return 0;
    }
    addrinfo* last = *result;
    while (last->ai_next != nullptr)
        last = last->ai_next;
    last->ai_next = second;
    return 0;
}

namespace netio::test::localhost_test {
namespace {

struct Listening final : ListenSocket::Handler {
    void on_message(ReceiveSocket&, std::span<const std::byte>,
                    std::optional<std::uint64_t>) override {}
};

struct Sending final : SendSocket::Handler {
    void on_connected(SendSocket&) override { connected = true; }
    void on_closed(SendSocket&, const Closed& why) override { closed.push_back(why.detail); }
    bool connected = false;
    std::vector<std::string> closed;
};

bool has_loopback_of_ipv6() {
    Fabric fabric;
    try {
        const Door door{*fabric.transport, {.host = "::1", .port = 0}};
    } catch (const FabricError&) {
        return false;
    }
    return true;
}

TEST(Localhost, OfTwoFamiliesIsReachedWhicheverAddressListens) {
    std::vector<std::string> hosts{"127.0.0.1"};
    if (has_loopback_of_ipv6()) hosts.emplace_back("::1");
    for (const std::string& host : hosts) {
        Fabric fabric;
        Listening receiver;
        const ListenSocket listening{
            *fabric.transport, {.listen = {{.host = host, .port = 0}}}, receiver};
        Sending sender;
        SendSocket socket{*fabric.transport, {}, sender};
        socket.connect({.host = "both.test", .port = listening.endpoints().front().address.port});
        ASSERT_TRUE(fabric.run_until([&] { return sender.connected || !sender.closed.empty(); }));
        EXPECT_TRUE(sender.connected) << host << ": " << sender.closed.front();
    }
}

struct Attempt {
    std::string local_host;
    std::string remote;
    std::string listening;
};
// Returns an empty text if the attempt is connected.
std::string reason_of(const Attempt& attempt) {
    Fabric fabric;
    Listening receiver;
    const ListenSocket listening{
        *fabric.transport, {.listen = {{.host = attempt.listening, .port = 0}}}, receiver};
    Sending sender;
    SendSocket socket{*fabric.transport, {.local_host = attempt.local_host}, sender};
    socket.connect({.host = attempt.remote, .port = listening.endpoints().front().address.port});
    EXPECT_TRUE(fabric.run_until([&] { return sender.connected || !sender.closed.empty(); }));
    return sender.connected || sender.closed.empty() ? "" : sender.closed.front();
}

TEST(Localhost, ALocalHostNameStandsForItsAddressOfThePeersFamily) {
    EXPECT_EQ(reason_of({"both.test", "127.0.0.1", "127.0.0.1"}), "");
    EXPECT_EQ(reason_of({"lo", "both.test", "127.0.0.1"}), "");
    EXPECT_EQ(reason_of({"127.0.0.1", "both.test", "127.0.0.1"}), "");
    if (!has_loopback_of_ipv6()) return;
    EXPECT_EQ(reason_of({"lo", "::1", "::1"}), "");
    EXPECT_EQ(reason_of({"both.test", "::1", "::1"}), "");
    EXPECT_THAT(reason_of({"127.0.0.1", "::1", "::1"}),
                testing::HasSubstr("'127.0.0.1' has no IPv6 address"));
    EXPECT_THAT(reason_of({"::1", "127.0.0.1", "127.0.0.1"}),
                testing::HasSubstr("'::1' has no IPv4 address"));
}

// The reason names both.
TEST(Localhost, OfTwoFamiliesWithoutAListenerNamesBothInTheError) {
    Fabric fabric;
    std::uint16_t port = 0;
    {
        const Door gone{*fabric.transport, {.host = "127.0.0.1", .port = 0}};
        port = gone.listener->address().port;
    }
    Sending sender;
    SendSocket socket{*fabric.transport, {}, sender};
    socket.connect({.host = "both.test", .port = port});
    ASSERT_TRUE(fabric.run_until([&] { return sender.connected || !sender.closed.empty(); }));
    ASSERT_FALSE(sender.connected);
    EXPECT_THAT(sender.closed.front(), testing::HasSubstr("127.0.0.1"));
    if (has_loopback_of_ipv6()) {
        EXPECT_THAT(sender.closed.front(), testing::HasSubstr("::1"));
    }
}

} // namespace
} // namespace netio::test::localhost_test
