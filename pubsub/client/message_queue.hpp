// SPDX-License-Identifier: Apache-2.0
#pragma once

// Hands messages from a client's thread to all others: a Mailbox with a lock, somebody who waits,
// and a descriptor for those with a loop of their own. The lock is taken once for a batch.

#include "pubsub/core/batch_filler.hpp"
#include "pubsub/core/mailbox.hpp"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <span>
#include <vector>

namespace netio::pubsub::inline v0_2 {

class MessageQueue {
  public:
    // `go_on`: asks for more, from any thread.
    MessageQueue(const BatchFiller::Options& options, std::function<void()> go_on);
    ~MessageQueue();
    MessageQueue(const MessageQueue&) = delete;
    MessageQueue& operator=(const MessageQueue&) = delete;

    // The client's thread. False: nothing more should come until `go_on`. What was put is there for
    // others after hand_over(), which is due at the end of the loop's turn, and behind `go_on`.
    bool put(Fid fid, std::span<const std::byte> bytes, std::uint8_t status) {
        return filler_.put_calmly(fid, bytes, status) || put_with_care(fid, bytes, status);
    }
    // So many of this fid are missing here.
    void add_missed(Fid fid, std::uint64_t count) { filler_.add_missed(fid, count); }
    bool hand_over();
    // Adds a gap of no messages, for readers that are to look for something else.
    void put_mark();
    // Nothing more will come. What is missing and has not been told yet is.
    void end();
    void wait_for_end();

    // Any thread.
    std::size_t poll(MessageBatch& batch, std::chrono::milliseconds timeout);
    std::size_t poll(std::vector<Message>& out, std::size_t at_most,
                     std::chrono::milliseconds timeout);
    int pollable_fd() const noexcept { return fd_; }
    std::uint64_t dropped() const noexcept { return dropped_.load(std::memory_order_relaxed); }

  private:
    bool put_with_care(Fid fid, std::span<const std::byte> bytes, std::uint8_t status);
    template <typename Take>
    std::size_t poll(Take take, std::chrono::milliseconds timeout);
    void go_on_if_there_is_room();

    // The client's thread's own.
    BatchFiller filler_;
    bool has_looked_ = false; // in this turn
    std::atomic<std::uint64_t> dropped_{0};

    std::mutex mutex_; // of what follows
    std::condition_variable something_;
    Mailbox mailbox_;
    std::function<void()> go_on_;
    bool stopped_ = false; // somebody waits for room
    bool ended_ = false;
    int fd_; // readable while something waits
};

} // namespace netio::pubsub::inline v0_2
