// SPDX-License-Identifier: Apache-2.0
#pragma once

// Draws the faults of a world and their times. Many faults happen right after a callback (Event,
// actors/actor.hpp) instead of at a time: a wait, an end or a partial delivery lasts for
// microseconds, and a drawn time would not hit it.

#include "tests/world/dice.hpp"
#include "tests/world/schedule.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace netio::world {

class FaultDrawing {
  public:
    // Draws which kinds of faults this world has; one world in ten has none.
    explicit FaultDrawing(Dice& dice);

    bool has(const std::string& kind) const;
    // Adds faults to a world whose processes act within `span_us`.
    void draw(Schedule& schedule, std::int64_t span_us, std::int64_t fids);

  private:
    void draw_one(const std::string& kind);
    void draw_crowd();
    void draw_strike();
    void draw_farewell();
    void draw_block(bool thin);
    std::uint32_t somebody();
    // A process that serves this one or is served by it; otherwise any process.
    std::uint32_t partner_of(std::uint32_t process);
    // Half of the faults happen just after another operation has begun.
    std::int64_t moment();

    Dice& dice_;
    Schedule* schedule_ = nullptr;
    std::vector<std::string> kinds_;
    std::int64_t span_us_ = 0;
    std::int64_t fids_ = 1;
};

} // namespace netio::world
