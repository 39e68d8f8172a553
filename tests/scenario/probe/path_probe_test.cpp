// SPDX-License-Identifier: Apache-2.0

// Measuring the path to another machine, as the doctor command does.

#include "apps/doctor/doctor.hpp"
#include "netio/messages/listen_socket.hpp"
#include "tests/scenario/pubsub/intruder.hpp"
#include "tests/support/test_bed.hpp"

#include <gmock/gmock.h>

#include <algorithm>

namespace apps::path_probe_test {
namespace {

using namespace std::chrono_literals;
using netio::test::all_beds;
using netio::test::Bed;
using netio::test::bed_name;
using netio::test::simulated_beds;
using netio::test::TestBed;
using testing::ElementsAre;
using testing::Gt;
using testing::HasSubstr;
using testing::SizeIs;

class Probe : public testing::TestWithParam<Bed> {
  protected:
    Probe() {
        server.at_visit = [&](const std::string& what) { visits.push_back(what); };
    }
    netio::Address address() const { return server.endpoints().front().address; }

    TestBed bed{GetParam()};
    ProbeServer server{bed.transport(), {.address = bed.address(), .allow_remote_anonymous = true}};
    std::vector<std::string> visits;
};

TEST_P(Probe, MeasuresAPath) {
    bool ended = false;
    PathProbe probe{bed.transport(),
                    address(),
                    {.round_trip_count = 20, .transfer_bytes = 5'000'000, .limit = 1h},
                    [&] { ended = true; }};
    ASSERT_TRUE(bed.run_until([&] { return ended && visits.size() == 2; }));
    ASSERT_TRUE(probe.measurement()) << probe.failure();
    EXPECT_EQ(probe.measurement()->largest_bytes, (1U << 20U) - netio::frame_header_bytes);
    EXPECT_THAT(probe.measurement()->round_trips, SizeIs(20));
    EXPECT_TRUE(std::ranges::is_sorted(probe.measurement()->round_trips));
    EXPECT_THAT(probe.measurement()->gbit_per_s, Gt(0));
    EXPECT_THAT(to_lines(*probe.measurement())[0], HasSubstr(probe.measurement()->provider));
    EXPECT_THAT(to_lines(*probe.measurement())[1], HasSubstr("20 times"));
    EXPECT_THAT(to_lines(*probe.measurement())[3], HasSubstr("1048568 B came back complete"));
    EXPECT_THAT(visits[0], HasSubstr("is connected"));
    EXPECT_THAT(visits[1], HasSubstr("has disconnected: closed in order"));
}

TEST_P(Probe, EndsByTimeWhereAPathIsSlow) {
    bool ended = false;
    PathProbe probe{
        bed.transport(),
        address(),
        {.round_trip_count = 1'000'000'000, .transfer_bytes = std::size_t{1} << 60U, .limit = 0s},
        [&] { ended = true; }};
    ASSERT_TRUE(bed.run_until([&] { return ended; }));
    ASSERT_TRUE(probe.measurement()) << probe.failure();
    EXPECT_THAT(probe.measurement()->round_trips, SizeIs(1));
    EXPECT_EQ(probe.measurement()->gbit_per_s, 0);
}

TEST_P(Probe, SaysWhyThereIsNoMeasurement) {
    struct Nothing final : netio::ListenSocket::Handler {
        void on_connected(netio::ReceiveSocket&) override {}
        void on_message(netio::ReceiveSocket&, std::span<const std::byte>,
                        std::optional<std::uint64_t>) override {}
        void on_closed(netio::ReceiveSocket&, const netio::Closed&) override {}
    } nothing;
    const netio::ListenSocket other{
        bed.transport(), {.listen = {bed.address()}, .allow_remote_anonymous = true}, nothing};
    bool ended = false;
    PathProbe probe{bed.transport(), other.endpoints().front().address, {}, [&] { ended = true; }};
    ASSERT_TRUE(bed.run_until([&] { return ended; }));
    EXPECT_FALSE(probe.measurement());
    EXPECT_THAT(probe.failure(), HasSubstr("service"));
}

// They hold a slot and send no request.
TEST_P(Probe, IdlePeersLoseTheirSlotAndOneHostDoesNotUseAllSlots) {
    ProbeServer small{bed.transport(),
                      {.address = bed.address(),
                       .allow_remote_anonymous = true,
                       .peer_limit_count = 4,
                       .idle_limit = std::chrono::milliseconds{50}}};
    std::vector<std::string> left;
    small.at_visit = [&](const std::string& what) { left.push_back(what); };
    const netio::Address there = small.endpoints().front().address;
    using netio::pubsub::test::Impostor;
    std::vector<std::unique_ptr<Impostor>> silent;
    for (int i = 0; i < 3; ++i)
        silent.push_back(
            std::make_unique<Impostor>(bed.transport(), there, netio::Service::path_test, 0));
    ASSERT_TRUE(bed.run_until([&] { return silent[2]->closed; })) << "two slots for one host";
    ASSERT_TRUE(bed.run_until([&] { return silent[0]->closed && silent[1]->closed; }));
    const auto given_up = [&] {
        return std::ranges::count_if(left, [](const std::string& each) {
            return each.find("no request") != std::string::npos;
        });
    };
    ASSERT_TRUE(bed.run_until([&] { return given_up() >= 2; }))
        << "closed by the server, and not because they were silent for long";
    bool ended = false;
    PathProbe probe{bed.transport(), there, {.round_trip_count = 1, .transfer_bytes = 1}, [&] {
                        ended = true;
                    }};
    ASSERT_TRUE(bed.run_until([&] { return ended; }));
    EXPECT_TRUE(probe.measurement()) << probe.failure();
}

INSTANTIATE_TEST_SUITE_P(Beds, Probe, all_beds(), bed_name);

using ProbeAcceptFailed = Probe;

TEST_P(ProbeAcceptFailed, IsReportedOnBothSides) {
    bed.sim()->refuse_endpoints(true);
    bool ended = false;
    PathProbe probe{bed.transport(), address(), {}, [&] { ended = true; }};
    ASSERT_TRUE(bed.run_until([&] { return ended; }));
    EXPECT_THAT(probe.failure(), HasSubstr(to_string(netio::RejectCode::no_resources)));
    EXPECT_THAT(bed.seen().accept_failed, ElementsAre(HasSubstr("cannot open an endpoint")));
}

using ProbeByName = Probe;

TEST_P(ProbeByName, TriesEveryAddressOfTheName) {
    bed.sim()->name("peer.example", {"10.9.9.9", address().host});
    bool ended = false;
    PathProbe probe{bed.transport(),
                    {.host = "peer.example", .port = address().port},
                    {.round_trip_count = 1, .transfer_bytes = 1},
                    [&] { ended = true; }};
    EXPECT_FALSE(ended);
    ASSERT_TRUE(bed.run_until([&] { return ended; }));
    EXPECT_TRUE(probe.measurement()) << probe.failure();
}

TEST_P(ProbeByName, ReportsAnUnresolvedName) {
    bed.sim()->name("peer.example", {});
    bool ended = false;
    const PathProbe probe{
        bed.transport(), {.host = "peer.example", .port = 1}, {}, [&] { ended = true; }};
    ASSERT_TRUE(bed.run_until([&] { return ended; }));
    EXPECT_FALSE(probe.measurement());
    EXPECT_THAT(probe.failure(), HasSubstr("peer.example"));
}

INSTANTIATE_TEST_SUITE_P(Beds, ProbeAcceptFailed, simulated_beds(), bed_name);
INSTANTIATE_TEST_SUITE_P(Beds, ProbeByName, simulated_beds(), bed_name);

} // namespace
} // namespace apps::path_probe_test
