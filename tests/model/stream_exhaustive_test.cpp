// SPDX-License-Identifier: Apache-2.0
// Every execution of small streams, in every mode and with every policy: bytes arrive once and in
// order, a direct transfer goes into the first receive at its fill level, the ring never overruns,
// and every execution ends with everything delivered. Small numbers suffice because the protocol
// has no constants that only larger numbers would reach; stream_random_test uses larger ones.

#include "tests/model/explore.hpp"
#include "tests/model/world.hpp"

#include <gtest/gtest.h>

#include <iomanip>
#include <iostream>
#include <ostream>

namespace netio::stream::stream_exhaustive_test {
namespace {

struct Case {
    const char* name;
    WorldOptions options;
    bool find_cycles = false;
};
void PrintTo(const Case& test_case, std::ostream* out) {
    *out << test_case.name;
}

WorldOptions published() {
    return {.sender = published_sender(2), .receiver = published_receiver(2), .stream_bytes = 3};
}

// The policy of this library, with thresholds small enough to matter for sends of 1 or 2 bytes.
WorldOptions improved() {
    WorldOptions options{
        .sender = improved_sender(2), .receiver = improved_receiver(2), .stream_bytes = 3};
    options.sender.backlog_limit_bytes = 1;
    options.sender.direct_threshold_bytes = 0;
    options.receiver.ack_threshold_bytes = 1;
    options.receiver.advert_threshold_bytes = 0;
    return options;
}

template <class Change>
WorldOptions with(WorldOptions options, Change change) {
    change(options);
    return options;
}

std::vector<Case> published_cases() {
    using Options = WorldOptions&;
    return {
        {"Published", published(), true},
        {"PublishedWithoutWaitAll",
         with(published(), [](Options o) { o.wait_all = WaitAll::never, o.stream_bytes = 4; })},
        {"PublishedWaitAllOnly",
         with(published(), [](Options o) { o.wait_all = WaitAll::always, o.stream_bytes = 4; })},
        {"PublishedNotEager", with(published(), [](Options o) { o.eager = false; })},
        {"PublishedCopiesInPieces", with(published(), [](Options o) { o.partial_copies = true; })},
        {"PublishedIsDirectWhenItCan", with(published(),
                                            [](Options o) {
                                                o.check_efficiency = o.prompt_copies = true;
                                                o.stream_bytes = 4;
                                            })},
        {"PublishedRingOfOne",
         with(published(), [](Options o) { o.sender.ring_bytes = o.receiver.ring_bytes = 1; })},
        {"ExactNumbers",
         with(published(), [](Options o) { o.receiver.advert_number = AdvertNumber::exact; })},
        {"EmptyOperations", with(improved(),
                                 [](Options o) {
                                     o.empty_operations = true;
                                     o.stream_bytes = 2;
                                     o.queued_send_limit = 2;
                                 })},
        {"DirectOnly",
         with(improved(),
              [](Options o) {
                  o.sender.mode = o.receiver.mode = TransferMode::direct_only;
                  o.sender.ring_bytes = o.receiver.ring_bytes = 0;
                  o.stream_bytes = 4;
                  o.open_receive_limit = 3;
              }),
         true},
        {"IndirectOnly",
         with(published(),
              [](Options o) {
                  o.sender.mode = o.receiver.mode = TransferMode::indirect_only;
                  o.stream_bytes = 5;
              }),
         true},
    };
}

std::vector<Case> improved_cases() {
    using Options = WorldOptions&;
    return {
        {"Improved", improved(), true},
        {"ImprovedWithoutReadvertising",
         with(improved(), [](Options o) { o.receiver.readvertise = false; })},
        {"ImprovedWithEstimates",
         with(improved(), [](Options o) { o.receiver.advert_number = AdvertNumber::estimated; })},
        {"ImprovedOneItemPerMessage",
         with(improved(), [](Options o) { o.receiver.batch_limit_count = 1; })},
        {"ImprovedIsDirectWhenItCan",
         with(improved(), [](Options o) { o.check_efficiency = o.prompt_copies = true; })},
        {"ImprovedDrainsTheRing",
         with(improved(),
              [](Options o) {
                  o.sender.ring_bytes = o.receiver.ring_bytes = 4;
                  o.receiver.ack_threshold_bytes = 2;
                  o.receiver.advert_threshold_bytes = 2;
              }),
         true},
        {"ImprovedPatience",
         with(improved(),
              [](Options o) {
                  o.sender.patience_threshold_bytes = 1;
                  o.receiver.advert_threshold_bytes = 2;
                  o.separate_done = true;
              }),
         true},
        {"ImprovedLateDecision", with(improved(), [](Options o) { o.separate_done = true; })},
        {"ImprovedCoalescing",
         with(improved(),
              [](Options o) {
                  o.separate_done = true;
                  o.queued_send_limit = o.piece_limit = 2;
                  o.wait_all = WaitAll::never;
              }),
         true},
        {"ImprovedThresholds", with(improved(),
                                    [](Options o) {
                                        o.sender.direct_threshold_bytes =
                                            o.receiver.advert_threshold_bytes = 2;
                                        o.stream_bytes = 4;
                                    })},
        {"ImprovedSmallSendsPreferTheRing", with(improved(),
                                                 [](Options o) {
                                                     o.sender.direct_threshold_bytes = 2;
                                                     o.separate_done = true;
                                                 })},
        {"FewAdverts", with(improved(),
                            [](Options o) {
                                o.sender.advert_limit_count = o.receiver.advert_limit_count = 1;
                                o.open_receive_limit = 3;
                                o.wait_all = WaitAll::never;
                            })},
    };
}

// A ring that grows (P11, R15), from `first` bytes to at most `limit`.
WorldOptions growing(std::uint64_t first, std::uint64_t limit) {
    return with(improved(), [&](WorldOptions& o) {
        o.sender = improved_sender(first);
        o.receiver = improved_receiver(first, limit);
        o.sender.mode = o.receiver.mode = TransferMode::indirect_only;
        o.wait_all = WaitAll::never;
    });
}

WorldOptions growing_dynamic(std::uint64_t first, std::uint64_t limit) {
    return with(growing(first, limit), [](WorldOptions& o) {
        o.sender.mode = o.receiver.mode = TransferMode::dynamic;
        o.sender.backlog_limit_bytes = 1;
        o.sender.direct_threshold_bytes = 0;
        o.receiver.advert_threshold_bytes = 0;
    });
}

std::vector<Case> growing_cases() {
    using Options = WorldOptions&;
    return {
        {"GrowingTwice", with(growing(1, 4), [](Options o) { o.stream_bytes = 8; }), true},
        {"GrowingToAnOddLimit", with(growing(2, 3), [](Options o) { o.stream_bytes = 7; }), true},
        {"GrowingWhileBytesAreCopiedInPieces", with(growing(2, 4),
                                                    [](Options o) {
                                                        o.stream_bytes = 7;
                                                        o.open_receive_limit = 1;
                                                        o.longest_receive_bytes = 3;
                                                        o.wait_all = WaitAll::either;
                                                        o.partial_copies = true;
                                                    })},
        {"GrowingNotEager",
         with(growing(1, 2), [](Options o) { o.stream_bytes = 6, o.eager = false; })},
        {"GrowingBesideDirectTransfers",
         with(growing_dynamic(1, 2), [](Options o) { o.stream_bytes = 5; }), true},
        {"GrowingIsRefused",
         with(growing(1, 4), [](Options o) { o.stream_bytes = 8, o.refuses_rings = true; }), true},
    };
}

// R16: a direct transfer arrives in several frames.
std::vector<Case> frame_cases() {
    using Options = WorldOptions&;
    const auto in_frames = [](Options o) {
        o.frame_bytes = 1;
        o.longest_send_bytes = o.longest_receive_bytes = 3;
        o.sender.ring_transfer_limit_bytes = 1;
    };
    return {
        {"FramesPublished", with(published(), in_frames), true},
        {"FramesImproved", with(improved(), in_frames), true},
        {"FramesNotEager", with(with(improved(), in_frames),
                                [](Options o) { o.wait_all = WaitAll::never, o.eager = false; })},
        {"FramesBesideAGrowingRing",
         with(with(growing_dynamic(1, 2), in_frames), [](Options o) { o.stream_bytes = 5; })},
    };
}

std::vector<Case> cases() {
    std::vector<Case> all = published_cases();
    for (const auto& more : {improved_cases(), growing_cases(), frame_cases()})
        all.insert(all.end(), more.begin(), more.end());
    return all;
}

class StreamExhaustive : public testing::TestWithParam<Case> {};

// Otherwise the worlds with a growing ring would prove nothing.
TEST(StreamExhaustiveGrowth, IsReachedInEveryWorldWithARingThatGrows) {
    for (Case& one : growing_cases()) {
        one.options.forbidden_ring_bytes = one.options.receiver.ring_limit_bytes;
        EXPECT_EQ(explore(World{one.options}).violation.empty(), one.options.refuses_rings)
            << one.name;
    }
}

TEST_P(StreamExhaustive, DeliversEveryByteInEveryExecution) {
    const Exploration result =
        explore(World{GetParam().options}, {.find_cycles = GetParam().find_cycles});

    EXPECT_EQ(result.violation, "");
    EXPECT_FALSE(result.hit_limit);
    EXPECT_GT(result.state_count, 1'000U) << "the options leave hardly anything to explore";
    std::cout << "  " << std::left << std::setw(36) << GetParam().name << "holds  " << std::right
              << std::setw(9) << result.state_count << " states  " << std::setw(8)
              << result.transition_count << " transitions"
              << (GetParam().find_cycles ? ", every execution ends" : "") << '\n';
}

INSTANTIATE_TEST_SUITE_P(Modes, StreamExhaustive, testing::ValuesIn(cases()),
                         [](const auto& parameter) { return std::string{parameter.param.name}; });

} // namespace
} // namespace netio::stream::stream_exhaustive_test
