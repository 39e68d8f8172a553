// SPDX-License-Identifier: Apache-2.0
#pragma once

// What the ports of RDMA devices show. No I/O.

#include "apps/common/machine.hpp"
#include "apps/metrics/exposition.hpp"

#include <span>

namespace apps {

// Nothing where there are none.
void write(std::span<const RdmaDevice> devices, Exposition& text);

} // namespace apps
