// SPDX-License-Identifier: Apache-2.0

// Two sides with different options.

#include "tests/scenario/stream/flow.hpp"
#include "tests/scenario/stream/pair.hpp"

namespace netio::stream::test::mixed_test {
namespace {

std::vector<Variant> sides() {
    std::vector<Variant> all;
    all.push_back({"improved", {}});
    all.push_back({"published", published_stream(20'000)});
    // Waits long for adverts, and gets no reports from its peer.
    StreamSocket::Options patient{.receiver = improved_receiver(20'000)};
    patient.sender.patience_threshold_bytes = 1;
    patient.receiver.report_no_advert = false;
    all.push_back({"patient", patient});
    StreamSocket::Options direct;
    direct.sender.mode = TransferMode::direct_only;
    all.push_back({"sends_direct_only", direct});
    StreamSocket::Options without_ring = direct;
    without_ring.receiver.mode = TransferMode::direct_only;
    without_ring.receiver.ring_bytes = 0;
    without_ring.receiver.ack_threshold_bytes = without_ring.receiver.advert_threshold_bytes = 0;
    all.push_back({"without_ring", without_ring});
    StreamSocket::Options few;
    few.sender.advert_limit_count = 1;
    all.push_back({"takes_one_advert", few});
    StreamSocket::Options silent{.receiver = improved_receiver(30'000)};
    silent.receiver.mode = TransferMode::indirect_only;
    all.push_back({"advertises_nothing", silent});
    StreamSocket::Options growing{.receiver = improved_receiver(1'000, 50'000)};
    growing.round_trip = std::chrono::hours{1};
    all.push_back({"growing_ring", growing});
    return all;
}

bool fit(const StreamSocket::Options& one, const StreamSocket::Options& other) {
    return one.sender.mode != TransferMode::direct_only ||
           other.receiver.mode != TransferMode::indirect_only;
}

class Mixed : public testing::TestWithParam<std::tuple<Stage, std::size_t>>, protected Pair {
  protected:
    Mixed() : Pair{std::get<0>(std::get<0>(GetParam())), std::get<1>(std::get<0>(GetParam()))} {}
};

TEST_P(Mixed, WithEveryOtherEveryByteArrivesOnceAndInOrder) {
    const Variant here = sides()[std::get<1>(GetParam())];
    for (const Variant& there : sides()) {
        if (!fit(here.options, there.options) || !fit(there.options, here.options)) continue;
        SCOPED_TRACE(there.name);
        client.forget();
        server.forget();
        establish(here.options, there.options);
        const std::uint64_t total = 100'000;
        const std::uint64_t seed = netio::test::TestBed::default_seed();
        Flow to{bed.loop(), client, server, total, 2 * seed};
        Flow back{bed.loop(), server, client, total, 2 * seed + 1};
        client.at_sent = server.at_sent = [&] {
            to.drive();
            back.drive();
        };
        client.at_received = server.at_received = [&](const auto&) { client.at_sent(); };
        ASSERT_TRUE(bed.run_until([&] {
            to.drive();
            back.drive();
            return to.is_done() && back.is_done() && client.closed && server.closed;
        }));
        EXPECT_EQ(client.closed->reason, CloseReason::orderly) << client.closed->detail;
        EXPECT_EQ(server.closed->reason, CloseReason::orderly) << server.closed->detail;
        client.at_sent = server.at_sent = nullptr;
        client.at_received = server.at_received = nullptr;
    }
}

INSTANTIATE_TEST_SUITE_P(Beds, Mixed,
                         testing::Combine(simulated_stages(),
                                          testing::Range(std::size_t{0}, sides().size())),
                         [](const auto& test) {
                             return name_of(std::get<0>(test.param)) + "_" +
                                    sides()[std::get<1>(test.param)].name;
                         });

} // namespace
} // namespace netio::stream::test::mixed_test
