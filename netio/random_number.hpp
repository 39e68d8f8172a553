// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace netio::inline v0_2 {

// From the kernel, so that it cannot be predicted: identities, seeds, memory keys. Where a seccomp
// filter refuses getrandom(2), it is read from /dev/urandom. Throws FabricError, naming both
// and the remedy. Any thread.
std::uint64_t random_number();

} // namespace netio::inline v0_2
