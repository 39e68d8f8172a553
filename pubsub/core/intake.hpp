// SPDX-License-Identifier: Apache-2.0
#pragma once

// What a publisher's frames bring: messages, gaps, totals, positions, and the account of them. A
// frame that breaks the protocol is refused, and so is what was never subscribed to: a peer decides
// neither what the user is given nor how much is remembered of it. No I/O.

#include "pubsub/core/arrival_counter.hpp"
#include "pubsub/core/continuity.hpp"
#include "pubsub/core/fid_ranges.hpp"
#include "pubsub/core/frames.hpp"
#include "pubsub/core/page.hpp"
#include "pubsub/core/reassembly.hpp"
#include "pubsub/core/subscription_book.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

namespace netio::pubsub::inline v0_2 {

class Intake {
  public:
    enum class Outcome : std::uint8_t {
        malformed, // behind what the sink was given
        too_many_fids,
        no_memory, // for a message that came in fragments
        taken,
        left,   // the sink did not want what follows in the frame: rest()
        totals, // taken, and now the publisher has told all its totals
    };

    struct Limits {
        std::size_t largest_message_bytes = 0;
        std::size_t fids = SIZE_MAX; // that have an account
    };
    // It goes on where the continuity is; without one it begins anew.
    explicit Intake(Limits limits, std::shared_ptr<Continuity> continuity = {})
        : continuity_{continuity ? std::move(continuity) : std::make_shared<Continuity>()},
          reassembly_{limits.largest_message_bytes}, fid_limit_{limits.fids} {}

    // All frames but answers. sink.take_message(fid, bytes, status) and sink.take_gap(fid, count)
    // return whether to go on; if not, sink.is_gone() says whether this object still is.
    // sink.take_change(change) and sink.take_missed(fid, count), between connections, return
    // whether anything is wanted at all.
    struct Frame {
        std::uint8_t kind = 0;
        std::uint8_t flags = 0;
        std::span<const std::byte> body;
        bool continued = false; // the body is the rest that was left
    };
    template <typename Sink>
    Outcome take(const Frame& frame, const SubscriptionBook& book, Sink& sink);
    // The end of the body of which something was left. It comes as a frame of its own, before any
    // other.
    std::span<const std::byte> rest() const noexcept { return rest_; }

    // Half a message does not survive its connection.
    void begin_connection() {
        reassembly_.abandon();
        arrivals_.forget_all();
        continuity_->begin_connection();
    }
    // `in_order`: as Continuity's.
    void end_connection(bool in_order) {
        reassembly_.abandon();
        continuity_->end_connection(arrivals_, in_order);
    }
    void begin_subscription(const FidRange& range) { continuity_->begin(range); }
    void end_subscription(const FidRange& range) {
        arrivals_.forget(range);
        continuity_->forget(range);
    }

    const ArrivalCounter& arrivals() const noexcept { return arrivals_; }
    const FramesSeen& seen() const noexcept { return seen_; }
    // Of the publish socket; 0: it has not said.
    std::uint64_t instance() const noexcept { return continuity_->instance(); }
    const std::shared_ptr<Continuity>& continuity() const noexcept { return continuity_; }

  private:
    // nullptr: nobody asked for it, or it is one too many. Whoever has an account was asked for.
    Arrivals* account_of(Fid fid, const SubscriptionBook& book) {
        if (Arrivals* const account = arrivals_.find(fid)) return account;
        if (!book.grants(fid) || arrivals_.fids().size() >= fid_limit_) return nullptr;
        return &arrivals_.of(fid);
    }
    // Why a fid has no account.
    static Outcome refused(Fid fid, const SubscriptionBook& book) {
        return book.grants(fid) ? Outcome::too_many_fids : Outcome::malformed;
    }
    template <typename Sink>
    Outcome deliver(Fid fid, std::span<const std::byte> message, std::uint8_t status,
                    const SubscriptionBook& book, Sink& sink) {
        Arrivals* const account = account_of(fid, book);
        if (account == nullptr) return refused(fid, book);
        arrivals_.add(*account, message.size());
        sink.take_message(fid, message, status);
        return Outcome::taken;
    }
    template <typename Sink>
    Outcome take_page(const Frame& frame, const SubscriptionBook& book, Sink& sink);
    template <typename Sink>
    Outcome take_gaps(std::span<const std::byte> body, const SubscriptionBook& book, Sink& sink);
    template <typename Sink>
    Outcome take_positions(std::span<const std::byte> body, const SubscriptionBook& book,
                           Sink& sink);
    Outcome take_totals(std::uint8_t flags, std::span<const std::byte> body,
                        const SubscriptionBook& book);

    ArrivalCounter arrivals_;
    std::shared_ptr<Continuity> continuity_;
    Reassembly reassembly_;
    std::size_t fid_limit_;
    FramesSeen seen_;
    std::span<const std::byte> rest_;
    Fid last_{}; // of the page of which something was left
};

template <typename Sink>
Intake::Outcome Intake::take_page(const Frame& frame, const SubscriptionBook& book, Sink& sink) {
    (frame.flags == gathered_flag ? seen_.gathered : seen_.pages) = true;
    // A fid's messages often come in a row. No call that the sink can make touches an account.
    Fid last{};
    Arrivals* account = nullptr;
    bool refuses = false;
    bool enough = false;
    bool left = false;
    const std::byte* end = nullptr; // of the last message
    const auto visit = [&](Fid fid, std::span<const std::byte> message, std::uint8_t status) {
        if (enough) {
            left = true;
            return false;
        }
        if (account == nullptr || fid != last) {
            account = account_of(last = fid, book);
            if (account == nullptr) {
                refuses = true;
                return false;
            }
        }
        arrivals_.add(*account, message.size());
        end = message.data() + message.size();
        enough = !sink.take_message(fid, message, status);
        return !enough || !sink.is_gone();
    };
    const bool sound =
        visit_page(frame.body, visit, frame.continued ? std::optional{last_} : std::nullopt);
    if (left) {
        rest_ = {end, frame.body.data() + frame.body.size()};
        last_ = last;
        return Outcome::left;
    }
    if (refuses) return refused(last, book);
    return sound ? Outcome::taken : Outcome::malformed;
}

template <typename Sink>
Intake::Outcome Intake::take_gaps(std::span<const std::byte> body, const SubscriptionBook& book,
                                  Sink& sink) {
    const auto gaps = decode_counts(body);
    if (!gaps) return Outcome::malformed;
    for (std::size_t i = 0; i < gaps->size(); ++i) {
        const FidCount gap = (*gaps)[i];
        if (account_of(gap.fid, book) == nullptr) return refused(gap.fid, book);
        arrivals_.add_missed(gap.fid, gap.count);
        if (sink.take_gap(gap.fid, gap.count)) continue;
        if (sink.is_gone() || i + 1 == gaps->size()) break;
        rest_ = body.subspan((i + 1) * fid_count_bytes);
        return Outcome::left;
    }
    return Outcome::taken;
}

template <typename Sink>
Intake::Outcome Intake::take_positions(std::span<const std::byte> body,
                                       const SubscriptionBook& book, Sink& sink) {
    const auto extension = decode_positions(body);
    if (!extension || extension->instance == 0) return Outcome::malformed;
    const auto positions = decode_counts(body.subspan(positions_extension_bytes));
    const SubscriptionBook::Request* const request = book.awaited(extension->request);
    if (!positions || request == nullptr) return Outcome::malformed;
    const std::vector<FidRange> asked = normalised(request->ranges);
    if (const auto change = continuity_->meet(extension->instance)) {
        if (!sink.take_change(*change)) return Outcome::taken;
    }
    for (const FidCount& position : *positions) {
        const Fid fid = position.fid;
        if (!contains(asked, fid)) return Outcome::malformed;
        if (book.grants(fid)) continue; // only its policy changes
        if (continuity_->fids() >= fid_limit_ && !continuity_->knows(fid)) {
            return Outcome::too_many_fids;
        }
        const std::uint64_t missed = continuity_->take(position);
        if (missed > 0 && !sink.take_missed(fid, missed)) return Outcome::taken;
    }
    return Outcome::taken;
}

template <typename Sink>
Intake::Outcome Intake::take(const Frame& frame, const SubscriptionBook& book, Sink& sink) {
    const auto [kind, flags, body, continued] = frame;
    if (kind == totals_kind) return take_totals(flags, body, book);
    if (kind == positions_kind) {
        return flags <= more_flag ? take_positions(body, book, sink) : Outcome::malformed;
    }
    // A fragmented message is not interrupted by another one; gaps may come between.
    const bool interrupts = kind == page_kind || kind == message_kind;
    const std::uint8_t allowed = kind == page_kind ? gathered_flag : 0;
    if (flags > allowed || (interrupts && reassembly_.in_progress())) return Outcome::malformed;
    if (kind == page_kind) return take_page(frame, book, sink);
    if (kind == gap_kind) return take_gaps(body, book, sink);
    if (kind == message_kind) {
        seen_.messages = true;
        const auto extension = decode_message(body);
        if (!extension) return Outcome::malformed;
        return deliver(extension->fid, body.subspan(message_extension_bytes), extension->status,
                       book, sink);
    }
    if (kind != fragment_kind) return Outcome::malformed;
    seen_.fragments = true;
    const auto fragment = decode_fragment(body);
    if (!fragment) return Outcome::malformed;
    const auto outcome = reassembly_.take(*fragment, body.subspan(fragment_extension_bytes));
    if (outcome == Reassembly::Outcome::incomplete) return Outcome::taken;
    if (outcome == Reassembly::Outcome::no_memory) return Outcome::no_memory;
    if (outcome != Reassembly::Outcome::complete) return Outcome::malformed;
    return deliver(fragment->fid, reassembly_.message(), fragment->status, book, sink);
}

} // namespace netio::pubsub::inline v0_2
