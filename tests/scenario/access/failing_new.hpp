// SPDX-License-Identifier: Apache-2.0
#pragma once

// Simulated memory shortage: replaces operator new of the program that links this.

#include <cstddef>

namespace netio::test {

// The n-th call of this thread from now on throws std::bad_alloc, and no other call does; 0: none
// does.
void fail_new_at(std::size_t call) noexcept;

} // namespace netio::test
