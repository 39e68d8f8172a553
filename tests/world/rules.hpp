// SPDX-License-Identifier: Apache-2.0
#pragma once

// The promises of the product: each rule of the oracle quotes the sentence that it enforces. A test
// looks the sentences up, so a withdrawn promise removes its rule.

#include <cstdint>
#include <span>
#include <string>

namespace netio::world {

enum class RuleId : std::uint8_t {
    once_in_order,
    whole,
    gap_at_its_place,
    gap_by_policy,
    newest_arrives,
    orderly_is_everything,
    served_in_the_end,
    totals_match,
    completed_once,
    last_word,
    alive_is_not_dead,
    no_protocol_error,
    slow_was_slow,
    again_is_followed,
    slow_holds_up_only_its_own,
    close_is_bounded,
    stream_close_is_bounded,
    close_is_confirmed,
    nothing_left,
    simulator,
    time_goes_on,
    deterministic,
    told_who_wants_it,
    bytes_in_order,
    paused_takes_nothing,
    turn_is_bounded,
    queue_is_limited,
    accounted_for,
    file_is_whole,
    copied_is_there,
    copy_succeeds,
    kept_stays,
    time_is_sent,
    history_first,
    messages_in_order,
    message_slices,
    message_too_large,
    message_sent,
    message_limit,
    messages_finish,
    messages_both_finished,
    messages_close,
    messages_paused,
    messages_retry,
    request_ends_once,
    request_whole,
    request_not_repeated,
    request_time,
    request_canceled,
    request_disconnected,
    request_no_reply,
    request_failed,
    request_too_large,
    request_limits,
    request_notified,
    request_cancel_arrives,
    request_cancel_cause,
    request_counts,
    reply_in_order,
    reply_whole,
    reply_limit,
    reply_accepted,
    reply_given_arrives,
    responder_limits,
    responder_notified,
};

struct Rule {
    RuleId id;
    const char* name;
    const char* sentence; // as in the file, except for line breaks and comment marks
    const char* file;
};
std::span<const Rule> rules();
const Rule& rule(RuleId id);

struct Violation {
    RuleId rule;
    std::int64_t at_us = 0;
    std::string what;
};
std::string to_text(const Violation& violation);

} // namespace netio::world
