// SPDX-License-Identifier: Apache-2.0

// How streams end: one direction at a time, in order, by abort, and by the death of a peer.

#include "netio/session/handshake.hpp"
#include "tests/scenario/stream/pair.hpp"

namespace netio::stream::test::closing_test {
namespace {

using testing::HasSubstr;

class Closing : public PairOnBed {};

TEST_P(Closing, AHalfClosedStreamStillCarriesTheOtherDirection) {
    establish();
    ASSERT_EQ(client.send(1'000), Status::ok);
    client.socket->shutdown_send();
    EXPECT_EQ(client.send(1), Status::closed);
    ASSERT_EQ(server.receive(600, Fill::all), Status::ok);
    ASSERT_EQ(server.receive(600, Fill::all), Status::ok);
    ASSERT_TRUE(bed.run_until([&] { return server.ended; }));
    EXPECT_EQ(server.received, 1'000U);
    EXPECT_TRUE(server.last->end_of_stream);
    EXPECT_FALSE(client.ended);

    ASSERT_EQ(client.receive(5'000, Fill::all), Status::ok);
    ASSERT_EQ(server.send(5'000), Status::ok);
    ASSERT_TRUE(bed.run_until([&] { return client.received == 5'000; }));

    // After the end, a receive completes with no bytes.
    ASSERT_EQ(server.receive(10, Fill::some), Status::ok);
    ASSERT_TRUE(bed.run_until([&] { return server.receives_completed == 3; }));
    EXPECT_EQ(server.last->bytes, 0U);
    EXPECT_FALSE(client.closed || server.closed);

    server.socket->shutdown_send();
    ASSERT_TRUE(bed.run_until([&] { return client.closed && server.closed; }));
    EXPECT_TRUE(client.ended);
    EXPECT_EQ(client.closed->reason, CloseReason::orderly) << client.closed->detail;
    EXPECT_EQ(server.closed->reason, CloseReason::orderly) << server.closed->detail;
}

TEST_P(Closing, NamesPeerAndProviderOnlyOfAConnection) {
    listen();
    client.socket = std::make_unique<StreamSocket>(bed.transport(), carried(), client);
    EXPECT_EQ(client.socket->peer_address(), "");
    EXPECT_EQ(client.socket->provider(), "");
    connect();
    ASSERT_TRUE(bed.run_until([&] { return client.connected && server.connected; }));
    EXPECT_NE(client.socket->peer_address(), "");
    EXPECT_NE(client.socket->provider(), "");
    // The session has ended there, and arrived bytes wait for a receive.
    std::string draining = "not asked";
    server.at_lost = [&](std::uint64_t) {
        draining = server.socket->peer_address() + server.socket->provider();
    };
    ASSERT_EQ(client.send(100), Status::ok);
    ASSERT_TRUE(bed.run_until([&] {
        const auto arrived = server.socket->counters().received;
        return arrived.direct_bytes + arrived.indirect_bytes == 100;
    }));
    client.socket->abort();
    ASSERT_TRUE(bed.run_until([&] { return client.closed && server.closed; }));
    EXPECT_EQ(draining, "");
    EXPECT_EQ(client.socket->peer_address(), "");
    EXPECT_EQ(client.socket->provider(), "");
}

TEST_P(Closing, CloseWaitsUntilTheUserOfThePeerHasEverything) {
    establish();
    for (int i = 0; i < 20; ++i)
        ASSERT_EQ(client.send(10'000), Status::ok);
    client.socket->close();
    ASSERT_TRUE(bed.run_until([&] { return client.sends_done == 20; }));
    for (int i = 0; i < 100; ++i)
        bed.loop().run_once();
    EXPECT_FALSE(client.closed || server.closed) << "there is still something to be received";

    server.at_received = [&](const Received& got) {
        if (!got.end_of_stream) static_cast<void>(server.receive(7'000, Fill::all));
    };
    ASSERT_EQ(server.receive(7'000, Fill::all), Status::ok);
    ASSERT_TRUE(bed.run_until([&] { return client.closed && server.closed; }));
    EXPECT_EQ(server.received, 200'000U);
    EXPECT_TRUE(server.ended);
    EXPECT_EQ(server.closed->reason, CloseReason::orderly);
    EXPECT_EQ(client.closed->reason, CloseReason::orderly);
}

TEST_P(Closing, APeerThatClosesWithoutReadingLeavesItUnconfirmed) {
    establish();
    for (int i = 0; i < 20; ++i)
        ASSERT_EQ(client.send(10'000), Status::ok);
    client.socket->shutdown_send();
    ASSERT_TRUE(bed.run_until([&] { return client.sends_done == 20; }));
    server.socket->close();
    ASSERT_TRUE(bed.run_until([&] { return client.closed && server.closed; }));
    EXPECT_EQ(client.closed->reason, CloseReason::unconfirmed) << client.closed->detail;
    EXPECT_THAT(client.closed->detail, HasSubstr("unread"));
    EXPECT_EQ(server.closed->reason, CloseReason::orderly) << server.closed->detail;
}

TEST_P(Closing, AbortGivesEverythingBackAtOnce) {
    establish();
    ASSERT_EQ(client.receive(1'000, Fill::all), Status::ok);
    ASSERT_EQ(server.send(300), Status::ok);
    ASSERT_TRUE(bed.run_until([&] {
        const auto received = client.socket->counters().received;
        return received.direct_bytes + received.indirect_bytes == 300;
    }));
    for (int i = 0; i < 3; ++i)
        ASSERT_EQ(client.send(600'000), Status::ok); // more than the ring holds
    client.socket->abort();
    EXPECT_FALSE(client.closed) << "no callback within a call";
    ASSERT_TRUE(bed.run_until([&] { return client.closed && server.closed; }));
    EXPECT_EQ(client.closed->reason, CloseReason::local);
    EXPECT_EQ(client.last->outcome, Outcome::canceled);
    EXPECT_EQ(client.received, 300U) << "bytes in a canceled receive are valid";
    EXPECT_EQ(server.closed->reason, CloseReason::lost);
    EXPECT_FALSE(server.ended) << "it was aborted, not ended";
}

TEST_P(Closing, AnAbortedStreamMayConnectAgain) {
    establish();
    client.at_closed = [&] { client.socket->connect(listener->endpoints().front().address); };
    client.connected = server.connected = false;
    client.socket->abort();
    ASSERT_TRUE(bed.run_until([&] { return client.connected && server.connected; }));
    ASSERT_EQ(client.send(10), Status::ok);
    ASSERT_EQ(server.receive(10, Fill::all), Status::ok);
    ASSERT_TRUE(bed.run_until([&] { return server.received == 10; }));
}

TEST_P(Closing, ADeadPeerIsReportedAndWhatItSentIsDelivered) {
    establish();
    ASSERT_EQ(client.send(5'000), Status::ok);
    ASSERT_EQ(server.receive(5'000, Fill::all), Status::ok);
    ASSERT_TRUE(bed.run_until([&] { return server.received == 5'000; }));
    ASSERT_EQ(server.receive(100, Fill::all), Status::ok);
    ASSERT_EQ(client.send(40), Status::ok);
    ASSERT_TRUE(bed.run_until([&] { return client.sends_done == 2; }));
    client.socket.reset();
    ASSERT_TRUE(bed.run_until([&] { return server.closed.has_value(); }));
    EXPECT_EQ(server.closed->reason, CloseReason::lost);
    EXPECT_EQ(server.last->outcome, Outcome::canceled);
    EXPECT_LE(server.received, 5'040U);
    EXPECT_EQ(server.receive(10, Fill::some), Status::closed);
    EXPECT_EQ(server.send(10), Status::closed);
}

TEST_P(Closing, ASocketMayBeDestroyedInEachOfItsHandlers) {
    using Hook = std::function<void()> Side::*;
    for (const Hook hook : {&Side::at_connected, &Side::at_sent, &Side::at_end, &Side::at_closed}) {
        for (Side* const victim : {&client, &server}) {
            client.socket.reset();
            server.socket.reset();
            Side* const other = victim == &client ? &server : &client;
            for (Side* const side : {&client, &server}) {
                side->forget();
                side->at_connected = side->at_sent = side->at_end = side->at_closed = nullptr;
            }
            bool destroyed = false;
            victim->*hook = [&, victim] {
                victim->socket.reset();
                destroyed = true;
            };
            listen();
            connect();
            ASSERT_TRUE(bed.run_until([&] {
                for (Side* const side : {&client, &server}) {
                    if (!side->socket || !side->connected || side->sent > 0) continue;
                    if (!side->socket->is_connected()) continue; // it has ended in the same turn
                    EXPECT_EQ(side->send(100), Status::ok);
                    EXPECT_EQ(side->receive(100, Fill::all), Status::ok);
                    side->socket->shutdown_send();
                }
                return destroyed && (!other->connected || other->closed);
            }));
        }
    }
}

TEST_P(Closing, ASocketMayBeDestroyedWhileItReceives) {
    establish();
    for (int i = 0; i < 4; ++i)
        ASSERT_EQ(server.receive(100, Fill::some), Status::ok);
    server.at_received = [&](const auto&) { server.socket.reset(); };
    ASSERT_EQ(client.send(150), Status::ok);
    ASSERT_TRUE(bed.run_until([&] { return client.closed.has_value(); }));
    EXPECT_EQ(client.closed->reason, CloseReason::lost);
}

TEST_P(Closing, AnUnacceptedPeerIsRejected) {
    refuse = true;
    listen();
    connect();
    ASSERT_TRUE(bed.run_until([&] { return client.closed.has_value(); }));
    EXPECT_EQ(client.closed->reason, CloseReason::rejected);
    EXPECT_THAT(client.closed->detail, HasSubstr(to_string(netio::RejectCode::full)));
}

TEST_P(Closing, WithoutAListenerIsRefused) {
    listen();
    const netio::Address address = listener->endpoints().front().address;
    listener.reset();
    client.socket = std::make_unique<StreamSocket>(bed.transport(), carried(), client);
    client.socket->connect(address);
    ASSERT_TRUE(bed.run_until([&] { return client.closed.has_value(); }));
    EXPECT_EQ(client.closed->reason, CloseReason::refused);
    EXPECT_THAT(client.closed->detail, HasSubstr(to_string(address)));
}

TEST_P(Closing, IncompatibleModesAreRefusedByName) {
    StreamSocket::Options direct;
    direct.sender.mode = TransferMode::direct_only;
    StreamSocket::Options indirect;
    indirect.receiver.mode = TransferMode::indirect_only;
    listen(indirect);
    connect(direct);
    ASSERT_TRUE(bed.run_until([&] { return client.closed.has_value(); }));
    EXPECT_EQ(client.closed->reason, CloseReason::protocol_error);
    EXPECT_THAT(client.closed->detail, HasSubstr("indirect-only"));
}

TEST(StreamOptionsCheck, NamesWhatIsWrong) {
    const auto message = [](auto change) -> std::string {
        StreamSocket::Options options;
        change(options);
        try {
            validate(options);
        } catch (const std::invalid_argument& error) {
            return error.what();
        }
        return {};
    };
    EXPECT_EQ(message([](StreamSocket::Options&) {}), "");
    EXPECT_THAT(message([](auto& o) { o.session.receive_buffer_bytes = 1'000; }),
                HasSubstr("1312"));
    EXPECT_THAT(message([](auto& o) { o.frame_bytes = 1'303; }), HasSubstr("frame_bytes"));
    EXPECT_EQ(message([](auto& o) { o.frame_bytes = transfer_limit_bytes; }), "");
    EXPECT_THAT(message([](auto& o) { o.frame_bytes = transfer_limit_bytes + 1; }),
                HasSubstr("536870911"));
    EXPECT_THAT(message([](auto& o) { o.frame_count = 3; }), HasSubstr("frame_count"));
    EXPECT_THAT(message([](auto& o) { o.frame_count = 16'385; }), HasSubstr("frame_count"));
    EXPECT_EQ(message([](auto& o) { o.frame_count = 16'384; }), "");
    EXPECT_THAT(message([](auto& o) { o.session.send_count = 3; }), HasSubstr("send_count"));
    EXPECT_THAT(message([](auto& o) { o.send_limit_count = 0; }), HasSubstr("send_limit_count"));
    EXPECT_THAT(message([](auto& o) { o.receive_limit_count = 0; }),
                HasSubstr("receive_limit_count"));
    EXPECT_THAT(message([](auto& o) { o.copy_step_bytes = 0; }), HasSubstr("copy_step_bytes"));
    EXPECT_THAT(message([](auto& o) { o.round_trip = std::chrono::nanoseconds{-1}; }),
                HasSubstr("round_trip"));
    EXPECT_EQ(message([](auto& o) { o.round_trip = {}; }), "") << "it is measured";
    EXPECT_THAT(message([](auto& o) { o.sender.advert_limit_count = 65'536; }),
                HasSubstr("advert_limit_count"));
    EXPECT_EQ(message([](auto& o) { o.sender.advert_limit_count = 65'535; }), "");
    EXPECT_THAT(message([](auto& o) { o.receiver.ring_bytes = 0; }), HasSubstr("ring_bytes"));
    EXPECT_EQ(message([](auto& o) { o.sender.ring_bytes = 0; }), "") << "the peer decides";
    EXPECT_THAT(message([](auto& o) { o.sender.patience_threshold_bytes = 0; }),
                HasSubstr("patience_threshold_bytes"));
}

TEST_P(Closing, TheListenerMayBeDestroyedWhileAPeerWaitsForItsAnswer) {
    listen();
    refuse = true;
    at_refused = [&] { listener.reset(); };
    connect();
    ASSERT_TRUE(bed.run_until([&] { return client.closed.has_value(); }));
    EXPECT_FALSE(client.connected);
    EXPECT_EQ(listener, nullptr);
}

INSTANTIATE_TEST_SUITE_P(Beds, Closing, all_stages(), stage_name);

} // namespace
} // namespace netio::stream::test::closing_test
