// SPDX-License-Identifier: Apache-2.0
// Breaks one rule at a time: the exploration must notice each, or it would prove nothing. The same
// worlds without a flaw pass, also at sizes that are too large for every day.

#include "tests/model/explore.hpp"
#include "tests/model/injected_flaws.hpp"
#include "tests/model/world.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <iomanip>
#include <iostream>
#include <ostream>

namespace netio::stream {
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

// Only what happens to the bytes counts, as for a peer that checks nothing.
WorldOptions data_only(WorldOptions options) {
    options.data_checks_only = true;
    options.check_efficiency = false;
    return options;
}

// Leaves it to the speed to show that an advert's number is wrong.
WorldOptions unchecked_numbers(WorldOptions options) {
    options.data_checks_only = true;
    return options;
}

WorldOptions empty_operations_world() {
    WorldOptions options = wait_all_world();
    options.stream_bytes = 2;
    options.empty_operations = true;
    return options;
}

// A receiver that advertises no receive of one byte: waiting for its advert would be for ever.
WorldOptions late_decision_world() {
    WorldOptions options = improved_world();
    options.separate_done = true;
    options.receiver.advert_threshold_bytes = 2;
    return options;
}

// A sender that waits until the ring is empty, a receiver that would acknowledge that much later.
WorldOptions draining_world() {
    WorldOptions options = improved_world();
    options.sender.ring_bytes = options.receiver.ring_bytes = 4;
    options.receiver.ack_threshold_bytes = 2;
    options.receiver.advert_threshold_bytes = 2;
    options.check_efficiency = false;
    return options;
}

WorldOptions patient_world() {
    WorldOptions options = improved_world();
    options.sender.patience_threshold_bytes = 1;
    options.separate_done = true;
    options.receiver.advert_threshold_bytes = 2;
    options.check_efficiency = false;
    return options;
}

// A ring that grows twice, while bytes stay in the one before.
WorldOptions growing_world() {
    WorldOptions options = wait_all_world();
    options.sender = improved_sender(1);
    options.receiver = improved_receiver(1, 4);
    options.sender.mode = options.receiver.mode = TransferMode::indirect_only;
    options.wait_all = WaitAll::never;
    options.check_efficiency = false;
    options.stream_bytes = 9;
    return options;
}

struct Mutant {
    const char* name; // begins with the rule
    InjectedFlaws flaws;
    WorldOptions options;
    const char* noticed_as; // how the violation begins
};
void PrintTo(const Mutant& mutant, std::ostream* out) {
    *out << mutant.name;
}

constexpr const char* not_head = "direct transfer to a receive that is not at the head";
constexpr const char* completed = "direct transfer into a completed receive";
constexpr const char* inexact = "the first advert of a phase is not exact";
constexpr const char* ring_overrun = "protocol error: indirect transfer overruns the ring";
constexpr const char* freed_early = "a ring is freed while bytes are in it";
constexpr const char* needlessly_indirect = "quiet, a valid advert, and yet indirect";

// What the rules about adverts and phases prevent: bytes in the wrong place. The sender's own
// bounds (R14) are off here, for they would stop most of these before any harm is done.
std::vector<Mutant> harmful_mutants() {
    return {
        {"R1AcceptAnySequence",
         {.accept_any_sequence = true, .trust_peer = true},
         data_only(plain_world()),
         completed},
        {"R1AcceptAnyPhase",
         {.accept_any_phase = true, .trust_peer = true},
         data_only(plain_world()),
         not_head},
        {"R2NoPhaseJump",
         {.no_phase_jump = true, .trust_peer = true},
         data_only(plain_world()),
         not_head},
        {"R3NoHoldOff",
         {.accept_later_sequence = true, .trust_peer = true, .no_hold_off = true},
         data_only(plain_world()),
         not_head},
        {"R3AdvertiseReceivedBytes",
         {.trust_peer = true, .advertise_received_bytes = true},
         data_only(wait_all_world()),
         "direct transfer while the ring holds bytes"},
        {"R6SenderStaysDirect",
         {.sender_stays_direct = true, .trust_peer = true},
         data_only(plain_world()),
         completed},
    };
}

// The same as our own checks notice them, and everything else.
std::vector<Mutant> noticed_mutants() {
    return {
        {"R1AcceptAnySequence", {.accept_any_sequence = true}, plain_world(), completed},
        {"R2NoPhaseJump",
         {.no_phase_jump = true},
         plain_world(),
         "protocol error: advert of an impossible phase"},
        {"R3AdvertiseReceivedBytes", {.advertise_received_bytes = true}, wait_all_world(), inexact},
        {"R3NoHoldOff", {.no_hold_off = true}, plain_world(), inexact},
        {"R3SkipUnadvertised", {.skip_unadvertised = true}, plain_world(), not_head},
        {"R4CrossRingEnd",
         {.cross_ring_end = true},
         plain_world(),
         "write across the end of the ring"},
        {"R4IgnoreRingSpace",
         {.ignore_ring_space = true},
         plain_world(),
         "write into a ring byte that is in use"},
        {"R5LiteralEstimate", {.literal_estimate = true}, wait_all_world(), inexact},
        {"R5LiteralEstimateIsNeverDirectAgain",
         {.trust_peer = true, .literal_estimate = true},
         unchecked_numbers(plain_world()),
         needlessly_indirect},
        {"R6ReceiverStaysDirect",
         {.receiver_stays_direct = true},
         wait_all_world(),
         needlessly_indirect},
        {"R7RevokeNothing",
         {.revoke_nothing = true},
         improved_world(),
         "quiet, an open receive, and yet indirect"},
        {"R8KeepUsedAdvert", {.keep_used_advert = true}, plain_world(), completed},
        {"R8DropWaitAllAdvert",
         {.drop_wait_all_advert = true},
         wait_all_world(),
         needlessly_indirect},
        {"R8AdvertiseFromStart",
         {.advertise_from_start = true},
         wait_all_world(),
         "direct transfer not at the fill level"},
        {"R9CompleteWaitAllEarly",
         {.complete_wait_all_early = true},
         wait_all_world(),
         "a receive completed too early"},
        {"R10AcknowledgeArrival",
         {.acknowledge_arrival = true},
         wait_all_world(),
         "write into a ring byte that is in use"},
        {"R10NeverAcknowledge", {.never_acknowledge = true}, wait_all_world(), "stuck"},
        {"R11AdvertiseEmpty",
         {.advertise_empty = true},
         empty_operations_world(),
         "protocol error: malformed advert"},
        {"R12EndBeforeData",
         {.end_before_data = true},
         wait_all_world(),
         "protocol error: end of the stream at another position"},
        {"R12EndBeforeRingIsEmpty", {.end_before_ring_is_empty = true}, wait_all_world(), "stuck"},
        {"R15UnsaidRingChange", {.unsaid_ring_change = true}, growing_world(), ring_overrun},
        {"R15OldRingOffsets", {.old_ring_offsets = true}, growing_world(), "copied a wrong byte"},
        {"R15ChangeAtAnnouncement", {.change_at_announcement = true}, growing_world(), freed_early},
        {"R15FreeOldRingEarly", {.free_old_ring_early = true}, growing_world(), freed_early},
        {"R15KeepOldRing", {.keep_old_ring = true}, growing_world(), "stuck"},
        {"P1HopeForEver", {.hope_for_ever = true}, late_decision_world(), "stuck"},
        {"P6NoPromptAcknowledgement", {.no_prompt_ack = true}, draining_world(), "stuck"},
        {"P10NoAnswer", {.no_answer = true}, patient_world(), "stuck"},
    };
}

// A line of what `./dev verify` prints.
void report(const char* name, const char* verdict, std::size_t state_count, const char* what) {
    std::cout << "  " << std::left << std::setw(36) << name << std::setw(7) << verdict << std::right
              << std::setw(9) << state_count << " states  " << what << '\n';
}

class StreamMutation : public testing::TestWithParam<Mutant> {};

TEST_P(StreamMutation, IsNoticed) {
    const Mutant& mutant = GetParam();

    const Exploration result = explore(World<InjectedFlaws>{mutant.options, mutant.flaws});

    ASSERT_NE(result.violation, "") << "SURVIVED " << result.state_count << " states";
    EXPECT_EQ(result.violation.substr(0, std::strlen(mutant.noticed_as)), mutant.noticed_as)
        << result.violation;
    report(mutant.name, "killed", result.state_count, mutant.noticed_as);
}

INSTANTIATE_TEST_SUITE_P(Harm, StreamMutation, testing::ValuesIn(harmful_mutants()),
                         [](const auto& parameter) { return std::string{parameter.param.name}; });
INSTANTIATE_TEST_SUITE_P(Rules, StreamMutation, testing::ValuesIn(noticed_mutants()),
                         [](const auto& parameter) { return std::string{parameter.param.name}; });

struct Control {
    const char* name;
    WorldOptions options;
};
void PrintTo(const Control& control, std::ostream* out) {
    *out << control.name;
}

class StreamMutationControl : public testing::TestWithParam<Control> {};

TEST_P(StreamMutationControl, PassesWithoutAFlaw) {
    const Exploration result = explore(World<>{GetParam().options}, {.state_limit = 20'000'000});

    EXPECT_EQ(result.violation, "");
    EXPECT_FALSE(result.hit_limit);
    report(GetParam().name, "passes", result.state_count, "nothing is broken, nothing noticed");
}

INSTANTIATE_TEST_SUITE_P(Worlds, StreamMutationControl,
                         testing::Values(Control{"Plain", plain_world()},
                                         Control{"WaitAll", wait_all_world()},
                                         Control{"Improved", improved_world()},
                                         Control{"Growing", growing_world()}),
                         [](const auto& parameter) { return std::string{parameter.param.name}; });

} // namespace
} // namespace netio::stream
