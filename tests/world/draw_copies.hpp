// SPDX-License-Identifier: Apache-2.0
#pragma once

// Draws copies of files with its own dice, so the rest of the world is the same with and without
// them.

#include "tests/world/dice.hpp"
#include "tests/world/schedule.hpp"

#include <cstdint>

namespace netio::world {

class CopyDrawing {
  public:
    explicit CopyDrawing(std::uint64_t seed) : dice_{seed} {}

    // Whether this world has only copies, to be called first; otherwise it may add some.
    bool are_alone() { return dice_.percent(7); }
    bool are_among_others() { return dice_.percent(4); }
    // Adds a server and copiers to a world in which everything happens within `span_us`.
    void draw(Schedule& schedule, std::int64_t span_us);
    // Adds files of several chunks that change during the copy, connections that break, and disks
    // that fail.
    void draw_troubled(Schedule& schedule, std::int64_t span_us);

  private:
    struct Terms {
        std::int64_t large_percent;       // files that may have several chunks
        std::int64_t overwriting_percent; // worlds in which files replace others
        std::int64_t troubled_percent;    // disks that fail for a while
    };
    void draw_all(const Terms& terms);
    void draw_changing();
    void draw_rivals();
    void draw_failing();
    void draw_files(std::uint32_t copier, const Terms& terms, bool overwrites);
    std::uint32_t add_server();
    std::uint32_t add_copier(std::uint32_t server, bool overwrites);
    void copy(std::uint32_t copier, std::int64_t when, std::int64_t file, std::int64_t bytes);
    std::int64_t large();
    std::int64_t moment();

    Dice dice_;
    Schedule* schedule_ = nullptr;
    std::int64_t span_us_ = 0;
};

} // namespace netio::world
