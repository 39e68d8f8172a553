// SPDX-License-Identifier: Apache-2.0

// Peers that a listener has no endpoint, memory or descriptor for.

#include "stream/blocking_stream.hpp"
#include "tests/scenario/stream/pair.hpp"
#include "tests/support/descriptor_limit.hpp"

#include <thread>

namespace stream::test {
namespace {

using netio::RejectCode;
using netio::test::bed_name;
using netio::test::simulated_beds;
using testing::ElementsAre;
using testing::HasSubstr;

class TurnedAway : public PairOnBed {
  protected:
    void expect_turned_away() {
        ASSERT_TRUE(bed.run_until([&] { return client.closed.has_value(); }));
        EXPECT_EQ(client.closed->reason, CloseReason::rejected);
        EXPECT_THAT(client.closed->detail, HasSubstr(to_string(RejectCode::no_resources)));
        EXPECT_EQ(server.socket, nullptr);
    }
};

TEST_P(TurnedAway, ForWantOfAnEndpointTheOthersGoOnAndALaterAttemptSucceeds) {
    establish();
    Side late{1};
    StreamSocket second{bed.transport(), {}, late};
    bed.sim()->refuse_endpoints(true);
    for (std::size_t attempt = 1; attempt <= 3; ++attempt) {
        late.forget();
        second.connect(listener->endpoints().front().address);
        ASSERT_TRUE(bed.run_until([&] { return late.closed.has_value(); }));
        EXPECT_EQ(late.closed->reason, CloseReason::rejected);
        EXPECT_EQ(turned_away.size(), attempt) << "told once for each attempt";
        ASSERT_EQ(server.receive(100, Fill::all), Status::ok);
        ASSERT_EQ(client.send(100), Status::ok);
        ASSERT_TRUE(bed.run_until([&] { return server.received == 100 * attempt; }));
    }
    EXPECT_THAT(turned_away[0], HasSubstr("cannot open an endpoint"));
    bed.sim()->refuse_endpoints(false);
    const std::unique_ptr<StreamSocket> kept = std::exchange(server.socket, nullptr);
    second.connect(listener->endpoints().front().address);
    ASSERT_TRUE(bed.run_until([&] { return late.connected; }));
    EXPECT_EQ(turned_away.size(), 3U);
}

TEST_P(TurnedAway, ForWantOfMemoryLeavesNothingBehind) {
    listen();
    connect();
    bed.sim()->refuse_registrations(true);
    expect_turned_away();
    EXPECT_THAT(turned_away, ElementsAre(HasSubstr("ulimit -l")));
    EXPECT_EQ(bed.sim()->registration_count(), 0U);
}

TEST_P(TurnedAway, TheListenerMayBeDestroyedWhenItIsTold) {
    listen();
    at_turned_away = [&] { listener.reset(); };
    bed.sim()->refuse_endpoints(true);
    connect();
    expect_turned_away();
}

INSTANTIATE_TEST_SUITE_P(Beds, TurnedAway, simulated_beds(), bed_name);

TEST(BlockingTurnedAway, IsToldByAcceptAndTheNextCallGoesOn) {
    const BlockingOptions patient{.timeout = std::chrono::seconds{60}};
    BlockingListener listener{"127.0.0.1:0", patient};
    const std::string address = to_string(listener.address());
    {
        const netio::test::DescriptorLimit limit{30};
        std::thread client{[&] {
            try {
                BlockingStream::connect(address, patient);
                ADD_FAILURE() << "there was no descriptor for it";
            } catch (const StreamError& error) {
                EXPECT_THAT(error.what(), HasSubstr(to_string(RejectCode::no_resources)));
            }
        }};
        try {
            listener.accept();
            ADD_FAILURE() << "there was no descriptor for it";
        } catch (const netio::FabricError& error) {
            EXPECT_EQ(error.code(), std::errc::too_many_files_open);
            EXPECT_THAT(error.what(), HasSubstr("ulimit -n"));
        }
        client.join();
    }
    std::thread client{[&] { BlockingStream::connect(address, patient); }};
    listener.accept();
    client.join();
}

} // namespace
} // namespace stream::test
