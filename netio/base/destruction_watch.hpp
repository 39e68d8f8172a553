// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace netio::inline v0_3 {

// Lets a member function notice that a handler it called has destroyed its object. The object has
// a `bool* destroyed_` that is null, and its destructor sets the flag behind it:
//
//     const DestructionWatch watch{destroyed_};
//     handler_.on_something();
//     if (watch.destroyed()) return; // touch nothing of *this
class DestructionWatch {
  public:
    // Not inlined: g++ 12 otherwise takes the pointer for one that outlives this object.
    [[gnu::noinline]] explicit DestructionWatch(bool*& slot) noexcept : slot_{slot}, outer_{slot} {
        slot_ = &destroyed_;
    }
    ~DestructionWatch() {
        if (!destroyed_) {
            slot_ = outer_;
        } else if (outer_ != nullptr) {
            *outer_ = true; // the caller's caller is inside the same object
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
