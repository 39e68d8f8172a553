// SPDX-License-Identifier: Apache-2.0

// Several connection attempts: no state of one remains when the next begins.

#include "tests/scenario/stream/pair.hpp"
#include "tests/scenario/stream/two_ways.hpp"

namespace netio::stream::test::attempt_test {
namespace {

class Attempts : public PairOnBed {
  protected:
    TwoWays two_ways{bed.transport()};
};

TEST_P(Attempts, ASecondProviderBeginsWithNothingOfTheFirst) {
    StreamSocket::Options impossible; // there is no memory for this ring
    impossible.receiver = improved_receiver(std::uint64_t{1} << 46);
    listen(impossible);
    server.at_closed = [&] { server_options = {}; };
    client.socket = std::make_unique<StreamSocket>(two_ways, carried(), client);
    client.socket->connect(listener->endpoints().front().address);
    ASSERT_TRUE(bed.run_until([&] { return client.connected && server.connected; }));
    EXPECT_EQ(two_ways.attempts, 2U);
    EXPECT_FALSE(client.closed);

    ASSERT_EQ(server.send(1'000), Status::ok);
    ASSERT_TRUE(
        bed.run_until([&] { return client.socket->counters().received.indirect_bytes == 1'000; }));
    ASSERT_EQ(client.receive(1'000, Fill::all), Status::ok);
    ASSERT_TRUE(bed.run_until([&] { return client.received == 1'000; }));
}

TEST_P(Attempts, EndWithTheLastProviderAndSayWhy) {
    StreamSocket::Options impossible;
    impossible.receiver = improved_receiver(std::uint64_t{1} << 46);
    listen(impossible);
    client.socket = std::make_unique<StreamSocket>(two_ways, carried(), client);
    client.socket->connect(listener->endpoints().front().address);
    ASSERT_TRUE(bed.run_until([&] { return client.closed.has_value(); }));
    EXPECT_EQ(two_ways.attempts, 2U);
    EXPECT_EQ(client.closed->reason, CloseReason::lost) << client.closed->detail;
}

TEST_P(Attempts, ASocketThatConnectsAgainHasForgottenTheEndOfTheLastStream) {
    for (int round = 0; round < 2; ++round) {
        client.forget();
        server.forget();
        if (!listener) {
            establish();
        } else {
            client.socket->connect(listener->endpoints().front().address);
            ASSERT_TRUE(bed.run_until([&] { return client.connected && server.connected; }));
        }
        EXPECT_EQ(client.socket->counters().sent.direct_bytes, 0U);
        EXPECT_EQ(client.socket->counters().sent.indirect_bytes, 0U);
        for (Side* const side : {&client, &server}) {
            ASSERT_EQ(side->send(5'000), Status::ok);
            ASSERT_EQ(side->receive(5'000, Fill::all), Status::ok);
        }
        ASSERT_TRUE(
            bed.run_until([&] { return client.received == 5'000 && server.received == 5'000; }));
        EXPECT_FALSE(client.ended || server.ended);
        client.socket->shutdown_send();
        ASSERT_TRUE(bed.run_until([&] { return server.ended; }));
        EXPECT_FALSE(client.closed || server.closed) << "half of it is open";
        server.socket->shutdown_send();
        ASSERT_TRUE(bed.run_until([&] { return client.closed && server.closed; }));
        EXPECT_EQ(client.closed->reason, CloseReason::orderly) << client.closed->detail;
    }
}

TEST_P(Attempts, ShutdownSendWhileConnectingIsNotForgotten) {
    listen();
    client.socket = std::make_unique<StreamSocket>(bed.transport(), carried(), client);
    client.socket->connect(listener->endpoints().front().address);
    client.socket->shutdown_send();
    ASSERT_TRUE(bed.run_until([&] { return server.ended && client.connected; }));
    EXPECT_EQ(client.send(1), Status::closed);
    EXPECT_FALSE(client.closed || server.closed);
}

TEST_P(Attempts, NothingIsAcceptedBeforeTheOtherSidesRingIsKnown) {
    listen();
    client.socket = std::make_unique<StreamSocket>(bed.transport(), carried(), client);
    client.socket->connect(listener->endpoints().front().address);
    ASSERT_TRUE(bed.run_until([&] {
        for (Side* const side : {&client, &server}) {
            if (!side->socket || side->connected) continue;
            EXPECT_EQ(side->send(1), Status::closed);
            EXPECT_EQ(side->receive(1, Fill::some), Status::closed);
        }
        return client.connected && server.connected;
    }));
    ASSERT_EQ(client.send(100), Status::ok);
    ASSERT_EQ(server.receive(100, Fill::all), Status::ok);
    ASSERT_TRUE(bed.run_until([&] { return server.received == 100; }));
}

INSTANTIATE_TEST_SUITE_P(Beds, Attempts, all_stages(), stage_name);

// By the name "peer.example", which the simulator resolves to these hosts.
class AttemptsByName : public PairOnBed {
  protected:
    void connect_by_name(std::vector<std::string> hosts) {
        netio::Address address = listener->endpoints().front().address;
        if (hosts.back().empty()) hosts.back() = address.host;
        bed.sim()->name("peer.example", std::move(hosts));
        address.host = "peer.example";
        client.socket = std::make_unique<StreamSocket>(bed.transport(), carried(), client);
        client.socket->connect(address);
    }
};

TEST_P(AttemptsByName, FindItAtTheSecondAddressOfItsName) {
    listen();
    connect_by_name({"10.9.9.9", ""});
    ASSERT_TRUE(bed.run_until([&] { return client.connected && server.connected; }));
    EXPECT_FALSE(client.closed);
}

TEST_P(AttemptsByName, EndOnceWithTheReasonOfEveryAddress) {
    listen();
    connect_by_name({"10.9.9.9", "10.9.9.8"});
    ASSERT_TRUE(bed.run_until([&] { return client.closed.has_value(); }));
    EXPECT_EQ(client.closed->reason, CloseReason::refused);
    EXPECT_NE(client.closed->detail.find("10.9.9.9"), std::string::npos);
    EXPECT_NE(client.closed->detail.find("10.9.9.8"), std::string::npos);
}

TEST_P(AttemptsByName, EndIfTheUserEndsThemDuringTheNameLookup) {
    listen();
    for (const bool in_order : {true, false}) {
        client.closed.reset();
        connect_by_name({""});
        in_order ? client.socket->close() : client.socket->abort();
        EXPECT_FALSE(client.closed) << "no callback within a call";
        ASSERT_TRUE(bed.run_until([&] { return client.closed.has_value(); }));
        EXPECT_EQ(client.closed->reason, CloseReason::local);
        EXPECT_FALSE(client.connected);
    }
}

INSTANTIATE_TEST_SUITE_P(Beds, AttemptsByName, simulated_stages(), stage_name);

// A socket with its own time-out ends an attempt at the same time as the session does.
TEST_P(AttemptsByName, EndIfTheUserEndsThemAfterAnUnreportedFailure) {
    listen();
    for (const bool in_order : {true, false}) {
        client.forget();
        bed.sim()->network().ignore_connects(true);
        TwoWays two_ways{bed.transport()};
        StreamSocket::Options options = carried();
        options.session.connect_timeout = std::chrono::milliseconds{50};
        client.socket = std::make_unique<StreamSocket>(two_ways, options, client);
        client.socket->connect(listener->endpoints().front().address);
        ASSERT_TRUE(bed.run_until([&] { return two_ways.attempts == 1; }));
        netio::Timer end{bed.loop(), [&] {
                             bed.sim()->network().ignore_connects(false);
                             in_order ? client.socket->close() : client.socket->abort();
                         }};
        end.start(options.session.connect_timeout); // after the session's
        ASSERT_TRUE(bed.run_until([&] { return client.closed || client.connected; }));
        EXPECT_FALSE(client.connected);
        EXPECT_EQ(two_ways.attempts, 1U);
        ASSERT_TRUE(client.closed);
        EXPECT_EQ(client.closed->reason, CloseReason::local);
        client.socket.reset();
    }
}

} // namespace
} // namespace netio::stream::test::attempt_test
