// SPDX-License-Identifier: Apache-2.0
#pragma once

// What goes wrong in a world, and when. Many faults strike when somebody has just been told
// something (Event, actors/actor.hpp), rather than at a time: a wait, an end, a half delivery last
// for microseconds, and no time that is drawn would meet them.

#include "tests/world/dice.hpp"
#include "tests/world/schedule.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace netio::world {

class FaultDrawing {
  public:
    // Draws which kinds of faults this world has; one in ten has none.
    explicit FaultDrawing(Dice& dice);

    bool has(const std::string& kind) const;
    // Adds them to a world whose processes do what they do within `span_us`.
    void draw(Schedule& schedule, std::int64_t span_us, std::int64_t fids);

  private:
    void draw_one(const std::string& kind);
    void draw_crowd();
    void draw_strike();
    void draw_farewell();
    void draw_block(bool thin);
    std::uint32_t somebody();
    // Who is served by this process, or serves it; or anybody.
    std::uint32_t partner_of(std::uint32_t process);
    // Half of the faults come when something has just begun.
    std::int64_t moment();

    Dice& dice_;
    Schedule* schedule_ = nullptr;
    std::vector<std::string> kinds_;
    std::int64_t span_us_ = 0;
    std::int64_t fids_ = 1;
};

} // namespace netio::world
