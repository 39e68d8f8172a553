// SPDX-License-Identifier: Apache-2.0

// A client's destinations in virtual time: the tasks of its thread run when the test calls them.

#include "tests/scenario/pubsub/destinations_scenario.hpp"

#include <gmock/gmock.h>

namespace netio::pubsub::destinations_test {
namespace {

using namespace std::chrono_literals;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

class SimulatedDestinations : public test::DestinationsScenario {
  protected:
    SimulatedDestinations() : DestinationsScenario{{.queue_bytes = 10'000, .limit = 4}} {}

    void listen(const Address& at) {
        listener = std::make_unique<ListenSocket>(
            bed.transport(), ListenSocket::Options{.listen = {at}, .allow_remote_anonymous = true},
            receiver);
        address = listener->endpoints().front().address;
    }
    void send(std::size_t size) { DestinationsScenario::send(address, size); }
    bool have_arrived(std::size_t count) {
        return DestinationsScenario::have_arrived(receiver, count);
    }

    netio::test::Receiver receiver;
    std::unique_ptr<ListenSocket> listener;
    Address address;
};

INSTANTIATE_TEST_SUITE_P(Beds, SimulatedDestinations, netio::test::simulated_beds(),
                         netio::test::bed_name);

TEST_P(SimulatedDestinations, WithoutALookupAreRetriedWithAllQueuedMessages) {
    listen(bed.address());
    transport.is_poor = true;
    send(10);
    EXPECT_THAT(told, ElementsAre(HasSubstr("bad_alloc")));
    send(20); // while it has no socket
    EXPECT_THAT(told, SizeIs(1)) << "the next attempt comes later";
    transport.is_poor = false;
    ASSERT_TRUE(have_arrived(2));
    EXPECT_EQ(receiver.messages[0].bytes.size(), 10U);
    EXPECT_EQ(receiver.messages[1].bytes.size(), 20U);
}

// The full limit of the retry interval applies only after a permanent refusal.
TEST_P(SimulatedDestinations, ThatWereGoneForAMomentReconnectSoon) {
    listen(bed.address());
    send(10);
    ASSERT_TRUE(have_arrived(1));
    listener.reset();
    ASSERT_TRUE(bed.run_until([&] { return told.size() == 2; })) << "connected, and closed";
    const TimePoint begin = bed.world()->now();
    send(20);
    listen(address);
    ASSERT_TRUE(have_arrived(2));
    EXPECT_LT(bed.world()->now() - begin, retry_limit / 2);
}

TEST_P(SimulatedDestinations, ARequestedEndIsNotReportedAsAnError) {
    listen(bed.address());
    send(10);
    ASSERT_TRUE(have_arrived(1));
    all->disconnect(address);
    do_tasks();
    ASSERT_TRUE(bed.run_until([&] { return ended == 1; }));
    EXPECT_THAT(told, ElementsAre(HasSubstr("connected to")));
}

} // namespace
} // namespace netio::pubsub::destinations_test
