// SPDX-License-Identifier: Apache-2.0
#pragma once

// What one connection of a subscriber has asked for, and what it has received: SubscriptionState,
// ResumeState and FrameReceiver.

// The subscriptions of one subscriber: the fids that it wants, has requested from its publisher,
// and was granted. The three sets differ while an answer is outstanding. The last request for a fid
// counts; a refused request has no effect. No I/O.

#include "pubsub/core/arrival_counter.hpp"
#include "pubsub/core/fid.hpp"
#include "pubsub/core/fid_map.hpp"
#include "pubsub/core/fid_ranges.hpp"
#include "pubsub/core/publisher_change.hpp"
#include "pubsub/core/slow_policy.hpp"
#include "pubsub/core/wire.hpp"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <variant>
#include <vector>

namespace netio::pubsub::inline v0_3 {

class SubscriptionState {
  public:
    using Policy = std::optional<SlowPolicy>; // nullopt: the policy of the publisher

    struct Request {
        std::uint32_t number = 0;
        bool subscribe = true;
        Policy policy;
        // With history: whether it was asked for before (ask_for_history()), for all ranges.
        bool supplied = false;
        std::vector<FidRange> ranges;
    };

    // From now on subscribe requests are for history: those of these fids, which another object
    // owns and changes, are separate from the others.
    using Fids = FidRangeMap<std::monostate>;
    void ask_for_history(const Fids& supplied) noexcept { supplied_ = &supplied; }

    void subscribe(std::span<const FidRange> ranges, Policy policy);
    void unsubscribe(const FidRange& range);

    // Call it when a connection begins: requests all wanted fids, with up to `ranges_per_request`
    // ranges in each request.
    void begin(std::size_t ranges_per_request);
    // Call it when the connection has ended: from now on grants() is false for every fid, and no
    // answer is awaited.
    void end();

    // The request to send next, until sent() is called; nullptr: none.
    const Request* next() const noexcept {
        return unsent_.empty() ? nullptr : &unsent_.front().request;
    }
    void sent();
    // Takes an answer of the publisher and returns its request; `nullopt` if there is no such
    // request. If several ranges are not permitted together, each is requested alone, and the
    // returned request has no ranges.
    std::optional<Request> answered(const SubscriptionAnswer& answer);

    // Whether the publisher may send messages of this fid.
    bool grants(Fid fid) const { return granted_.find(fid) != nullptr; }
    // The subscribe request with this number, if its answer is outstanding; else nullptr.
    const Request* awaited(std::uint32_t number) const;
    // The ranges of unsubscribe requests without an answer.
    std::vector<FidRange> leaving() const;
    bool empty() const noexcept { return wanted_.empty(); }
    // The parts of a range that are wanted.
    std::vector<FidRange> wanted_in(const FidRange& range) const;
    // The parts of a range that are wanted, and whose last request has no answer yet.
    std::vector<FidRange> awaited_in(const FidRange& range) const;
    std::vector<FidRange> wanted() const; // disjoint, not adjacent, ascending
    // Number of stored ranges. Granted neighbours with the same policy are one range.
    std::size_t wanted_count() const noexcept { return wanted_.size(); }
    // The number of ranges examined for requests and answers, as a measure of their cost.
    std::size_t steps() const noexcept { return steps_; }

  private:
    struct Wish {
        Policy policy;
        // The last request for it. 0: none yet, or it and all earlier requests were answered.
        std::uint32_t request = 0;

        friend bool operator==(const Wish&, const Wish&) = default;
    };
    using Wishes = FidRangeMap<Wish>;
    struct Pending {
        Request request;
        std::vector<Wishes::Piece> before; // the wishes for its ranges before it
    };

    // The entries of a map in a range, counted in steps_.
    template <typename Value>
    auto look_at(const FidRangeMap<Value>& map, const FidRange& range) {
        auto pieces = map.pieces(range);
        steps_ += 1 + pieces.size();
        return pieces;
    }
    void ask(bool subscribe, std::span<const FidRange> ranges, Policy policy);
    void ask_for(bool subscribe, std::span<const FidRange> ranges, Policy policy, bool supplied);
    void refuse(const Pending& pending);
    void ask_one_by_one(const Pending& pending);
    void settle(const Request& request);

    Wishes wanted_;
    FidRangeMap<std::monostate> granted_;
    std::deque<Pending> unsent_;
    std::map<std::uint32_t, Pending> asked_;
    std::size_t ranges_per_request_ = 0; // 0: not connected
    std::uint32_t last_request_ = 0;
    std::size_t steps_ = 0;
    const Fids* supplied_ = nullptr; // null: no history
};

} // namespace netio::pubsub::inline v0_3

// The positions of a subscriber in the stream of each fid. They give the messages that it lost
// between two connections to the same publish socket. Another publish socket, for instance of a
// restarted publisher, counts from the beginning. The losses at the end of the former stream are
// then not known, unless the publisher had sent its totals. No I/O.

namespace netio::pubsub::inline v0_3 {

class ResumeState {
  public:
    void begin_connection() noexcept {
        ++connection_;
        stage_ = Stage::open;
    }
    // Notes the instance of the publish socket of this connection. Returns a value if it has
    // changed.
    std::optional<PublisherChange> meet(std::uint64_t instance);
    // Takes the number of messages of a fid that the publisher had published when it accepted the
    // subscription. Returns how many of them were lost: 0 if the fid was not subscribed when the
    // last connection ended.
    std::uint64_t take(const FidCount& position);
    // Call it when the subscription of a range was accepted: from now on every message arrives or
    // is lost.
    void begin(const FidRange& range);
    // Call it when the range was unsubscribed.
    void forget(const FidRange& range);
    // As forget(), except for fids that this connection has begun: they end with the publisher's
    // answer.
    void forget_tails(const FidRange& range);
    // Call it when the connection has ended, after its last message. Does nothing if none has
    // begun. `in_order`: no wanted message was in flight.
    void end_connection(const ArrivalCounter& arrivals, bool in_order);
    // Whether messages may have been published that neither arrived nor were reported lost. This
    // ends with the positions after the lost connection; a connection without positions does not
    // end it, because the subscription may be refused there.
    bool has_open_tail() const;

    // The fids whose history was asked for, and that the user has not unsubscribed since: from the
    // same publish socket it would bring messages again.
    using Fids = FidRangeMap<std::monostate>;
    const Fids& supplied() const noexcept { return supplied_; }
    void note_supplied(const FidRange& range) { supplied_.assign(range, {}); }
    void forget_supplied(const FidRange& range) { supplied_.erase(range); }

    bool knows(Fid fid) const noexcept { return positions_.find(fid) != nullptr; }
    std::size_t fids() const noexcept { return positions_.size(); } // with a position
    std::uint64_t instance() const noexcept { return instance_; }   // 0: not known

  private:
    // Whether a subscription of an earlier connection was not accepted again in this or the last
    // one.
    bool is_behind() const;

    std::uint64_t instance_ = 0;
    std::uint64_t connection_ = 0; // the number of the connection
    enum class Stage : std::uint8_t {
        closed,
        open,
        met, // the instance is known
    } stage_ = Stage::closed;
    bool ended_ = false;    // the totals of all subscribed fids are known
    bool in_order_ = false; // the last connection ended in order
    // Subscribed fids, each with the number of the connection since which it is subscribed without
    // interruption.
    FidRangeMap<std::uint64_t> covered_;
    FidMap<std::uint64_t> positions_; // without the arrivals of this connection
    Fids supplied_;
};

} // namespace netio::pubsub::inline v0_3

// Decodes the frames of a publisher (messages, gaps, totals, positions) and counts arrivals. It
// rejects frames that violate the protocol, and fids that were never subscribed to, so that a peer
// controls neither what the user receives nor how much memory its counters need. No I/O.

namespace netio::pubsub::inline v0_3 {

class FrameReceiver {
  public:
    enum class Outcome : std::uint8_t {
        malformed, // after the part that was passed to the sink
        too_many_fids,
        no_memory, // to reassemble a fragmented message
        taken,
        left,   // the sink stopped before the end of the frame: rest()
        totals, // taken; it was the last part of the totals
    };

    struct Limits {
        std::size_t largest_message_bytes = 0;
        std::size_t fids = SIZE_MAX; // with counters
    };
    // Resumes at the positions of `resume_state`; nullptr: no positions.
    explicit FrameReceiver(Limits limits, std::shared_ptr<ResumeState> resume_state = {})
        : resume_state_{resume_state ? std::move(resume_state) : std::make_shared<ResumeState>()},
          reassembly_{limits.largest_message_bytes}, fid_limit_{limits.fids} {}

    struct Frame {
        std::uint8_t kind = 0;
        std::uint8_t flags = 0;
        std::span<const std::byte> body;
        bool continued = false; // the body is the rest() of a frame
    };
    // Takes each frame except answers. sink.take_message(fid, bytes, status) and
    // sink.take_gap(fid, count) return whether to continue; if not, sink.is_gone() returns whether
    // this object was destroyed. If the sink has wants_pages() and that is true, it takes whole
    // pages instead: sink.take_page(records, count). sink.take_change(change) and
    // sink.take_lost(fid, count), which follow a reconnection, return false if the sink is
    // destroyed or closed. If messages have time stamps, the sink has a constant stamp_bytes: these
    // are in front of the bytes that it gets, and in the records of a page.
    template <typename Sink>
    Outcome take(const Frame& frame, const SubscriptionState& subscriptions, Sink& sink);
    // The part of the body that is left. The caller passes it as the next frame.
    std::span<const std::byte> rest() const noexcept { return rest_; }

    // As Reassembly::keep(), for the message that is being passed to the sink.
    template <typename Lend>
    std::optional<KeptBytes> keep_joined(std::span<const std::byte> part, Lend lend) {
        return reassembly_.keep(part, lend);
    }
    void end_of_joined() noexcept { reassembly_.end_of_message(); }

    // Discards an incomplete message of the last connection.
    void begin_connection() {
        reassembly_.abandon();
        arrivals_.forget_all();
        resume_state_->begin_connection();
    }
    // `in_order`: as in ResumeState.
    void end_connection(bool in_order) {
        reassembly_.abandon();
        resume_state_->end_connection(arrivals_, in_order);
    }
    void begin_subscription(const FidRange& range) { resume_state_->begin(range); }
    void end_subscription(const FidRange& range) {
        arrivals_.forget(range);
        resume_state_->forget(range);
    }

    const ArrivalCounter& arrivals() const noexcept { return arrivals_; }
    const FramesSeen& seen() const noexcept { return seen_; }
    // The instance of the publish socket; 0: not known.
    std::uint64_t instance() const noexcept { return resume_state_->instance(); }
    const std::shared_ptr<ResumeState>& resume_state() const noexcept { return resume_state_; }

  private:
    template <typename Sink>
    static constexpr std::size_t stamp_bytes_of() noexcept {
        if constexpr (requires { Sink::stamp_bytes; }) return Sink::stamp_bytes;
        return 0;
    }
    // The counters of a fid. Returns nullptr if it was not subscribed to, or fid_limit_ is reached.
    Arrivals* counters_of(Fid fid, const SubscriptionState& subscriptions) {
        if (Arrivals* const counters = arrivals_.find(fid)) return counters;
        if (!subscriptions.grants(fid) || arrivals_.fids().size() >= fid_limit_) return nullptr;
        return &arrivals_.of(fid);
    }
    // The reason why a fid has no counters.
    static Outcome refused(Fid fid, const SubscriptionState& subscriptions) {
        return subscriptions.grants(fid) ? Outcome::too_many_fids : Outcome::malformed;
    }
    template <typename Sink>
    Outcome deliver(Fid fid, std::span<const std::byte> message, std::uint8_t status,
                    const SubscriptionState& subscriptions, Sink& sink) {
        Arrivals* const counters = counters_of(fid, subscriptions);
        if (counters == nullptr) return refused(fid, subscriptions);
        constexpr std::size_t stamp = stamp_bytes_of<Sink>();
        if (message.size() < stamp) return Outcome::malformed;
        arrivals_.add(*counters, message.size() - stamp);
        sink.take_message(fid, message.subspan(stamp), status);
        return Outcome::taken;
    }
    template <typename Sink>
    Outcome take_page(const Frame& frame, const SubscriptionState& subscriptions, Sink& sink);
    template <typename Sink>
    Outcome take_whole_page(const Frame& frame, const SubscriptionState& subscriptions, Sink& sink);
    template <typename Sink>
    Outcome take_gaps(std::span<const std::byte> body, const SubscriptionState& subscriptions,
                      Sink& sink);
    template <typename Sink>
    Outcome take_positions(std::span<const std::byte> body, const SubscriptionState& subscriptions,
                           Sink& sink);
    Outcome take_totals(std::uint8_t flags, std::span<const std::byte> body,
                        const SubscriptionState& subscriptions);

    ArrivalCounter arrivals_;
    std::shared_ptr<ResumeState> resume_state_;
    Reassembly reassembly_;
    std::size_t fid_limit_;
    FramesSeen seen_;
    std::span<const std::byte> rest_;
    Fid last_{}; // the fid of the last message before rest_
};

template <typename Sink>
FrameReceiver::Outcome
FrameReceiver::take_page(const Frame& frame, const SubscriptionState& subscriptions, Sink& sink) {
    (frame.flags == gathered_flag ? seen_.gathered : seen_.pages) = true;
    if constexpr (requires { sink.wants_pages(); }) {
        if (sink.wants_pages()) return take_whole_page(frame, subscriptions, sink);
    }
    // Caches the counters, because messages of a fid often follow one another. No call that the
    // sink can make changes them.
    Fid last{};
    Arrivals* counters = nullptr;
    bool refuses = false;
    bool is_short = false;
    bool enough = false;
    bool left = false;
    const std::byte* end = nullptr; // of the last message
    const auto visit = [&](Fid fid, std::span<const std::byte> message, std::uint8_t status) {
        if (enough) {
            left = true;
            return false;
        }
        if (counters == nullptr || fid != last) {
            counters = counters_of(last = fid, subscriptions);
            if (counters == nullptr) {
                refuses = true;
                return false;
            }
        }
        constexpr std::size_t stamp = stamp_bytes_of<Sink>();
        if (message.size() < stamp) {
            is_short = true;
            return false;
        }
        arrivals_.add(*counters, message.size() - stamp);
        end = message.data() + message.size();
        enough = !sink.take_message(fid, message.subspan(stamp), status);
        return !enough || !sink.is_gone();
    };
    const bool sound =
        visit_page(frame.body, visit, frame.continued ? std::optional{last_} : std::nullopt);
    if (left) {
        rest_ = {end, frame.body.data() + frame.body.size()};
        last_ = last;
        return Outcome::left;
    }
    if (refuses) return refused(last, subscriptions);
    return sound && !is_short ? Outcome::taken : Outcome::malformed;
}

// The user gets a page only if all of it is valid, so it is read before it is counted.
template <typename Sink>
FrameReceiver::Outcome FrameReceiver::take_whole_page(const Frame& frame,
                                                      const SubscriptionState& subscriptions,
                                                      Sink& sink) {
    std::optional<Fid> last;
    Arrivals* counters = nullptr;
    std::size_t count = 0;
    const auto find = [&](Fid fid) {
        if (last != fid) counters = counters_of(*(last = fid), subscriptions);
        return counters != nullptr;
    };
    constexpr std::size_t stamp = stamp_bytes_of<Sink>();
    bool is_short = false;
    const bool is_sound =
        visit_page(frame.body, [&](Fid fid, std::span<const std::byte> message, std::uint8_t) {
            ++count;
            is_short = is_short || message.size() < stamp;
            return find(fid);
        });
    if (last && counters == nullptr) return refused(*last, subscriptions);
    if (!is_sound || is_short) return Outcome::malformed;
    visit_page(frame.body, [&](Fid fid, std::span<const std::byte> message, std::uint8_t) {
        if (find(fid)) arrivals_.add(*counters, message.size() - stamp);
        return true;
    });
    if (count > 0) sink.take_page(frame.body, count);
    return Outcome::taken;
}

template <typename Sink>
FrameReceiver::Outcome FrameReceiver::take_gaps(std::span<const std::byte> body,
                                                const SubscriptionState& subscriptions,
                                                Sink& sink) {
    const auto gaps = decode_counts(body);
    if (!gaps) return Outcome::malformed;
    for (std::size_t i = 0; i < gaps->size(); ++i) {
        const FidCount gap = (*gaps)[i];
        if (counters_of(gap.fid, subscriptions) == nullptr) return refused(gap.fid, subscriptions);
        arrivals_.add_dropped(gap.fid, gap.count);
        if (sink.take_gap(gap.fid, gap.count)) continue;
        if (sink.is_gone() || i + 1 == gaps->size()) break;
        rest_ = body.subspan((i + 1) * fid_count_bytes);
        return Outcome::left;
    }
    return Outcome::taken;
}

template <typename Sink>
FrameReceiver::Outcome FrameReceiver::take_positions(std::span<const std::byte> body,
                                                     const SubscriptionState& subscriptions,
                                                     Sink& sink) {
    const auto extension = decode_positions(body);
    if (!extension || extension->instance == 0) return Outcome::malformed;
    const auto positions = decode_counts(body.subspan(positions_extension_bytes));
    const SubscriptionState::Request* const request = subscriptions.awaited(extension->request);
    if (!positions || request == nullptr) return Outcome::malformed;
    const std::vector<FidRange> asked = normalised(request->ranges);
    if (const auto change = resume_state_->meet(extension->instance)) {
        if (!sink.take_change(*change)) return Outcome::taken;
    }
    for (const FidCount& position : *positions) {
        const Fid fid = position.fid;
        if (!contains(asked, fid)) return Outcome::malformed;
        if (subscriptions.grants(fid)) continue; // the request changes only its policy
        if (resume_state_->fids() >= fid_limit_ && !resume_state_->knows(fid)) {
            return Outcome::too_many_fids;
        }
        const std::uint64_t lost = resume_state_->take(position);
        if (lost > 0 && !sink.take_lost(fid, lost)) return Outcome::taken;
    }
    return Outcome::taken;
}

template <typename Sink>
FrameReceiver::Outcome FrameReceiver::take(const Frame& frame,
                                           const SubscriptionState& subscriptions, Sink& sink) {
    const auto [kind, flags, body, continued] = frame;
    if (kind == totals_kind) return take_totals(flags, body, subscriptions);
    if (kind == positions_kind) {
        return flags <= more_flag ? take_positions(body, subscriptions, sink) : Outcome::malformed;
    }
    // Gaps may come between the fragments of a message; another message may not.
    const bool interrupts = kind == page_kind || kind == message_kind;
    const std::uint8_t allowed = kind == page_kind ? gathered_flag : 0;
    if (flags > allowed || (interrupts && reassembly_.in_progress())) return Outcome::malformed;
    if (kind == page_kind) return take_page(frame, subscriptions, sink);
    if (kind == gap_kind) return take_gaps(body, subscriptions, sink);
    if (kind == message_kind) {
        seen_.messages = true;
        const auto extension = decode_message(body);
        if (!extension) return Outcome::malformed;
        return deliver(extension->fid, body.subspan(message_extension_bytes), extension->status,
                       subscriptions, sink);
    }
    if (kind != fragment_kind) return Outcome::malformed;
    seen_.fragments = true;
    const auto fragment = decode_fragment(body);
    if (!fragment) return Outcome::malformed;
    const auto outcome = reassembly_.take(*fragment, body.subspan(fragment_extension_bytes));
    if (outcome == Reassembly::Outcome::incomplete) return Outcome::taken;
    if (outcome == Reassembly::Outcome::no_memory) return Outcome::no_memory;
    if (outcome != Reassembly::Outcome::complete) return Outcome::malformed;
    return deliver(fragment->fid, reassembly_.message(), fragment->status, subscriptions, sink);
}

inline FrameReceiver::Outcome FrameReceiver::take_totals(std::uint8_t flags,
                                                         std::span<const std::byte> body,
                                                         const SubscriptionState& subscriptions) {
    const auto totals = decode_counts(body);
    if (!totals || flags > more_flag || arrivals_.complete()) return Outcome::malformed;
    for (const FidCount& total : *totals) {
        if (counters_of(total.fid, subscriptions) == nullptr)
            return refused(total.fid, subscriptions);
        arrivals_.expect(total);
    }
    if (flags == more_flag) return Outcome::taken;
    arrivals_.complete_totals();
    return Outcome::totals;
}

} // namespace netio::pubsub::inline v0_3
