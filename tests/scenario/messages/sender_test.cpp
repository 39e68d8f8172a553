// SPDX-License-Identifier: Apache-2.0

// A netio::Sender in virtual time: what it accepts, how it connects, and how it ends.

#include "netio/session/server_keys.hpp"
#include "tests/scenario/messages/sender_scenario.hpp"
#include "tests/support/key_files.hpp"

#include <gmock/gmock.h>

#include <memory>
#include <stdexcept>

namespace netio::sender_test {
namespace {

using test::content;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

class SimulatedSender : public test::SenderScenario {
  protected:
    test::KeyFiles files;
};

INSTANTIATE_TEST_SUITE_P(Beds, SimulatedSender, test::simulated_beds(), test::bed_name);

TEST_P(SimulatedSender, WithoutALookupRetriesWithAllQueuedMessages) {
    listen();
    transport.is_poor = true;
    send(10);
    EXPECT_THAT(lines.all(), ElementsAre(HasSubstr("bad_alloc")));
    send(20); // while it has no socket
    EXPECT_THAT(lines.all(), SizeIs(1)) << "the next attempt comes later";
    transport.is_poor = false;
    ASSERT_TRUE(have_arrived(2));
    EXPECT_EQ(receiver.messages[0].bytes.size(), 10U);
    EXPECT_EQ(receiver.messages[1].bytes.size(), 20U);
}

// The full limit of the retry interval applies only after a permanent refusal.
TEST_P(SimulatedSender, WhoseReceiverWasGoneForAMomentReconnectsSoon) {
    listen();
    send(10);
    ASSERT_TRUE(have_arrived(1));
    listener.reset();
    ASSERT_TRUE(bed.run_until([&] { return !sender->stats().connected; }));
    const TimePoint begin = bed.world()->now();
    send(20);
    listen();
    ASSERT_TRUE(have_arrived(2));
    EXPECT_LT(bed.world()->now() - begin, retry_limit / 2);
}

TEST_P(SimulatedSender, ARequestedEndIsNotReportedAsAnError) {
    listen();
    send(10);
    ASSERT_TRUE(have_arrived(1));
    close();
    ASSERT_TRUE(ends());
    EXPECT_THAT(lines.all(), IsEmpty());
    EXPECT_EQ(sender->stats().unsent, 0U);
    EXPECT_EQ(sender->stats().unconfirmed_frames, 0U);
}

// The limit belongs to one connection and does not apply to the next.
TEST_P(SimulatedSender, AcceptsMessagesAboveTheLimitOfAFormerReceiver) {
    listen({.largest_message_bytes = 1000});
    send(1000);
    ASSERT_TRUE(have_arrived(1));
    EXPECT_EQ(sender->try_send(content(1001, 0)), Status::too_large);
    listener.reset();
    ASSERT_TRUE(bed.run_until([&] { return !sender->stats().connected; }));
    send(1500);
    listen();
    ASSERT_TRUE(have_arrived(2));
    EXPECT_EQ(receiver.messages.back().bytes.size(), 1500U);
    EXPECT_EQ(sender->stats().unsent, 0U);
}

TEST_P(SimulatedSender, SendsInOrderAsPagesBecomeFree) {
    constexpr std::size_t count = 100;
    listen();
    send(10);
    ASSERT_TRUE(have_arrived(1));
    for (std::size_t i = 0; i < count; ++i)
        ASSERT_EQ(sender->try_send(content(150 + i, 0)), Status::ok);
    ASSERT_TRUE(have_arrived(1 + count));
    for (std::size_t i = 0; i < count; ++i)
        EXPECT_EQ(receiver.messages[1 + i].bytes, content(150 + i, 0));
    EXPECT_EQ(sender->stats().sent, 1 + count);
    EXPECT_EQ(sender->stats().unsent, 0U);
}

TEST_P(SimulatedSender, SendsNoMoreInATurnThanItsTimeAllowsAndGoesOnInTheNext) {
    constexpr std::size_t count = 20;
    listen();
    send(10);
    ASSERT_TRUE(have_arrived(1));
    bed.sim()->set_costs({.post = 2 * EventLoop::Options{}.turn_limit});
    for (std::size_t i = 0; i < count; ++i)
        ASSERT_EQ(sender->try_send(content(240, 0)), Status::ok);
    turn();
    EXPECT_LT(sender->stats().sent, 10U) << "one page each";
    ASSERT_TRUE(have_arrived(1 + count));
    close();
    ASSERT_TRUE(ends());
}

TEST_P(SimulatedSender, WhereNoAttemptCouldBeMadeEndsForGood) {
    listen();
    transport.is_poor = true;
    send(10);
    EXPECT_EQ(lines.count("bad_alloc"), 1U);
    close();
    EXPECT_TRUE(sender->is_closed());
    EXPECT_EQ(sender->stats().unsent, 1U);
    EXPECT_EQ(lines.count("1 messages were not sent"), 1U);
    transport.is_poor = false;
    bed.let_pass(2 * retry_limit);
    EXPECT_EQ(receiver.connected, 0U) << "no further callback";
}

TEST_P(SimulatedSender, ThatIsRefusedPermanentlyRetriesAndDelaysNoEnd) {
    const auto keys =
        std::make_shared<ServerKeys>(bed.loop(), ServerKeys::Options{.file = files.site()});
    listen({.keys = keys});
    send(10);
    ASSERT_TRUE(bed.run_until([&] { return lines.count("it asks for a key") == 1; }));
    const TimePoint refused = bed.world()->now();
    listener.reset();
    listen();
    ASSERT_TRUE(have_arrived(1));
    EXPECT_GE(bed.world()->now() - refused, retry_limit);
    EXPECT_EQ(lines.count("connected ("), 1U);
    listener.reset();
    listen({.keys = keys});
    ASSERT_TRUE(bed.run_until([&] { return lines.count("it asks for a key") == 2; }));
    send(20);
    close();
    EXPECT_TRUE(sender->is_closed()) << "there is no attempt whose end could follow";
    EXPECT_EQ(sender->stats().unsent, 1U);
}

TEST_P(SimulatedSender, APendingAttemptDecidesAboutQueuedMessages) {
    listen();
    send(10);
    close();
    EXPECT_FALSE(sender->is_closed());
    ASSERT_TRUE(ends());
    EXPECT_EQ(receiver.messages.size(), 1U);
    EXPECT_EQ(sender->stats().sent, 1U);
    EXPECT_EQ(sender->stats().unsent, 0U);
}

TEST_P(SimulatedSender, ClosesOnlyAfterTheReceiverListensAndHasTheMessages) {
    options.close_timeout = std::chrono::seconds{40}; // longer than two attempts
    listen();
    listener.reset();
    ASSERT_EQ(sender->try_send(content(10, 0)), Status::ok);
    close(); // before the first attempt
    bed.let_pass(std::chrono::seconds{5});
    EXPECT_FALSE(sender->is_closed());
    listen();
    ASSERT_TRUE(ends());
    EXPECT_EQ(receiver.messages.size(), 1U);
    EXPECT_EQ(sender->stats().sent, 1U);
    EXPECT_EQ(sender->stats().unsent, 0U);
}

TEST_P(SimulatedSender, WhoseReceiverDoesNotListenClosesAfterTheTimeout) {
    listen();
    listener.reset();
    send(10);
    const TimePoint begin = bed.world()->now();
    close();
    ASSERT_TRUE(ends());
    EXPECT_GE(bed.world()->now() - begin, options.close_timeout);
    EXPECT_LT(bed.world()->now() - begin, options.close_timeout + retry_limit);
    EXPECT_EQ(sender->stats().unsent, 1U);
    EXPECT_EQ(lines.count("no connection within close_timeout"), 1U);
    listen();
    bed.let_pass(2 * retry_limit);
    EXPECT_EQ(receiver.connected, 0U) << "no attempt after the end";
}

TEST_P(SimulatedSender, WithoutWaitingMessagesDoesNotConnectToClose) {
    listen();
    send(10);
    ASSERT_TRUE(have_arrived(1));
    listener.reset();
    ASSERT_TRUE(bed.run_until([&] { return !sender->stats().connected; }));
    const TimePoint begin = bed.world()->now();
    close();
    ASSERT_TRUE(ends());
    EXPECT_LT(bed.world()->now() - begin, options.close_timeout);
}

TEST_P(SimulatedSender, WithoutMessagesNeverConnectsAndAcceptsNothingAfterItsEnd) {
    listen();
    bed.let_pass(std::chrono::seconds{1});
    EXPECT_EQ(receiver.connected, 0U);
    close();
    EXPECT_TRUE(sender->is_closed());
    EXPECT_EQ(sender->try_send("a text"), Status::closed);
    EXPECT_THROW(sender->send("a text"), Error);
    EXPECT_THAT(lines.all(), IsEmpty());
}

TEST_P(SimulatedSender, HasOneAddressAndOptionsWithinBounds) {
    EXPECT_THROW((netio::Sender{AddressList{}, options}), std::invalid_argument);
    EXPECT_THROW((netio::Sender{AddressList{"127.0.0.1:1", "127.0.0.1:2"}, options}),
                 std::invalid_argument);
    options.socket.page_size_bytes = 1;
    EXPECT_THROW((netio::Sender{"127.0.0.1:1", options}), std::invalid_argument);
    options.socket = {};
    options.socket.socket.session.send_count = 1;
    EXPECT_THROW((netio::Sender{"127.0.0.1:1", options}), std::invalid_argument);
    options.socket = {};
    options.send_timeout = std::chrono::milliseconds{-1};
    EXPECT_THROW((netio::Sender{"127.0.0.1:1", options}), std::invalid_argument);
}

} // namespace
} // namespace netio::sender_test
