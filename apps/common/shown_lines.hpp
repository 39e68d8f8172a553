// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a program shows on standard output while its loop runs. The loop never waits for the reader:
// lines are queued, up to BackgroundWriter::queue_limit_bytes. While the queue is full the program
// pauses its peers, or leaves lines out and reports how many. Where standard output fails (a full
// disk, a reader that is gone) the loop ends, and finish() throws the failure.

#include "apps/common/background_writer.hpp"
#include "apps/common/printable.hpp"
#include "netio/loop/descriptor_watch.hpp"
#include "netio/loop/event_loop.hpp"

#include <functional>
#include <string_view>

namespace apps {

class ShownLines {
  public:
    // `on_writable` is called in a turn of the loop when a full queue has room again.
    explicit ShownLines(
        netio::EventLoop& loop, std::function<void()> on_writable = [] {});
    ShownLines(const ShownLines&) = delete;
    ShownLines& operator=(const ShownLines&) = delete;

    // Queues it, also beyond the limit. Escapes as print_report().
    void print(std::string_view text) {
        if (is_printable(text, Lines::several)) {
            writer_.put(text);
        } else {
            writer_.put(printable(text, std::string_view::npos, Lines::several));
        }
        was_full_ = was_full_ || writer_.is_full();
    }
    bool is_full() const { return writer_.is_full(); }
    // After the loop: waits until everything is written or a signal asks for the end. Throws
    // std::runtime_error if not everything is written.
    void finish();

  private:
    BackgroundWriter writer_;
    bool was_full_ = false; // and on_writable has not been called since
    netio::DescriptorWatch watch_;
};

} // namespace apps
