// SPDX-License-Identifier: Apache-2.0
#pragma once

// Hands messages from a client's thread to all others: a Mailbox with a lock, somebody who waits,
// and a descriptor for those with a loop of their own.

#include "pubsub/core/mailbox.hpp"

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <span>
#include <vector>

namespace netio::pubsub::inline v0_2 {

class MessageQueue {
  public:
    // `go_on`: asks for more, from any thread; false: ask again later.
    MessageQueue(const Mailbox::Options& options, std::function<bool()> go_on);
    ~MessageQueue();
    MessageQueue(const MessageQueue&) = delete;
    MessageQueue& operator=(const MessageQueue&) = delete;

    // False: nothing more should come until `go_on`.
    bool put(Fid fid, std::span<const std::byte> bytes, std::uint8_t status);
    // Nothing more will come.
    void end();
    void wait_for_end();

    std::size_t poll(std::vector<Message>& out, std::size_t at_most,
                     std::chrono::milliseconds timeout);
    int pollable_fd() const noexcept { return fd_; }
    std::uint64_t dropped() const;

  private:
    mutable std::mutex mutex_;
    std::condition_variable something_;
    Mailbox mailbox_;
    std::function<bool()> go_on_;
    bool stopped_ = false; // nothing more comes until there is room
    bool ended_ = false;
    int fd_; // readable while something waits
};

} // namespace netio::pubsub::inline v0_2
