// SPDX-License-Identifier: Apache-2.0

// Bytes that are sent in frames: when this happens, that no memory is registered for the peer then,
// and what happens to peers that violate the rules of frames.

#include "tests/scenario/stream/flow.hpp"
#include "tests/scenario/stream/impostor.hpp"
#include "tests/scenario/stream/pair.hpp"
#include "tests/scenario/stream/registrations.hpp"
#include "tests/support/key_files.hpp"

#include "netio/session/client_key.hpp"
#include "netio/session/server_keys.hpp"

namespace netio::stream::test::frames_test {
namespace {

using netio::test::Bed;
using testing::HasSubstr;

// --- when frames are used -------------------------------------------------------------------

// The default options, without a choice by the user.
class ByDefault : public testing::TestWithParam<Bed>, protected Pair {
  protected:
    ByDefault() : Pair{GetParam(), RemoteWrites::guarded} {}

    bool is_guarded() const {
        return GetParam() == Bed::sim_verbs || GetParam() == Bed::fabric_verbs;
    }
};

TEST_P(ByDefault, MemoryIsOfferedOnlyIfADeviceChecksWrites) {
    listen();
    Impostor impostor{
        bed.transport(), listener->endpoints().front().address, {.advert_limit_count = 256}};
    ASSERT_TRUE(bed.run_until([&] { return impostor.has_ring(); }));
    impostor.send_ring({.bytes = 1'000});
    ASSERT_TRUE(bed.run_until([&] { return server.connected; }));
    ASSERT_EQ(server.receive(70'000, Fill::all), Status::ok);
    ASSERT_TRUE(bed.run_until([&] { return !impostor.adverts.empty(); }));
    EXPECT_EQ(impostor.ring().key != 0, is_guarded());
    EXPECT_EQ(impostor.adverts[0].key != 0, is_guarded());
    if (!is_guarded()) {
        EXPECT_EQ(impostor.ring().address, 0U);
        EXPECT_EQ(impostor.adverts[0].address, 0U);
    }
    server.at_raw = [](const auto&) {};
    server.socket.reset();
    ASSERT_TRUE(bed.run_until([&] { return impostor.closed.has_value(); }));
}

INSTANTIATE_TEST_SUITE_P(Beds, ByDefault, netio::test::all_beds(), netio::test::bed_name);

// --- registrations --------------------------------------------------------------------------

class Registered : public testing::TestWithParam<Bed>, private StreamListener::Handler {
  protected:
    // Registrations that a peer may write to, while bytes are sent in both directions. `rights`: of
    // the client's key; empty: no keys.
    std::size_t writable_count(RemoteWrites writes, const std::string& rights = {}) {
        netio::test::TestBed bed{GetParam()};
        Registrations counted{bed.transport()};
        options_ = {.remote_writes = writes};
        std::shared_ptr<netio::ServerKeys> keys;
        if (!rights.empty()) {
            files_.permit(7, rights);
            keys = std::make_shared<netio::ServerKeys>(
                bed.loop(), netio::ServerKeys::Options{.file = files_.site()});
            options_.key = std::make_shared<netio::ClientKey>(
                netio::ClientKey::Options{.file = files_.client(7)});
        }
        StreamListener listener{
            counted,
            {.listen = {bed.address()}, .allow_remote_anonymous = true, .keys = keys},
            static_cast<StreamListener::Handler&>(*this)};
        Side client{1};
        client.peer_seed = 2;
        server_ = std::make_unique<Side>(2);
        server_->peer_seed = 1;
        StreamSocket::Options clients = options_;
        // With a key each side decides for itself which peer it trusts.
        if (!rights.empty()) clients.remote_writes = RemoteWrites::guarded;
        client.socket = std::make_unique<StreamSocket>(counted, clients, client);
        client.socket->connect(listener.endpoints().front().address);
        EXPECT_TRUE(bed.run_until([&] { return client.connected && server_->connected; }));
        Flow there{bed.loop(), client, *server_, 500'000, 1};
        Flow back{bed.loop(), *server_, client, 500'000, 2};
        EXPECT_TRUE(bed.run_until([&] {
            there.drive();
            back.drive();
            return there.is_done() && back.is_done() && client.closed && server_->closed;
        }));
        client.socket.reset();
        server_.reset();
        return counted.writable_count();
    }

  private:
    void on_incoming(IncomingStream& incoming) override {
        server_->socket = incoming.accept(options_, *server_);
    }
    netio::test::KeyFiles files_;
    StreamSocket::Options options_;
    std::unique_ptr<Side> server_;
};

TEST_P(Registered, NoMemoryIsWritableForAPeerUnlessTrusted) {
    EXPECT_EQ(writable_count(RemoteWrites::guarded), 0U);
    EXPECT_EQ(writable_count(RemoteWrites::never), 0U);
    EXPECT_GT(writable_count(RemoteWrites::trusted), 0U) << "otherwise the count shows nothing";
}

TEST_P(Registered, MemoryIsWritableForAPeerWithTheRight) {
    EXPECT_EQ(writable_count(RemoteWrites::guarded, "services=stream"), 0U);
    EXPECT_GT(writable_count(RemoteWrites::guarded, "services=stream rma"), 0U);
    EXPECT_EQ(writable_count(RemoteWrites::never, "services=stream rma"), 0U);
}

TEST_P(Registered, NoMemoryIsWritableForAPeerWithoutTheRight) {
    EXPECT_EQ(writable_count(RemoteWrites::trusted, "services=stream"), 0U);
    EXPECT_GT(writable_count(RemoteWrites::trusted, "services=stream rma"), 0U);
}

INSTANTIATE_TEST_SUITE_P(OverKernelSockets, Registered,
                         testing::Values(Bed::sim_tcp, Bed::fabric_tcp), netio::test::bed_name);

// --- the rules of frames --------------------------------------------------------------------

class InFrames : public testing::TestWithParam<Bed>, protected Pair {
  protected:
    InFrames() : Pair{GetParam(), RemoteWrites::never} {}

    // How the server reports the end of a peer with this behaviour; the peer has a ring of 1,000
    // bytes and one receive of 6,000.
    netio::Closed verdict_on(const std::function<void(Impostor&)>& deed) {
        server.closed.reset();
        server.connected = false;
        server.at_raw = [](const auto&) {};
        server.at_closed = nullptr;
        StreamSocket::Options options{.receiver = improved_receiver(1'000)};
        options.receiver.advert_threshold_bytes = 0;
        listen(options);
        Impostor impostor{
            bed.transport(), listener->endpoints().front().address, {.advert_limit_count = 256}};
        EXPECT_TRUE(bed.run_until([&] { return impostor.has_ring(); }));
        impostor.send_ring({.bytes = 1'000});
        EXPECT_TRUE(bed.run_until([&] { return server.connected; }));
        memory.emplace(6'000, netio::Access::remote_write);
        EXPECT_EQ(server.socket->receive(memory->slice(), Cookie{0}, Fill::some), Status::ok);
        server.receives = server.receives_completed = 0;
        EXPECT_TRUE(bed.run_until([&] { return !impostor.adverts.empty(); }));
        deed(impostor);
        EXPECT_TRUE(bed.run_until([&] { return server.closed && impostor.closed; }));
        return server.closed.value_or(netio::Closed{});
    }

    std::optional<RegisteredBuffer> memory;
};

TEST_P(InFrames, ViolationsEndOnlyThatConnection) {
    constexpr std::uint8_t direct = 0;
    constexpr std::uint8_t ring = 1;
    constexpr std::uint8_t more = 8;
    struct Case {
        const char* says;
        std::function<void(Impostor&)> deed;
    };
    const std::vector<Case> cases{
        {"direct transfer longer than its receive", [](auto& i) { i.send_bytes(direct, 6'001); }},
        {"direct transfer longer than its receive",
         [](auto& i) {
             i.send_bytes(more, 4'000);
             i.send_bytes(more, 2'001);
         }},
        {"direct transfer without an open advert",
         [](auto& i) {
             i.send_bytes(direct, 10);
             i.send_bytes(direct, 10);
         }},
        {"direct transfer without an open advert",
         [](auto& i) {
             i.send_bytes(more, 6'000);
             i.send_bytes(direct, 1);
         }},
        {"indirect transfer overruns the ring", [](auto& i) { i.send_bytes(ring, 1'001); }},
        {"unexpected ring", [](auto& i) { i.send_bytes(ring | 4U, 10); }},
        {"empty transfer", [](auto& i) { i.send_bytes(direct, 0); }},
        {"empty transfer", [](auto& i) { i.send_bytes(ring, 0); }},
        {"impossible flags", [](auto& i) { i.send_bytes(16, 10); }},
        {"impossible flags", [](auto& i) { i.send_bytes(ring | more, 10); }},
        {"impossible flags", [](auto& i) { i.send_bytes(2, 10); }},
        {"data after the end",
         [](auto& i) {
             i.send(ControlMessage{.end_bytes = 0});
             i.send_bytes(direct, 10);
         }},
        {"memory address where bytes come in frames",
         [](auto& i) {
             ControlMessage message{.advert_count = 1};
             message.adverts[0] = {.terms = {Sequence{0}, Phase{0}, 10, false}, .key = 9};
             i.send(message);
         }},
        {"memory address where bytes come in frames",
         [](auto& i) {
             ControlMessage message{.advert_count = 1};
             message.adverts[0] = {.terms = {Sequence{0}, Phase{0}, 10, false}, .address = 9};
             i.send(message);
         }},
    };
    for (const Case& one : cases) {
        const netio::Closed closed = verdict_on(one.deed);
        EXPECT_EQ(closed.reason, CloseReason::protocol_error) << one.says;
        EXPECT_THAT(closed.detail, HasSubstr(one.says));
    }
    // And the listener still serves others.
    server.closed.reset();
    server.connected = false;
    establish();
}

TEST_P(InFrames, BytesBeforeTheRingAndARingSomewhereInMemoryAreRefused) {
    for (const bool named : {false, true}) {
        server.closed.reset();
        listen();
        Impostor impostor{
            bed.transport(), listener->endpoints().front().address, {.advert_limit_count = 256}};
        ASSERT_TRUE(bed.run_until([&] { return impostor.has_ring(); }));
        named ? impostor.send_ring({.key = 1, .bytes = 10}) : impostor.send_bytes(1, 10);
        ASSERT_TRUE(bed.run_until([&] { return server.closed && impostor.closed; }));
        EXPECT_EQ(server.closed->reason, CloseReason::protocol_error);
        EXPECT_THAT(server.closed->detail, HasSubstr(named ? "memory address" : "out of turn"));
    }
}

TEST_P(InFrames, APlainReceiveGetsWhatOneTransferBroughtInManyFrames) {
    StreamSocket::Options options;
    options.frame_bytes = 10'000;
    establish({}, options);
    ASSERT_EQ(server.receive(300'000, Fill::some), Status::ok);
    ASSERT_TRUE(
        bed.run_until([&] { return client.socket->counters().sent.adverts_received == 1; }));
    ASSERT_EQ(client.send(250'000), Status::ok);
    ASSERT_TRUE(bed.run_until([&] { return server.receives_completed == 1; }));
    EXPECT_EQ(server.last->bytes, 250'000U);
    EXPECT_EQ(server.socket->counters().received.direct_transfers, 1U);
    EXPECT_EQ(client.socket->counters().sent.direct_transfers, 1U);
    ASSERT_TRUE(bed.run_until([&] { return client.sends_done == 1; }));
}

TEST_P(InFrames, OnlyOneDirectionMayOfferMemory) {
    listen({}); // and the server offers no memory
    client.socket = std::make_unique<StreamSocket>(
        bed.transport(), StreamSocket::Options{.remote_writes = RemoteWrites::trusted}, client);
    client.socket->connect(listener->endpoints().front().address);
    ASSERT_TRUE(bed.run_until([&] { return client.connected && server.connected; }));
    Flow there{bed.loop(), client, server, 300'000, 3};
    Flow back{bed.loop(), server, client, 300'000, 4};
    ASSERT_TRUE(bed.run_until([&] {
        there.drive();
        back.drive();
        return there.is_done() && back.is_done() && client.closed && server.closed;
    }));
    EXPECT_EQ(client.closed->reason, CloseReason::orderly) << client.closed->detail;
    EXPECT_EQ(server.closed->reason, CloseReason::orderly) << server.closed->detail;
}

TEST_P(InFrames, AnEndAfterALongTransferFollowsItsLastFrame) {
    StreamSocket::Options few;
    few.frame_bytes = control_limit_bytes;
    few.frame_count = 4;
    establish({}, few);
    ASSERT_EQ(server.receive(200'000, Fill::some), Status::ok);
    ASSERT_TRUE(
        bed.run_until([&] { return client.socket->counters().sent.adverts_received == 1; }));
    ASSERT_EQ(client.send(200'000), Status::ok);
    client.socket->close();
    ASSERT_TRUE(bed.run_until([&] { return client.socket->queued_bytes() < 200'000; }));
    EXPECT_GT(client.socket->queued_bytes(), 0U) << "queued in the transfer channel";
    ASSERT_TRUE(bed.run_until([&] { return server.ended && client.closed; }));
    EXPECT_EQ(server.received, 200'000U);
    EXPECT_EQ(client.closed->reason, CloseReason::orderly) << client.closed->detail;
}

INSTANTIATE_TEST_SUITE_P(Beds, InFrames, netio::test::all_beds(), netio::test::bed_name);

} // namespace
} // namespace netio::stream::test::frames_test
