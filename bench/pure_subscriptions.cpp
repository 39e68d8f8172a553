// SPDX-License-Identifier: Apache-2.0

// Subscription look-up: the map that is used for every message on both sides, the counters of
// arrivals, and the table that is used only after a change.

#include "pubsub/core/arrival_counter.hpp"
#include "pubsub/core/fid_map.hpp"
#include "pubsub/publisher/subscription_table.hpp"

#include <algorithm>
#include <benchmark/benchmark.h>
#include <random>
#include <vector>

namespace {

using netio::pubsub::Fid;
using netio::pubsub::SubscriberId;

std::vector<Fid> shuffled_fids(std::int64_t count) {
    std::vector<Fid> fids;
    for (std::int64_t i = 0; i < count; ++i)
        fids.push_back(Fid{0x1000'0000 + static_cast<std::uint64_t>(i) * 16});
    std::shuffle(fids.begin(), fids.end(), std::mt19937{4711});
    return fids;
}

void find_in_map(benchmark::State& state) {
    const std::vector<Fid> fids = shuffled_fids(state.range(0));
    netio::pubsub::FidMap<std::uint64_t> map;
    for (const Fid fid : fids)
        map[fid] = 1;
    for ([[maybe_unused]] const auto step : state)
        for (const Fid fid : fids)
            benchmark::DoNotOptimize(map.find(fid));
    state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(find_in_map)->Arg(1)->Arg(64)->Arg(1000)->Arg(10000);

void count_arrivals(benchmark::State& state) {
    const std::vector<Fid> fids = shuffled_fids(state.range(0));
    netio::pubsub::ArrivalCounter counter;
    for ([[maybe_unused]] const auto step : state)
        for (const Fid fid : fids)
            counter.add(fid, 40);
    state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(count_arrivals)->Arg(1)->Arg(64)->Arg(1000)->Arg(10000);

void find_in_table(benchmark::State& state) {
    const std::vector<Fid> fids = shuffled_fids(state.range(0));
    netio::pubsub::SubscriptionTable table{fids.size()};
    std::vector<netio::pubsub::FidRange> added;
    for (const Fid fid : fids) {
        if (!table.add({.subscriber = SubscriberId{1}}, {.first = fid, .last = fid}, added))
            std::abort();
    }
    for ([[maybe_unused]] const auto step : state)
        for (const Fid fid : fids)
            benchmark::DoNotOptimize(table.find(fid));
    state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(find_in_table)->Arg(1)->Arg(1000)->Arg(10000);

void subscribe_and_leave(benchmark::State& state) {
    const std::vector<Fid> fids = shuffled_fids(state.range(0));
    for ([[maybe_unused]] const auto step : state) {
        netio::pubsub::SubscriptionTable table{fids.size()};
        std::vector<netio::pubsub::FidRange> added;
        for (const Fid fid : fids) {
            if (!table.add({.subscriber = SubscriberId{1}}, {.first = fid, .last = fid}, added))
                std::abort();
        }
        table.remove_subscriber({.subscriber = SubscriberId{1}});
    }
    state.SetItemsProcessed(state.iterations() * state.range(0));
}
BENCHMARK(subscribe_and_leave)->Arg(1000);

} // namespace
