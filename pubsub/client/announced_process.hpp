// SPDX-License-Identifier: Apache-2.0
#pragma once

// Whether it is the publisher that a bus announced that answers at its address. An address is no
// proof: when a publisher was killed, another one may get its port, and grants what is asked. The
// numbers of the two sides cannot be compared, but each new process has new ones. No I/O.

#include <cstdint>
#include <optional>

namespace netio::pubsub::inline v0_2 {

class AnnouncedProcess {
  public:
    // The bus shows it.
    void announce(std::uint64_t instance) noexcept {
        expired_ = false;
        if (instance_ && *instance_ != instance) {
            // Either it answers already, or it will.
            expected_ = !another_;
            another_ = false;
        }
        instance_ = instance;
    }
    // The bus shows it no more.
    void expire() noexcept { expired_ = true; }
    // It is looked for at another address perhaps.
    void move() noexcept {
        expected_ = expected_ || another_;
        another_ = false;
        expired_ = false;
    }
    // Another one answers than before.
    void change() noexcept {
        another_ = !expected_;
        expected_ = false;
    }

    bool is_expired() const noexcept { return expired_; }
    // Another one answers than the one that was announced last.
    bool is_another() const noexcept { return another_; }
    // It is gone, as far as one can tell, and what answers in its place is another one.
    bool is_replaced() const noexcept { return expired_ && another_; }

  private:
    std::optional<std::uint64_t> instance_; // that was announced
    bool expired_ = false;
    bool expected_ = false; // a change is, for another instance was announced
    bool another_ = false;  // than was announced
};

} // namespace netio::pubsub::inline v0_2
