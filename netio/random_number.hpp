// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace netio::inline v0_3 {

// A random number of the kernel, so that it cannot be predicted: for identities, seeds and memory
// keys. If a seccomp filter refuses getrandom(2), it is read from /dev/urandom. Throws FabricError,
// which names both and the remedy. Any thread.
std::uint64_t random_number();

// Identifies this process: random, and different after a fork. The first call in a process, made by
// open_fabric(), throws FabricError if no random number can be obtained.
std::uint64_t process_instance();

} // namespace netio::inline v0_3
