// SPDX-License-Identifier: Apache-2.0
#pragma once

// InjectedFlaws: stream/core/flaws.hpp and those of netio/session/credits.hpp with variables, so
// that a test can break one rule at a time.

namespace netio::stream {

struct InjectedFlaws {
    bool accept_any_sequence = false;
    bool accept_later_sequence = false;
    bool accept_any_phase = false;
    bool no_phase_jump = false;
    bool cross_ring_end = false;
    bool ignore_ring_space = false;
    bool sender_stays_direct = false;
    bool keep_used_advert = false;
    bool drop_wait_all_advert = false;
    bool end_before_data = false;
    bool trust_peer = false;
    bool hope_for_ever = false;
    bool unsaid_ring_change = false;
    bool old_ring_offsets = false;
    bool advertise_received_bytes = false;
    bool no_hold_off = false;
    bool skip_unadvertised = false;
    bool literal_estimate = false;
    bool receiver_stays_direct = false;
    bool revoke_nothing = false;
    bool advertise_from_start = false;
    bool complete_wait_all_early = false;
    bool acknowledge_arrival = false;
    bool never_acknowledge = false;
    bool advertise_empty = false;
    bool end_before_ring_is_empty = false;
    bool change_at_announcement = false;
    bool free_old_ring_early = false;
    bool keep_old_ring = false;
    bool no_prompt_ack = false;
    bool no_answer = false;
    bool no_credit_reserve = false;
    bool no_credit_check = false;
    bool any_credit_threshold = false;
};

} // namespace netio::stream
