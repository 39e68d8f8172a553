// SPDX-License-Identifier: Apache-2.0

// What arrives at a subscriber.

#include "netio/base/destruction_watch.hpp"
#include "pubsub/core/page.hpp"
#include "pubsub/subscriber/subscribe_socket.hpp"

#include <utility>

namespace netio::pubsub::inline v0_2 {

void SubscribeSocket::on_frame(Session& session, const IncomingFrame& frame) {
    const bool is_message =
        frame.kind == page_kind || frame.kind == message_kind || frame.kind == fragment_kind;
    if (closing_) return session.add_unread(is_message ? 1 : 0); // the user wants no more
    const DestructionWatch watch{destroyed_};
    const bool sound = take_frame(frame);
    if (watch.destroyed() || sound) return;
    session.fail(CloseReason::protocol_error, session.peer_address() +
                                                  " sent a malformed frame of kind " +
                                                  std::to_string(frame.kind));
}

bool SubscribeSocket::take_frame(const IncomingFrame& frame) {
    if (frame.kind == totals_kind) return take_totals(frame);
    // A fragmented message is not interrupted by another one; answers and gaps may come between.
    const bool interrupts = frame.kind == page_kind || frame.kind == message_kind;
    if (frame.flags != 0 || (interrupts && reassembly_.in_progress())) return false;
    switch (frame.kind) {
    case page_kind:
        return take_page(frame.body);
    case message_kind:
        return take_message(frame.body);
    case fragment_kind:
        return take_fragment(frame.body);
    case gap_kind:
        return take_gaps(frame.body);
    case subscription_answer_kind:
        return take_answer(frame.body);
    default:
        return false;
    }
}

bool SubscribeSocket::take_page(std::span<const std::byte> body) {
    received_buffered_ = true;
    const DestructionWatch watch{destroyed_};
    // A fid's messages often come in a row. No call that the handler can make touches an account.
    Fid last{};
    Arrivals* account = nullptr;
    bool rest_unread = false;
    const auto visit = [&](Fid fid, std::span<const std::byte> message, std::uint8_t status) {
        if (closing_) { // since the message before
            rest_unread = true;
            return false;
        }
        if (account == nullptr || fid != last) account = &arrivals_.of(last = fid);
        deliver(*account, fid, message, status);
        return !watch.destroyed();
    };
    const bool sound = visit_page(body, visit);
    if (rest_unread) session_->add_unread(1);
    return sound;
}

bool SubscribeSocket::take_message(std::span<const std::byte> body) {
    received_unbuffered_ = true;
    const auto extension = decode_message(body);
    if (!extension) return false;
    deliver(extension->fid, body.subspan(message_extension_bytes), extension->status);
    return true;
}

bool SubscribeSocket::take_fragment(std::span<const std::byte> body) {
    const auto fragment = decode_fragment(body);
    if (!fragment) return false;
    switch (reassembly_.take(*fragment, body.subspan(fragment_extension_bytes))) {
    case Reassembly::Outcome::incomplete:
        return true;
    case Reassembly::Outcome::complete:
        deliver(fragment->fid, reassembly_.message(), fragment->status);
        return true;
    case Reassembly::Outcome::too_large:
    case Reassembly::Outcome::out_of_order:
        break;
    }
    return false;
}

bool SubscribeSocket::take_gaps(std::span<const std::byte> body) {
    const auto gaps = decode_counts(body);
    if (!gaps) return false;
    const DestructionWatch watch{destroyed_};
    for (const FidCount& gap : *gaps) {
        arrivals_.add_missed(gap.fid, gap.count);
        handler_.on_gap(*this, gap.fid, gap.count);
        if (watch.destroyed()) return true;
    }
    return true;
}

bool SubscribeSocket::take_answer(std::span<const std::byte> body) {
    const auto answer = decode_answer(body);
    if (!answer) return false;
    const auto node = sent_.extract(answer->request);
    if (node.empty()) return false; // to a question that was not asked
    const Request& request = node.mapped();
    const DestructionWatch watch{destroyed_};
    for (const FidRange& range : request.ranges) {
        if (answer->result == SubscriptionResult::table_full) {
            handler_.on_subscription_refused(*this, range);
        } else if (answer->result == SubscriptionResult::policy_refused) {
            handler_.on_policy_refused(*this, range);
        } else if (request.kind == subscribe_kind) {
            handler_.on_subscribed(*this, range);
        } else {
            arrivals_.forget(range);
            handler_.on_unsubscribed(*this, range);
        }
        if (watch.destroyed()) return true;
    }
    return true;
}

bool SubscribeSocket::take_totals(const IncomingFrame& frame) {
    const auto totals = decode_counts(frame.body);
    if (!totals || frame.flags > more_flag || totals_seen_) return false;
    totals_.insert(totals_.end(), totals->begin(), totals->end());
    if (frame.flags == more_flag) return true;
    totals_seen_ = true;
    arrivals_.add_expected(std::exchange(totals_, {}));
    waiting_.push_back({.kind = totals_answer_kind, .number = 0, .ranges = {}, .body = nullptr});
    send_waiting();
    handler_.on_totals(*this);
    return true;
}

} // namespace netio::pubsub::inline v0_2
