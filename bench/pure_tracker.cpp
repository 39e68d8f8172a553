// SPDX-License-Identifier: Apache-2.0

// The delivery tracker of one unbuffered publication to a number of subscribers.

#include "pubsub/publisher/delivery_tracker.hpp"

#include <benchmark/benchmark.h>

namespace {

void track_publication(benchmark::State& state) {
    netio::pubsub::DeliveryTracker tracker{256};
    for ([[maybe_unused]] const auto step : state) {
        const auto id = tracker.begin(netio::Cookie{7});
        for (std::int64_t i = 0; i < state.range(0); ++i)
            tracker.add_pending(*id);
        benchmark::DoNotOptimize(tracker.seal(*id));
        for (std::int64_t i = 0; i < state.range(0); ++i)
            benchmark::DoNotOptimize(tracker.complete(*id));
    }
    state.SetItemsProcessed(state.iterations());
}
BENCHMARK(track_publication)->Arg(1)->Arg(16);

} // namespace
