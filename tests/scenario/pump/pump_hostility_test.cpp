// SPDX-License-Identifier: Apache-2.0

// Clients of a pump server that ask for too much or for nothing, together with an honest client.

#include "apps/pump/end.hpp"
#include "tests/scenario/copy/copy_bed.hpp"
#include "tests/scenario/stream/impostor.hpp"

#include <gmock/gmock.h>

#include <unistd.h>

#include <fstream>
#include <memory>
#include <optional>
#include <vector>

namespace apps::pump::test::pump_hostility_test {
namespace {

using std::chrono::milliseconds;
using RawClient = apps::copy::test::RawPeer;

constexpr std::size_t MiB = std::size_t{1} << 20U;

class PumpHostility : public testing::Test {
  protected:
    explicit PumpHostility(netio::test::Bed where = netio::test::Bed::fabric_tcp) : bed{where} {}

    void serve(Server::Options options = {}) {
        options.listen = {bed.address()};
        options.allow_remote_anonymous = true;
        server = std::make_unique<Server>(bed.loop(), bed.transport(), options,
                                          [this](const End& end) { ends.push_back(end.error()); });
    }
    RawClient& connect() {
        RawClient& client = *clients.emplace_back(std::make_unique<RawClient>());
        client.socket = std::make_unique<netio::stream::StreamSocket>(
            bed.transport(), netio::stream::StreamSocket::Options{}, client);
        client.socket->connect(server->endpoints().front().address);
        EXPECT_TRUE(bed.run_until([&] { return client.connected || client.closed; }));
        return client;
    }
    // Moves some bytes in both directions and checks each.
    std::string pump_honestly() {
        bool over = false;
        End end{bed.loop(),
                bed.transport(),
                server->endpoints().front().address,
                {},
                {.bytes = 5 * MiB,
                 .seed = 1,
                 .size_min = 1,
                 .size_max = 100'000,
                 .verify = true,
                 .bidirectional = true},
                [&](End&) { over = true; }};
        EXPECT_TRUE(bed.run_until([&] { return over; }));
        return end.error();
    }
    // Address space of this process, used or not.
    static std::size_t mapped_bytes() {
        std::size_t pages = 0;
        std::ifstream{"/proc/self/statm"} >> pages;
        return pages * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    }

    netio::test::TestBed bed;
    std::vector<std::string> ends;
    std::unique_ptr<Server> server;
    std::vector<std::unique_ptr<RawClient>> clients;
};

TEST_F(PumpHostility, AHeaderDoesNotDetermineTheAllocatedMemory) {
    serve({.settings = {.memory_limit_bytes = 4 * MiB}});
    connect();
    bed.run_until([&] { return server->client_count() == 1; });
    const std::size_t before = mapped_bytes();
    clients[0]->send(encode(Header{.bytes = UINT64_MAX,
                                   .seed = 1,
                                   .size_min = 1,
                                   .size_max = size_limit_bytes,
                                   .verify = true,
                                   .bidirectional = true}));
    ASSERT_TRUE(bed.run_until([&] { return clients[0]->received.size() > MiB; }));
    EXPECT_LT(mapped_bytes() - before, 512 * MiB) << "48 messages of 1 GiB were asked for";
    EXPECT_EQ(pump_honestly(), "");
}

TEST_F(PumpHostility, ASilentClientLosesItsSlot) {
    serve({.client_limit_count = 2,
           .host_limit_count = 2,
           .settings = {.idle_limit = milliseconds{50}}});
    connect();
    connect().send(encode(Header{.bytes = 10, .seed = 1}));
    EXPECT_EQ(server->client_count(), 2U);
    ASSERT_TRUE(bed.run_until([&] { return clients[0]->closed && clients[1]->closed; }));
    ASSERT_TRUE(bed.run_until([&] { return server->client_count() == 0; }));
    EXPECT_THAT(ends, testing::Each(testing::HasSubstr("no byte was transferred for 50 ms")));
    EXPECT_EQ(pump_honestly(), "");
}

TEST_F(PumpHostility, AClientStoppedInTheHandshakeLosesItsSlot) {
    Settings settings;
    settings.stream.session.handshake_timeout = milliseconds{60};
    serve({.client_limit_count = 1, .host_limit_count = 1, .settings = settings});
    netio::stream::test::Impostor half{bed.transport(), server->endpoints().front().address};
    ASSERT_TRUE(bed.run_until([&] { return half.closed && server->client_count() == 0; }));
    EXPECT_TRUE(half.has_ring()) << "the session's handshake was complete";
    EXPECT_THAT(ends, testing::ElementsAre(testing::HasSubstr("not announced its ring")));
    EXPECT_EQ(pump_honestly(), "");
}

TEST_F(PumpHostility, OneHostDoesNotUseEverySlot) {
    serve({.client_limit_count = 4});
    EXPECT_FALSE(connect().closed || connect().closed);
    EXPECT_TRUE(connect().closed);
    EXPECT_EQ(server->client_count(), 2U);
    clients[0]->socket->abort();
    ASSERT_TRUE(bed.run_until([&] { return server->client_count() == 1; }));
    EXPECT_EQ(pump_honestly(), "") << "its slot is free again";
}

TEST_F(PumpHostility, AnInvalidHeaderEndsOnlyThatClient) {
    serve();
    Header odd{.bytes = 1, .seed = 1};
    odd.size_max = size_limit_bytes + 1;
    std::array<std::byte, header_bytes> other{};
    for (const auto& header : {encode(odd), other}) {
        RawClient& client = connect();
        client.send(header);
        EXPECT_TRUE(bed.run_until([&] { return client.closed; }));
    }
    EXPECT_THAT(ends, testing::Each(testing::HasSubstr("invalid header")));
    EXPECT_EQ(pump_honestly(), "");
}

// RDMA devices need registered memory for sends, and the registration can fail.
class PumpWithoutRegistrations : public PumpHostility {
  protected:
    PumpWithoutRegistrations() : PumpHostility{netio::test::Bed::sim_verbs} {}
};

TEST_F(PumpWithoutRegistrations, EndsOnlyThatClientAndTheServerContinues) {
    serve();
    RawClient& client = connect();
    ASSERT_TRUE(bed.run_until([&] { return server->client_count() == 1; }));
    client.send(encode(Header{.bytes = 1000, .seed = 1}));
    bed.sim()->refuse_registrations(true);
    EXPECT_TRUE(bed.run_until([&] { return client.closed; }));
    EXPECT_THAT(ends, testing::ElementsAre(testing::HasSubstr("regist")));
    bed.sim()->refuse_registrations(false);
    EXPECT_EQ(pump_honestly(), "");
}

// Other clients get their turn between the steps, however much must be filled.
TEST_F(PumpHostility, CheckedDataIsFilledInSteps) {
    serve();
    Source source{*connect().socket,
                  {.bytes = 64 * MiB,
                   .seed = 1,
                   .verify = true,
                   .size_min = MiB,
                   .size_max = MiB,
                   .outstanding = 16}};
    for (int step = 1; step < 16; ++step)
        EXPECT_FALSE(source.drive()) << step;
    EXPECT_TRUE(source.drive()) << "as much as allowed is outstanding";
    clients[0]->socket->abort();
    ASSERT_TRUE(bed.run_until([&] { return clients[0]->closed; }));
}

} // namespace
} // namespace apps::pump::test::pump_hostility_test
