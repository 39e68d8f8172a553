// SPDX-License-Identifier: Apache-2.0

// The orderly end of a publisher with more than a million fids.

#include "tests/scenario/pubsub/fixture.hpp"

#include <array>
#include <optional>

namespace netio::pubsub::test::million_fids_test {
namespace {

using netio::Status;

// Counts messages and stores none.
struct Counting final : SubscribeSocket::Handler {
    void on_subscribed(SubscribeSocket&, const FidRange&) override { subscribed = true; }
    void on_message(SubscribeSocket&, Fid, std::span<const std::byte>, std::uint8_t) override {}
    void on_totals(SubscribeSocket& socket) override {
        const ArrivalCounter::Difference difference = socket.arrivals().difference().value();
        lost = difference.lost;
        surplus = difference.surplus;
        told = true;
    }
    void on_closed(SubscribeSocket&, const netio::Closed& why, bool) override { closed = why; }
    bool subscribed = false, told = false;
    std::uint64_t lost = 0, surplus = 0;
    std::optional<netio::Closed> closed;
};

using AMillionFids = PubSubScenario;

TEST_P(AMillionFids, EndInOrderForSubscribersOfAllFidsAndOfOne) {
    constexpr std::uint64_t fids = 1200000;
    auto publisher = buffered({});
    Counting all;
    Counting one;
    SubscribeSocket wide{transport(), {.publisher = address}, all};
    SubscribeSocket narrow{transport(), {.publisher = address}, one};
    wide.subscribe(range(0, fids));
    narrow.subscribe(range(fids / 2, fids / 2));
    ASSERT_TRUE(run_until([&] { return all.subscribed && one.subscribed; }));
    const std::array<std::byte, 8> message{};
    for (std::uint64_t fid = 0; fid < fids; ++fid) {
        if (publisher->publish(Fid{fid}, message) == Status::ok) continue;
        ASSERT_TRUE(run_until([&] { return publisher->publish(Fid{fid}, message) == Status::ok; }));
    }
    Counting late;
    SubscribeSocket latecomer{transport(), {.publisher = address}, late};
    latecomer.subscribe(range(0, fids));
    ASSERT_TRUE(run_until([&] { return late.subscribed; }));
    publisher->close();
    ASSERT_TRUE(run_until(
        [&] { return publisher_actor.ended == 1 && all.closed && one.closed && late.closed; }));
    EXPECT_EQ(publisher_actor.end.reason, netio::CloseReason::orderly)
        << publisher_actor.end.detail;
    EXPECT_EQ(wide.arrivals().messages(), fids);
    EXPECT_EQ(narrow.arrivals().messages(), 1U);
    for (const Counting* const each : {&all, &one, &late}) {
        EXPECT_TRUE(each->told);
        EXPECT_EQ(each->lost, 0U);
        EXPECT_EQ(each->surplus, 0U);
        EXPECT_EQ(each->closed->reason, netio::CloseReason::orderly) << each->closed->detail;
    }
}

INSTANTIATE_TEST_SUITE_P(Beds, AMillionFids, testing::Values(Bed::fabric_tcp), bed_name);

} // namespace
} // namespace netio::pubsub::test::million_fids_test
