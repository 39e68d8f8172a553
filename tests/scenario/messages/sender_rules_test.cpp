// SPDX-License-Identifier: Apache-2.0

// A send socket that was used before: connected elsewhere, refused, aborted, or closed in vain. Its
// earlier state has no effect, but its counters continue.

#include "netio/session/client_key.hpp"
#include "netio/session/handshake.hpp"
#include "netio/session/server_keys.hpp"
#include "tests/scenario/messages/messages_fixture.hpp"
#include "tests/support/key_files.hpp"

#include <gmock/gmock.h>

#include <array>
#include <memory>
#include <vector>

namespace netio::test::sender_rules_test {
namespace {

using namespace std::chrono_literals;
using testing::SizeIs;

class SenderRules : public Messages {
  protected:
    void connect(const Address& to, SendSocket::Options options = {}) {
        options.reconnect = true;
        socket = std::make_unique<SendSocket>(bed.transport(), options, sender);
        socket->connect(to);
    }
    bool is_connected(int times) {
        return bed.run_until([&] { return sender.connected == times; });
    }
    bool has_closed(std::size_t times) {
        return bed.run_until([&] { return sender.closed.size() == times; });
    }
    void pass(Duration time) {
        bool over = false;
        Timer timer{bed.loop(), [&] { over = true; }};
        timer.start(time);
        ASSERT_TRUE(bed.run_until([&] { return over; }));
    }
    std::unique_ptr<SendSocket> socket;
};

INSTANTIATE_TEST_SUITE_P(Beds, SenderRules, simulated_beds(), bed_name);

TEST_P(SenderRules, ThatConnectsElsewhereBetweenTwoAttemptsStaysThere) {
    listen();
    const Address gone = address;
    listener.reset();
    listen();
    sender.at_closed = [&] { socket->connect(address); };
    connect(gone);
    ASSERT_TRUE(is_connected(1));
    pass(1min);
    EXPECT_EQ(sender.connected, 1) << "the next attempt was to this address";
    EXPECT_THAT(sender.closed, SizeIs(1));
    EXPECT_EQ(receiver.connected, 1U);
}

// An earlier admission at one address does not count for another.
TEST_P(SenderRules, ThatIsNotAdmittedElsewhereGivesUpThere) {
    KeyFiles known, unknown;
    known.permit(7, "services=messages");
    unknown.permit(7, "services=messages");
    const auto keys = [&](const KeyFiles& of) {
        return std::make_shared<ServerKeys>(bed.loop(), ServerKeys::Options{.file = of.site()});
    };
    listen({.keys = keys(known)});
    connect(address,
            {.key = std::make_shared<ClientKey>(ClientKey::Options{.file = known.client(7)})});
    ASSERT_TRUE(is_connected(1));
    socket->close();
    ASSERT_TRUE(has_closed(1));
    listen({.keys = keys(unknown)});
    socket->connect(address);
    ASSERT_TRUE(has_closed(2));
    EXPECT_EQ(sender.closed[1].reason, CloseReason::rejected);
    EXPECT_FALSE(socket->is_retrying());
}

// The connection ends for another reason than the user's abort; nevertheless the user wants no new
// one.
TEST_P(SenderRules, ThatIsEndedAfterAFailureDoesNotReconnect) {
    using End = void (SendSocket::*)();
    for (const End end : {&SendSocket::close, &SendSocket::abort}) {
        sender = {};
        listen();
        connect(address);
        ASSERT_TRUE(is_connected(1));
        bed.sim()->refuse_registrations(true);
        RegisteredBuffer fresh{60'000};
        EXPECT_EQ(socket->send(fresh.slice(), Cookie{1}), Status::closed);
        (socket.get()->*end)();
        bed.sim()->refuse_registrations(false);
        ASSERT_TRUE(has_closed(1));
        EXPECT_EQ(sender.closed[0].reason, CloseReason::failed);
        EXPECT_FALSE(socket->is_retrying());
        pass(1min);
        EXPECT_EQ(sender.connected, 1);
        socket.reset();
    }
}

TEST_P(SenderRules, ThatWasClosedWhileASilentAddressWasTriedConnectsAgain) {
    listen();
    bed.sim()->ignore_connects(true);
    connect(address);
    pass(1s);
    socket->close();
    bed.sim()->ignore_connects(false);
    ASSERT_TRUE(has_closed(1));
    EXPECT_EQ(sender.closed[0].reason, CloseReason::local);
    socket->connect(address);
    EXPECT_TRUE(is_connected(1));
}

// Accepts every sender and ends the connection before any data.
class Slammer final : private Listener::Handler, private Connection::Handler {
  public:
    Slammer(Transport& transport, const Address& at)
        : listener_{transport.listen(transport.providers_at(at).front(), at,
                                     {.allow_remote_anonymous = true}, *this)} {}
    Address address() const { return listener_->address(); }

  private:
    void on_request(ConnectionRequest& request) override {
        connection_ = request.make_connection({.send_count = 1, .receive_count = 4}, *this);
        for (std::uint64_t i = 0; i < 4; ++i) {
            const Slice slice = memory_.slice(i * 1024, 1024);
            ASSERT_EQ(connection_->post_receive({&slice, 1}, Cookie{i}), Status::ok);
        }
        Hello hello{.service = Service::messages, .receive_buffer_bytes = 1024, .receive_count = 4};
        hello.service_data.size = 4;
        ConnectionData data;
        connection_->open(std::span{data}.first(encode(hello, data)));
    }
    void on_connected(std::span<const std::byte>) override { connection_->close(); }
    void on_rejected(std::span<const std::byte>) override {}
    void on_completion(const Completion&) override {}
    void on_closed(const Closed&) override {}

    RegisteredBuffer memory_{4 * 1024};
    std::unique_ptr<Connection> connection_;
    std::unique_ptr<Listener> listener_; // last member: destroyed first
};

TEST_P(SenderRules, ThatIsAdmittedButNotServedRetriesMoreRarely) {
    const Slammer slammer{bed.transport(), bed.address()};
    const TimePoint begin = bed.world()->now();
    connect(slammer.address());
    ASSERT_TRUE(has_closed(5));
    EXPECT_EQ(sender.connected, 5);
    EXPECT_GE(bed.world()->now() - begin, 250ms + 500ms + 1s + 2s);
}

// --- counting -------------------------------------------------------------------------------

TEST_P(SenderRules, CountsOverAllItsConnections) {
    listen();
    RegisteredBuffer memory{10'000};
    connect(address);
    std::uint64_t messages = 0;
    std::uint64_t bytes = 0;
    for (int life = 1; life <= 3; ++life) {
        ASSERT_TRUE(is_connected(life));
        std::vector<Slice> slices;
        for (std::size_t i = 0; i <= socket->segment_limit(); ++i)
            slices.push_back(memory.slice(i * 100, 100));
        ASSERT_EQ(socket->sendv(slices, Cookie{0}, 5), Status::ok);
        ++messages, bytes += 100 * slices.size() + 8; // includes its immediate data
        while (socket->send_inline(std::array<std::byte, 3>{}) == Status::ok)
            ++messages, bytes += 3;
        const SendSocket::Counters now = socket->counters();
        EXPECT_EQ(now.messages, messages);
        EXPECT_EQ(now.bytes, bytes);
        EXPECT_EQ(now.again, static_cast<std::uint64_t>(life));
        EXPECT_EQ(now.gathered, static_cast<std::uint64_t>(life));
        socket->close();
        ASSERT_TRUE(has_closed(static_cast<std::size_t>(life)));
        EXPECT_EQ(socket->counters().messages, messages) << "also between two connections";
        socket->connect(address);
    }
}

} // namespace
} // namespace netio::test::sender_rules_test
