// SPDX-License-Identifier: Apache-2.0

// With a libfabric whose tcp connections have fewer receives than a window may grow to.

#include "netio/fabric/libfabric.hpp"
#include "tests/scenario/fabric/ends.hpp"

#include <dlfcn.h>
#include <gmock/gmock.h>

#include <cerrno>

namespace netio::test::short_queue_test {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class ShortQueue : public testing::Test {
  protected:
    static constexpr std::size_t most = 1024;

    // A later dlopen of libfabric by name gets the library that is already loaded.
    static void SetUpTestSuite() {
        ASSERT_NE(::dlopen(NETIO_SHORT_LIBFABRIC, RTLD_NOW | RTLD_LOCAL), nullptr) << ::dlerror();
    }

    Fabric fabric;
    Door door{*fabric.transport, {.host = "127.0.0.1", .port = 0}};
};

TEST_F(ShortQueue, IsWhatIsTestedHere) {
    const fabric::Info hints{fabric::library().dupinfo(nullptr)};
    hints->rx_attr->size = most + 1;
    ::fi_info* found = nullptr;
    EXPECT_EQ(
        fabric::library().getinfo(FI_VERSION(1, 17), nullptr, nullptr, 0, hints.get(), &found),
        -ENODATA);
}

TEST_F(ShortQueue, EndsMeetAndReserveWhatThereIs) {
    End end{*fabric.transport, door.listener->address()};
    ASSERT_TRUE(fabric.run_until([&] { return end.connected && !door.ends.empty(); }));
    End& other = *door.ends.front();
    ASSERT_TRUE(fabric.run_until([&] { return other.connected; }));
    for (End* each : {&end, &other}) {
        EXPECT_TRUE(each->connection->reserve_receives(most));
        EXPECT_FALSE(each->connection->reserve_receives(most + 1));
    }
    ASSERT_TRUE(end.send());
    ASSERT_TRUE(fabric.run_until([&] { return other.messages == 1; }));
}

TEST_F(ShortQueue, TooManyReceivesAreRefusedWithTheAvailableNumber) {
    struct Nobody final : Connection::Handler {
        void on_connected(std::span<const std::byte>) override {}
        void on_rejected(std::span<const std::byte>) override {}
        void on_completion(const Completion&) override {}
        void on_closed(const Closed&) override {}
    } nobody;
    const auto connect = [&](std::size_t receives) {
        return fabric.transport->make_connection("tcp", door.listener->address(), {},
                                                 {.receive_count = receives}, nobody);
    };
    EXPECT_NO_THROW(connect(most));
    EXPECT_THAT([&] { connect(most + 1); },
                testing::ThrowsMessage<FabricError>(
                    AllOf(HasSubstr("1024"), HasSubstr("1025"), HasSubstr("receive_count"))));
}

} // namespace
} // namespace netio::test::short_queue_test
