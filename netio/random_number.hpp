// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace netio::inline v0_3 {

// From the kernel, so that it cannot be predicted: identities, seeds, memory keys. Where a seccomp
// filter refuses getrandom(2), it is read from /dev/urandom. Throws FabricError, naming both
// and the remedy. Any thread.
std::uint64_t random_number();

// Identifies this process: random, and different after a fork. Throws FabricError at the first call
// in a process, which open_fabric() makes, if there are no random numbers.
std::uint64_t process_instance();

} // namespace netio::inline v0_3
