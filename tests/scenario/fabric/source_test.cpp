// SPDX-License-Identifier: Apache-2.0

// What a listener learns about the requesting peer, and what both sides know about the dialled
// address.

#include "tests/support/test_bed.hpp"

#include <gmock/gmock.h>

#include <optional>
#include <vector>

namespace netio::test::source_test {
namespace {

using testing::ElementsAre;
using testing::SizeIs;

// Records the sources of requests and rejects them.
class Porter final : Listener::Handler {
  public:
    Porter(Transport& transport, const Address& local)
        : listener{transport.listen(transport.providers_at(local).front(), local,
                                    {.allow_remote_anonymous = true}, *this)} {}

    std::vector<access::Host> sources;
    std::vector<access::AuthAddress> dialled;
    std::vector<std::vector<std::byte>> data;
    std::unique_ptr<Listener> listener;

  private:
    void on_request(ConnectionRequest& request) override {
        sources.push_back(request.source());
        dialled.push_back(request.dialled());
        data.emplace_back(request.data().begin(), request.data().end());
        request.reject({});
    }
};

class Caller final : Connection::Handler {
  public:
    Caller(Transport& transport, const Route& route)
        : connection{transport.connect_over(route, {}, *this)} {
        connection->open(data);
    }
    static constexpr std::array data{std::byte{7}, std::byte{8}, std::byte{9}};
    bool over = false;
    std::unique_ptr<Connection> connection;

  private:
    void on_connected(std::span<const std::byte>) override {}
    void on_rejected(std::span<const std::byte>) override {}
    void on_completion(const Completion&) override {}
    void on_closed(const Closed&) override { over = true; }
};

class Source : public testing::TestWithParam<Bed> {
  protected:
    Route route_to(const Address& remote) {
        std::optional<FoundRoutes> found;
        const auto search = bed.transport().find_routes(
            remote, {}, [&](FoundRoutes answer) { found = std::move(answer); });
        EXPECT_TRUE(bed.run_until([&] { return found.has_value(); }));
        EXPECT_FALSE(found->routes.empty()) << found->problem;
        return found->routes.front();
    }
    TestBed bed{GetParam()};
};

TEST_P(Source, BothSidesReportTheSameDialledAddress) {
    Porter porter{bed.transport(), bed.address()};
    const Route route = route_to(porter.listener->address());
    EXPECT_NE(route.dialled, access::AuthAddress{});
    EXPECT_EQ(route.dialled.port, porter.listener->address().port);
    const Caller first{bed.transport(), route};
    const Caller second{bed.transport(), route};
    ASSERT_TRUE(bed.run_until([&] { return first.over && second.over; }));
    EXPECT_THAT(porter.dialled, ElementsAre(route.dialled, route.dialled));
    ASSERT_THAT(porter.sources, SizeIs(2));
    EXPECT_NE(porter.sources[0], access::Host{});
    EXPECT_EQ(porter.sources[0], porter.sources[1]) << "both are on one machine";
}

TEST_P(Source, RequestDataArrivesUnchangedAndPaddedWithZeros) {
    Porter porter{bed.transport(), bed.address()};
    const Caller caller{bed.transport(), route_to(porter.listener->address())};
    ASSERT_TRUE(bed.run_until([&] { return caller.over; }));
    ASSERT_THAT(porter.data, SizeIs(1));
    std::vector<std::byte> expected(Caller::data.begin(), Caller::data.end());
    ASSERT_LE(porter.data[0].size(), connection_data_limit);
    expected.resize(porter.data[0].size());
    EXPECT_EQ(porter.data[0], expected);
}

TEST_P(Source, AListenerAtAnyAddressGetsTheDialledOne) {
    Porter porter{bed.transport(), {.host = "0.0.0.0", .port = 0}};
    const Route route =
        route_to({.host = bed.address().host, .port = porter.listener->address().port});
    const Caller caller{bed.transport(), route};
    ASSERT_TRUE(bed.run_until([&] { return caller.over; }));
    EXPECT_THAT(porter.dialled, ElementsAre(route.dialled));
}

INSTANTIATE_TEST_SUITE_P(Beds, Source, all_beds(), bed_name);

TEST(Source, OfAPeerOverTcpIsTheAddressItCallsFrom) {
    TestBed bed{Bed::fabric_tcp};
    Porter porter{bed.transport(), {.host = "127.0.0.1", .port = 0}};
    const Caller caller{
        bed.transport(),
        {.provider = "tcp", .remote = porter.listener->address(), .local_host = "127.0.0.9"}};
    ASSERT_TRUE(bed.run_until([&] { return caller.over; }));
    constexpr std::array host{std::byte{127}, std::byte{}, std::byte{}, std::byte{9}};
    EXPECT_THAT(porter.sources, ElementsAre(access::host_of_ipv4(host)));
}

TEST(Source, OfASimulatedPeerIsItsProcess) {
    SimWorld world;
    EventLoop loop{{}, world};
    SimNetwork network{world.clock(), 1};
    SimTransport server{loop, world, network, {tcp_profile()}, 1};
    SimTransport client{loop, world, network, {tcp_profile()}, 2};
    Porter porter{server, {.host = "somewhere", .port = 0}};
    const Caller caller{client, {.provider = "sim-tcp", .remote = porter.listener->address()}};
    while (!caller.over)
        loop.run_once(world.now() + std::chrono::seconds{1});
    EXPECT_THAT(porter.sources, ElementsAre(SimNetwork::host_of(2)));
}

} // namespace
} // namespace netio::test::source_test
