// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a server with keys shows of its gate.

#include "apps/metrics/exposition.hpp"
#include "apps/metrics/metrics.hpp"
#include "netio/session/server_keys.hpp"

#include <memory>

namespace apps {

void write(const netio::ServerKeys::Counters& gate, Exposition& text);

// What `collect` collects, and the gate. Without keys `collect` itself.
Collect with_gate(std::shared_ptr<const netio::ServerKeys> keys, Collect collect);

} // namespace apps
