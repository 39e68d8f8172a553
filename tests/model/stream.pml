/* SPDX-License-Identifier: Apache-2.0 */

/* One direction of a stream (docs/stream-protocol.md), as a description independent of
 * stream/core/sender.hpp and stream/core/receiver.hpp: a misunderstanding of the protocol would have to
 * occur in both to stay unnoticed.
 *
 * Two processes and two channels that keep order. The sender takes adverts and acknowledgements and
 * sends BYTES bytes in pieces of any length, directly or through the ring, then the end. The
 * receiver's user posts receives whenever it likes, plain or wait-all; the receiver advertises,
 * copies and acknowledges whenever it may. A write lands when it is sent, the earliest moment that
 * a network allows. Credits have a separate model, credits.pml.
 *
 * Checked in every state: no ring byte is overwritten before it was copied out; what is copied out
 * is the next byte of the stream; a direct transfer is the next byte of the stream for the receive
 * at the head at its fill level, with an empty ring, and both sides in the same phase; the bounds by
 * which the sender judges its peer (R14); and that the process never stops before the end. The
 * formula states that every execution reaches the end.
 *
 * `./dev verify` executes these runs. Runs with a flaw must have the given result: `violates` an
 * assertion, or `stops`. They omit the bounds (UNBOUNDED), which would detect most flaws before they
 * have an effect.
 *
 * run published             holds
 * run plain_receives        holds    -DPLAIN -DRECEIVES=3
 * run listing_test          holds    -DLISTING_TEST -DBYTES=3
 * run any_policy            holds    -DANY_POLICY -DBYTES=3
 * run late_acknowledgement  holds    -DLATE_ACK -DBYTES=3
 * run direct_when_quiet     holds    -DLATE_ACK -DCHECK_DIRECT -DPLAIN -DBYTES=3
 * run exact_numbers         holds    -DEXACT_NUMBERS -DBYTES=3
 * run exact_without_jump    holds    -DEXACT_NUMBERS -DNO_PHASE_JUMP -DUNBOUNDED -DBYTES=3
 * run arbitrary_estimates   holds    -DARBITRARY_ESTIMATES -DPLAIN -DBYTES=3
 * run phases_modulo_4       holds    -DPHASES=4
 * run direct_only           holds    -DRING=0
 * run ring_of_one           holds    -DRING=1
 * run readvertise           holds    -DREADVERTISE -DBYTES=3
 * run ours                  holds    -DREADVERTISE -DEXACT_NUMBERS -DANY_POLICY -DBYTES=3
 * run ours_late             holds    -DREADVERTISE -DEXACT_NUMBERS -DLATE_ACK -DPLAIN -DBYTES=3
 * run ours_when_quiet       holds    -DREADVERTISE -DEXACT_NUMBERS -DCHECK_DIRECT -DBYTES=3
 *
 * run R1_any_sequence       violates -DANY_SEQUENCE -DUNBOUNDED -DPLAIN -DBYTES=5 -DRECEIVES=3
 * run R1_any_phase          violates -DANY_PHASE -DUNBOUNDED -DPLAIN -DBYTES=5 -DRECEIVES=3
 * run R2_no_phase_jump      violates -DNO_PHASE_JUMP -DUNBOUNDED -DPLAIN -DBYTES=5 -DRECEIVES=3
 * run R3_no_hold_off        violates -DNO_HOLD_OFF -DLISTING_TEST -DUNBOUNDED -DBYTES=5 -DRECEIVES=3
 * run R3_skip_unadvertised  violates -DSKIP_UNADVERTISED -DUNBOUNDED -DBYTES=5 -DRECEIVES=3
 * run R3_received_bytes     violates -DRECEIVED_BYTES -DUNBOUNDED -DBYTES=5 -DRECEIVES=3
 * run R4_cross_ring_end     violates -DCROSS_RING_END
 * run R5_literal_estimate   violates -DLITERAL_ESTIMATE -DCHECK_DIRECT -DUNBOUNDED
 * run R6_sender_stays       violates -DSENDER_STAYS_DIRECT -DUNBOUNDED
 * run R6_receiver_stays     violates -DRECEIVER_STAYS_DIRECT -DCHECK_DIRECT -DUNBOUNDED
 * run R8_keep_used          violates -DKEEP_USED_ADVERT -DUNBOUNDED
 * run R8_drop_wait_all      violates -DDROP_WAIT_ALL_ADVERT -DUNBOUNDED
 * run R9_complete_early     violates -DCOMPLETE_WAIT_ALL_EARLY -DUNBOUNDED
 * run R10_acknowledge_early violates -DACK_ON_ARRIVAL
 * run R10_no_acknowledgement stops   -DNEVER_ACK
 * run R11_empty_direct      violates -DEMPTY_DIRECT -DUNBOUNDED
 * run R12_end_overtakes     violates -DEND_OVERTAKES
 * run order_is_lost         violates -DREORDER -DUNBOUNDED
 */

#ifndef BYTES
#define BYTES 4 /* of the stream */
#endif
#ifndef RING
#define RING 2 /* bytes; 0: direct transfers only */
#endif
#ifndef RECEIVES
#define RECEIVES 2 /* open at once */
#endif
#define LONGEST 2 /* receive, and piece of a send */

#if RING > 0
#define CELLS RING
#else
#define CELLS 1
#endif

#define IS_DIRECT(phase) (((phase) & 1) == 0)
#ifdef PHASES /* as on the wire, where phases wrap: compared by their signed distance */
#define NEXT(phase) (((phase) + 1) % PHASES)
#define LATER(a, b) ((a) != (b) && ((a) + PHASES - (b)) % PHASES < PHASES / 2)
#else
#define NEXT(phase) ((phase) + 1)
#define LATER(a, b) ((a) > (b))
#endif
#define LESSER(a, b) (((a) < (b)) -> (a) : (b))

mtype = { direct, indirect, end, advert, ack };

/* kind, bytes; the rest is for the assertions: sequence, receive, offset, phase of the sender */
chan data = [BYTES + 2] of { mtype, byte, byte, byte, byte, byte };
#ifdef REORDER
chan second_data = [BYTES + 2] of { mtype, byte, byte, byte, byte, byte };
#define direct_data second_data
#define ALL_DIRECT_ARRIVED (len(second_data) == 0)
#else
#define direct_data data
#define ALL_DIRECT_ARRIVED true
#endif
/* kind, sequence, phase, bytes, wait-all; receive and offset stand for the address */
chan control = [2 * BYTES + 2 * RECEIVES + 2] of { mtype, byte, byte, byte, bit, byte, byte };
/* the adverts that the sender has after the first one */
chan adverts = [2 * BYTES + 2 * RECEIVES + 2] of { byte, byte, byte, bit, byte, byte };

/* Sender */
byte sent;         /* S_s */
byte sender_phase; /* P_s */
byte free = RING;  /* b_s */
byte write_offset;
bit end_sent;
bit has_first; /* the advert at the head */
bit first_wait_all;
byte first_sequence, first_phase, first_bytes, first_receive, first_offset;

/* Receiver; receives are numbered, and stored at their number modulo RECEIVES */
byte delivered;      /* S_r */
byte estimate;       /* S'_r */
byte receiver_phase; /* P_r */
byte used;           /* b_r */
byte read_offset;
byte unacknowledged;
byte head, unadvertised, next_receive;
byte receive_bytes[RECEIVES], filled[RECEIVES];
bit wait_all[RECEIVES];
bit ended, all_received;

/* Stream position + 1 of the byte in each cell; 0: free */
byte ring[CELLS];

#define OPEN_ADVERTS ((unadvertised > head) -> (unadvertised - head) : 0)
#define HEAD (head % RECEIVES)

/* ---- Sender ---------------------------------------------------------------------------------- */

/* R1 */
#ifdef ANY_SEQUENCE
#define SEQUENCE_FITS true
#elif defined(LISTING_TEST)
#define SEQUENCE_FITS (first_sequence >= sent)
#else
#define SEQUENCE_FITS (first_sequence == sent)
#endif
#ifdef ANY_PHASE
#define PHASE_FITS true
#else
#define PHASE_FITS LATER(first_phase, sender_phase)
#endif
#define USABLE (IS_DIRECT(sender_phase) || (PHASE_FITS && SEQUENCE_FITS))

/* R14: the first advert of a phase from a correct peer */
inline check_bounds()
{
    skip;
#ifndef UNBOUNDED
    assert(!IS_DIRECT(sender_phase) || first_phase == sender_phase);
#ifndef PHASES
    assert(first_phase <= sender_phase + 1 && sender_phase <= first_phase + 1);
#endif
    if
    :: !IS_DIRECT(sender_phase) && LATER(first_phase, sender_phase) ->
       assert(first_sequence <= sent && sent - first_sequence <= RING)
    :: else
    fi
#endif
}

inline forget_first()
{
    has_first = 0;
    first_sequence = 0;
    first_phase = 0;
    first_bytes = 0;
    first_wait_all = 0;
    first_receive = 0;
    first_offset = 0
}

inline discard_stale()
{
    do
    :: !has_first && nempty(adverts) ->
       adverts ? first_sequence, first_phase, first_bytes, first_wait_all, first_receive,
                 first_offset;
       has_first = 1
    :: !has_first && empty(adverts) -> break
    :: has_first ->
       check_bounds();
       if
       :: USABLE -> break
       :: else ->
#ifndef NO_PHASE_JUMP
          if
          :: LATER(first_phase, sender_phase) -> sender_phase = NEXT(first_phase) /* R2 */
          :: else
          fi;
#endif
          forget_first()
       fi
    od
}

inline send_direct()
{
    select(n : 1 .. LESSER(LONGEST, LESSER(BYTES - sent, first_bytes)));
#ifdef EMPTY_DIRECT
    if
    :: n = 0
    :: skip
    fi;
#endif
    sender_phase = (IS_DIRECT(sender_phase) -> sender_phase : first_phase); /* R6 */
    assert(first_receive >= head); /* R8: the user does not have the memory back yet */
    direct_data ! direct, n, sent, first_receive, first_offset, sender_phase;
    sent = sent + n;
    first_bytes = first_bytes - n;
    first_offset = first_offset + n;
    /* R8 */
#if defined(DROP_WAIT_ALL_ADVERT)
    forget_first()
#elif defined(KEEP_USED_ADVERT)
    if
    :: first_bytes == 0 -> forget_first()
    :: else
    fi
#else
    if
    :: first_wait_all && first_bytes > 0
    :: else -> forget_first()
    fi
#endif
}

inline send_indirect()
{
#ifdef CHECK_DIRECT
    /* No transfer is in flight, and an advert is valid or no rule delays one. */
    assert(!(len(data) == 0 && len(control) == 0 && used == 0 && unacknowledged == 0 &&
             IS_DIRECT(receiver_phase) && OPEN_ADVERTS > 0));
#ifdef READVERTISE
    assert(!(len(data) == 0 && len(control) == 0 && used == 0 && unacknowledged == 0 &&
             unadvertised == next_receive && head < next_receive));
#endif
#endif
    /* R4 */
#ifdef CROSS_RING_END
    select(n : 1 .. LESSER(LONGEST, LESSER(BYTES - sent, free)));
#else
    select(n : 1 .. LESSER(LONGEST, LESSER(BYTES - sent, LESSER(free, RING - write_offset))));
#endif
#ifndef SENDER_STAYS_DIRECT
    sender_phase = (IS_DIRECT(sender_phase) -> NEXT(sender_phase) : sender_phase); /* R6 */
#endif
    i = 0;
    do
    :: i < n ->
       assert(write_offset + i < RING);
       assert(ring[write_offset + i] == 0);
       ring[write_offset + i] = sent + i + 1;
       i++
    :: else -> break
    od;
    data ! indirect, n, sent, 0, 0, sender_phase;
    sent = sent + n;
    free = free - n;
    write_offset = (write_offset + n) % CELLS
}

active proctype Sender()
{
    byte n, i, sequence, phase, bytes, receive, offset;
    bit all;

    do
    :: d_step {
           control ? [advert, _, _, _, _, _, _] ->
           control ? advert, sequence, phase, bytes, all, receive, offset;
           adverts ! sequence, phase, bytes, all, receive, offset;
           sequence = 0;
           phase = 0;
           bytes = 0;
           all = 0;
           receive = 0;
           offset = 0
       }
    :: d_step {
           control ? [ack, _, _, _, _, _, _] ->
           control ? ack, sequence, phase, bytes, all, receive, offset;
           free = free + bytes;
           assert(free <= RING);
           bytes = 0
       }
    :: atomic {
           sent < BYTES && (has_first || nempty(adverts) || free > 0) ->
           discard_stale();
           if
           :: has_first -> send_direct()
#ifdef ANY_POLICY
           :: free > 0 -> send_indirect()
#else
           :: !has_first && free > 0 -> send_indirect()
#endif
           :: !has_first && free == 0
           fi;
           n = 0;
           i = 0
       }
    :: atomic {
           sent == BYTES && !end_sent -> /* R12 */
           end_sent = 1;
#ifdef END_OVERTAKES
           data !! end, 0, 0, 0, 0, 0
#else
           data ! end, 0, sent, 0, 0, sender_phase
#endif
       }
    :: all_received && empty(control) -> break
    od
}

/* ---- Receiver -------------------------------------------------------------------------------- */

inline complete_head()
{
    receive_bytes[HEAD] = 0;
    filled[HEAD] = 0;
    wait_all[HEAD] = 0;
    head++;
    unadvertised = (unadvertised < head -> head : unadvertised)
}

inline arrive_direct()
{
    assert(used == 0);
    assert(head < unadvertised && receive == head);
    assert(offset == filled[HEAD]);
    assert(sequence == delivered);
#ifndef UNBOUNDED
    assert(IS_DIRECT(receiver_phase) && phase == receiver_phase);
#endif
    assert(n > 0); /* R11 */
    delivered = delivered + n;
    filled[HEAD] = filled[HEAD] + n;
    assert(filled[HEAD] <= receive_bytes[HEAD]);
    estimate = (wait_all[HEAD] -> estimate : estimate + n - 1); /* R5 */
    /* R9 */
    if
    :: !wait_all[HEAD] || filled[HEAD] == receive_bytes[HEAD] -> complete_head()
    :: else ->
#ifdef COMPLETE_WAIT_ALL_EARLY
       complete_head()
#else
       skip
#endif
    fi
}

inline arrive_indirect()
{
    assert(sequence == delivered + used);
    assert(used + n <= RING);
#ifndef RECEIVER_STAYS_DIRECT
    if
    :: IS_DIRECT(receiver_phase) ->
       receiver_phase = NEXT(receiver_phase); /* R6 */
#ifdef READVERTISE
       unadvertised = head /* R7 */
#endif
    :: else
    fi;
#endif
    used = used + n;
#ifdef ACK_ON_ARRIVAL
    control ! ack, 0, 0, n, 0, 0, 0
#endif
}

inline copy_out()
{
    select(n : 1 .. LESSER(used, receive_bytes[HEAD] - filled[HEAD]));
    i = 0;
    do
    :: i < n ->
       assert(ring[read_offset] == delivered + 1);
       ring[read_offset] = 0;
       read_offset = (read_offset + 1) % CELLS;
       delivered++;
       i++
    :: else -> break
    od;
    used = used - n;
    filled[HEAD] = filled[HEAD] + n;
    /* R5 */
    if
    :: head < unadvertised && wait_all[HEAD]
    :: head < unadvertised && !wait_all[HEAD] -> estimate = estimate + n - 1
    :: head >= unadvertised ->
#ifdef LITERAL_ESTIMATE
       skip
#else
       estimate = estimate + n
#endif
    fi;
    /* R10 */
#if !defined(ACK_ON_ARRIVAL) && !defined(NEVER_ACK)
    unacknowledged = unacknowledged + n;
#ifndef LATE_ACK
    acknowledge();
#endif
#endif
    if
    :: !wait_all[HEAD] || filled[HEAD] == receive_bytes[HEAD] -> complete_head()
    :: else
    fi
}

inline acknowledge()
{
    control ! ack, 0, 0, unacknowledged, 0, 0, 0;
    unacknowledged = 0
}

inline advertise()
{
    i = !IS_DIRECT(receiver_phase);
    if
    :: i ->
       receiver_phase = NEXT(receiver_phase); /* R6 */
#ifdef READVERTISE
       estimate = delivered;
#endif
#ifndef UNBOUNDED
       assert(estimate == delivered) /* R5: the first advert of a phase is exact */
#endif
    :: else
    fi;
    n = estimate;
#if defined(EXACT_NUMBERS)
    n = delivered;
#elif defined(RECEIVED_BYTES)
    n = delivered + used;
#elif defined(ARBITRARY_ESTIMATES)
    if
    :: i
    :: else -> select(n : 0 .. BYTES)
    fi;
#endif
    i = unadvertised % RECEIVES;
    control ! advert, n, receiver_phase, receive_bytes[i] - filled[i], wait_all[i], unadvertised,
              filled[i];
    estimate = estimate + (wait_all[i] -> receive_bytes[i] - filled[i] : 1);
    unadvertised++
}

/* R3: no bytes in the ring, and in an odd phase no receive that was advertised before */
#ifdef RECEIVED_BYTES
#define RING_ALLOWS true
#else
#define RING_ALLOWS (used == 0)
#endif
#ifdef NO_HOLD_OFF
#define OLD_ADVERTS_ALLOW true
#else
#define OLD_ADVERTS_ALLOW (IS_DIRECT(receiver_phase) || OPEN_ADVERTS == 0)
#endif

active proctype Receiver()
{
    byte n, i, sequence, receive, offset, phase;

    do
    :: atomic {
           next_receive - head < RECEIVES && !ended ->
           select(n : 1 .. LONGEST);
           receive_bytes[next_receive % RECEIVES] = n;
#ifndef PLAIN
           if
           :: wait_all[next_receive % RECEIVES] = 1
           :: skip
           fi;
#endif
           next_receive++;
           n = 0
       }
    :: atomic {
           unadvertised < next_receive && !ended && RING_ALLOWS && OLD_ADVERTS_ALLOW ->
           advertise();
           n = 0;
           i = 0
       }
#ifdef SKIP_UNADVERTISED
    :: unadvertised + 1 < next_receive -> unadvertised++
#endif
    :: atomic {
           direct_data ? [direct, _, _, _, _, _] ->
           direct_data ? direct, n, sequence, receive, offset, phase;
           arrive_direct();
           n = 0;
           sequence = 0;
           receive = 0;
           offset = 0;
           phase = 0
       }
    :: atomic {
           data ? [indirect, _, _, _, _, _] ->
           data ? indirect, n, sequence, receive, offset, phase;
           arrive_indirect();
           n = 0;
           sequence = 0;
           phase = 0
       }
    :: d_step {
           ALL_DIRECT_ARRIVED && data ? [end, _, _, _, _, _] ->
           data ? end, n, sequence, receive, offset, phase;
           assert(delivered + used == BYTES); /* R12 */
           ended = 1;
           n = 0;
           sequence = 0;
           phase = 0
       }
    :: atomic {
           used > 0 && head < next_receive ->
           copy_out();
           n = 0;
           i = 0
       }
#ifdef LATE_ACK
    :: atomic {
           unacknowledged > 0 ->
           acknowledge()
       }
#endif
    /* The user continues to receive the bytes in the ring. */
    :: atomic {
           ended && used > 0 && head == next_receive ->
           receive_bytes[HEAD] = 1;
           next_receive++
       }
    :: atomic {
           ended && used == 0 ->
           assert(delivered == BYTES);
           all_received = 1;
           break
       }
    od
}

ltl everything_arrives { <> (all_received && delivered == BYTES) }
