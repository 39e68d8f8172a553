// SPDX-License-Identifier: Apache-2.0

// Reports of point-to-point connections to a loop's observer.

#include "tests/scenario/messages/messages_fixture.hpp"
#include "tests/support/forwarding_transport.hpp"

#include <gmock/gmock.h>

namespace netio::test::observer_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

using ObserverEvents = Messages;

TEST_P(ObserverEvents, ReportASessionOnBothSidesAndItsEnd) {
    listen();
    const auto socket = connected(sender);
    ASSERT_TRUE(bed.run_until([&] { return bed.seen().connected.size() == 2; }));
    EXPECT_THAT(bed.seen().connected[0], HasSubstr(" over "));
    EXPECT_THAT(bed.seen().disconnected, IsEmpty());
    socket->close();
    ASSERT_TRUE(bed.run_until([&] { return bed.seen().disconnected.size() == 2; }));
    for (const PeerDisconnected& event : bed.seen().disconnected)
        EXPECT_EQ(event.closed.reason, CloseReason::orderly) << event.peer;
    EXPECT_THAT(bed.seen().rejected, IsEmpty());
    EXPECT_THAT(bed.seen().routes_failed, IsEmpty());
}

TEST_P(ObserverEvents, ReportPeersWithoutASlot) {
    listen({.peer_limit = 1});
    const auto first = connected(sender);
    Sender late;
    SendSocket second{bed.transport(), {}, late};
    second.connect(address);
    ASSERT_TRUE(bed.run_until([&] { return !late.closed.empty(); }));
    EXPECT_THAT(bed.seen().rejected, ElementsAre(HasSubstr("1 peers are connected already")));
    EXPECT_EQ(listener->counters().rejected, 1U);
    ASSERT_THAT(bed.seen().routes_failed, SizeIs(1));
    EXPECT_TRUE(bed.seen().routes_failed[0].is_last);
    EXPECT_EQ(bed.seen().routes_failed[0].closed.reason, CloseReason::rejected);
}

TEST_P(ObserverEvents, EndWhenTheObserverIsRemoved) {
    bed.loop().observer = nullptr;
    listen({.peer_limit = 1});
    const auto first = connected(sender);
    Sender late;
    SendSocket second{bed.transport(), {}, late};
    second.connect(address);
    ASSERT_TRUE(bed.run_until([&] { return !late.closed.empty(); }));
    EXPECT_THAT(bed.seen().connected, IsEmpty());
    EXPECT_THAT(bed.seen().rejected, IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(Beds, ObserverEvents, all_beds(), bed_name);

using ObserverEventsInTheSimulator = Messages;

TEST_P(ObserverEventsInTheSimulator, ReportTheRouteThatFailedBeforeAnotherWorked) {
    listen();
    bed.sim()->name("peer.example", {"10.9.9.9", address.host});
    SendSocket socket{bed.transport(), {}, sender};
    socket.connect({.host = "peer.example", .port = address.port});
    ASSERT_TRUE(bed.run_until([&] { return sender.connected == 1; }));
    ASSERT_THAT(bed.seen().routes_failed, SizeIs(1));
    const RouteFailed& failed = bed.seen().routes_failed[0];
    EXPECT_EQ(failed.remote.host, "10.9.9.9");
    EXPECT_FALSE(failed.provider.empty());
    EXPECT_FALSE(failed.is_last);
}

// A second provider has the address but cannot listen there.
class OneThatCannotListen final : public ForwardingTransport {
  public:
    using ForwardingTransport::ForwardingTransport;
    std::vector<std::string> providers_at(const Address& local) override {
        std::vector<std::string> providers = ForwardingTransport::providers_at(local);
        providers.emplace_back("other");
        return providers;
    }
    std::unique_ptr<Listener> listen(const std::string& provider, const Address& local,
                                     const ListenOptions& options,
                                     Listener::Handler& handler) override {
        if (provider == "other") {
            throw FabricError{std::make_error_code(std::errc::address_in_use),
                              "cannot listen at " + to_string(local)};
        }
        return ForwardingTransport::listen(provider, local, options, handler);
    }
};

TEST_P(ObserverEventsInTheSimulator, ReportAProviderThatNoPeerCanUse) {
    OneThatCannotListen transport{bed.transport()};
    const ListenSocket socket{
        transport, {.listen = {bed.address()}, .allow_remote_anonymous = true}, receiver};
    EXPECT_THAT(bed.seen().unused, IsEmpty()) << "no callback within a call";
    ASSERT_TRUE(bed.run_until([&] { return !bed.seen().unused.empty(); }));
    EXPECT_EQ(bed.seen().unused[0].provider, "other");
    EXPECT_EQ(bed.seen().unused[0].address.port, socket.endpoints().at(0).address.port);
    EXPECT_THAT(bed.seen().unused[0].why, HasSubstr("cannot listen"));
}

INSTANTIATE_TEST_SUITE_P(Beds, ObserverEventsInTheSimulator, simulated_beds(), bed_name);

} // namespace
} // namespace netio::test::observer_test
