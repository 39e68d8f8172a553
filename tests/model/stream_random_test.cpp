// SPDX-License-Identifier: Apache-2.0
// Random options, sizes and executions of two endpoints. A failing run prints its seed.
//     NETIO_SEED=<seed> NETIO_RUNS=1 stream_random_test
// replays it. NETIO_SEED with another number explores other executions; NETIO_RUNS is the number of
// runs.

#include "tests/model/duplex.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>

namespace netio::stream::stream_random_test {
namespace {

std::uint64_t from_environment(const char* name, std::uint64_t otherwise) {
    const char* text = std::getenv(name);
    return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

TEST(StreamRandom, DeliversEveryByteInOrderUnderEveryPolicy) {
    const std::uint64_t seed = from_environment("NETIO_SEED", 1);
    const std::uint64_t runs = from_environment("NETIO_RUNS", 1'500);
    std::cout << "seeds " << seed << " to " << seed + runs - 1 << '\n';
    std::uint64_t direct_bytes = 0;
    std::uint64_t indirect_bytes = 0;
    std::uint64_t rejected_by_phase = 0;
    std::uint64_t rejected_by_sequence = 0;
    std::uint64_t ring_growths = 0;
    for (std::uint64_t run = seed; run < seed + runs; ++run) {
        Duplex duplex{run};
        ASSERT_EQ(duplex.run(), "")
            << "replay: NETIO_SEED=" << run << " NETIO_RUNS=1 stream_random_test";
        for (std::size_t side = 0; side < 2; ++side) {
            const SenderCounters& counters = duplex.sender(side).counters();
            direct_bytes += counters.direct_bytes;
            indirect_bytes += counters.indirect_bytes;
            rejected_by_phase += counters.adverts_rejected_by_phase;
            rejected_by_sequence += counters.adverts_rejected_by_sequence;
            ring_growths += counters.ring_growths;
        }
    }
    std::cout << direct_bytes << " bytes direct, " << indirect_bytes << " indirect, "
              << rejected_by_phase << " adverts rejected by phase, " << rejected_by_sequence
              << " by sequence, " << ring_growths << " larger rings\n";
    if (runs < 100) return; // the mixture needs many runs
    EXPECT_GT(direct_bytes, indirect_bytes / 20);
    EXPECT_GT(indirect_bytes, direct_bytes / 20);
    EXPECT_GT(rejected_by_phase, runs / 10);
    EXPECT_GT(rejected_by_sequence, runs / 10);
    EXPECT_GT(ring_growths, runs / 10);
}

// Phases are compared by their distance (R6), so the wrap to 0 changes nothing.
TEST(StreamRandom, R6DeliversEveryByteWherePhasesWrap) {
    const std::uint64_t seed = from_environment("NETIO_SEED", 1);
    const std::uint64_t runs = from_environment("NETIO_RUNS", 300);
    std::uint64_t wrapped = 0;
    for (std::uint64_t run = seed; run < seed + runs; ++run) {
        Duplex far{run, Phase{UINT32_MAX - 1}};
        ASSERT_EQ(far.run(), "") << "replay: NETIO_SEED=" << run
                                 << " NETIO_RUNS=1 stream_random_test";
        Duplex near{run};
        ASSERT_EQ(near.run(), "");
        for (std::size_t side = 0; side < 2; ++side) {
            const Phase end = far.sender(side).phase();
            EXPECT_EQ(end - Phase{UINT32_MAX - 1}, near.sender(side).phase() - Phase{});
            wrapped += end.value() < UINT32_MAX / 2 ? 1U : 0U;
        }
    }
    std::cout << wrapped << " directions have wrapped\n";
    if (runs < 100) return;
    EXPECT_GT(wrapped, runs / 5);
}

} // namespace
} // namespace netio::stream::stream_random_test
