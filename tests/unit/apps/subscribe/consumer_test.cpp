// SPDX-License-Identifier: Apache-2.0
#include "apps/subscribe/subscribe.hpp"

#include <gtest/gtest.h>

#include <initializer_list>
#include <string_view>
#include <vector>

namespace apps::subscribe::consumer_test {
namespace {

using netio::pubsub::Fid;

TEST(OneWayLatency, ACertainDifferenceOfTheClocksIsSubtracted) {
    using namespace std::chrono_literals;
    OneWayLatency latency;
    latency.add(0, 1);
    EXPECT_FALSE(latency.metrics("a")) << "no round trip is known";
    latency.round_trip(900us);
    latency.round_trip(200us);
    latency.round_trip(500us);
    for (const std::int64_t taken_us : {150, 100, 100, 100}) // behind by 50 ms
        latency.add(0, (taken_us - 50'000) * 1000);
    const auto metrics = latency.metrics("a");
    ASSERT_TRUE(metrics);
    EXPECT_EQ(metrics->clock_offset, -50ms);
    EXPECT_EQ(metrics->clock_offset_error, 100us);
    EXPECT_GE(metrics->median, 100us);
    EXPECT_LE(metrics->p99, 188us) << "to within a quarter";
}

TEST(OneWayLatency, AnUncertainDifferenceIsNot) {
    using namespace std::chrono_literals;
    OneWayLatency latency;
    latency.round_trip(200us);
    for (int i = 0; i < 10; ++i)
        latency.add(0, 20'000);
    const auto metrics = latency.metrics("a");
    ASSERT_TRUE(metrics);
    EXPECT_EQ(metrics->clock_offset, -80us);
    EXPECT_EQ(metrics->clock_offset_error, 100us);
    EXPECT_LE(metrics->median, 25us) << "-80 +- 100 us may be none";
}

TEST(Prescale, TakesTheFirstOfEachFidAndThenEveryNth) {
    Prescale prescale{3};
    for (int n = 0; n < 9; ++n) {
        EXPECT_EQ(prescale.takes(Fid{1}), n % 3 == 0) << n;
        if (n < 4) {
            EXPECT_EQ(prescale.takes(Fid{2}), n % 3 == 0) << n;
        }
    }
    EXPECT_EQ(prescale.passed_over(), 6U + 2U);
}

TEST(Prescale, OneKeepsAllMessages) {
    Prescale all{1};
    EXPECT_TRUE(all.takes(Fid{1}));
    EXPECT_TRUE(all.takes(Fid{1}));
    EXPECT_EQ(all.passed_over(), 0U);
}

using namespace std::chrono_literals;

constexpr netio::TimePoint start{1h};

TEST(SlowReader, ThinksOverEachMessage) {
    SlowReader reader{{.think = 1ms}, start};
    EXPECT_TRUE(reader.is_slow());
    for (int i = 0; i < 3; ++i)
        EXPECT_EQ(reader.hold(start + i * 1h), 1ms);
    EXPECT_FALSE(SlowReader({}, start).is_slow());
}

TEST(SlowReader, PausesOncePerInterval) {
    SlowReader reader{{.think = 1ms, .pause = 500ms, .every = 10s}, start};
    EXPECT_EQ(reader.hold(start), 1ms);
    EXPECT_EQ(reader.hold(start + 9999ms), 1ms);
    EXPECT_EQ(reader.hold(start + 10s), 501ms);
    EXPECT_EQ(reader.hold(start + 10600ms), 1ms);
    EXPECT_EQ(reader.hold(start + 20100ms), 401ms) << "the rest of the pause";
}

TEST(SlowReader, APauseInWhichNothingCameIsOver) {
    SlowReader reader{{.pause = 500ms, .every = 10s}, start};
    EXPECT_EQ(reader.hold(start + 55s), 0ms);
    EXPECT_EQ(reader.hold(start + 60s), 500ms);
}

TEST(SlowReader, APauseIsTwoTimesTheFirstOfThemTheShorter) {
    Slowness slowness;
    EXPECT_TRUE(parse_pause("500ms@10s", slowness));
    EXPECT_EQ(slowness.pause, 500ms);
    EXPECT_EQ(slowness.every, 10s);
    for (const char* const wrong : {"", "500ms", "@", "10s@500ms", "1s@1s", "x@10s", "1s@", "0@1s"})
        EXPECT_FALSE(parse_pause(wrong, slowness)) << wrong;
}

using netio::pubsub::Fid;

TEST(Latency, IsOfMessagesThatHaveATime) {
    Latency latency;
    EXPECT_FALSE(latency.report());
    for (std::int64_t i = 1; i <= 1000; ++i)
        latency.add(5'000'000, 5'000'000 + i * 1000); // 1 to 1000 us
    const auto report = latency.report();
    ASSERT_TRUE(report);
    EXPECT_EQ(report->messages, 1000U);
    EXPECT_EQ(report->ahead, 0U);
    EXPECT_NEAR(report->p50_us, 500, 125);
    EXPECT_NEAR(report->p99_us, 990, 250);
    EXPECT_EQ(report->longest_us, 1000);
}

TEST(Latency, CountsWhatCameBeforeItWasSent) {
    Latency latency;
    latency.add(5'000'000, 4'000'000);
    EXPECT_EQ(latency.report()->ahead, 1U);
    EXPECT_EQ(latency.report()->longest_us, 0);
}

TEST(Verifier, ChecksTheBytesAfterTheHeader) {
    Verifier verifier{4};
    std::vector<std::byte> message(44);
    for (std::uint64_t i = 0; i < 3; ++i) {
        fill_pattern(std::span{message}.subspan(4), Fid{1}, i);
        verifier.check("one", Fid{1}, message);
    }
    EXPECT_EQ(verifier.pattern().total(), PatternCounts{.messages = 3});
    verifier.check("one", Fid{1}, std::span{message}.first(3));
    EXPECT_EQ(verifier.pattern().total().corrupt, 1U);
}

class VerifierOfTwo : public testing::Test {
  protected:
    void arrive(std::string_view publisher, std::initializer_list<std::uint64_t> numbers) {
        std::vector<std::byte> message(40);
        for (const std::uint64_t number : numbers) {
            fill_pattern(message, Fid{1}, number);
            verifier.check(publisher, Fid{1}, message);
        }
    }

    Verifier verifier{0};
};

TEST_F(VerifierOfTwo, KnowsAnotherPublishersNumbersByItsName) {
    arrive("one", {0, 1, 2});
    arrive("other", {0, 1, 2});
    EXPECT_EQ(verifier.pattern().total(), PatternCounts{.messages = 6});
}

TEST_F(VerifierOfTwo, MissesNothingOfAPublisherThatComesBack) {
    arrive("one", {0, 1});
    arrive("other", {0});
    arrive("one", {4});
    EXPECT_EQ(verifier.pattern().total(), (PatternCounts{.messages = 4, .lost = 2}));
}

TEST_F(VerifierOfTwo, RestartsForANewPublisherOfTheSameName) {
    arrive("one", {0, 1, 2});
    verifier.begin_anew("one");
    arrive("one", {0, 1, 1});
    EXPECT_EQ(verifier.pattern().total(), (PatternCounts{.messages = 6, .duplicates = 1}));
}

} // namespace

} // namespace apps::subscribe::consumer_test
