// SPDX-License-Identifier: Apache-2.0
#pragma once

// Collects messages for a Mailbox, so that it is locked once for many of them, and decides what
// becomes of one for which there is no room. It knows how full the mailbox was when it last looked;
// since then there can only be more room. No I/O, no threads.

#include "pubsub/core/fid_map.hpp"
#include "pubsub/core/mailbox.hpp"
#include "pubsub/core/slow_policy.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

namespace netio::pubsub::inline v0_2 {

class BatchFiller {
  public:
    struct Options {
        Mailbox::Load limit;
        SlowPolicy when_full = SlowPolicy::block; // or drop
    };
    explicit BatchFiller(const Options& options) noexcept : options_{options} { look({}); }

    // How full the mailbox is now.
    void look(const Mailbox::Load& load) noexcept {
        seen_ = load;
        const Mailbox::Load& limit = options_.limit;
        calm_ = {.messages = std::min(batch_messages,
                                      limit.messages - std::min(limit.messages, load.messages)),
                 .bytes = std::min(batch_bytes, limit.bytes - std::min(limit.bytes, load.bytes))};
    }
    // The usual case: there is room, nothing has to be told, and behind it the batch is neither
    // full nor due. False: it is not so, and nothing was taken.
    bool put_calmly(Fid fid, std::span<const std::byte> bytes, std::uint8_t status) {
        if (missing_ > 0 || batch_.size() + 1 >= calm_.messages ||
            batch_.bytes() + bytes.size() >= calm_.bytes) {
            return false;
        }
        batch_.append({.fid = fid, .status = status, .missed = 0, .bytes = bytes});
        return true;
    }
    // With what is collected here it is full, or may be.
    bool is_full() const noexcept {
        return seen_.messages + batch_.size() >= options_.limit.messages ||
               seen_.bytes + batch_.bytes() >= options_.limit.bytes;
    }
    bool blocks() const noexcept { return options_.when_full != SlowPolicy::drop; }

    // False: dropped, and counted. With `block` what comes though it is full is taken as well: it
    // cannot be sent back.
    bool put(Fid fid, std::span<const std::byte> bytes, std::uint8_t status) {
        if (!blocks() && is_full()) {
            add_missed(fid, 1);
            return false;
        }
        std::uint64_t missed = 0;
        if (missing_ > 0) {
            if (const std::uint64_t* const found = missed_.find(fid)) {
                missing_ -= missed = *found;
                missed_.erase(fid);
            }
        }
        batch_.append({.fid = fid, .status = status, .missed = missed, .bytes = bytes});
        return true;
    }
    // So many are missing in front of the next one of this fid.
    void add_missed(Fid fid, std::uint64_t count) {
        missed_[fid] += count;
        missing_ += count;
    }
    // Nothing more comes: what is missing and has not been told is, whether there is room or not.
    void put_rest() {
        missed_.for_each([this](Fid fid, std::uint64_t count) {
            batch_.append({.fid = fid, .missed = count, .is_gap = true, .bytes = {}});
        });
        missed_.clear();
        missing_ = 0;
    }
    // It is large enough to be handed over.
    bool is_due() const noexcept {
        return batch_.size() >= batch_messages || batch_.bytes() >= batch_bytes;
    }
    MessageBatch& batch() noexcept { return batch_; }

  private:
    static constexpr std::size_t batch_messages = 2048;
    static constexpr std::size_t batch_bytes = std::size_t{256} << 10;

    Options options_;
    Mailbox::Load seen_;
    Mailbox::Load calm_; // below that a batch is neither full nor due
    MessageBatch batch_;
    FidMap<std::uint64_t> missed_; // not told yet
    std::uint64_t missing_ = 0;    // of all fids
};

} // namespace netio::pubsub::inline v0_2
