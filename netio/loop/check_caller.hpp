// SPDX-License-Identifier: Apache-2.0
#pragma once

// Every public call of an object that belongs to a loop checks its caller: it must not be another
// thread while the loop runs, nor a child process that has inherited the object. A violation ends
// the program with one line that names the call and the remedy.
//
// A call that is made for each message and does little else uses the frequent check, which exists
// only in builds without NDEBUG. Such a call reaches a full check each time it begins a page. The
// check does not change the layout of any class, so a program and a library may be built
// differently.

#include <memory>

#define NETIO_CHECK_CALLER(loop, type) (loop).check_caller(type, __func__)

#ifdef NDEBUG
#define NETIO_CHECK_FREQUENT_CALLER(loop, type) static_cast<void>(0)
#else
#define NETIO_CHECK_FREQUENT_CALLER(loop, type) NETIO_CHECK_CALLER(loop, type)
#endif

namespace netio::inline v0_3 {

// For the destructor of a public class: checks its caller. In a child process, releases the
// implementation without destroying it, so that nothing that is shared with the parent is changed.
template <typename Loop, typename Core>
void check_destructor(const Loop& loop, const char* type, std::unique_ptr<Core>& core) noexcept {
    if (!loop.may_destroy(type)) static_cast<void>(core.release());
}

} // namespace netio::inline v0_3
