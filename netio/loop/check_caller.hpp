// SPDX-License-Identifier: Apache-2.0
#pragma once

// Whoever belongs to a loop's thread checks in each of its calls that this is the thread, while the
// loop runs. Built with NDEBUG nothing is left of it. No class is another one for it, so that a
// program and a library may be built differently.

#ifdef NDEBUG
#define NETIO_CHECK_CALLER(loop, type) static_cast<void>(0)
#else
#define NETIO_CHECK_CALLER(loop, type) (loop).check_caller(type, __func__)
#endif
