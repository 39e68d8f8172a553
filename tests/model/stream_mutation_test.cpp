// SPDX-License-Identifier: Apache-2.0
// Breaks one rule at a time: the exploration must notice each, or it would prove nothing. The same
// worlds without a flaw pass, also at sizes that are too large for every day.

#include "tests/model/explore.hpp"
#include "tests/model/injected_flaws.hpp"
#include "tests/model/world.hpp"

#include <gtest/gtest.h>

#include <ostream>

namespace stream {
namespace {

// Receivers copy at once and see no wait-all: the smallest world with the traps of Figures 4 to 7.
WorldOptions plain_world() {
    return {.sender = published_sender(2),
            .receiver = published_receiver(2),
            .stream_bytes = 5,
            .open_receive_limit = 3,
            .wait_all = WaitAll::never,
            .prompt_copies = true,
            .check_efficiency = true};
}

WorldOptions wait_all_world() {
    WorldOptions options = plain_world();
    options.stream_bytes = 4;
    options.open_receive_limit = 2;
    options.wait_all = WaitAll::either;
    options.prompt_copies = false;
    return options;
}

WorldOptions improved_world() {
    WorldOptions options = wait_all_world();
    options.sender = improved_sender(2);
    options.sender.backlog_limit_bytes = 1;
    options.sender.direct_threshold_bytes = 0;
    options.receiver = improved_receiver(2);
    options.receiver.advert_threshold_bytes = 0;
    options.receiver.ack_threshold_bytes = 1;
    return options;
}

struct Mutant {
    const char* name; // begins with the rule
    InjectedFlaws flaws;
    WorldOptions options;
};
void PrintTo(const Mutant& mutant, std::ostream* out) { *out << mutant.name; }

const std::vector<Mutant>& mutants() {
    static const std::vector<Mutant> all{
        {"R1AcceptAnySequence", {.accept_any_sequence = true}, plain_world()},
        {"R1AcceptAnyPhase", {.accept_any_phase = true}, plain_world()},
        {"R2NoPhaseJump", {.no_phase_jump = true}, plain_world()},
        {"R3AdvertiseReceivedBytes", {.advertise_received_bytes = true}, wait_all_world()},
        {"R3NoHoldOff", {.no_hold_off = true}, plain_world()},
        {"R3SkipUnadvertised", {.skip_unadvertised = true}, plain_world()},
        {"R4CrossRingEnd", {.cross_ring_end = true}, plain_world()},
        {"R4IgnoreRingSpace", {.ignore_ring_space = true}, plain_world()},
        {"R5LiteralEstimate", {.literal_estimate = true}, wait_all_world()},
        {"R6SenderStaysDirect", {.sender_stays_direct = true}, plain_world()},
        {"R6ReceiverStaysDirect", {.receiver_stays_direct = true}, wait_all_world()},
        {"R7RevokeNothing", {.revoke_nothing = true}, improved_world()},
        {"R8KeepUsedAdvert", {.keep_used_advert = true}, plain_world()},
        {"R8DropWaitAllAdvert", {.drop_wait_all_advert = true}, wait_all_world()},
        {"R8AdvertiseFromStart", {.advertise_from_start = true}, wait_all_world()},
        {"R9CompleteWaitAllEarly", {.complete_wait_all_early = true}, wait_all_world()},
        {"R10AcknowledgeArrival", {.acknowledge_arrival = true}, wait_all_world()},
        {"R10NeverAcknowledge", {.never_acknowledge = true}, wait_all_world()},
        {"R12EndBeforeData", {.end_before_data = true}, wait_all_world()},
    };
    return all;
}

class StreamMutation : public testing::TestWithParam<Mutant> {};

TEST_P(StreamMutation, IsNoticed) {
    const Exploration result =
        explore(World<InjectedFlaws>{GetParam().options, GetParam().flaws});

    EXPECT_NE(result.violation, "") << "survived " << result.state_count << " states";
    RecordProperty("noticed", result.violation);
}

INSTANTIATE_TEST_SUITE_P(Rules, StreamMutation, testing::ValuesIn(mutants()),
                         [](const auto& parameter) { return std::string{parameter.param.name}; });

struct Control {
    const char* name;
    WorldOptions options;
};
void PrintTo(const Control& control, std::ostream* out) { *out << control.name; }

class StreamMutationControl : public testing::TestWithParam<Control> {};

TEST_P(StreamMutationControl, PassesWithoutAFlaw) {
    const Exploration result = explore(World<>{GetParam().options}, {.state_limit = 20'000'000});

    EXPECT_EQ(result.violation, "");
    EXPECT_FALSE(result.hit_limit);
}

INSTANTIATE_TEST_SUITE_P(Worlds, StreamMutationControl,
                         testing::Values(Control{"Plain", plain_world()},
                                         Control{"WaitAll", wait_all_world()},
                                         Control{"Improved", improved_world()}),
                         [](const auto& parameter) { return std::string{parameter.param.name}; });

} // namespace
} // namespace stream
