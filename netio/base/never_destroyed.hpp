// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <new>
#include <utility>

namespace netio::inline v0_3 {

// An object whose destructor never runs. Every static object with a destructor is wrapped in it:
// exit() destroys static objects in the reverse order of their construction, so a user's global
// socket, or a thread that still runs, might use such an object after its destruction.
//
//     static NeverDestroyed<SocketTable> table;
//     return *table;
template <typename Object>
class NeverDestroyed {
  public:
    template <typename... Arguments>
    explicit NeverDestroyed(Arguments&&... arguments) {
        ::new (static_cast<void*>(bytes_)) Object(std::forward<Arguments>(arguments)...);
    }
    NeverDestroyed(const NeverDestroyed&) = delete;
    NeverDestroyed& operator=(const NeverDestroyed&) = delete;

    Object& operator*() noexcept { return *std::launder(reinterpret_cast<Object*>(bytes_)); }
    Object* operator->() noexcept { return &**this; }

  private:
    alignas(Object) std::byte bytes_[sizeof(Object)];
};

} // namespace netio::inline v0_3
