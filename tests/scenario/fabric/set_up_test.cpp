// SPDX-License-Identifier: Apache-2.0

// What opening the fabric requires, and what it changes in the process.

#include "netio/fabric/provider.hpp"
#include "tests/scenario/fabric/ends.hpp"
#include "tests/support/open_descriptors.hpp"

#include <gmock/gmock.h>

#include <fcntl.h>

#include <set>
#include <stdexcept>

namespace netio::test::set_up_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(SetUp, ProgramsThatAreStartedInheritNothing) {
    const std::set<int> before = open_descriptors();
    Fabric fabric;
    Door door{*fabric.transport, {.host = "127.0.0.1", .port = 0}};
    const End end{*fabric.transport, door.listener->address()};
    ASSERT_TRUE(fabric.run_until([&] { return end.connected; }));
    std::set<int> inherited;
    for (const int fd : open_descriptors()) {
        if (!before.contains(fd) && (::fcntl(fd, F_GETFD) & FD_CLOEXEC) == 0) inherited.insert(fd);
    }
    EXPECT_THAT(inherited, IsEmpty());
}

TEST(SetUp, AProviderThatTakesOnePieceAMessageIsRefusedWithTheRemedy) {
    const fabric::Info info = fabric::query_all("tcp");
    ASSERT_TRUE(info);
    EXPECT_NO_THROW(fabric::require_segments(*info));
    info->tx_attr->iov_limit = 1;
    EXPECT_THAT([&] { fabric::require_segments(*info); },
                testing::ThrowsMessage<FabricError>(HasSubstr("FI_VERBS_TX_IOV_LIMIT")));
}

TEST(SetUp, RefusesOptionsThatMakeNoSense) {
    EventLoop loop;
    EXPECT_THROW(open_fabric(loop, {.half_handshake_timeout = 0ms}), std::invalid_argument);
    EXPECT_THROW(open_fabric(loop, {.handshake_timeout = 0ms}), std::invalid_argument);
    // The sum with the present time would overflow.
    EXPECT_THROW(open_fabric(loop, {.half_handshake_timeout = std::chrono::milliseconds::max()}),
                 std::invalid_argument);
    EXPECT_THROW(open_fabric(loop, {.handshake_timeout = std::chrono::milliseconds::max()}),
                 std::invalid_argument);
    EXPECT_THROW(open_fabric(loop, {.pending_handshakes_per_host = 0}), std::invalid_argument);
    EXPECT_THROW(open_fabric(loop, {.queue_endpoint_limit = 0}), std::invalid_argument);
    EXPECT_THROW(open_fabric(loop, {.queue_entry_limit = 0}), std::invalid_argument);
}

TEST(SetUp, AnAddressOfAnotherMachineIsNotCalledOpen) {
    const Fabric fabric;
    for (const bool is_open : {false, true}) {
        struct Ignoring final : Listener::Handler {
            void on_request(ConnectionRequest&) override {}
        } handler;
        EXPECT_THAT(
            [&] {
                fabric.transport->listen("tcp", {.host = "192.0.2.1", .port = 5},
                                         {.allow_remote_anonymous = is_open}, handler);
            },
            testing::ThrowsMessage<FabricError>(HasSubstr("does not have the address")));
    }
}

// In a process of its own, because libfabric reads its environment only once.
[[noreturn]] void listen_with_a_foreign_choice() {
    ::setenv("FI_PROVIDER", "sockets", 1);
    try {
        Fabric fabric;
        const Door door{*fabric.transport, {.host = "127.0.0.1", .port = 0}};
    } catch (const FabricError& error) {
        std::fputs(error.what(), stderr);
        std::exit(1);
    }
    std::exit(0);
}

TEST(SetUpDeathTest, AForeignChoiceOfProvidersIsNamed) {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_EXIT(listen_with_a_foreign_choice(), testing::ExitedWithCode(1),
                AllOf(HasSubstr("FI_PROVIDER=sockets"), HasSubstr("unset it")));
}

} // namespace
} // namespace netio::test::set_up_test
