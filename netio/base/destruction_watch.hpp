// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace netio::inline v0_3 {

// Lets a member function detect that a handler which it called has destroyed its object. The object
// has a member `bool* destroyed_`, null at first; its destructor sets the flag that it points to,
// if any:
//
//     const DestructionWatch watch{destroyed_};
//     handler_.on_something();
//     if (watch.destroyed()) return; // do not use *this any more
class DestructionWatch {
  public:
    // Not inlined: otherwise g++ 12 warns that the pointer outlives this object.
    [[gnu::noinline]] explicit DestructionWatch(bool*& slot) noexcept : slot_{slot}, outer_{slot} {
        slot_ = &destroyed_;
    }
    ~DestructionWatch() {
        if (!destroyed_) {
            slot_ = outer_;
        } else if (outer_ != nullptr) {
            *outer_ = true; // an outer watch of the same object, further up the call stack
        }
    }
    DestructionWatch(const DestructionWatch&) = delete;
    DestructionWatch& operator=(const DestructionWatch&) = delete;

    bool destroyed() const noexcept { return destroyed_; }

  private:
    bool*& slot_;
    bool* outer_;
    bool destroyed_ = false;
};

} // namespace netio::inline v0_3
