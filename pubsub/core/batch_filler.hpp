// SPDX-License-Identifier: Apache-2.0
#pragma once

// Collects messages for a Mailbox, so that it is locked once for many of them, and decides what
// becomes of one for which there is no room. It knows how full the mailbox was when it last looked;
// since then there can only be more room. No I/O, no threads.

#include "pubsub/core/conflation.hpp"
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
        SlowPolicy when_full = SlowPolicy::block; // disconnect is the same here
    };
    explicit BatchFiller(const Options& options) : options_{options}, newest_{options.limit.bytes} {
        look({});
    }

    // How full the mailbox is now. What is kept becomes a part of the batch, as far as there is
    // room, so that nothing newer of its fid is in front of it.
    void look(const Mailbox::Load& load) {
        seen_ = load;
        if (!newest_.empty() && !is_full()) take_kept(false);
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
    bool blocks() const noexcept {
        return options_.when_full == SlowPolicy::block ||
               options_.when_full == SlowPolicy::disconnect;
    }

    // False: it is not in the batch, but dropped, or with `newest` kept until there is room. With
    // `block` what comes though it is full is taken as well: it cannot be sent back.
    bool put(Fid fid, std::span<const std::byte> bytes, std::uint8_t status) {
        if (!blocks() && is_full()) {
            options_.when_full == SlowPolicy::newest ? keep(fid, bytes, status) : drop(fid);
            return false;
        }
        append(fid, bytes, status);
        return true;
    }
    // Since its construction; of all fids.
    std::uint64_t dropped() const noexcept { return dropped_; }
    // Messages wait here for room.
    bool keeps() const noexcept { return newest_.has_messages(); }
    // So many are missing in front of the next one of this fid.
    void add_missed(Fid fid, std::uint64_t count) {
        missed_[fid] += count;
        missing_ += count;
    }
    // Nothing more comes: what is missing and has not been told is, whether there is room or not.
    void put_rest() {
        take_kept(true);
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

    void append(Fid fid, std::span<const std::byte> bytes, std::uint8_t status) {
        std::uint64_t missed = 0;
        if (missing_ > 0) {
            if (const std::uint64_t* const found = missed_.find(fid)) {
                missing_ -= missed = *found;
                missed_.erase(fid);
            }
        }
        batch_.append({.fid = fid, .status = status, .missed = missed, .bytes = bytes});
    }
    void drop(Fid fid) {
        add_missed(fid, 1);
        ++dropped_;
    }
    void keep(Fid fid, std::span<const std::byte> bytes, std::uint8_t status) {
        dropped_ += newest_.put(fid, {&bytes, 1}, status).size();
        calm_ = {}; // until the next look
    }
    void take_kept(bool all) {
        for (const FidCount& missed : newest_.take_missed())
            add_missed(missed.fid, missed.count);
        while (newest_.has_messages() && (all || !is_full())) {
            const ConflationStore::Message& message = newest_.front();
            append(message.fid, message.bytes, message.status);
            newest_.pop_front();
        }
    }

    Options options_;
    ConflationStore newest_; // with `newest`, of each fid; as many bytes again
    Mailbox::Load seen_;
    Mailbox::Load calm_; // below that a batch is neither full nor due
    MessageBatch batch_;
    FidMap<std::uint64_t> missed_; // not told yet
    std::uint64_t missing_ = 0;    // of all fids
    std::uint64_t dropped_ = 0;
};

} // namespace netio::pubsub::inline v0_2
