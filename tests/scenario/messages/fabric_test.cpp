// SPDX-License-Identifier: Apache-2.0

// Only with the real fabric: refused providers, unavailable addresses, and signal handlers that
// libraries install.

#include "netio/fabric.hpp"
#include "netio/messages/listen_socket.hpp"
#include "netio/messages/send_socket.hpp"
#include "tests/support/raw_tcp_peer.hpp"

#include <gmock/gmock.h>

#include <csignal>
#include <dlfcn.h>

namespace netio::test::fabric_test {
namespace {

using testing::AnyOf;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

struct Nothing final : ListenSocket::Handler {
    void on_connected(ReceiveSocket&) override {}
    void on_message(ReceiveSocket&, std::span<const std::byte>,
                    std::optional<std::uint64_t>) override {}
    void on_closed(ReceiveSocket&, const Closed&) override {}
};

TEST(Fabric, UnsuitableProvidersAreRefusedWithAReason) {
    EventLoop loop;
    for (const char* provider :
         {"sockets", "net", "udp;ofi_rxm", "tcp;ofi_rxm", "shm", "nonsense"}) {
        EXPECT_THAT(provider_refusal(provider), Not(IsEmpty())) << provider;
        try {
            open_fabric(loop, {.provider = provider});
            ADD_FAILURE() << provider << " was accepted";
        } catch (const FabricError& error) {
            EXPECT_THAT(error.what(), HasSubstr(provider));
        }
    }
    EXPECT_THAT(provider_refusal("tcp"), IsEmpty());
    EXPECT_THAT(provider_refusal("verbs"), IsEmpty());
}

TEST(Fabric, IsDescribed) {
    const auto descriptions = describe_fabric();
    const auto tcp = std::ranges::find(descriptions, "tcp", &FabricDescription::provider);
    ASSERT_NE(tcp, descriptions.end());
    EXPECT_THAT(tcp->addresses, Not(IsEmpty()));
    EXPECT_GE(tcp->capabilities.segment_limit, 2U);
    EXPECT_THAT(fabric_version(), Not(IsEmpty()));
}

TEST(Fabric, AnAddressOfAnotherMachineCannotBeListenedAt) {
    EventLoop loop;
    const auto transport = open_fabric(loop);
    Nothing handler;
    try {
        const ListenSocket socket{
            *transport,
            {.listen = {{.host = "192.0.2.123", .port = 0}}, .allow_remote_anonymous = true},
            handler};
        FAIL() << "listening at an address of another machine";
    } catch (const FabricError& error) {
        EXPECT_THAT(error.what(), HasSubstr("192.0.2.123"));
    }
}

TEST(Fabric, AnUnresolvedNameIsInTheError) {
    EventLoop loop;
    const auto transport = open_fabric(loop);
    try {
        transport->providers_to({.host = "no.such.host.invalid", .port = 1});
        FAIL() << "it was resolved";
    } catch (const FabricError& error) {
        EXPECT_THAT(error.what(), HasSubstr("no.such.host.invalid"));
        // That text would make the user check the network.
        EXPECT_THAT(error.what(), Not(HasSubstr("No route to host")));
    }
}

TEST(Fabric, AForeignAnswerOrNoneIsReportedAsAnotherProtocol) {
    struct Sender final : SendSocket::Handler {
        void on_send_completed(SendSocket&, Cookie, Completion::Outcome) override {}
        void on_closed(SendSocket&, const Closed& closed) override { detail = closed.detail; }
        std::string detail;
    };
    const std::string zeros(300, '\0');
    for (const std::string& answer :
         {std::string{"SSH-2.0-OpenSSH_9.2p1\r\n"}, std::string{}, zeros,
          std::string{"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n"}}) {
        SCOPED_TRACE(answer.substr(0, 10));
        RawTcpHost host;
        EventLoop loop;
        const auto transport = open_fabric(loop, {.provider = "tcp"});
        Sender sender;
        SendSocket socket{*transport, {}, sender};
        socket.connect(host.address());
        std::optional<RawTcpPeer> peer;
        Timer look{loop, [&] {
                       if (!peer) host.accept(peer);
                       look.start(std::chrono::milliseconds{1});
                   }};
        look.start(Duration::zero());
        while (!peer || peer->receive(1) == 0) // the request has arrived
            loop.run_once();
        EXPECT_EQ(peer->send(std::as_bytes(std::span{answer})), answer.size());
        peer->shutdown_send();
        while (sender.detail.empty())
            loop.run_once();
        // The provider does not always detect an end in the middle of an answer.
        const bool is_whole = answer.size() >= 32;
        EXPECT_THAT(sender.detail,
                    AnyOf(HasSubstr("speak this protocol"),
                          HasSubstr(is_whole ? "speak this protocol" : "no answer from")));
        EXPECT_THAT(sender.detail, HasSubstr(to_string(host.address())));
    }
}

// The file that contains the code of a signal's handler; empty for the default and for "ignore".
std::string owner_of_handler(int signal) {
    struct sigaction action {};
    if (::sigaction(signal, nullptr, &action) != 0) return "sigaction failed";
    if ((action.sa_flags & SA_SIGINFO) == 0 &&
        (action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN)) {
        return {};
    }
    Dl_info origin{};
    const bool known = ::dladdr(reinterpret_cast<void*>(action.sa_sigaction), &origin) != 0;
    return known && origin.dli_fname != nullptr ? origin.dli_fname : "a file that is not known";
}

// Installs handlers like that library; does nothing if the library is absent.
void catch_interrupts_in_a_library() {
    void* const library = ::dlopen("libinfinipath.so.4", RTLD_NOW | RTLD_NOLOAD);
    if (library == nullptr) return;
    void* const somewhere_in_it = ::dlsym(library, "infinipath_get_ctrs_port");
    std::signal(SIGINT, reinterpret_cast<void (*)(int)>(somewhere_in_it));
    ::dlclose(library);
    EXPECT_THAT(owner_of_handler(SIGINT), HasSubstr("libinfinipath"));
}

// Debian's libfabric loads libinfinipath, which installs its own handlers for crash signals and
// Ctrl-C, so that a program does not end as it should. A sanitizer's own handlers may stay.
TEST(Fabric, LeavesTheSignalsOfTheProgramAlone) {
    static_cast<void>(fabric_version()); // loads it
    catch_interrupts_in_a_library();
    static_cast<void>(describe_fabric()); // needs no loop; the first loop does the same
    EXPECT_THAT(owner_of_handler(SIGINT), IsEmpty());
    EventLoop loop;
    const auto transport = open_fabric(loop);
    for (const int signal : {SIGINT, SIGTERM, SIGSEGV, SIGBUS, SIGILL, SIGABRT, SIGFPE}) {
        EXPECT_THAT(owner_of_handler(signal), AnyOf(IsEmpty(), HasSubstr("san.so")))
            << "signal " << signal;
    }
}

TEST(Fabric, KeepsTheHandlersThatTheProgramHadBeforeItWasLoaded) {
    const auto own = [](int) {};
    const auto before = std::signal(SIGTERM, own);
    EventLoop loop;
    const auto transport = open_fabric(loop);
    EXPECT_EQ(std::signal(SIGTERM, before), +own);
}

TEST(Fabric, TheNameOfAnInterfaceStandsForItsAddressOnBothSides) {
    EventLoop loop;
    const auto transport = open_fabric(loop, {.provider = "tcp"});
    Nothing receiver;
    struct Sender final : SendSocket::Handler {
        void on_connected(SendSocket&) override { connected = true; }
        void on_send_completed(SendSocket&, Cookie, Completion::Outcome) override {}
        void on_writable(SendSocket&) override {}
        void on_closed(SendSocket&, const Closed& closed) override {
            ADD_FAILURE() << closed.detail;
        }
        bool connected = false;
    } sender;
    ListenSocket listener{*transport, {.listen = {{.host = "lo", .port = 0}}}, receiver};
    EXPECT_EQ(listener.endpoints().front().address.host, "127.0.0.1");
    SendSocket socket{*transport, {.local_host = "lo"}, sender};
    socket.connect(listener.endpoints().front().address);
    const TimePoint deadline = Clock::now() + std::chrono::seconds{30};
    while (!sender.connected && Clock::now() < deadline)
        loop.run_once(deadline);
    EXPECT_TRUE(sender.connected);
}

TEST(Fabric, MemoryMappedReadOnlyMayBeSentFrom) {
    EventLoop loop;
    const auto transport = open_fabric(loop, {.provider = "tcp"});
    struct Receiver final : ListenSocket::Handler {
        void on_connected(ReceiveSocket&) override {}
        void on_message(ReceiveSocket&, std::span<const std::byte> message,
                        std::optional<std::uint64_t>) override {
            bytes = message.size();
            first = message.front();
        }
        void on_closed(ReceiveSocket&, const Closed&) override {}
        std::size_t bytes = 0;
        std::byte first{};
    } receiver;
    struct Sender final : SendSocket::Handler {
        void on_connected(SendSocket& socket) override {
            EXPECT_EQ(socket.send(buffer.slice(), Cookie{1}), Status::ok);
        }
        void on_send_completed(SendSocket&, Cookie, Completion::Outcome) override {}
        void on_writable(SendSocket&) override {}
        void on_closed(SendSocket&, const Closed&) override {}
        explicit Sender(std::span<std::byte> memory) : buffer{memory, Access::send} {}
        RegisteredBuffer buffer;
    };
    static constexpr char text[] = "in the program's read-only data, longer than is ever copied "
                                   "into the slot of a frame's header";
    std::byte* const data = reinterpret_cast<std::byte*>(const_cast<char*>(text));
    Sender sender{std::span{data, sizeof text}};
    ListenSocket listener{*transport, {.listen = {{.host = "127.0.0.1", .port = 0}}}, receiver};
    SendSocket socket{*transport, {}, sender};
    socket.connect(listener.endpoints().front().address);
    const TimePoint deadline = Clock::now() + std::chrono::seconds{30};
    while (receiver.bytes == 0 && Clock::now() < deadline)
        loop.run_once(deadline);
    EXPECT_EQ(receiver.bytes, sizeof text);
    EXPECT_EQ(receiver.first, std::byte{'i'});
}

} // namespace
} // namespace netio::test::fabric_test
