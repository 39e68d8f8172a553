// SPDX-License-Identifier: Apache-2.0
#pragma once

// What libfabric's tcp provider up to 1.17 does for those who wait for a completion queue while
// others complete something: it writes a byte into a pipe for completions, and reads it at the next
// look. That is two calls of the kernel for every message of a paced stream, and here nobody needs
// it: a queue and all its endpoints belong to one thread, which looks into the queue after whatever
// it did with one of them.

namespace netio::fabric {

// Takes the pipe out of what a new queue's descriptor (an epoll's) waits for: the first byte stays
// in it, and no other is written. True: it is out; fi_trywait must not be called for the queue any
// more, as it would read that byte. False: all is as it was.
bool take_out_signal_pipe(int wait_fd) noexcept;

} // namespace netio::fabric
