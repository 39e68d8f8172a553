// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a program shows while its loop runs. A handler must not throw, so where standard output
// fails (a full disk, a terminal that is gone, a second Ctrl-C while nobody reads) the loop ends,
// and the program says it behind the run.

#include "apps/common/standard_output.hpp"
#include "netio/loop/event_loop.hpp"

#include <exception>
#include <string_view>

namespace apps {

class ShownLines {
  public:
    explicit ShownLines(netio::EventLoop& loop) noexcept : loop_{loop} {}

    // Nothing after the first failure, which stops the loop.
    void print(std::string_view text, WaitUntil until = WaitUntil::second_signal) {
        if (failure_) return;
        try {
            print_report(text, until);
        } catch (...) {
            failure_ = std::current_exception();
            loop_.stop();
        }
    }
    // Throws what print() has caught.
    void check() const {
        if (failure_) std::rethrow_exception(failure_);
    }

  private:
    netio::EventLoop& loop_;
    std::exception_ptr failure_;
};

} // namespace apps
