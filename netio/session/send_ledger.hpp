// SPDX-License-Identifier: Apache-2.0
#pragma once

// Which of the messages that were sent the peer is known to have taken: it takes them in order, and
// returns a credit for each. Counts those of the service; the session's own only pass. A plain
// value, not thread-safe.

#include <cstddef>
#include <cstdint>
#include <deque>

namespace netio::inline v0_2 {

class SendLedger {
  public:
    void on_service_sent() noexcept {
        ++messages_;
        ++sent_;
    }
    void on_own_sent() { own_.push_back(messages_++); }
    void on_credits(std::uint64_t returned) noexcept {
        taken_ += returned;
        while (!own_.empty() && own_.front() < taken_)
            own_.pop_front();
    }

    // Of the service: so far, and those that the peer is not known to have taken.
    std::uint64_t sent() const noexcept { return sent_; }
    std::uint64_t outstanding() const noexcept { return messages_ - taken_ - own_.size(); }

  private:
    std::uint64_t messages_ = 0;
    std::uint64_t taken_ = 0;
    std::uint64_t sent_ = 0;
    std::deque<std::uint64_t> own_; // numbers of the session's own messages, not yet taken
};

} // namespace netio::inline v0_2
