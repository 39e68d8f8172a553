// SPDX-License-Identifier: Apache-2.0
#pragma once

// The messages that a publisher keeps for late subscribers: of all fids, in the order of their
// publication, in one ring of memory. The oldest are discarded first, so what is kept is always the
// end of the stream. No I/O, no clock.
//
//     while (!log.has_room(size)) log.drop_front(); // for each: who has not been sent it?
//     log.append({.fid = fid, .status = status, .number = number, .time = now}, parts);

#include "netio/base/time.hpp"
#include "netio/coalescing/page.hpp"
#include "pubsub/core/fid_map.hpp"
#include "pubsub/core/fid_ranges.hpp"
#include "pubsub/core/wire.hpp"
#include "pubsub/publisher/publisher_snapshot.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

namespace netio::pubsub::inline v0_3 {

class HistoryLog {
  public:
    struct Limits {
        std::size_t bytes = 0; // of the memory
        Duration time{};       // of the age of a message; 0: none
    };
    explicit HistoryLog(const Limits& limits);

    // The memory that a message needs.
    static constexpr std::size_t overhead_bytes = 32;
    static constexpr std::size_t bytes_for(std::size_t message_bytes) noexcept {
        return overhead_bytes + (message_bytes + 7) / 8 * 8;
    }

    // The place of a message in the log: the sum of the memory of all earlier ones. Places
    // only ascend, and each is valid from begin() to end().
    using Place = std::uint64_t;
    Place begin() const noexcept { return begin_; }
    Place end() const noexcept { return end_; }

    struct Head {
        Fid fid{};
        std::uint8_t status = 0;
        std::uint64_t number = 0; // the messages of the fid before it
        TimePoint time{};         // of its publication
    };
    struct Message : Head {
        // The bytes, in two parts if they cross the end of the memory.
        std::array<std::span<const std::byte>, 2> parts;
        std::size_t bytes = 0;
        Place next = 0;
    };
    // Valid until the message is discarded.
    Message at(Place place) const noexcept;

    // Whether there is free memory for a message of this size.
    bool has_room(std::size_t message_bytes) const noexcept {
        return bytes() + bytes_for(message_bytes) <= limits_.bytes;
    }
    // Returns false if the message is larger than the limit.
    bool can_keep(std::size_t message_bytes) const noexcept {
        return bytes_for(message_bytes) <= limits_.bytes;
    }
    // Discards the oldest message.
    void drop_front();
    // Whether the oldest message is older than the limit of time.
    bool is_front_expired(TimePoint now) const noexcept {
        return limits_.time > Duration::zero() && begin_ < end_ &&
               at(begin_).time < now - limits_.time;
    }
    // Appends a message. There must be space for it.
    void append(const Head& head, MessageParts parts);
    // Notes that this message is not kept, nor any earlier one of its fid.
    void skip(const Head& head) { first_[head.fid] = head.number + 1; }

    // The number of the oldest message of a fid that is kept, or of the next one if none is.
    std::uint64_t first_of(Fid fid) const noexcept {
        const std::uint64_t* const first = first_.find(fid);
        return first != nullptr ? *first : 0;
    }
    // In use.
    std::size_t bytes() const noexcept { return static_cast<std::size_t>(end_ - begin_); }
    std::size_t messages() const noexcept { return messages_; }
    const Limits& limits() const noexcept { return limits_; }

  private:
    void write(Place place, std::span<const std::byte> bytes) noexcept;
    void read(Place place, std::span<std::byte> out) const noexcept;
    std::size_t offset(Place place) const noexcept {
        return static_cast<std::size_t>(place % limits_.bytes);
    }

    Limits limits_;
    std::unique_ptr<std::byte[]> memory_; // pages of it that were never used cost nothing
    Place begin_ = 0;
    Place end_ = 0;
    std::size_t messages_ = 0;
    FidMap<std::uint64_t> first_; // of fids of which messages were discarded
};

} // namespace netio::pubsub::inline v0_3

// The history of a buffered publisher: the kept messages, and the subscribers that are being sent
// them. A subscription with history is late: it is at a place in the log, and is sent the messages
// from there on instead of new ones. At the end of the log it becomes live. No I/O, no clock.
//
// | situation                                      | block, disconnect     | drop, newest |
// |------------------------------------------------|-----------------------|--------------|
// | a message of before the subscription is        | lost                  | lost         |
// | discarded before it is sent                    |                       |              |
// | half of the log are messages since the         | publishing its fids   | -            |
// | subscription that were not sent                | waits until it is live|              |
// | a message since the subscription is discarded  | session ends          | lost         |
// | before it is sent                              |                       |              |

namespace netio::pubsub::inline v0_3 {

class History {
  public:
    // Checks the options of a publisher (BufferedPublishSocket::Options). Throws
    // std::invalid_argument.
    static void check(std::size_t limit_bytes, std::chrono::milliseconds time);
    // Returns nullptr if no messages are kept.
    static std::unique_ptr<History> make(std::size_t limit_bytes, std::chrono::milliseconds time);
    explicit History(const HistoryLog::Limits& limits) : log_{limits} {}

    // A late subscription: the fids of a request.
    struct CatchUp {
        SubscriberId subscriber{};
        std::vector<FidRange> fids;  // disjoint, ascending
        HistoryLog::Place next = 0;  // not sent yet
        HistoryLog::Place since = 0; // the end of the log when it was accepted
        bool holds = false;          // publishing its fids waits
        bool overrun = false;        // its session must end
        bool ended = false;          // for the caller: that was done

        bool wants(Fid fid) const { return contains(fids, fid); }
    };
    const HistoryLog& log() const noexcept { return log_; }
    std::vector<CatchUp>& late() noexcept { return late_; }
    std::size_t late_of(SubscriberId subscriber) const noexcept {
        return static_cast<std::size_t>(
            std::ranges::count(late_, subscriber, &CatchUp::subscriber));
    }

    // Begins at the oldest message.
    void begin(SubscriberId subscriber, std::vector<FidRange> fids) {
        late_.push_back({.subscriber = subscriber,
                         .fids = std::move(fids),
                         .next = log_.begin(),
                         .since = log_.end()});
    }
    // Moves on to the next message that the subscription wants. Returns false if there is none, or
    // all steps are used: each is a message that was examined.
    bool find(CatchUp& late, std::size_t& steps) const;
    // Writes messages from there on into a page, the first of which has space there.
    void fill(CatchUp& late, PageWriter& page, std::size_t& steps) const;
    // Call it when the subscriber does not want these fids any more, or receives them live.
    void end(SubscriberId subscriber, std::span<const FidRange> fids);

    // Whether publishing a message must wait for late subscriptions: their subscribers are appended
    // to `waited_for`. may_wait(subscriber, fid): by its policy it may.
    template <typename MayWait>
    bool must_wait(Fid fid, std::size_t message_bytes, MayWait may_wait,
                   std::vector<SubscriberId>& waited_for) {
        for (CatchUp& each : late_) {
            if (each.overrun || !(each.holds || has_much(each, message_bytes))) continue;
            if (!each.wants(fid) || !may_wait(each.subscriber, fid)) continue;
            each.holds = true;
            waited_for.push_back(each.subscriber);
        }
        return !waited_for.empty();
    }
    // Keeps a message, and discards others for it. Calls on_lost(catch_up, fid, since) for each
    // that a late subscription was not sent; `since`: it was published after the request was
    // accepted.
    template <typename OnLost>
    void keep(const HistoryLog::Head& head, MessageParts parts, OnLost on_lost) {
        expire(head.time);
        const std::size_t bytes = size_of(parts);
        while (!log_.has_room(bytes) && log_.begin() < log_.end())
            discard(on_lost);
        if (log_.has_room(bytes)) return log_.append(head, parts);
        log_.skip(head);
        for (CatchUp& each : late_)
            if (!each.overrun && each.wants(head.fid)) on_lost(each, head.fid, true);
    }
    // Discards the messages that are too old, unless a late subscription waits for them.
    void expire(TimePoint now) {
        const auto is_needed = [this] {
            return std::ranges::any_of(late_, [this](const CatchUp& each) {
                return !each.overrun && each.next == log_.begin();
            });
        };
        while (log_.is_front_expired(now) && !is_needed())
            log_.drop_front();
    }

    // Pages with kept messages: each has one subscriber, and is queued for it or in flight to it.
    void note_sent(std::uint32_t page, SubscriberId subscriber, std::size_t amount) {
        pages_[page] = {.subscriber = subscriber, .amount = amount};
        outstanding_[subscriber] += amount;
    }
    // Returns false if the page has none.
    bool returned(std::uint32_t page) {
        const auto node = pages_.extract(page);
        if (node.empty()) return false;
        const auto sum = outstanding_.find(node.mapped().subscriber);
        if ((sum->second -= node.mapped().amount) == 0) outstanding_.erase(sum);
        return true;
    }
    std::size_t outstanding(SubscriberId subscriber) const {
        const auto found = outstanding_.find(subscriber);
        return found == outstanding_.end() ? 0 : found->second;
    }

    HistorySnapshot snapshot() const noexcept {
        return {.limit = log_.limits().bytes,
                .bytes = log_.bytes(),
                .messages = log_.messages(),
                .late = late_.size()};
    }

  private:
    bool has_much(const CatchUp& each, std::size_t message_bytes) const noexcept {
        const HistoryLog::Place from = std::max(each.next, each.since);
        return log_.end() - from + HistoryLog::bytes_for(message_bytes) > log_.limits().bytes / 2;
    }
    template <typename OnLost>
    void discard(OnLost on_lost) {
        const HistoryLog::Place place = log_.begin();
        const HistoryLog::Message front = log_.at(place);
        for (CatchUp& each : late_) {
            if (each.next != place) continue;
            each.next = front.next;
            if (!each.overrun && each.wants(front.fid))
                on_lost(each, front.fid, place >= each.since);
        }
        log_.drop_front();
    }

    struct Sent {
        SubscriberId subscriber{};
        std::size_t amount = 0;
    };
    HistoryLog log_;
    std::vector<CatchUp> late_; // in the order of their requests
    std::unordered_map<std::uint32_t, Sent> pages_;
    std::unordered_map<SubscriberId, std::size_t> outstanding_;
};

} // namespace netio::pubsub::inline v0_3
