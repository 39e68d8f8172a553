// SPDX-License-Identifier: Apache-2.0
// The worlds that must notice the faults of tests/mutate/faults/stream_core.toml. Each fault breaks
// one rule, and the exploration reports the violation. Without a fault there must be no violation,
// otherwise the violations would prove nothing.
//
// The shortest trace to each fault is within the number of states explored here.
//     NETIO_STATES=20000000 stream_worlds_test
// explores all states.

#include "tests/model/explore.hpp"
#include "tests/model/world.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <iomanip>
#include <iostream>
#include <ostream>

namespace netio::stream::stream_worlds_test {
namespace {

std::size_t state_limit(std::size_t otherwise) {
    const char* text = std::getenv("NETIO_STATES");
    return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

// Receivers copy at once and no receive is wait-all: the smallest world with the problems of
// Figures 4 to 7. Violations are detected from outside, because an inconsistent state after a fault
// is not a useful result.
WorldOptions plain_world() {
    return {.sender = published_sender(2),
            .receiver = published_receiver(2),
            .stream_bytes = 5,
            .open_receive_limit = 3,
            .wait_all = WaitAll::never,
            .prompt_copies = true,
            .check_efficiency = true,
            .look_from_outside = true};
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

// Checks only the bytes, like a peer that checks nothing else.
WorldOptions data_only(WorldOptions options) {
    options.data_checks_only = true;
    options.check_efficiency = false;
    return options;
}

// Leaves the detection of a wrong advert number to the efficiency check.
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

// A receiver that does not advertise receives of one byte: a sender waiting for the advert would
// never continue.
WorldOptions late_decision_world() {
    WorldOptions options = improved_world();
    options.separate_done = true;
    options.receiver.advert_threshold_bytes = 2;
    options.check_efficiency = false;
    return options;
}

// A sender that waits until the ring is empty, with a receiver that acknowledges as late.
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

// A ring that grows twice, while bytes stay in the previous one.
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

struct Case {
    const char* name;
    WorldOptions options;
    std::size_t state_limit = 20'000;
};
void PrintTo(const Case& test_case, std::ostream* out) {
    *out << test_case.name;
}

class StreamWorlds : public testing::TestWithParam<Case> {};

TEST_P(StreamWorlds, HoldsWhereFaultsAreLookedFor) {
    const Exploration result =
        explore(World{GetParam().options}, {.state_limit = state_limit(GetParam().state_limit)});

    EXPECT_EQ(result.violation, "");
    std::cout << "  " << std::left << std::setw(24) << GetParam().name << "holds  " << std::right
              << std::setw(9) << result.state_count << " states"
              << (result.hit_limit ? ", of more" : "") << '\n';
}

INSTANTIATE_TEST_SUITE_P(
    Worlds, StreamWorlds,
    testing::Values(Case{"Plain", plain_world(), 100'000},
                    Case{"PlainDataOnly", data_only(plain_world()), 80'000},
                    Case{"PlainUncheckedNumbers", unchecked_numbers(plain_world())},
                    Case{"WaitAll", wait_all_world()},
                    Case{"WaitAllDataOnly", data_only(wait_all_world())},
                    Case{"Improved", improved_world()},
                    Case{"EmptyOperations", empty_operations_world()},
                    Case{"LateDecision", late_decision_world()}, Case{"Draining", draining_world()},
                    Case{"Patient", patient_world()}, Case{"Growing", growing_world(), 150'000}),
    [](const auto& parameter) { return std::string{parameter.param.name}; });

} // namespace
} // namespace netio::stream::stream_worlds_test
