// SPDX-License-Identifier: Apache-2.0

// The page codec: the cost to put a message into a page, and to find it again.

#include "netio/base/copy.hpp"
#include "netio/coalescing/page.hpp"
#include "pubsub/core/wire.hpp"

#include <benchmark/benchmark.h>

#include <cstring>
#include <span>
#include <vector>

namespace {

using netio::pubsub::Fid;

constexpr std::size_t page_bytes = 64 * 1024;
constexpr std::uint64_t fid_count = 64;

// Fills one page; returns the bytes used and counts the messages.
std::size_t fill(std::vector<std::byte>& memory, const std::vector<std::byte>& message,
                 std::int64_t& messages) {
    netio::pubsub::PageWriter writer{memory};
    for (std::uint64_t i = 0;; ++i) {
        std::byte* const out = writer.append(Fid{i % fid_count}, 0, message.size());
        if (out == nullptr) return writer.used();
        netio::copy_bytes(out, message);
        ++messages;
    }
}

void write_page(benchmark::State& state) {
    std::vector<std::byte> memory(page_bytes);
    const std::vector<std::byte> message(static_cast<std::size_t>(state.range(0)));
    std::int64_t messages = 0;
    for ([[maybe_unused]] const auto step : state)
        benchmark::DoNotOptimize(fill(memory, message, messages));
    state.SetItemsProcessed(messages);
}
BENCHMARK(write_page)->Arg(40)->Arg(1024);

void visit_page(benchmark::State& state) {
    std::vector<std::byte> memory(page_bytes);
    const std::vector<std::byte> message(static_cast<std::size_t>(state.range(0)));
    std::int64_t messages = 0;
    const std::size_t used = fill(memory, message, messages);
    const std::span<const std::byte> page{memory.data(), used};
    std::int64_t visited = 0;
    for ([[maybe_unused]] const auto step : state) {
        netio::pubsub::visit_page(page,
                                  [&](Fid fid, std::span<const std::byte> bytes, std::uint8_t) {
                                      benchmark::DoNotOptimize(fid);
                                      benchmark::DoNotOptimize(bytes.data());
                                      ++visited;
                                      return true;
                                  });
    }
    state.SetItemsProcessed(visited);
}
BENCHMARK(visit_page)->Arg(40)->Arg(1024);

// A message of 64 KiB copied to an address some bytes ahead of the source, modulo 4,096.
template <typename Copy>
void copy_ahead(benchmark::State& state, Copy copy) {
    constexpr std::size_t bytes = 64 * 1024;
    std::vector<std::byte> memory(2 * bytes + 3 * std::size_t{4096}, std::byte{1});
    std::byte* const in = memory.data();
    std::byte* const out = in + bytes + 4096 + state.range(0);
    for ([[maybe_unused]] const auto step : state) {
        copy(out, std::span<const std::byte>{in, bytes});
        benchmark::ClobberMemory();
    }
    state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(bytes));
}
void copy_bytes_ahead(benchmark::State& state) {
    copy_ahead(state, netio::copy_bytes);
}
void memcpy_ahead(benchmark::State& state) {
    copy_ahead(state, [](std::byte* out, std::span<const std::byte> in) {
        std::memcpy(out, in.data(), in.size());
    });
}
BENCHMARK(memcpy_ahead)->Arg(0)->Arg(1)->Arg(12)->Arg(32);
BENCHMARK(copy_bytes_ahead)->Arg(0)->Arg(1)->Arg(12)->Arg(32);

} // namespace
