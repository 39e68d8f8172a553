// SPDX-License-Identifier: Apache-2.0
#pragma once

// A seed becomes a world. It first draws which features and faults exist in it at all, so that a
// fault that needs three hundred quiet messages gets them; one world in ten has no fault, and there
// every promise holds to the letter.

#include "tests/world/schedule.hpp"

#include <cstdint>

namespace netio::world {

Schedule draw(std::uint64_t seed);

} // namespace netio::world
