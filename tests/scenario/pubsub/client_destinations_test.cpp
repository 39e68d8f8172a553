// SPDX-License-Identifier: Apache-2.0

// A client's destinations in virtual time: which of them hold a slot, what they accept, and how
// they end.

#include "netio/session/server_keys.hpp"
#include "tests/scenario/pubsub/destinations_scenario.hpp"
#include "tests/support/key_files.hpp"

#include <gmock/gmock.h>

#include <deque>
#include <functional>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace netio::pubsub::client_destinations_test {
namespace {

using namespace std::chrono_literals;
using netio::test::content;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

Destinations::Options with_small_pages() {
    Destinations::Options options{.queue_bytes = 1 << 20, .limit = 1};
    options.socket.page_size_bytes = 256;
    options.socket.page_count = 8;
    return options;
}

class ClientDestinations : public test::DestinationsScenario {
  protected:
    struct Place {
        netio::test::Receiver receiver;
        std::unique_ptr<ListenSocket> socket;
        Address address;
    };

    ClientDestinations() : DestinationsScenario{with_small_pages()} {}

    void listen(Place& at, ListenSocket::Options options = {}) {
        options.listen = {at.address.port != 0 ? at.address : bed.address()};
        options.allow_remote_anonymous = true;
        at.socket = std::make_unique<ListenSocket>(bed.transport(), options, at.receiver);
        at.address = at.socket->endpoints().front().address;
    }
    void connect_to(Place& place) {
        listen(place);
        send(place, 10);
        ASSERT_TRUE(have_arrived(place, 1));
    }
    void send(const Place& to, std::size_t size) { DestinationsScenario::send(to.address, size); }
    Status try_to_send(const Place& to, std::size_t size = 10) {
        return all->send(to.address, content(size, 0));
    }
    bool run_until(const std::function<bool()>& done) { return bed.run_until(done); }
    bool have_arrived(const Place& place, std::size_t count) {
        return DestinationsScenario::have_arrived(place.receiver, count);
    }

    netio::test::KeyFiles files;
    Place one;
    Place other;
};

INSTANTIATE_TEST_SUITE_P(Beds, ClientDestinations, netio::test::simulated_beds(),
                         netio::test::bed_name);

TEST_P(ClientDestinations, ThatAreConnectedKeepTheirSlotWithoutQueuedMessages) {
    connect_to(one);
    listen(other);
    EXPECT_THROW(static_cast<void>(try_to_send(other)), std::length_error);
    send(one, 20);
    ASSERT_TRUE(have_arrived(one, 2));
    EXPECT_EQ(one.receiver.connected, 1U);
}

TEST_P(ClientDestinations, ThatAreEndingKeepTheirSlotUntilTheEnd) {
    connect_to(one);
    listen(other);
    all->disconnect(one.address);
    EXPECT_EQ(try_to_send(other), Status::again);
    do_tasks();
    EXPECT_EQ(try_to_send(other), Status::again);
    EXPECT_EQ(try_to_send(one), Status::again) << "it would be another connection";
    ASSERT_TRUE(run_until([&] { return ended == 1; }));
    send(other, 10);
    ASSERT_TRUE(have_arrived(other, 1));
    EXPECT_EQ(all->counted().unsent.load(), 0U);
}

TEST_P(ClientDestinations, WithoutAConnectionReleaseTheirSlotAtOnce) {
    listen(one);
    listen(other);
    transport.is_poor = true;
    send(one, 10);
    all->disconnect(one.address);
    EXPECT_EQ(try_to_send(other), Status::again);
    do_tasks();
    EXPECT_EQ(all->counted().unsent.load(), 1U);
    transport.is_poor = false;
    send(other, 10);
    ASSERT_TRUE(have_arrived(other, 1));
    EXPECT_EQ(ended, 0) << "nothing had to end";
}

// The limit belongs to one connection and does not apply to the next.
TEST_P(ClientDestinations, AcceptMessagesAboveTheLimitOfAFormerReceiver) {
    listen(one, {.largest_message_bytes = 1000});
    send(one, 1000);
    ASSERT_TRUE(have_arrived(one, 1));
    EXPECT_EQ(try_to_send(one, 1001), Status::too_large);
    const std::size_t before = told.size();
    one.socket.reset();
    ASSERT_TRUE(run_until([&] { return told.size() > before; }));
    send(one, 1500);
    listen(one);
    ASSERT_TRUE(have_arrived(one, 2));
    EXPECT_EQ(one.receiver.messages.back().bytes.size(), 1500U);
    EXPECT_EQ(all->counted().unsent.load(), 0U);
}

TEST_P(ClientDestinations, SendInOrderAsPagesBecomeFree) {
    constexpr std::size_t count = 100;
    connect_to(one);
    for (std::size_t i = 0; i < count; ++i)
        ASSERT_EQ(all->send(one.address, content(150 + i, 0)), Status::ok);
    do_tasks(); // all tasks at once
    ASSERT_TRUE(have_arrived(one, 1 + count));
    for (std::size_t i = 0; i < count; ++i)
        EXPECT_EQ(one.receiver.messages[1 + i].bytes, content(150 + i, 0));
    EXPECT_EQ(all->counted().sent.load(), 1 + count);
    EXPECT_EQ(all->counted().unsent.load(), 0U);
}

TEST_P(ClientDestinations, SendNoMoreInATurnThanItsTimeAllowsAndGoOnInTheNext) {
    constexpr std::size_t count = 20;
    connect_to(one);
    bed.sim()->set_costs({.post = 2 * EventLoop::Options{}.turn_limit});
    for (std::size_t i = 0; i < count; ++i)
        ASSERT_EQ(all->send(one.address, content(240, 0)), Status::ok);
    do_tasks();
    EXPECT_LT(all->counted().sent.load(), 5U) << "one page each";
    ASSERT_TRUE(have_arrived(one, 1 + count));
    all->close();
    ASSERT_TRUE(run_until([&] { return ended == 1; }));
}

TEST_P(ClientDestinations, WhereNoAttemptCouldBeMadeEndForGood) {
    listen(one);
    transport.is_poor = true;
    send(one, 10);
    EXPECT_THAT(told, Contains(HasSubstr("bad_alloc")));
    all->close();
    EXPECT_TRUE(all->is_over());
    EXPECT_EQ(all->counted().unsent.load(), 1U);
    transport.is_poor = false;
    bed.let_pass(2 * retry_limit);
    EXPECT_EQ(one.receiver.connected, 0U) << "no further callback";
}

TEST_P(ClientDestinations, ThatRefusePermanentlyAreRetriedAndDelayNoEnd) {
    const auto keys =
        std::make_shared<ServerKeys>(bed.loop(), ServerKeys::Options{.file = files.site()});
    listen(one, {.keys = keys});
    send(one, 10);
    ASSERT_TRUE(run_until([&] { return told.size() == 1; }));
    EXPECT_THAT(told, Contains(HasSubstr("it asks for a key")));
    const TimePoint refused = bed.world()->now();
    one.socket.reset();
    listen(one);
    ASSERT_TRUE(have_arrived(one, 1));
    EXPECT_GE(bed.world()->now() - refused, retry_limit);
    one.socket.reset();
    listen(one, {.keys = keys});
    const std::size_t before = told.size();
    ASSERT_TRUE(run_until([&] { return told.size() > before + 1; })) << "lost, and refused";
    send(one, 20);
    all->close();
    EXPECT_TRUE(all->is_over()) << "there is no attempt whose end could follow";
    EXPECT_EQ(all->counted().unsent.load(), 1U);
}

TEST_P(ClientDestinations, APendingAttemptDecidesAboutQueuedMessages) {
    listen(one);
    send(one, 10);
    all->close();
    EXPECT_FALSE(all->is_over());
    ASSERT_TRUE(run_until([&] { return ended == 1; }));
    EXPECT_TRUE(all->is_over());
    EXPECT_EQ(one.receiver.messages.size(), 1U);
    EXPECT_EQ(all->counted().sent.load(), 1U);
    EXPECT_EQ(all->counted().unsent.load(), 0U);
}

TEST_P(ClientDestinations, AnAttemptThatFailsAfterTheEndIsNotRepeated) {
    listen(one);
    one.socket.reset();
    send(one, 10);
    all->close();
    EXPECT_FALSE(all->is_over());
    ASSERT_TRUE(run_until([&] { return ended == 1; }));
    EXPECT_TRUE(all->is_over());
    EXPECT_EQ(all->counted().unsent.load(), 1U);
    listen(one);
    bed.let_pass(2 * retry_limit);
    EXPECT_EQ(one.receiver.connected, 0U);
}

TEST_P(ClientDestinations, ThatWereAlreadyEndingDelayTheEndOfAll) {
    connect_to(one);
    ASSERT_EQ(try_to_send(one, 20), Status::ok);
    all->disconnect(one.address);
    all->close(); // before its thread handles it
    EXPECT_FALSE(all->is_over());
    do_tasks();
    ASSERT_TRUE(run_until([&] { return ended == 1; }));
    EXPECT_TRUE(all->is_over());
    EXPECT_EQ(one.receiver.messages.size(), 2U);
}

TEST_P(ClientDestinations, AcceptNothingAfterTheEndOfAll) {
    all->close();
    EXPECT_TRUE(all->is_over());
    EXPECT_EQ(try_to_send(one), Status::closed);
    EXPECT_THAT(tasks, IsEmpty());
}

} // namespace
} // namespace netio::pubsub::client_destinations_test
