// SPDX-License-Identifier: Apache-2.0

// Senders for which a listen socket has no endpoint, memory or descriptor.

#include "netio/session/handshake.hpp"
#include "tests/scenario/messages/messages_fixture.hpp"
#include "tests/support/descriptor_limit.hpp"

#include <gmock/gmock.h>

namespace netio::test::accept_failed_test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

class AcceptFailed : public Messages {
  protected:
    void expect_accept_failed(Sender& handler, SendSocket& socket) {
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

TEST_P(AcceptFailed, TheOthersContinueAndALaterAttemptSucceeds) {
    listen();
    const auto first = connected(sender);
    Sender late;
    SendSocket second{bed.transport(), {}, late};
    bed.sim()->refuse_endpoints(true);
    for (std::size_t attempt = 1; attempt <= 3; ++attempt) {
        late = {};
        second.connect(address);
        expect_accept_failed(late, second);
        EXPECT_EQ(bed.seen().accept_failed.size(), attempt) << "reported once for each attempt";
        expect_delivery(*first);
    }
    EXPECT_THAT(bed.seen().accept_failed.back(), HasSubstr("cannot open an endpoint"));
    EXPECT_EQ(listener->peer_count(), 1U);
    bed.sim()->refuse_endpoints(false);
    second.connect(address);
    ASSERT_TRUE(bed.run_until([&] { return late.connected == 1; }));
    expect_delivery(second);
    EXPECT_EQ(receiver.connected, 2U);
    EXPECT_EQ(bed.seen().accept_failed.size(), 3U);
}

TEST_P(AcceptFailed, ForLackOfMemoryLeaksNothing) {
    listen();
    SendSocket socket{bed.transport(), {}, sender};
    socket.connect(address);
    bed.loop().run_once(); // the sender has its memory
    bed.sim()->refuse_registrations(true);
    expect_accept_failed(sender, socket);
    EXPECT_THAT(bed.seen().accept_failed, ElementsAre(HasSubstr("ulimit -l")));
    EXPECT_EQ(bed.sim()->registration_count(), 0U);
}

INSTANTIATE_TEST_SUITE_P(Beds, AcceptFailed, simulated_beds(), bed_name);

using AcceptFailedOnTheFabric = AcceptFailed;

TEST_P(AcceptFailedOnTheFabric, ForLackOfDescriptorsNamesTheRemedy) {
    listen();
    const auto first = connected(sender);
    Sender late;
    SendSocket second{bed.transport(), {}, late};
    {
        const DescriptorLimit limit{20};
        second.connect(address);
        expect_accept_failed(late, second);
        expect_delivery(*first);
    }
    EXPECT_THAT(bed.seen().accept_failed, ElementsAre(HasSubstr("ulimit -n")));
    second.connect(address);
    ASSERT_TRUE(bed.run_until([&] { return late.connected == 1; }));
    expect_delivery(second);
}

INSTANTIATE_TEST_SUITE_P(Beds, AcceptFailedOnTheFabric, fabric_beds(), bed_name);

} // namespace
} // namespace netio::test::accept_failed_test
