// SPDX-License-Identifier: Apache-2.0

// Peers that complete the handshake and then violate the protocol: they end only their own
// connection, with a reason.

#include "tests/scenario/stream/impostor.hpp"
#include "tests/scenario/stream/pair.hpp"

#include "netio/session/session_listener.hpp"

namespace netio::stream::test::hostility_test {
namespace {

using testing::HasSubstr;

class Hostility : public testing::TestWithParam<netio::test::Bed>, protected Pair {
  protected:
    Hostility() : Pair{GetParam(), RemoteWrites::trusted} {}

    // How the server reports the end of a peer with this behaviour.
    netio::Closed verdict_on(const std::function<void(Impostor&)>& deed) {
        server.closed.reset();
        server.connected = false;
        listen();
        Impostor impostor{bed.transport(), listener->endpoints().front().address};
        EXPECT_TRUE(bed.run_until([&] { return impostor.has_ring(); }));
        deed(impostor);
        EXPECT_TRUE(bed.run_until([&] { return server.closed && impostor.closed; }));
        return server.closed.value_or(netio::Closed{});
    }
    static Advert advert(std::uint64_t sequence, std::uint32_t phase, std::uint64_t bytes) {
        return {.terms = {Sequence{sequence}, Phase{phase}, bytes, false}, .address = 0, .key = 9};
    }
};

TEST_P(Hostility, EndsThatConnectionWithANamedReason) {
    struct Case {
        const char* says;
        std::function<void(Impostor&)> deed;
    };
    const std::vector<Case> cases{
        {"out of turn", [](Impostor& i) { i.send(ControlMessage{}); }},
        {"broke the stream protocol: unexpected ring", // unsolicited
         [](Impostor& i) {
             i.send_ring();
             i.send_ring({.address = 0, .key = 1, .bytes = 2000});
         }},
        {"malformed ring",
         [](Impostor& i) {
             i.send_ring();
             i.send_ring({.bytes = UINT64_MAX});
         }},
        {"out of turn",
         [](Impostor& i) {
             i.send_ring();
             i.send(77, {});
         }},
        {"malformed ring", [](Impostor& i) { i.send(ring_kind, {}); }},
        {"malformed ring", [](Impostor& i) { i.send_ring({.bytes = UINT64_MAX}); }},
        {"malformed control",
         [](Impostor& i) {
             i.send_ring();
             i.send(control_kind, std::array<std::byte, 5>{});
         }},
        {"broke the stream protocol",
         [](Impostor& i) {
             i.send_ring();
             i.send(ControlMessage{.acknowledged_bytes = 1});
         }},
        {"broke the stream protocol",
         [](Impostor& i) {
             i.send_ring();
             i.send(ControlMessage{.end_bytes = 5});
         }},
        {"broke the stream protocol",
         [](Impostor& i) {
             i.send_ring();
             ControlMessage message{.advert_count = 1};
             message.adverts[0] = advert(0, 8, 10);
             i.send(message);
         }},
        {"announced an impossible write",
         [](Impostor& i) {
             i.send_ring();
             i.lie(0);
         }},
        {"announced an impossible write", [](Impostor& i) { i.lie(1); }},
        {"direct transfer",
         [](Impostor& i) {
             i.send_ring();
             i.lie(encode_immediate({TransferKind::direct, 10}));
         }},
        {"ring",
         [](Impostor& i) {
             i.send_ring();
             i.lie(encode_immediate({TransferKind::indirect, transfer_limit_bytes}));
         }},
        {"broke the stream protocol: unexpected ring", // there is no other one
         [](Impostor& i) {
             i.send_ring();
             i.lie(encode_immediate({TransferKind::indirect, 1, {.first = true}}));
         }},
    };
    for (const Case& one : cases) {
        const netio::Closed closed = verdict_on(one.deed);
        if (closed.detail.empty()) ADD_FAILURE() << one.says;
        EXPECT_EQ(closed.reason, CloseReason::protocol_error);
        EXPECT_THAT(closed.detail, HasSubstr(one.says));
    }
    // And the listener still serves others.
    server.closed.reset();
    establish();
}

// Finishes the handshake of its session with every peer and sends nothing afterwards.
class SilentServer final : private netio::SessionListener::Handler,
                           private netio::Session::Handler {
  public:
    SilentServer(netio::Transport& transport, const netio::Address& address)
        : listener_{transport,
                    {.service = netio::Service::stream,
                     .listen = {address},
                     .allow_remote_anonymous = true,
                     .service_bytes = hello_bytes,
                     .required_receive_bytes = frame_limit_bytes},
                    *this} {}
    netio::Address address() const { return listener_.endpoints().front().address; }

    std::size_t opened = 0;
    std::optional<netio::Closed> closed;

  private:
    void on_incoming(netio::IncomingSession& incoming) override {
        session_ =
            incoming.accept(Impostor::link_hello({.advert_limit_count = 256, .lends_memory = true}),
                            Impostor::session_options(), *this);
    }
    void on_open(netio::Session&) override { ++opened; }
    void on_frame(netio::Session&, const netio::IncomingFrame&) override {}
    void on_sent(netio::Session&, Cookie, Outcome) override {}
    void on_writable(netio::Session&) override {}
    void on_closed(netio::Session&, const netio::Closed& why) override { closed = why; }

    std::unique_ptr<netio::Session> session_;
    netio::SessionListener listener_;
};

StreamSocket::Options in_haste() {
    StreamSocket::Options options;
    options.session.handshake_timeout = std::chrono::milliseconds{60};
    return options;
}

TEST_P(Hostility, AMissingRingAnnouncementTimesOut) {
    listen(in_haste());
    Impostor impostor{bed.transport(), listener->endpoints().front().address};
    ASSERT_TRUE(bed.run_until([&] { return server.closed && impostor.closed; }));
    EXPECT_TRUE(impostor.has_ring()) << "the session's handshake was complete";
    EXPECT_FALSE(server.connected);
    EXPECT_EQ(server.closed->reason, CloseReason::handshake_timeout) << server.closed->detail;
    EXPECT_THAT(server.closed->detail, HasSubstr("not announced its ring within 60 ms"));
}

TEST_P(Hostility, AServersMissingRingAnnouncementTimesOut) {
    SilentServer silent{bed.transport(), bed.address()};
    client.socket = std::make_unique<StreamSocket>(bed.transport(), carried(in_haste()), client);
    client.socket->connect(silent.address());
    ASSERT_TRUE(bed.run_until([&] { return client.closed && silent.closed; }));
    EXPECT_EQ(silent.opened, 1U);
    EXPECT_FALSE(client.connected);
    EXPECT_EQ(client.closed->reason, CloseReason::handshake_timeout) << client.closed->detail;
    EXPECT_THAT(client.closed->detail, HasSubstr("not announced its ring within 60 ms"));
}

TEST_P(Hostility, AfterTheHandshakeSilenceHasNoTimeout) {
    establish(in_haste(), in_haste());
    bool late = false;
    netio::Timer later{bed.loop(), [&] { late = true; }};
    later.start(std::chrono::milliseconds{200});
    ASSERT_TRUE(bed.run_until([&] { return late; }));
    EXPECT_FALSE(client.closed || server.closed);
}

// It repeats that it has received nothing, while a close waits for its progress.
TEST_P(Hostility, RepeatedReportsDoNotExtendTheClose) {
    StreamSocket::Options options;
    options.session.close_timeout = std::chrono::milliseconds{300};
    options.session.close_limit = std::chrono::seconds{3};
    listen(options);
    Impostor impostor{bed.transport(),
                      listener->endpoints().front().address,
                      {.advert_limit_count = 256, .lends_memory = false}};
    ASSERT_TRUE(bed.run_until([&] { return impostor.has_ring(); }));
    impostor.send_ring({.address = 0, .key = 0, .bytes = 1000});
    ASSERT_TRUE(bed.run_until([&] { return server.connected; }));
    ASSERT_EQ(server.send(5'000), Status::ok);
    netio::Timer again{bed.loop(), [&] {
                           if (impostor.closed) return;
                           impostor.send_unless_ended(ControlMessage{.acknowledged_bytes = 0});
                           again.start(std::chrono::milliseconds{100});
                       }};
    again.start({});
    server.socket->close();
    ASSERT_TRUE(bed.run_until([&] { return server.closed.has_value(); }));
    EXPECT_EQ(server.closed->reason, CloseReason::unconfirmed);
    EXPECT_THAT(server.closed->detail, HasSubstr("received nothing more for 300 ms"));
}

TEST_P(Hostility, BytesInAFrameAreRefusedWhereThereIsMemoryForThem) {
    const netio::Closed closed = verdict_on([](Impostor& impostor) {
        impostor.send_ring();
        impostor.send_bytes(1, 10);
    });
    EXPECT_EQ(closed.reason, CloseReason::protocol_error);
    EXPECT_THAT(closed.detail, HasSubstr("out of turn"));
}

TEST_P(Hostility, MoreAdvertsThanAgreedAreRefused) {
    const netio::Closed closed = verdict_on([](Impostor& impostor) {
        impostor.send_ring();
        for (int i = 0; i < 9; ++i) {
            ControlMessage message{.advert_count = adverts_per_message};
            message.adverts.fill(advert(0, 0, 10));
            impostor.send(message);
        }
    });
    EXPECT_EQ(closed.reason, CloseReason::protocol_error);
    EXPECT_THAT(closed.detail, HasSubstr("advert"));
}

TEST_P(Hostility, ConstantWaitingGetsTheLargestRingAndNoMore) {
    StreamSocket::Options options{.receiver = improved_receiver(100, 500)};
    options.round_trip = std::chrono::hours{1};
    listen(options);
    Impostor impostor{bed.transport(), listener->endpoints().front().address};
    ASSERT_TRUE(bed.run_until([&] { return impostor.has_ring(); }));
    impostor.send_ring();
    impostor.send(ControlMessage{}); // the answer to the server's
    ASSERT_TRUE(bed.run_until([&] { return server.connected; }));
    server.at_raw = [&](const auto&) { ++server.receives_completed; };
    std::size_t rings = 1;
    for (std::uint64_t count = 1; count <= 1'500; ++count) {
        ASSERT_EQ(server.receive(1, Fill::all), Status::ok);
        const RingNotice notice{.waited = true, .first = impostor.ring_count > rings};
        rings = impostor.ring_count;
        impostor.lie(encode_immediate({TransferKind::indirect, 1, notice}));
        ASSERT_TRUE(bed.run_until([&] {
            return server.socket->counters().received.indirect_bytes == count || server.closed;
        }));
        ASSERT_FALSE(server.closed) << server.closed->detail;
    }
    EXPECT_EQ(impostor.ring_count, 4U) << "100, 200, 400, 500";
    EXPECT_EQ(server.socket->counters().received.ring_bytes, 500U);
    server.socket->abort();
    ASSERT_TRUE(bed.run_until([&] { return impostor.closed.has_value(); }));
}

INSTANTIATE_TEST_SUITE_P(Beds, Hostility, netio::test::all_beds(), netio::test::bed_name);

} // namespace
} // namespace netio::stream::test::hostility_test
