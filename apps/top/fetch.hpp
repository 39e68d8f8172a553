// SPDX-License-Identifier: Apache-2.0
#pragma once

// Asks a program for its figures over HTTP. What answers may be anybody, as an announcement on a
// bus named it: so much of an answer is read, in so much time, and no more.

#include "netio/base/status.hpp"

#include <chrono>
#include <cstddef>
#include <string>

namespace apps::top {

struct FetchLimits {
    std::chrono::milliseconds patience{3000}; // for all of it
    std::size_t answer_bytes = std::size_t{64} << 20;
};

// The text of http://ADDRESS/metrics. Throws std::runtime_error: why there is none.
std::string fetch_figures(const netio::Address& address, const FetchLimits& limits = {});

} // namespace apps::top
