// SPDX-License-Identifier: Apache-2.0
#pragma once

// Counts of many fids that seldom change and are seldom looked up, in little memory: if fids are
// close together, an entry takes two bytes plus the digits of its count. No I/O.
//
// The counts are stored in runs, sorted by fid and compressed. Each call of add() creates a run.
// Runs of about the same length are merged, so there are few runs, and an entry is seldom copied.

#include "pubsub/core/fid.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace netio::pubsub::inline v0_3 {

class FidCountStore {
  public:
    // Different fids, ascending. These counts replace those of the same fids.
    void add(std::span<const FidCount> counts);
    // Returns 0 if there is no count.
    std::uint64_t find(Fid fid) const noexcept;

    // Memory in use.
    std::size_t bytes() const noexcept;

  private:
    static constexpr std::size_t block_entries = 32;
    struct Block {
        Fid first{};
        std::uint64_t offset = 0; // of its first count
    };
    struct Run {
        std::size_t size = 0;
        std::vector<Block> blocks; // where a search begins
        std::vector<std::uint8_t> entries;
    };
    static Run encoded(std::span<const FidCount> counts);
    static std::vector<FidCount> decoded(const Run& run);
    static std::vector<FidCount> merged(const Run& older, const Run& newer);
    static std::optional<std::uint64_t> find_in(const Run& run, Fid fid) noexcept;
    template <typename Visit>
    static void visit_block(const Run& run, std::size_t block, Visit visit);

    std::vector<Run> runs_; // the newest last; each has more than twice as many counts as the next
};

} // namespace netio::pubsub::inline v0_3
