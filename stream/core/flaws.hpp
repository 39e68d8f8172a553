// SPDX-License-Identifier: Apache-2.0
#pragma once

// NoFlaws: the test seam by which the mutation tests break one rule at a time.
//
// Sender and Receiver (and Credits, R13) are templates over a type with these members. The
// product uses NoFlaws, whose members are constants, so that nothing of the seam is left in its
// code; the tests inject a type with variables of the same names and expect that the checkers
// notice each of them.

namespace netio::stream::inline v0_2 {

struct NoFlaws {
    // Sender
    static constexpr bool accept_any_sequence = false;   // R1
    static constexpr bool accept_later_sequence = false; // R1, the listing's test
    static constexpr bool accept_any_phase = false;      // R1
    static constexpr bool no_phase_jump = false;         // R2
    static constexpr bool cross_ring_end = false;        // R4
    static constexpr bool ignore_ring_space = false;     // R4
    static constexpr bool sender_stays_direct = false;   // R6
    static constexpr bool keep_used_advert = false;      // R8
    static constexpr bool drop_wait_all_advert = false;  // R8
    static constexpr bool end_before_data = false;       // R12
    static constexpr bool trust_peer = false;            // R14
    static constexpr bool hope_for_ever = false;         // P1
    static constexpr bool unsaid_ring_change = false;    // R15
    static constexpr bool old_ring_offsets = false;      // R15
    // Receiver; trust_peer counts here as well
    static constexpr bool advertise_received_bytes = false; // R3, R5
    static constexpr bool no_hold_off = false;              // R3
    static constexpr bool skip_unadvertised = false;        // R3
    static constexpr bool literal_estimate = false;         // R5
    static constexpr bool receiver_stays_direct = false;    // R6
    static constexpr bool revoke_nothing = false;           // R7
    static constexpr bool advertise_from_start = false;     // R8
    static constexpr bool complete_wait_all_early = false;  // R9
    static constexpr bool acknowledge_arrival = false;      // R10
    static constexpr bool never_acknowledge = false;        // R10
    static constexpr bool advertise_empty = false;          // R11
    static constexpr bool end_before_ring_is_empty = false; // R12
    static constexpr bool change_at_announcement = false;   // R15
    static constexpr bool free_old_ring_early = false;      // R15
    static constexpr bool keep_old_ring = false;            // R15
    static constexpr bool no_prompt_ack = false;            // P6, P8
    static constexpr bool no_answer = false;                // P10
};

} // namespace netio::stream::inline v0_2
