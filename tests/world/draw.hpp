// SPDX-License-Identifier: Apache-2.0
#pragma once

// Draws a world from a seed. It first draws which features and faults exist in the world at all, so
// that a fault that needs three hundred undisturbed messages gets them. One world in ten has no
// fault; there every promise must hold without exception.

#include "tests/world/schedule.hpp"

#include <cstdint>

namespace netio::world {

Schedule draw(std::uint64_t seed);

} // namespace netio::world
