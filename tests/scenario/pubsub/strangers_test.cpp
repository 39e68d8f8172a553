// SPDX-License-Identifier: Apache-2.0

// Unauthenticated peers on TCP that have not been admitted: an honest subscriber connected at the
// same time gets everything. If the provider waited for missing bytes of such a peer, it would wait
// for hours here, until an alarm ends the test; so the result does not depend on a clock.

#include "netio/fabric.hpp"
#include "tests/scenario/pubsub/actors.hpp"
#include "tests/scenario/pubsub/intruder.hpp"
#include "tests/scenario/pubsub/slow_pipe.hpp"
#include "tests/support/open_descriptors.hpp"

#include <gmock/gmock.h>

#include <algorithm>
#include <random>
#include <unistd.h>

namespace netio::pubsub::test::strangers_test {
namespace {

using namespace std::chrono_literals;
using netio::Status;
using testing::IsEmpty;

// The tcp provider's connection request: a header that announces this many bytes of data.
constexpr std::size_t header_bytes = 32;
constexpr std::size_t whole_bytes = header_bytes + 256;
std::vector<std::byte> request_bytes(std::size_t announced, std::uint8_t type = 0) {
    std::vector<std::byte> request(whole_bytes);
    request[0] = std::byte{3}; // version
    request[1] = std::byte{type};
    request[2] = static_cast<std::byte>(announced >> 8);
    request[3] = static_cast<std::byte>(announced);
    return request;
}

class Strangers : public testing::Test {
  protected:
    Strangers() {
        ::alarm(120); // a read that waits for the peer cannot be interrupted
        SubscribeSocket::Options options;
        options.publisher = publisher->endpoints().front().address;
        options.session.connect_timeout = 1min; // the connection must survive on a busy machine
        address = options.publisher;
        honest = std::make_unique<SubscribeSocket>(*transport, options, honest_actor);
        honest->subscribe({range(1, 1)});
        EXPECT_TRUE(run_until([&] { return honest_actor.subscribed.size() == 1; }));
        open_before = netio::test::open_descriptors().size();
    }
    ~Strangers() override {
        expect_service();
        honest_actor.expect_contiguous(Fid{1}, 0, next_number);
        EXPECT_THAT(honest_actor.closed, IsEmpty());
        EXPECT_THAT(honest_actor.gaps, IsEmpty());
        publisher->close();
        EXPECT_TRUE(run_until([&] { return publisher_actor.ended == 1; }));
        EXPECT_EQ(publisher_actor.end.reason, netio::CloseReason::orderly);
        EXPECT_EQ(honest->arrivals().difference(), ArrivalCounter::Difference{});
        ::alarm(0);
    }

    bool run_until(const std::function<bool()>& done) {
        const netio::TimePoint deadline = netio::Clock::now() + 60s;
        while (!done()) {
            if (netio::Clock::now() >= deadline) return false;
            loop.run_once(deadline);
        }
        return true;
    }
    std::unique_ptr<BufferedPublishSocket> make_publisher() {
        BufferedPublishSocket::Options options;
        options.publisher.listen = {{.host = "127.0.0.1", .port = 0}};
        return std::make_unique<BufferedPublishSocket>(*transport, options, publisher_actor);
    }
    // The honest subscriber is served.
    void expect_service(std::size_t count = 5) {
        for (std::size_t i = 0; i < count; ++i) {
            const auto message = make_message(Fid{1}, next_number++, 100);
            ASSERT_TRUE(
                run_until([&] { return publisher->publish(Fid{1}, message) == Status::ok; }));
        }
        publisher->flush();
        ASSERT_TRUE(run_until([&] { return honest_actor.messages == next_number; }));
    }
    // And a new subscriber is admitted.
    void expect_newcomer() {
        SubscriberActor actor;
        SubscribeSocket::Options options;
        options.publisher = address;
        options.session.connect_timeout = 1min;
        SubscribeSocket late{*transport, options, actor};
        late.subscribe({range(2, 2)});
        EXPECT_TRUE(run_until([&] { return actor.subscribed.size() == 1; }));
        late.close();
        const std::size_t before = publisher_actor.closed.size();
        EXPECT_TRUE(run_until(
            [&] { return !actor.closed.empty() && publisher_actor.closed.size() > before; }));
    }
    // Opens this many connections and waits until the provider has accepted them and the earlier
    // ones are gone.
    std::vector<RawClient> connect(std::size_t count) {
        expect_descriptors(open_before);
        std::vector<RawClient> clients;
        for (std::size_t i = 0; i < count; ++i)
            clients.emplace_back(address);
        expect_descriptors(open_before + 2 * count);
        return clients;
    }
    void expect_descriptors(std::size_t count) {
        const netio::TimePoint deadline = netio::Clock::now() + 60s;
        while (netio::test::open_descriptors().size() != count && netio::Clock::now() < deadline)
            loop.run_once(netio::Clock::now() + 1ms);
        EXPECT_EQ(netio::test::open_descriptors().size(), count);
    }

    netio::EventLoop loop;
    std::unique_ptr<netio::Transport> transport = open_fabric(
        loop, {.provider = "tcp", .half_handshake_timeout = 24h, .handshake_timeout = 24h});
    PublisherActor publisher_actor;
    std::unique_ptr<BufferedPublishSocket> publisher = make_publisher();
    SubscriberActor honest_actor;
    std::unique_ptr<SubscribeSocket> honest;
    netio::Address address;
    std::uint64_t next_number = 0;
    std::size_t open_before = 0;
};

// --- incomplete handshakes ------------------------------------------------------------------

constexpr std::array<std::size_t, 8> lengths{1, 31, 32, 33, 56, 87, 287, 288};
constexpr std::array<std::size_t, 7> announcements{0, 24, 55, 256, 257, 4096, 65535};

TEST_F(Strangers, WithAPartialRequestOfAnyAnnouncedSizeAreHarmless) {
    for (const std::uint8_t type : {std::uint8_t{0}, std::uint8_t{1}}) {
        for (const std::size_t announced : announcements) {
            const auto request = request_bytes(announced, type);
            const auto clients = connect(lengths.size());
            for (std::size_t i = 0; i < lengths.size(); ++i)
                EXPECT_EQ(clients[i].send(std::span{request}.first(lengths[i])), lengths[i]);
            expect_service();
            expect_newcomer(); // it connects after them, so they were examined
        }
    }
}

TEST_F(Strangers, WithARequestByteByByteAreHarmless) {
    for (const std::size_t announced : {24U, 256U, 65535U}) {
        const auto request = request_bytes(announced);
        const auto clients = connect(3);
        for (const RawClient& client : clients)
            client.send_at_once();
        for (std::size_t at = 0; at + 1 < request.size(); ++at) {
            for (const RawClient& client : clients)
                ASSERT_EQ(client.send(std::span{request}.subspan(at, 1)), 1U);
            loop.run_once();
        }
        expect_service();
    }
}

TEST_F(Strangers, WithRepeatedBeginningsAreHarmless) {
    for (const std::size_t length : {32U, 87U, 287U, 288U}) {
        const auto request = request_bytes(65535);
        const auto clients = connect(4);
        for (int again = 0; again < 20; ++again) {
            for (const RawClient& client : clients)
                client.send(std::span{request}.first(length));
            expect_service(1);
        }
    }
    expect_newcomer();
}

// Urgent data counts as available, but is not read with the other bytes.
TEST_F(Strangers, WithAnUrgentByteAreHarmless) {
    for (const std::size_t urgent : {0U, 1U, 31U, 32U, 33U, 100U, 287U}) {
        for (const std::size_t announced : {24U, 256U, 65535U}) {
            SCOPED_TRACE(testing::Message() << urgent << " of " << announced);
            const auto request = request_bytes(announced);
            const auto clients = connect(1);
            clients[0].send_at_once();
            if (urgent > 0) clients[0].send(std::span{request}.first(urgent));
            EXPECT_EQ(clients[0].send_urgent(request[urgent]), 1U);
            clients[0].send(std::span{request}.subspan(urgent + 1));
            expect_service();
            expect_newcomer(); // it connects after it, so it was examined
        }
    }
}

TEST_F(Strangers, WithAnEndlesslyPartialRequestAreHarmless) {
    const auto request = request_bytes(256);
    for (const std::size_t length : lengths) {
        SCOPED_TRACE(length);
        const auto clients = connect(1);
        clients[0].send(std::span{request}.first(length));
        clients[0].shutdown_send();
        expect_service();
        if (length == whole_bytes) continue; // this one gets an answer
        EXPECT_TRUE(run_until([&] { return clients[0].is_cut_off(); }));
    }
}

TEST_F(Strangers, AreHarmlessAlsoInLargeNumbers) {
    for (const std::size_t count : {10U, 30U, 100U}) {
        const auto request = request_bytes(65535);
        const auto clients = connect(count);
        for (std::size_t i = 0; i < count; ++i)
            clients[i].send(std::span{request}.first(lengths[i % lengths.size()]));
        expect_service(20);
    }
    expect_newcomer();
}

// --- others ---------------------------------------------------------------------------------

TEST_F(Strangers, WithoutAnyDataAreHarmless) {
    std::vector<RawClient> silent = connect(50);
    expect_service();
    expect_newcomer();
    silent.clear();
    expect_service();
}

TEST_F(Strangers, WithAMegabyteOfRandomDataAreHarmless) {
    for (unsigned seed = 0; seed < 10; ++seed) {
        SCOPED_TRACE(seed);
        std::mt19937_64 random{seed};
        std::vector<std::byte> bytes(1 << 20);
        for (std::byte& byte : bytes)
            byte = seed == 0 ? std::byte{0} : static_cast<std::byte>(random());
        const RawClient client{address};
        std::size_t sent = client.send(bytes);
        ASSERT_TRUE(run_until([&] {
            const std::size_t more = client.send(std::span{bytes}.subspan(sent));
            sent += more;
            return sent == bytes.size() || client.is_cut_off();
        }));
        expect_service();
    }
}

TEST_F(Strangers, ThatComeAndGoAreHarmless) {
    const auto request = request_bytes(256);
    for (std::size_t i = 0; i < 200; ++i) {
        const RawClient client{address};
        if (i % 2 == 0) client.send(std::span{request}.first(i));
    }
    expect_newcomer();
}

TEST_F(Strangers, AnHonestHandshakeMayArriveInPieces) {
    for (const std::size_t first : {1U, 31U, 32U, 33U, 100U}) {
        SCOPED_TRACE(first);
        const SlowPipe pipe{address, first, 50ms};
        SubscriberActor actor;
        SubscribeSocket::Options options;
        options.publisher = pipe.address();
        options.session.connect_timeout = 1min;
        SubscribeSocket slow{*transport, options, actor};
        slow.subscribe({range(3, 3)});
        EXPECT_TRUE(run_until([&] { return actor.subscribed.size() == 1; }));
        EXPECT_THAT(actor.closed, IsEmpty());
        slow.close();
        const std::size_t before = publisher_actor.closed.size();
        EXPECT_TRUE(run_until([&] { return publisher_actor.closed.size() > before; }));
    }
}

} // namespace
} // namespace netio::pubsub::test::strangers_test
