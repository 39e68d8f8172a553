/* SPDX-License-Identifier: Apache-2.0 */

/* How the two sides of a direction change to a larger ring (docs/stream-protocol.md, R15), as a
 * description independent of stream/core/sender.hpp and stream/core/receiver.hpp.
 *
 * Indirect transfers only: the rest of the protocol depends only on the number of bytes in the rings,
 * which is `used` here and in stream.pml.
 *
 * Two processes and two channels that keep order. The sender sends BYTES bytes in pieces of any
 * length, each into free bytes of the ring that was announced last, and marks the first piece in
 * each ring. The receiver copies and acknowledges pieces of any length whenever it may; it announces a
 * ring of twice the size, up to LARGEST, whenever it has only one and the sender has
 * reported a wait for space in it; its rule for such waits (P11) matters for speed only. It frees the old ring when
 * that is copied out. A write lands when it is sent, the earliest moment that a network allows.
 *
 * Checked in every state: no byte of a ring is overwritten before it was copied out, none is written
 * to or copied from a ring that does not exist, what is copied out is the next byte of the stream, a
 * ring is freed once and empty; the bounds by which either side judges the other (R14); and that the
 * process never stops before the end. The formula states that every execution reaches the end, with
 * one ring left.
 *
 * run growing                holds
 * run growing_from_two       holds    -DFIRST=2 -DBYTES=16
 * run growing_once           holds    -DLARGEST=2 -DBYTES=16
 * run late_acknowledgement   holds    -DLATE_ACK
 * run refused                holds    -DLARGEST=1 -DBYTES=4
 *
 * run reaches_the_largest    violates -DFIND_LARGEST
 * run R15_unsaid             violates -DUNSAID
 * run R15_old_offsets        violates -DOLD_OFFSETS
 * run R15_at_announcement    violates -DAT_ANNOUNCEMENT
 * run R15_free_early         violates -DFREE_EARLY
 * run R15_never_free         violates -DNEVER_FREE
 * run R15_old_space          violates -DOLD_SPACE
 * run R15_unasked            violates -DUNASKED
 */

#ifndef BYTES
#define BYTES 12 /* of the stream */
#endif
#ifndef FIRST
#define FIRST 1 /* bytes of the first ring */
#endif
#ifndef LARGEST
#define LARGEST 4 /* and of the largest */
#endif
#define LONGEST 3 /* piece */
#define RINGS 4
#define LESSER(a, b) (((a) < (b)) -> (a) : (b))
#define GREATER(a, b) (((a) > (b)) -> (a) : (b))

mtype = { indirect, end, ack, ring };

/* kind, bytes, waited, first; and for the assertions, sequence */
chan data = [BYTES + 1] of { mtype, byte, bit, bit, byte };
/* kind; total bytes copied, or bytes of a ring */
chan control = [BYTES + RINGS] of { mtype, byte };

/* Stream position + 1 of the byte in each cell of each ring; 0: free */
byte cells[RINGS * LARGEST];
byte newest;        /* number of the newest ring */
bit freed[RINGS];
#define EXISTS(number) ((number) <= newest && !freed[number])
#define CELL(number, offset) cells[(number) * LARGEST + (offset)]

/* Sender */
byte sent, acked;
byte to_number, to_begin;      /* the ring that it writes to */
byte to_bytes = FIRST;
bit to_is_new, asked, waiting;
bit end_sent;

/* Receiver */
byte received, copied, told;
byte number, begin;            /* the ring for arriving bytes */
byte bytes = FIRST;
byte old_begin, old_bytes;     /* the one before it, until it is copied out */
byte announced;                /* bytes; 0: none */
bit has_old, wanted;
bit ended, all_received;

#ifdef OLD_SPACE /* acknowledgements of the old ring are taken for space in the new one */
byte acked_at_change;
#define SPACE (to_bytes + (acked - acked_at_change) - (sent - to_begin))
#else
#define SPACE (to_bytes - (sent - GREATER(acked, to_begin)))
#endif
#ifdef OLD_OFFSETS
#define TO_OFFSET(position) ((position) % to_bytes)
#else
#define TO_OFFSET(position) (((position) - to_begin) % to_bytes)
#endif

inline write()
{
    select(n : 1 .. LESSER(LONGEST, LESSER(BYTES - sent, LESSER(SPACE, to_bytes - TO_OFFSET(sent)))));
    assert(EXISTS(to_number));
    i = 0;
    do
    :: i < n ->
       assert(CELL(to_number, TO_OFFSET(sent + i)) == 0);
       CELL(to_number, TO_OFFSET(sent + i)) = sent + i + 1;
       i++
    :: else -> break
    od;
#ifdef UNSAID
    data ! indirect, n, waiting, 0, sent;
#else
    data ! indirect, n, waiting, to_is_new, sent;
#endif
    asked = asked || waiting;
    waiting = 0;
    to_is_new = 0;
    sent = sent + n;
    n = 0;
    i = 0
}

active proctype Sender()
{
    byte n, i, value;

    do
    :: atomic {
           control ? [ack, _] ->
           control ? ack, value;
           assert(value >= acked && value <= sent); /* R14 */
           acked = value;
           value = 0
       }
    :: atomic {
           control ? [ring, _] ->
           control ? ring, value;
           assert(asked && value > to_bytes); /* R14 */
           assert(acked >= to_begin);
           to_number++;
           to_begin = sent;
           to_bytes = value;
           to_is_new = 1;
           asked = 0;
           waiting = 0;
#ifdef OLD_SPACE
           acked_at_change = acked;
#endif
           value = 0
       }
    :: atomic { sent < BYTES && SPACE > 0 -> write() }
    :: atomic { sent < BYTES && SPACE == 0 && !waiting -> waiting = 1 }
    :: atomic {
           sent == BYTES && !end_sent ->
           end_sent = 1;
           data ! end, 0, 0, 0, sent
       }
    :: all_received && empty(control) -> break
    od
}

inline free_old()
{
    assert(has_old && EXISTS(number - 1));
    i = 0;
    do
    :: i < LARGEST -> assert(CELL(number - 1, i) == 0); i++
    :: else -> break
    od;
    i = 0;
    freed[number - 1] = 1;
    has_old = 0
}

inline change()
{
    assert(announced > 0); /* R14 */
    assert(!has_old);
    old_begin = begin;
    old_bytes = bytes;
    begin = received;
    bytes = announced;
#ifdef FIND_LARGEST /* not a flaw: shows that the model reaches the largest ring */
    assert(bytes < LARGEST);
#endif
    announced = 0;
    number++;
    has_old = 1;
#ifdef FREE_EARLY
    free_old()
#else
    if
    :: copied == begin -> free_old()
    :: else
    fi
#endif
}

inline copy_out()
{
    if
    :: has_old ->
       select(n : 1 .. begin - copied)
    :: else ->
       select(n : 1 .. received - copied)
    fi;
    i = 0;
    do
    :: i < n ->
       if
       :: has_old ->
          assert(EXISTS(number - 1));
          assert(CELL(number - 1, (copied - old_begin) % old_bytes) == copied + 1);
          CELL(number - 1, (copied - old_begin) % old_bytes) = 0
       :: else ->
          assert(EXISTS(number));
          assert(CELL(number, (copied - begin) % bytes) == copied + 1);
          CELL(number, (copied - begin) % bytes) = 0
       fi;
       copied++;
       i++
    :: else -> break
    od;
    i = 0;
    n = 0;
#ifdef NEVER_FREE
    has_old = has_old && copied < begin;
#else
    if
    :: has_old && copied == begin -> free_old()
    :: else
    fi;
#endif
#ifndef LATE_ACK
    control ! ack, copied;
    told = copied
#endif
}

active proctype Receiver()
{
    byte n, i, sequence;
    bit waited, first;

    do
    :: atomic {
           data ? [indirect, _, _, _, _] ->
           data ? indirect, n, waited, first, sequence;
           assert(sequence == received);
           if
           :: first ->
#ifndef AT_ANNOUNCEMENT
              change()
#else
              skip
#endif
           :: else
           fi;
           assert(received + n - GREATER(copied, begin) <= bytes); /* R4 */
           received = received + n;
           wanted = wanted || (waited && !has_old && announced == 0);
           n = 0;
           waited = 0;
           first = 0;
           sequence = 0
       }
    :: atomic {
           /* optional */
#ifdef UNASKED
           announced == 0 && !has_old && bytes < LARGEST && !ended ->
#else
           wanted && bytes < LARGEST && !ended ->
#endif
           wanted = 0;
           announced = LESSER(2 * bytes, LARGEST);
           newest++;
           control ! ring, announced;
#ifdef AT_ANNOUNCEMENT
           change()
#endif
       }
    :: wanted -> wanted = 0
    :: atomic { received > copied -> copy_out() }
#ifdef LATE_ACK
    :: atomic { copied > told -> control ! ack, copied; told = copied }
#endif
    :: atomic {
           data ? [end, _, _, _, _] ->
           data ? end, n, waited, first, sequence;
           assert(sequence == received); /* R12 */
           ended = 1;
           sequence = 0
       }
    :: atomic {
           ended && copied == received ->
           assert(copied == BYTES);
           assert(!has_old && EXISTS(number) && (number == 0 || !EXISTS(number - 1)));
           all_received = 1;
           break
       }
    od
}

ltl everything_arrives { <> (all_received && copied == BYTES) }
