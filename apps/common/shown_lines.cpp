// SPDX-License-Identifier: Apache-2.0
#include "apps/common/shown_lines.hpp"

#include <unistd.h>

#include <stdexcept>
#include <utility>

namespace apps {

ShownLines::ShownLines(netio::EventLoop& loop, std::function<void()> on_writable)
    : writer_{DescriptorOutput{STDOUT_FILENO, "cannot write to standard output"}.write()},
      watch_{loop, writer_.event_descriptor(), netio::DescriptorWatch::Interest::readable,
             [this, &loop, on_writable = std::move(on_writable)] {
                 writer_.clear_event();
                 if (writer_.failure()) return loop.stop();
                 if (!writer_.is_full() && std::exchange(was_full_, false)) on_writable();
             }} {}

void ShownLines::finish() {
    if (!writer_.wait())
        throw std::runtime_error{"cannot write to standard output: its reader takes nothing, and a "
                                 "signal has ended the wait"};
}

} // namespace apps
