// SPDX-License-Identifier: Apache-2.0
#include "tests/world/rules.hpp"

#include <algorithm>
#include <array>

namespace netio::world {
namespace {

constexpr const char* message_socket = "netio/messages/message_socket.hpp";
constexpr const char* requester = "netio/messages/requester.hpp";
constexpr const char* responder = "netio/messages/responder.hpp";

constexpr std::array all_rules{
    Rule{RuleId::once_in_order, "once and in order",
         "A message arrives whole, in one posted receive; messages arrive in the order of sending.",
         "netio/transport.hpp"},
    Rule{RuleId::whole, "whole",
         "A message that is larger than a subscriber's receive buffer is sent in fragments and "
         "arrives whole.",
         "pubsub/publisher/publish_socket.hpp"},
    Rule{RuleId::gap_at_its_place, "a gap at its place",
         "The publisher dropped `count` messages of this fid here in the stream",
         "pubsub/subscriber/subscribe_socket.hpp"},
    Rule{RuleId::gap_by_policy, "a gap by policy only",
         "block,      // publishing its fids returns `again`: nothing is dropped",
         "pubsub/core/slow_policy.hpp"},
    Rule{RuleId::newest_arrives, "the newest arrives",
         "newest,     // conflation: only the newest of each fid is sent",
         "pubsub/core/slow_policy.hpp"},
    Rule{RuleId::orderly_is_everything, "orderly is everything",
         "Every message arrives, or is counted as lost.", "README.md"},
    Rule{RuleId::served_in_the_end, "served in the end",
         "The publisher has accepted. Messages published from now on arrive.",
         "pubsub/subscriber/subscribe_socket.hpp"},
    Rule{RuleId::totals_match, "the totals match",
         "Counts what has arrived at a subscriber, per fid, and compares it with the totals that "
         "the publisher sends when it closes in order.",
         "pubsub/core/arrival_counter.hpp"},
    Rule{RuleId::completed_once, "completed once", "Every accepted operation ends exactly once",
         "docs/architecture.md"},
    Rule{RuleId::last_word, "one last word",
         "Every connection ends in one `on_closed(reason)`.** No event follows it.",
         "docs/architecture.md"},
    Rule{RuleId::alive_is_not_dead, "who is alive is not dead", "not dead: its host still answers",
         "docs/operations.md"},
    Rule{RuleId::no_protocol_error, "no protocol error among us",
         "protocol_error,    // the peer sent something that its protocol does not allow",
         "netio/base/status.hpp"},
    Rule{RuleId::slow_was_slow, "who is cut off as slow was slow",
         "too_slow,          // one side received nothing for too long, and the policy of the "
         "other ended the connection",
         "netio/base/status.hpp"},
    Rule{RuleId::again_is_followed, "again is followed",
         "again,             // nothing was sent to any peer: no space now, try again after "
         "on_writable",
         "netio/base/status.hpp"},
    Rule{RuleId::slow_holds_up_only_its_own, "a slow one holds up only its own",
         "Publishing its fids waits for it; other fids go on", "docs/operations.md"},
    Rule{RuleId::close_is_bounded, "a close is bounded",
         "close(): a subscriber that makes no progress for this long is disconnected, and the "
         "limit of the whole close.",
         "pubsub/publisher/publisher.hpp"},
    Rule{RuleId::stream_close_is_bounded, "a stream's close is bounded",
         "on_closed(unconfirmed) follows if it has read nothing more for "
         "SessionOptions::close_timeout, or not everything within close_limit",
         "stream/socket/stream_socket.hpp"},
    Rule{RuleId::close_is_confirmed, "a close that nothing disturbs is confirmed",
         "orderly: every subscriber has confirmed that it has received everything; otherwise the "
         "detail has the number of those that have not.",
         "pubsub/publisher/publisher.hpp"},
    Rule{RuleId::nothing_left, "nothing is left",
         "Destroying a socket is immediate and silent; borrowed memory is free when the "
         "destructor returns.",
         "docs/architecture.md"},
    Rule{RuleId::simulator, "what breaks on some provider",
         "The simulator fails a test for everything that would break on some provider",
         "docs/decisions/0006-the-simulator-is-stricter-than-a-provider.md"},
    Rule{RuleId::time_goes_on, "time goes on",
         "It sleeps only after every active source has said "
         "that it may",
         "docs/architecture.md"},
    Rule{RuleId::deterministic, "the same every time", "a run is the same every time for a seed",
         "docs/testing.md"},
    Rule{RuleId::told_who_wants_it, "who wants it has it",
         "no_subscribers,    // accepted without subscribers; nothing was sent",
         "netio/base/status.hpp"},
    Rule{RuleId::bytes_in_order, "bytes in order",
         "Every byte that the peer sent is in a receive, or was consumed, and no more follow.",
         "stream/socket/stream_socket.hpp"},
    Rule{RuleId::paused_takes_nothing, "who has paused takes nothing",
         "Stops reading, from the next message, gap or answer on.",
         "pubsub/subscriber/subscribe_socket.hpp"},
    Rule{RuleId::turn_is_bounded, "a turn is bounded",
         "Limits of the time that a turn spends on tasks, on sources and on timers. The loop "
         "checks it between units of work (a task, a timer, or an event: a page with all its "
         "messages), so one unit may exceed it.",
         "netio/loop/event_loop.hpp"},
    Rule{RuleId::queue_is_limited, "a queue is limited",
         "publications whose memory is borrowed at once; beyond: `again`. As many more may have "
         "ended and are reported in the next turn",
         "docs/options.md"},
    Rule{RuleId::accounted_for, "accounted for",
         "Each message is received or reported as lost, except the last messages of a publisher "
         "that ended without sending its totals; Ending::complete and "
         "PublisherStats::unknown_tails report that.",
         "pubsub/client/subscriptions.hpp"},
    Rule{RuleId::file_is_whole, "a file under its name is whole",
         "gets the final name only when it is complete, correct and on the disk",
         "apps/copy/target_file.hpp"},
    Rule{RuleId::copied_is_there, "what is copied is there",
         "A file is on the disk under its final name; `moved_bytes` were transferred for it.",
         "apps/copy/server.hpp"},
    Rule{RuleId::copy_succeeds, "a copy that nothing disturbs succeeds",
         "A file that fails alone (it cannot be read, the server refuses it or cannot write it) "
         "does not prevent the others; the loss of the connection does.",
         "apps/copy/sender.hpp"},
    Rule{RuleId::kept_stays, "what is kept stays",
         "`keep()` makes them valid for longer, on any thread, also after the socket and its loop "
         "are gone",
         "docs/guide.md"},
    Rule{RuleId::time_is_sent, "a message comes with its time",
         "The clock of the time that is sent with each message, in 8 more bytes; subscribers read "
         "it with MessageView::time().",
         "pubsub/publisher/publisher.hpp"},
    Rule{RuleId::history_first, "history first",
         "Such a subscriber gets the kept messages of its fids, oldest first, and then the new "
         "messages, without a gap or a duplicate.",
         "pubsub/publisher/buffered_publish_socket.hpp"},
    Rule{RuleId::messages_in_order, "messages in order, both ways",
         "All messages of one side arrive in the order of the calls.", message_socket},
    Rule{RuleId::message_slices, "each message in its posted memory",
         "messages fill posted memory in the order of the calls. `memory` must stay valid until "
         "on_received(cookie) or on_closed. Returns ok, or again if posted_limit memories wait.",
         message_socket},
    Rule{RuleId::message_too_large, "posted memory that is too small is unchanged",
         "too_large: the message has more bytes than the posted memory, which is unchanged; the "
         "message waits for the next post_receive().",
         message_socket},
    Rule{RuleId::message_sent, "borrowed memory is returned",
         "The memory of `cookie` may be used again. done: the message was sent. canceled, failed: "
         "the connection ended first, and the peer may or may not have received the message.",
         message_socket},
    Rule{RuleId::message_limit, "a message within the limit is accepted",
         "The largest message that is sent by copy, and without a copy; valid while connected.",
         message_socket},
    Rule{RuleId::messages_finish, "who has finished sends nothing",
         "The peer has called finish(): no further message arrives. This side may still send.",
         message_socket},
    Rule{RuleId::messages_both_finished, "both have finished",
         "When both sides have finished, the connection closes in order.", message_socket},
    Rule{RuleId::messages_close, "a message socket closes in order",
         "on_closed(orderly) follows if the user of the peer has received everything. "
         "on_closed(unconfirmed) follows if not, if the peer makes no progress for "
         "session.close_timeout, or if it needs longer than session.close_limit.",
         message_socket},
    Rule{RuleId::messages_paused, "no message while paused",
         "Stops delivery, from the next message on; the peer is blocked when all receive buffers "
         "are full.",
         message_socket},
    Rule{RuleId::messages_retry, "a message socket reconnects",
         "retries until a listener has accepted, and reconnects after a connection was lost or "
         "ended by the peer, but not after finish().",
         message_socket},
    Rule{RuleId::request_ends_once, "a request ends once",
         "Every request ends exactly once: replied, timed out, canceled, disconnected, or failed.",
         requester},
    Rule{RuleId::request_whole, "a request arrives as it was sent",
         "Sends requests to one responder, and receives its replies, from any thread", requester},
    Rule{RuleId::request_not_repeated, "a request arrives once", "A request is not repeated.",
         requester},
    Rule{RuleId::request_time, "a request has its time",
         "Limit of the time from the call until the whole reply has arrived, for requests without "
         "a `timeout`.",
         requester},
    Rule{RuleId::request_canceled, "its user cancels it",
         "canceled,     // by Reply::cancel(), by destroying the Reply, or by the end of the "
         "Requester",
         requester},
    Rule{RuleId::request_disconnected, "who is disconnected had no connection",
         "disconnected, // it was sent, and the connection was lost or ended", requester},
    Rule{RuleId::request_no_reply, "who gets no reply was given up",
         "no_reply,     // the responder has destroyed the request without a reply", requester},
    Rule{RuleId::request_failed, "a failure comes with its text",
         "failed,       // the responder has called Request::fail(); what() has its text",
         requester},
    Rule{RuleId::request_too_large, "what is too large exceeds a limit",
         "too_large,    // the responder receives no request, or this side no reply, of this size",
         requester},
    Rule{RuleId::request_limits, "a request waits for a limit only",
         "Throws Error: again (a limit is reached; on the context's thread, without waiting), "
         "closed.",
         requester},
    Rule{RuleId::request_notified, "a requester reports what has happened",
         "Called on the context's thread after messages of replies have arrived, or requests have "
         "ended",
         requester},
    Rule{RuleId::request_cancel_arrives, "the responder knows what is not wanted",
         "The responder is notified of a request that timed out or was canceled.", requester},
    Rule{RuleId::request_cancel_cause, "what is canceled is not wanted",
         "Returns true if the requester has canceled the request or is gone. Then a reply has no "
         "effect.",
         responder},
    Rule{RuleId::request_counts, "requests are counted by their end",
         "Requests that ended, by their end.", requester},
    Rule{RuleId::reply_in_order, "a reply in order",
         "The reply to one request: one message or more, which arrive in order.", requester},
    Rule{RuleId::reply_whole, "a reply is whole", "replied,      // the whole reply has arrived",
         requester},
    Rule{RuleId::reply_limit, "replies within their limit",
         "Limit of the bytes of all replies, plus 64 bytes for each of their messages, that have "
         "arrived and were not taken by next().",
         requester},
    Rule{RuleId::reply_accepted, "an open request takes its reply",
         "Returns false, without an effect, if the request had ended before (by a reply, because "
         "the requester has canceled, or because it is gone), and after Responder::close().",
         responder},
    Rule{RuleId::reply_given_arrives, "a reply that was given arrives",
         "Waits until the replies that were passed to reply() are sent and all connections have "
         "closed in order, at most socket.session.close_limit.",
         responder},
    Rule{RuleId::responder_limits, "a responder within its limits",
         "At the limits of open requests and of their bytes, no further request is received until "
         "one has ended. One requester gets at most half of these limits.",
         responder},
    Rule{RuleId::responder_notified, "a responder reports what has happened",
         "Called on the context's thread after requests have arrived or were canceled, and when "
         "close() is complete",
         responder},
};

} // namespace

std::span<const Rule> rules() {
    return all_rules;
}

const Rule& rule(RuleId id) {
    return *std::ranges::find(all_rules, id, &Rule::id);
}

std::string to_text(const Violation& violation) {
    const Rule& broken = rule(violation.rule);
    return "at " + std::to_string(violation.at_us) + " us, " + broken.name + ": " + violation.what +
           "\n    promised: \"" + broken.sentence + "\" (" + broken.file + ")";
}

} // namespace netio::world
