// SPDX-License-Identifier: Apache-2.0

// Byte transfer: directly, through the ring, in both directions, in every mode and policy.

#include "netio/memory/registration_cache.hpp"
#include "tests/scenario/stream/flow.hpp"
#include "tests/scenario/stream/pair.hpp"

namespace netio::stream::test::transfer_test {
namespace {

class Transfer : public PairOnBed {};

TEST_P(Transfer, AReceiveThatWaitsIsWrittenTo) {
    establish();
    ASSERT_EQ(server.receive(100'000, Fill::all), Status::ok);
    ASSERT_TRUE(bed.run_until([&] { return server.socket->counters().controls > 0; }));
    // The advert is in transit; whatever arrives first, nothing may be lost.
    ASSERT_TRUE(
        bed.run_until([&] { return client.socket->counters().sent.adverts_received == 1; }));

    ASSERT_EQ(client.send(100'000), Status::ok);
    ASSERT_TRUE(
        bed.run_until([&] { return server.received == 100'000 && client.sends_done == 1; }));

    EXPECT_EQ(client.socket->counters().sent.direct_bytes, 100'000U);
    EXPECT_EQ(client.socket->counters().sent.indirect_bytes, 0U);
    EXPECT_EQ(server.socket->counters().received.direct_bytes, 100'000U);
}

TEST_P(Transfer, BytesWithoutAReceiveGoThroughTheRing) {
    establish();
    ASSERT_EQ(client.send(50'000), Status::ok);
    ASSERT_TRUE(bed.run_until([&] { return client.sends_done == 1; }));
    EXPECT_EQ(client.socket->counters().sent.indirect_bytes, 50'000U);

    ASSERT_EQ(server.receive(20'000, Fill::all), Status::ok);
    ASSERT_EQ(server.receive(40'000, Fill::some), Status::ok);
    ASSERT_TRUE(bed.run_until([&] { return server.received == 50'000; }));
    EXPECT_EQ(server.receives_completed, 2U);
}

TEST_P(Transfer, ABurstThatFitsTheRingDoesNotBlockItsSender) {
    establish();
    ASSERT_EQ(client.send(1 << 20), Status::ok); // the whole ring, and there is no receive
    ASSERT_TRUE(bed.run_until([&] { return client.sends_done == 1; }));
    EXPECT_EQ(client.socket->counters().sent.indirect_bytes, std::uint64_t{1} << 20);
}

TEST_P(Transfer, SendsAtOnceEveryTransferThatIsPermitted) {
    StreamSocket::Options options;
    options.sender.ring_transfer_limit_bytes = 40'000;
    establish(options, options);
    ASSERT_EQ(client.send(120'000), Status::ok);
    const auto transfers = [&] { return client.socket->counters().sent.indirect_transfers; };
    ASSERT_TRUE(bed.run_until([&] { return transfers() > 0; }));
    EXPECT_GE(transfers(), 2U) << "and not one for each that is done"; // frames hold less
    ASSERT_EQ(server.receive(120'000, Fill::all), Status::ok);
    ASSERT_TRUE(bed.run_until([&] { return server.received == 120'000; }));
}

TEST_P(Transfer, AReceiveAllWaitsForTheLastByteAndAReceiveSomeForTheFirst) {
    establish();
    ASSERT_EQ(server.receive(1'000, Fill::all), Status::ok);
    ASSERT_EQ(client.send(400), Status::ok);
    ASSERT_TRUE(bed.run_until([&] {
        return server.socket->counters().received.indirect_bytes == 400 ||
               server.socket->counters().received.direct_bytes == 400;
    }));
    EXPECT_EQ(server.receives_completed, 0U);
    ASSERT_EQ(client.send(600), Status::ok);
    ASSERT_TRUE(bed.run_until([&] { return server.receives_completed == 1; }));
    EXPECT_EQ(server.received, 1'000U);

    ASSERT_EQ(server.receive(1'000, Fill::some), Status::ok);
    ASSERT_EQ(client.send(7), Status::ok);
    ASSERT_TRUE(bed.run_until([&] { return server.receives_completed == 2; }));
    EXPECT_EQ(server.last->bytes, 7U);
}

TEST_P(Transfer, SendsAndReceivesOfNoBytesCompleteInTheirTurn) {
    establish();
    ASSERT_EQ(server.receive(10, Fill::all), Status::ok);
    ASSERT_EQ(server.receive(0, Fill::some), Status::ok);
    ASSERT_EQ(server.receive(10, Fill::all), Status::ok);
    for (const std::size_t bytes : {0U, 10U, 0U, 10U})
        ASSERT_EQ(client.send(bytes), Status::ok);
    ASSERT_TRUE(bed.run_until([&] { return server.received == 20 && client.sends_done == 4; }));
    EXPECT_EQ(server.receives_completed, 3U);
}

TEST_P(Transfer, MemoryOfTheUsersOwnIsRegisteredOnce) {
    netio::RegistrationCache cache;
    establish();
    std::vector<std::byte> from(50'000);
    std::vector<std::byte> to(50'000);
    int sent = 0;
    client.at_raw_sent = [&] { ++sent; };
    for (int round = 0; round < 3; ++round) {
        for (std::size_t i = 0; i < from.size(); ++i)
            from[i] = content(static_cast<std::uint64_t>(round), i);
        const auto borrowed_from = cache.borrow(from, netio::Access::send);
        const auto borrowed_to = cache.borrow(to, netio::Access::remote_write);
        bool arrived = false;
        server.at_raw = [&](const Received& got) {
            EXPECT_EQ(got.bytes, to.size());
            arrived = true;
        };
        ASSERT_EQ(server.socket->receive(borrowed_to.slice(), Cookie{0}, Fill::all), Status::ok);
        ASSERT_EQ(client.socket->send(borrowed_from.slice(), Cookie{0}), Status::ok);
        ASSERT_TRUE(bed.run_until([&] { return arrived && sent == round + 1; }));
        EXPECT_EQ(from, to);
        std::ranges::fill(to, std::byte{0});
    }
    EXPECT_EQ(cache.counters().misses, 2U);
    EXPECT_EQ(cache.counters().hits, 4U);
    client.socket.reset();
    server.socket.reset();
}

TEST_P(Transfer, QueuesAreBoundedAndSaySo) {
    StreamSocket::Options options;
    options.send_limit_count = 2;
    options.receive_limit_count = 3;
    establish(options, options);
    EXPECT_EQ(client.send(10), Status::ok);
    EXPECT_EQ(client.send(10), Status::ok);
    EXPECT_EQ(client.send(10), Status::again);
    for (int i = 0; i < 3; ++i)
        EXPECT_EQ(server.receive(5, Fill::all), Status::ok);
    EXPECT_EQ(server.receive(5, Fill::all), Status::again);
    ASSERT_TRUE(bed.run_until([&] { return client.writable == 1; }));
    EXPECT_EQ(client.send(10), Status::ok);
    ASSERT_TRUE(bed.run_until([&] { return server.received == 15; }));
}

// --- both directions, every mode ----------------------------------------------------------------

class EveryVariant : public testing::TestWithParam<std::tuple<Stage, std::size_t>>, protected Pair {
  protected:
    EveryVariant()
        : Pair{std::get<0>(std::get<0>(GetParam())), std::get<1>(std::get<0>(GetParam()))} {}
};

TEST_P(EveryVariant, DeliversEveryByteOnceAndInOrderBothWays) {
    const Variant variant = variants()[std::get<1>(GetParam())];
    establish(variant.options, variant.options);
    const std::uint64_t seed = netio::test::TestBed::default_seed();
    Flow there{bed.loop(), client, server, variant.total_bytes, 2 * seed};
    Flow back{bed.loop(), server, client, variant.total_bytes, 2 * seed + 1};
    client.at_sent = server.at_sent = [&] {
        there.drive();
        back.drive();
    };
    client.at_received = server.at_received = [&](const auto&) { client.at_sent(); };
    ASSERT_TRUE(bed.run_until([&] {
        there.drive();
        back.drive();
        return there.is_done() && back.is_done() && client.closed && server.closed;
    }));
    EXPECT_EQ(client.closed->reason, CloseReason::orderly) << client.closed->detail;
    EXPECT_EQ(server.closed->reason, CloseReason::orderly) << server.closed->detail;
    EXPECT_EQ(client.sends_done, client.sends);
    const StreamSocket::Counters counters = client.socket->counters();
    EXPECT_EQ(counters.sent.direct_bytes + counters.sent.indirect_bytes, variant.total_bytes);
}

INSTANTIATE_TEST_SUITE_P(Beds, Transfer, all_stages(), stage_name);
INSTANTIATE_TEST_SUITE_P(Beds, EveryVariant,
                         testing::Combine(all_stages(),
                                          testing::Range(std::size_t{0}, variants().size())),
                         [](const auto& test) {
                             return name_of(std::get<0>(test.param)) + "_" +
                                    variants()[std::get<1>(test.param)].name;
                         });

} // namespace
} // namespace netio::stream::test::transfer_test
