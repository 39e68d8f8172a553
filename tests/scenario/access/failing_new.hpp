// SPDX-License-Identifier: Apache-2.0
#pragma once

// Memory that is not to be had: operator new of the program that this is linked into.

#include <cstddef>

namespace netio::test {

// The n-th of this thread's calls from now on throws std::bad_alloc, and no other; 0: none does.
void fail_new_at(std::size_t call) noexcept;

} // namespace netio::test
