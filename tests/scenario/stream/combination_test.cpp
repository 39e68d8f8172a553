// SPDX-License-Identifier: Apache-2.0

// Events at the same time: fallback to another provider, ring growth, shutdown of one direction,
// close, abort, and destruction.

#include "tests/scenario/stream/pair.hpp"
#include "tests/scenario/stream/two_ways.hpp"

namespace netio::stream::test::combination_test {
namespace {

// --- while an attempt falls back to the second provider ----------------------------------------

class FallingBack : public PairOnBed {
  protected:
    static StreamSocket::Options impossible() { // there is no memory for this ring
        return {.receiver = improved_receiver(std::uint64_t{1} << 46)};
    }
    // The first attempt fails at the server, when the client already considers itself connected.
    void begin() {
        if (!listener) listen(impossible());
        server_options = impossible();
        server.at_closed = [this] { server_options = {}; };
        client.socket = std::make_unique<StreamSocket>(two_ways, carried(), client);
        client.socket->connect(listener->endpoints().front().address);
    }
    void start_again() {
        client.socket.reset();
        server.socket.reset();
        client.forget();
        server.forget();
        two_ways.attempts = 0;
        begin();
    }

    TwoWays two_ways{bed.transport()};
};

TEST_P(FallingBack, TheSecondConnectionEndsInOrderWithEveryByteThere) {
    begin();
    ASSERT_TRUE(bed.run_until([&] { return client.connected && server.connected; }));
    ASSERT_EQ(two_ways.attempts, 2U);
    server.at_closed = nullptr;
    server.closed.reset(); // of the first connection
    for (int i = 0; i < 5; ++i) {
        ASSERT_EQ(client.send(20'000), Status::ok);
        ASSERT_EQ(server.send(20'000), Status::ok);
    }
    for (Side* const side : {&client, &server}) {
        side->at_received = [side](const Received& got) {
            if (!got.end_of_stream) static_cast<void>(side->receive(7'000, Fill::some));
        };
        ASSERT_EQ(side->receive(7'000, Fill::some), Status::ok);
        side->socket->shutdown_send();
    }
    ASSERT_TRUE(bed.run_until([&] { return client.closed && server.closed; }));
    EXPECT_EQ(client.received, 100'000U);
    EXPECT_EQ(server.received, 100'000U);
    EXPECT_EQ(client.closed->reason, CloseReason::orderly) << client.closed->detail;
    EXPECT_EQ(server.closed->reason, CloseReason::orderly) << server.closed->detail;
}

TEST_P(FallingBack, WhatWasShutDownBeforeEndsAtOnceOnTheSecond) {
    begin();
    client.socket->shutdown_send();
    ASSERT_TRUE(bed.run_until([&] { return client.connected && server.ended; }));
    EXPECT_EQ(two_ways.attempts, 2U);
    EXPECT_EQ(client.send(1), Status::closed);
    ASSERT_EQ(server.send(1'000), Status::ok);
    ASSERT_EQ(client.receive(1'000, Fill::all), Status::ok);
    ASSERT_TRUE(bed.run_until([&] { return client.received == 1'000; }));
    server.at_closed = nullptr;
    server.closed.reset();
    server.socket->shutdown_send();
    ASSERT_TRUE(bed.run_until([&] { return client.closed && server.closed; }));
    EXPECT_EQ(client.closed->reason, CloseReason::orderly) << client.closed->detail;
}

// After each number of turns until it is connected, whatever has happened by then.
TEST_P(FallingBack, ItMayBeClosedAbortedAndDestroyedInEveryTurn) {
    enum class How { close, abort, destroy };
    for (const How how : {How::close, How::abort, How::destroy}) {
        bool was_connected = false;
        for (int turns = 0; !was_connected && turns < 200; ++turns) {
            start_again();
            for (int i = 0; i < turns && !client.connected; ++i)
                bed.loop().run_once();
            was_connected = client.connected;
            if (how == How::destroy) {
                client.socket.reset();
            } else {
                const std::size_t attempts = two_ways.attempts;
                how == How::close ? client.socket->close() : client.socket->abort();
                ASSERT_TRUE(bed.run_until([&] { return client.closed.has_value(); })) << turns;
                if (!was_connected) {
                    EXPECT_EQ(client.closed->reason, CloseReason::local) << turns;
                }
                EXPECT_EQ(two_ways.attempts, attempts) << "no other provider is tried then";
            }
            for (int i = 0; i < 20; ++i)
                bed.loop().run_once();
            EXPECT_LE(two_ways.attempts, 2U);
        }
    }
}

TEST_P(FallingBack, ItMayBeDestroyedInTheHandlersOfTheSecondAttempt) {
    begin();
    client.at_connected = [&] { client.socket.reset(); };
    ASSERT_TRUE(bed.run_until([&] { return client.connected; }));
    client.at_connected = nullptr;

    start_again();
    server.at_closed = nullptr; // it stays impossible
    client.at_closed = [&] { client.socket.reset(); };
    ASSERT_TRUE(bed.run_until([&] { return client.closed.has_value(); }));
    EXPECT_EQ(two_ways.attempts, 2U);
}

TEST_P(FallingBack, TheServersHandlersMayDestroyTheClientBetweenTheAttempts) {
    begin();
    server.at_closed = [&] {
        server_options = {};
        client.socket.reset();
    };
    ASSERT_TRUE(bed.run_until([&] { return server.closed.has_value(); }));
    for (int i = 0; i < 20; ++i)
        bed.loop().run_once();
    EXPECT_FALSE(client.connected);
}

INSTANTIATE_TEST_SUITE_P(Beds, FallingBack, all_stages(), stage_name);

// --- ends that meet ------------------------------------------------------------------------------

class EndsMeet : public PairOnBed {};

TEST_P(EndsMeet, AnAbortOfThePeerEndsEachStateOnceAndNotInOrder) {
    using Act = void (StreamSocket::*)();
    const std::vector<std::vector<Act>> ways{
        {&StreamSocket::shutdown_send},
        {&StreamSocket::close},
        {&StreamSocket::shutdown_send, &StreamSocket::close},
        {&StreamSocket::shutdown_send, &StreamSocket::shutdown_send, &StreamSocket::close},
        {&StreamSocket::close, &StreamSocket::shutdown_send, &StreamSocket::close},
    };
    for (const auto& way : ways) {
        for (int turns = 0; turns < 12; ++turns) {
            client.forget();
            server.forget();
            client.socket.reset();
            server.socket.reset();
            if (!listener) listen();
            connect();
            ASSERT_TRUE(bed.run_until([&] { return client.connected && server.connected; }));
            for (int i = 0; i < 10; ++i)
                ASSERT_EQ(client.send(40'000), Status::ok);
            ASSERT_EQ(client.receive(1'000, Fill::all), Status::ok);
            ASSERT_EQ(server.receive(50'000, Fill::all), Status::ok);
            for (const Act act : way)
                (client.socket.get()->*act)();
            for (int i = 0; i < turns; ++i)
                bed.loop().run_once();
            server.socket->abort();
            ASSERT_TRUE(bed.run_until([&] { return client.closed && server.closed; }));
            EXPECT_NE(client.closed->reason, CloseReason::orderly) << client.closed->detail;
            EXPECT_EQ(server.closed->reason, CloseReason::local);
        }
    }
}

TEST_P(EndsMeet, APeersCloseWithQueuedSendsIsNotOrderly) {
    establish();
    // More than the ring holds; all sends may use the same memory, because the bytes are not
    // checked.
    for (int i = 0; i < 20; ++i)
        ASSERT_EQ(client.socket->send(client.outgoing.slice(0, 100'000), Cookie{client.sends++}),
                  Status::ok);
    ASSERT_TRUE(bed.run_until([&] { return client.socket->counters().sent.waits_for_ring > 0; }));
    server.socket->close();
    ASSERT_TRUE(bed.run_until([&] { return client.closed && server.closed; }));
    EXPECT_EQ(client.closed->reason, CloseReason::unconfirmed) << client.closed->detail;
    EXPECT_LT(client.sends_done, client.sends);
}

TEST_P(EndsMeet, AnAbortAfterCloseIsImmediate) {
    establish();
    for (int i = 0; i < 10; ++i)
        ASSERT_EQ(client.send(40'000), Status::ok);
    client.socket->close();
    for (int i = 0; i < 5; ++i)
        bed.loop().run_once();
    ASSERT_FALSE(client.closed) << "there is no receive";
    client.socket->abort();
    ASSERT_TRUE(bed.run_until([&] { return client.closed && server.closed; }));
    EXPECT_EQ(client.closed->reason, CloseReason::local);
    EXPECT_NE(server.closed->reason, CloseReason::orderly);
}

INSTANTIATE_TEST_SUITE_P(Beds, EndsMeet, all_stages(), stage_name);

// --- a ring that grows ---------------------------------------------------------------------------

class Growing : public PairOnBed {
  protected:
    void establish_growing() {
        StreamSocket::Options sending;
        sending.sender.mode = TransferMode::indirect_only;
        StreamSocket::Options receiving{.receiver = improved_receiver(4'000, 50'000)};
        receiving.round_trip = std::chrono::hours{1}; // so that its ring always limits
        establish(sending, receiving);
    }
};

TEST_P(Growing, TheEndMayComeInTheMiddleOfIt) {
    for (std::uint64_t growths = 0; growths < 4; ++growths) {
        client.forget();
        server.forget();
        establish_growing();
        server.at_received = [&](const Received& got) {
            if (!got.end_of_stream) static_cast<void>(server.receive(20'000, Fill::some));
        };
        ASSERT_EQ(server.receive(20'000, Fill::some), Status::ok);
        ASSERT_TRUE(bed.run_until([&] {
            while (client.sends - client.sends_completed < 4)
                EXPECT_EQ(client.send(30'000), Status::ok);
            return server.socket->counters().received.ring_growths >= growths;
        }));
        client.socket->shutdown_send();
        ASSERT_TRUE(
            bed.run_until([&] { return server.ended && client.sends_done == client.sends; }));
        EXPECT_EQ(server.received, client.sent);
        server.socket->shutdown_send();
        ASSERT_TRUE(bed.run_until([&] { return client.closed && server.closed; }));
        EXPECT_EQ(client.closed->reason, CloseReason::orderly) << client.closed->detail;
        EXPECT_EQ(server.closed->reason, CloseReason::orderly) << server.closed->detail;
    }
}

INSTANTIATE_TEST_SUITE_P(Beds, Growing, all_stages(), stage_name);

// --- two streams on one loop
// -----------------------------------------------------------------------

class TwoStreams : public testing::TestWithParam<Stage>, private StreamListener::Handler {
  protected:
    struct Stream {
        Side client{1};
        Side server{2};
    };

    TwoStreams() {
        for (Stream& stream : streams) {
            stream.client.peer_seed = 2;
            stream.server.peer_seed = 1;
            stream.client.socket =
                std::make_unique<StreamSocket>(bed.transport(), options(), stream.client);
            stream.client.socket->connect(listener.endpoints().front().address);
            const bool both =
                bed.run_until([&] { return stream.client.connected && stream.server.connected; });
            EXPECT_TRUE(both);
            ++incoming;
        }
    }

    static StreamSocket::Options options() { return {.remote_writes = std::get<1>(GetParam())}; }

    netio::test::TestBed bed{std::get<0>(GetParam())};
    std::array<Stream, 2> streams;
    std::size_t incoming = 0;
    StreamListener listener{bed.transport(),
                            {.listen = {bed.address()}, .allow_remote_anonymous = true},
                            static_cast<StreamListener::Handler&>(*this)};

  private:
    void on_incoming(IncomingStream& peer) override {
        Side& server = streams.at(incoming).server;
        server.socket = peer.accept(options(), server);
    }
};

TEST_P(TwoStreams, OneFlowsAndEndsWhileTheOtherHasNoReceives) {
    auto& stopped = streams[0];
    auto& flows = streams[1];
    ASSERT_TRUE(bed.run_until([&] {
        while (stopped.client.sends - stopped.client.sends_completed < 8)
            EXPECT_EQ(stopped.client.send(100'000), Status::ok);
        const std::uint64_t queued = stopped.client.socket->queued_bytes();
        return queued > 0 && stopped.client.socket->counters().sent.waits_for_ring > 0;
    })) << "the ring is full";

    flows.server.at_received = [&](const Received& got) {
        if (!got.end_of_stream) static_cast<void>(flows.server.receive(64'000, Fill::some));
    };
    ASSERT_EQ(flows.server.receive(64'000, Fill::some), Status::ok);
    ASSERT_TRUE(bed.run_until([&] {
        while (flows.client.sent < 4'000'000 &&
               flows.client.sends - flows.client.sends_completed < 4) {
            EXPECT_EQ(flows.client.send(50'000), Status::ok);
        }
        return flows.server.received == 4'000'000;
    }));
    flows.client.socket->close();
    ASSERT_TRUE(bed.run_until([&] { return flows.client.closed && flows.server.closed; }));
    EXPECT_EQ(flows.client.closed->reason, CloseReason::orderly) << flows.client.closed->detail;
    EXPECT_FALSE(stopped.client.closed || stopped.server.closed);

    // And the stopped stream has lost nothing.
    stopped.client.socket->shutdown_send();
    stopped.server.at_received = [&](const Received& got) {
        if (!got.end_of_stream) static_cast<void>(stopped.server.receive(64'000, Fill::some));
    };
    ASSERT_EQ(stopped.server.receive(64'000, Fill::some), Status::ok);
    ASSERT_TRUE(bed.run_until([&] { return stopped.server.ended; }));
    EXPECT_EQ(stopped.server.received, stopped.client.sent);
}

INSTANTIATE_TEST_SUITE_P(Beds, TwoStreams, all_stages(), stage_name);

} // namespace
} // namespace netio::stream::test::combination_test
