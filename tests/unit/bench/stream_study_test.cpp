// SPDX-License-Identifier: Apache-2.0
// The results of this library's policy and of the published one, on the same links. The numbers are
// computed in virtual time, so they are equal on every machine.

#include "bench/stream_study.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <stdexcept>

namespace bench::stream_study_test {
namespace {

constexpr std::uint64_t kib = 1024;
constexpr std::uint64_t mib = 1024 * kib;
constexpr std::uint64_t ring_bytes = 4 * mib;

// 100 Gb/s, 3 us round trip, copies at 10 GB/s: the defaults.
constexpr StreamLink lan{};
constexpr std::uint64_t lan_bytes_in_flight = 37'500; // bandwidth times round trip

StreamLoad load(std::uint64_t message_bytes, std::uint64_t sends, std::uint64_t receives) {
    return {.message_bytes = message_bytes,
            .send_count = sends,
            .receive_count = receives,
            .total_bytes = std::max(64 * mib, 200 * message_bytes)};
}

// --- Enough receives -----------------------------------------------------------------------------

TEST(StreamStudy, WithEnoughReceivesOursFillsTheLinkDirectlyAtAnyNumberOfSends) {
    for (const std::uint64_t message : {16 * kib, 64 * kib, 256 * kib, 2 * mib}) {
        const std::uint64_t receives = (2 * lan_bytes_in_flight + 2 * message) / message + 1;
        const std::uint64_t enough_sends = lan_bytes_in_flight / message + 2; // fill any link
        for (const std::uint64_t factor : {1U, 2U, 4U, 8U, 16U}) {
            const std::uint64_t sends = enough_sends * factor;
            const StreamStudy study =
                study_stream(lan, load(message, sends, receives), our_stream_policy(ring_bytes));
            EXPECT_GE(study.link_share, 0.99) << message << ' ' << sends << '/' << receives;
            EXPECT_GE(study.direct_share, 0.95) << message << ' ' << sends << '/' << receives;
        }
    }
}

TEST(StreamStudy, PublishedPolicyIsAsSlowAsTheCopyWithEqualSends) {
    StreamLoad balanced = load(256 * kib, 32, 32);
    balanced.total_bytes = 400 * balanced.message_bytes;
    const StreamStudy study = study_stream(lan, balanced, published_stream_policy(ring_bytes));
    EXPECT_NEAR(study.link_share, 0.80, 0.01);
    EXPECT_NEAR(study.direct_share, 32.0 / 400, 0.001) << "only the first receives";
    EXPECT_GT(study.receiver_busy_share, 0.9);
}

TEST(StreamStudy, ThePublishedOneIsDirectWithHalfAsManySends) {
    const StreamStudy study =
        study_stream(lan, load(256 * kib, 16, 32), published_stream_policy(ring_bytes));
    EXPECT_GE(study.link_share, 0.99);
    EXPECT_EQ(study.direct_share, 1);
    EXPECT_LT(study.receiver_busy_share, 0.05);
}

TEST(StreamStudy, OnlyOurPolicyReturnsFromTheRingAfterALateReceiver) {
    StreamLoad late = load(256 * kib, 32, 32);
    late.receiver_lead_ns = -3'000;
    late.total_bytes = 256 * mib;

    const StreamStudy ours = study_stream(lan, late, our_stream_policy(ring_bytes));
    const StreamStudy published = study_stream(lan, late, published_stream_policy(ring_bytes));

    EXPECT_GE(ours.link_share, 0.99);
    EXPECT_GE(ours.direct_share, 0.95);
    EXPECT_LE(published.link_share, 0.80);
    EXPECT_LT(published.direct_share, 0.01);
}

// --- Few receives --------------------------------------------------------------------------------

TEST(StreamStudy, WithFewReceivesOursKeepsUpWithTheBetterOfTheBaselines) {
    for (const std::uint64_t message : {16 * kib, 32 * kib, 64 * kib, 256 * kib, 2 * mib}) {
        for (const std::uint64_t receives : {1U, 2U, 3U, 8U, 16U}) {
            for (const std::uint64_t sends : {1U, 2U, 8U, 64U}) {
                const StreamLoad few = load(message, sends, receives);
                const double ours =
                    study_stream(lan, few, our_stream_policy(ring_bytes)).link_share;
                const double direct =
                    study_stream(lan, few, direct_only_stream_policy(ring_bytes)).link_share;
                const double indirect =
                    study_stream(lan, few, indirect_only_stream_policy(ring_bytes)).link_share;
                EXPECT_GE(ours, 0.98 * std::max(direct, indirect))
                    << message << ' ' << sends << '/' << receives << ": direct-only " << direct
                    << ", indirect-only " << indirect;
            }
        }
    }
}

// --- A long link ---------------------------------------------------------------------------------

TEST(StreamStudy, Over48MillisecondsOurPolicyFillsTheLinkDirectly) {
    const StreamLink distance{
        .gigabits_per_second = 10, .one_way_ns = 24e6, .copy_gigabytes_per_second = 5};
    StreamLoad far = load(2 * mib, 32, 32);
    far.total_bytes = 600 * mib;

    const StreamStudy ours = study_stream(distance, far, our_stream_policy(ring_bytes));
    const StreamStudy published = study_stream(distance, far, published_stream_policy(ring_bytes));

    EXPECT_GE(ours.link_share, 0.85);
    EXPECT_GE(ours.direct_share, 0.95);
    EXPECT_LE(published.link_share, 0.10) << "a ring of 4 MiB per round trip";
}

// --- A growing ring ------------------------------------------------------------------------------

constexpr StreamLink far_away{
    .gigabits_per_second = 10, .one_way_ns = 24e6, .copy_gigabytes_per_second = 5};
constexpr std::uint64_t far_bytes_in_flight = 60'000'000;

StreamLoad far_load(std::uint64_t total_bytes) {
    return {.message_bytes = 2 * mib,
            .send_count = 64,
            .receive_count = 32,
            .total_bytes = total_bytes};
}

TEST(StreamStudy, Over48MillisecondsARingGrowsUntilItFillsTheLink) {
    const StreamPolicy fixed = indirect_only_stream_policy(1 * mib);
    const StreamPolicy growing = growing_stream_policy(1 * mib, 64 * mib);
    const StreamPolicy unlimited = growing_stream_policy(1 * mib, 1'024 * mib);

    const StreamStudy before = study_stream(far_away, far_load(1'000 * mib), fixed);
    const StreamStudy shorter = study_stream(far_away, far_load(2'000 * mib), growing);
    const StreamStudy longer = study_stream(far_away, far_load(12'000 * mib), growing);

    EXPECT_NEAR(before.link_share, 1.0 * mib / far_bytes_in_flight, 0.002) << "one per round trip";
    EXPECT_EQ(longer.ring_growths, 6U);
    EXPECT_EQ(longer.ring_bytes, 64 * mib);
    EXPECT_GE(longer.link_share, 0.94);
    EXPECT_EQ(study_stream(far_away, far_load(2'000 * mib), unlimited).ring_bytes, 128 * mib)
        << "one doubling beyond the bytes in flight";
    // The second part of the longer transfer had the speed of the link.
    const double shorter_s = 2'000.0 * mib * 8e-9 / shorter.gigabits_per_second;
    const double longer_s = 12'000.0 * mib * 8e-9 / longer.gigabits_per_second;
    EXPECT_GE(10'000.0 * mib * 8e-9 / (longer_s - shorter_s), 0.99 * 10);
    EXPECT_LE(shorter_s - 2'000.0 * mib * 8e-9 / 10, 0.6) << "seconds lost to growing";
}

TEST(StreamStudy, ARingGrowsToItsLimitAndNoFurther) {
    const StreamStudy study =
        study_stream(far_away, far_load(2'000 * mib), growing_stream_policy(1 * mib, 5 * mib));
    EXPECT_EQ(study.ring_bytes, 5 * mib);
    EXPECT_EQ(study.ring_growths, 3U);
    EXPECT_NEAR(study.link_share, 5.0 * mib / far_bytes_in_flight, 0.01);
}

TEST(StreamStudy, ARingGrowsInProportionToTheDistanceAndNotBeyond) {
    for (const double gigabits : {25.0, 100.0}) {
        for (const double round_trip_ns : {3e3, 30e3, 300e3, 3e6}) {
            const StreamLink link{.gigabits_per_second = gigabits,
                                  .one_way_ns = round_trip_ns / 2,
                                  .copy_gigabytes_per_second = 20};
            StreamLoad busy = load(256 * kib, 1'024, 32);
            busy.total_bytes = 8'000 * mib;
            const StreamStudy fixed =
                study_stream(link, busy, indirect_only_stream_policy(1 * mib));
            const StreamStudy grown =
                study_stream(link, busy, growing_stream_policy(1 * mib, 1'024 * mib));
            const double in_flight = gigabits / 8 * round_trip_ns;
            const double ring = static_cast<double>(grown.ring_bytes);
            EXPECT_LE(ring, std::max(1.0 * mib, 4 * in_flight)) << gigabits << ' ' << round_trip_ns;
            EXPECT_GE(ring, in_flight) << gigabits << ' ' << round_trip_ns;
            EXPECT_GE(grown.link_share, std::max(0.85, 0.999 * fixed.link_share))
                << gigabits << ' ' << round_trip_ns;
        }
    }
}

TEST(StreamStudy, ARingDoesNotGrowForAUserOrACopyThatIsSlow) {
    const StreamLink slow_copy{.copy_gigabytes_per_second = 5}; // 40 Gb/s of 100
    const StreamPolicy growing = growing_stream_policy(1 * mib, 256 * mib);
    EXPECT_EQ(study_stream(slow_copy, load(256 * kib, 32, 32), growing).ring_growths, 0U);
    StreamLoad slow_user = load(256 * kib, 32, 4);
    slow_user.consume_ns = 100'000;
    EXPECT_EQ(study_stream(lan, slow_user, growing).ring_growths, 0U);
}

TEST(StreamStudy, ARingGrowsOnlyToWhatItsUserTakesInARoundTrip) {
    StreamLoad user = far_load(600 * mib);
    user.receive_count = 1;
    user.consume_ns = 50e6; // 2 MiB in about a round trip; the link carries 57 MiB
    const StreamStudy study =
        study_stream(far_away, user, growing_stream_policy(1 * mib, 256 * mib));
    EXPECT_LE(study.ring_bytes, 8 * mib);
    EXPECT_NEAR(study.gigabits_per_second, 2 * mib * 8 / 50e6, 0.02);
}

// --- The study itself ----------------------------------------------------------------------------

TEST(StreamStudy, TheBaselinesAreWhatTheyAreCalled) {
    const StreamLoad ample = load(256 * kib, 8, 16);
    const StreamStudy direct = study_stream(lan, ample, direct_only_stream_policy(ring_bytes));
    const StreamStudy indirect = study_stream(lan, ample, indirect_only_stream_policy(ring_bytes));
    EXPECT_EQ(direct.direct_share, 1);
    EXPECT_EQ(direct.copy_share, 0);
    EXPECT_GE(direct.link_share, 0.99);
    EXPECT_EQ(indirect.direct_share, 0);
    EXPECT_GT(indirect.copy_share, 0.9);
    EXPECT_LE(indirect.link_share, 0.80) << "10 GB/s are 80 Gb/s";
}

TEST(StreamStudy, OneSendAtATimeWaitsForEachRoundTrip) {
    const StreamStudy study =
        study_stream(lan, load(256 * kib, 1, 8), our_stream_policy(ring_bytes));
    const double wire_ns = 256 * kib * 8 / 100.0;
    EXPECT_NEAR(study.link_share, wire_ns / (wire_ns + 3'000 + 150), 0.01);
}

TEST(StreamStudy, ASlowUserIsTheLimit) {
    StreamLoad slow = load(256 * kib, 32, 4);
    slow.consume_ns = 100'000;
    const StreamStudy study = study_stream(lan, slow, direct_only_stream_policy(ring_bytes));
    EXPECT_NEAR(study.gigabits_per_second, 256 * kib * 8 / 100'000.0, 0.5);
}

TEST(StreamStudy, FillsWaitAllReceivesToTheLastByte) {
    StreamLoad large = load(64 * kib, 16, 2);
    large.receive_bytes = 1'000'000;
    large.wait_all = true;
    const StreamStudy study = study_stream(lan, large, our_stream_policy(ring_bytes));
    EXPECT_GE(study.link_share, 0.98);
    EXPECT_GE(study.direct_share, 0.95);
}

TEST(StreamStudy, RefusesWhatCannotBeAndNamesIt) {
    const auto refused_as = [](const StreamLink& link, const StreamLoad& what, const char* name) {
        EXPECT_THAT([&] { study_stream(link, what, our_stream_policy(ring_bytes)); },
                    testing::ThrowsMessage<std::invalid_argument>(testing::HasSubstr(name)));
    };
    refused_as({.gigabits_per_second = 0}, {}, "gigabits_per_second");
    refused_as({.copy_gigabytes_per_second = 0}, {}, "copy_gigabytes_per_second");
    refused_as({.register_gigabytes_per_second = 0}, {}, "register_gigabytes_per_second");
    refused_as({.post_ns = -1}, {}, "a cost");
    refused_as({}, {.message_bytes = 0}, "message_bytes");
    refused_as({}, {.send_count = 0}, "send_count");
    refused_as({}, {.receive_count = 0}, "receive_count");
}

TEST(StreamStudy, WritesALineForEachRow) {
    EXPECT_EQ(
        to_csv({{"10 Gb/s over 48 ms",
                 "published",
                 65'536,
                 4,
                 8,
                 {.gigabits_per_second = 12.5, .direct_share = 1, .receiver_busy_share = 0.5}}}),
        "10 Gb/s over 48 ms,published,65536,4,8,12.5000,0,0.5000,1.0000\n");
}

TEST(StreamStudy, ComputesEverySubjectOnEveryLink) {
    const auto rows = compute_study();
    std::set<std::string> links;
    std::set<std::string> subjects;
    for (const StudyRow& row : rows) {
        links.insert(row.link);
        subjects.insert(row.subject);
        EXPECT_GT(row.study.gigabits_per_second, 0)
            << row.link << ", " << row.subject << ", " << row.sends;
        EXPECT_TRUE(row.subject != "direct" || row.study.direct_share > 0.999);
        EXPECT_TRUE(row.subject != "indirect" || row.study.direct_share == 0);
    }
    EXPECT_EQ(links.size(), 2U);
    EXPECT_EQ(subjects.size(), 4U);
    EXPECT_EQ(rows.size(), links.size() * subjects.size() * 6 * 2);
}

} // namespace
} // namespace bench::stream_study_test
