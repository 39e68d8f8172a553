// SPDX-License-Identifier: Apache-2.0

// Senders that a listen socket has no endpoint, memory or descriptor for.

#include "tests/scenario/messages/messages_fixture.hpp"
#include "tests/support/descriptor_limit.hpp"

#include <gmock/gmock.h>

namespace netio::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class TurnedAway : public Messages {
  protected:
    void expect_turned_away(Sender& handler, SendSocket& socket) {
        ASSERT_TRUE(bed.run_until([&] { return !handler.closed.empty(); }));
        EXPECT_EQ(handler.closed[0].reason, CloseReason::rejected);
        EXPECT_THAT(handler.closed[0].detail, HasSubstr(to_string(RejectCode::no_resources)));
        EXPECT_FALSE(socket.is_connected());
    }
    void expect_delivery(SendSocket& socket) {
        const std::size_t before = receiver.messages.size();
        const std::array<std::byte, 3> message{};
        ASSERT_EQ(socket.send_inline(message), Status::ok);
        ASSERT_TRUE(bed.run_until([&] { return receiver.messages.size() == before + 1; }));
    }
};

TEST_P(TurnedAway, TheOthersGoOnAndALaterAttemptSucceeds) {
    listen();
    const auto first = connected(sender);
    Sender late;
    SendSocket second{bed.transport(), {}, late};
    bed.sim()->refuse_endpoints(true);
    for (std::size_t attempt = 1; attempt <= 3; ++attempt) {
        late = {};
        second.connect(address);
        expect_turned_away(late, second);
        EXPECT_EQ(receiver.turned_away.size(), attempt) << "told once for each attempt";
        expect_delivery(*first);
    }
    EXPECT_THAT(receiver.turned_away.back(), HasSubstr("cannot open an endpoint"));
    EXPECT_EQ(listener->peer_count(), 1U);
    bed.sim()->refuse_endpoints(false);
    second.connect(address);
    ASSERT_TRUE(bed.run_until([&] { return late.connected == 1; }));
    expect_delivery(second);
    EXPECT_EQ(receiver.connected, 2U);
    EXPECT_EQ(receiver.turned_away.size(), 3U);
}

TEST_P(TurnedAway, ForWantOfMemoryLeavesNothingBehind) {
    listen();
    SendSocket socket{bed.transport(), {}, sender};
    socket.connect(address);
    bed.sim()->refuse_registrations(true);
    expect_turned_away(sender, socket);
    EXPECT_THAT(receiver.turned_away, ElementsAre(HasSubstr("ulimit -l")));
    EXPECT_EQ(bed.sim()->registration_count(), 0U);
}

TEST_P(TurnedAway, TheListenSocketMayBeDestroyedWhenItIsTold) {
    listen();
    const auto first = connected(sender);
    receiver.at_turned_away = [&] { listener.reset(); };
    Sender late;
    SendSocket second{bed.transport(), {}, late};
    bed.sim()->refuse_endpoints(true);
    second.connect(address);
    expect_turned_away(late, second);
    ASSERT_TRUE(bed.run_until([&] { return !sender.closed.empty(); }));
}

INSTANTIATE_TEST_SUITE_P(Beds, TurnedAway, simulated_beds(), bed_name);

using TurnedAwayOnTheFabric = TurnedAway;

TEST_P(TurnedAwayOnTheFabric, ForWantOfDescriptorsTheRemedyIsNamed) {
    listen();
    const auto first = connected(sender);
    Sender late;
    SendSocket second{bed.transport(), {}, late};
    {
        const DescriptorLimit limit{20};
        second.connect(address);
        expect_turned_away(late, second);
        expect_delivery(*first);
    }
    EXPECT_THAT(receiver.turned_away, ElementsAre(HasSubstr("ulimit -n")));
    second.connect(address);
    ASSERT_TRUE(bed.run_until([&] { return late.connected == 1; }));
    expect_delivery(second);
}

INSTANTIATE_TEST_SUITE_P(Beds, TurnedAwayOnTheFabric, fabric_beds(), bed_name);

} // namespace
} // namespace netio::test
