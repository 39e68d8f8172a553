/* SPDX-License-Identifier: Apache-2.0 */

/* The credits of a connection (netio/session/send_window.hpp, R13), as a second and independent description.
 *
 * Two nodes send each other MESSAGES messages. Every message uses up one of the RECEIVES receives
 * that the other node keeps posted. After a message has arrived and the receive is posted again,
 * possibly much later, the receiver owes the sender a credit. A `write` carries no credits and does
 * not use the last RESERVE credits. A `frame` carries all owed credits, and may use the reserve if
 * it carries any. A `credit` carries credits only, is sent when THRESHOLD of them are owed, and may
 * use the reserve. A node chooses freely between `write` and `frame`, at any time.
 *
 * Checked in every state: no node receives more than it has posted, nor gets back more credits than
 * it used, and no node stops before all messages have arrived. The formula states that every
 * execution reaches this end, so two nodes do not exchange credits without end. `./dev verify`
 * executes these runs. Runs with a flaw must have the given result: `violates` an assertion,
 * `stops`, or `loops`.
 *
 * run receives_3              holds    -DRECEIVES=3
 * run receives_4              holds    -DRECEIVES=4 -DMESSAGES=6
 * run receives_4_threshold_3  holds    -DRECEIVES=4 -DTHRESHOLD=3 -DMESSAGES=6
 *
 * run R13_no_reserve          stops    -DRESERVE=0
 * run R13_no_check            violates -DNO_CHECK
 * run R13_threshold_1         loops    -DRECEIVES=3 -DTHRESHOLD=1
 * run R13_threshold_of_all    stops    -DTHRESHOLD=4
 */

#ifndef RECEIVES
#define RECEIVES 4
#endif
#ifndef THRESHOLD
#define THRESHOLD 2
#endif
#ifndef RESERVE
#define RESERVE 1
#endif
#ifndef MESSAGES
#define MESSAGES (2 * RECEIVES + 2)
#endif

mtype = { write, frame, credit };
/* towards node 0 and node 1: kind, credits returned */
chan inbox[2] = [RECEIVES + 1] of { mtype, byte };
byte unposted[2]; /* receives that a message has used and that are not yet posted again */
bool finished[2];

#ifdef NO_CHECK
#define MAY_WRITE true
#else
#define MAY_WRITE (available > RESERVE)
#endif
#define MAY_SEND_FRAME (MAY_WRITE || (available == 1 && owed > 0))

inline post(kind, returned)
{
    available = (available > 0 -> available - 1 : 0);
    inbox[1 - me] ! kind, returned;
    assert(len(inbox[1 - me]) + unposted[1 - me] <= RECEIVES)
}

proctype Node(bit me)
{
    byte available = RECEIVES, owed, sent, arrived, returned;
    mtype kind;

    do
    :: d_step {
           sent < MESSAGES && MAY_WRITE && nfull(inbox[1 - me]) ->
           post(write, 0);
           sent++
       }
    :: d_step {
           sent < MESSAGES && MAY_SEND_FRAME && nfull(inbox[1 - me]) ->
           post(frame, owed);
           owed = 0;
           sent++
       }
    :: d_step {
           owed >= THRESHOLD && available > 0 ->
           post(credit, owed);
           owed = 0
       }
    :: d_step {
           nempty(inbox[me]) ->
           inbox[me] ? kind, returned;
           available = available + returned;
           assert(available <= RECEIVES);
           arrived = (kind == credit -> arrived : arrived + 1);
           unposted[me]++;
           kind = 0;
           returned = 0
       }
    :: d_step {
           unposted[me] > 0 ->
           unposted[me]--;
           owed++
       }
    :: d_step { sent == MESSAGES && arrived == MESSAGES && !finished[me] -> finished[me] = true }
    :: finished[0] && finished[1] -> break
    od
}

init {
    atomic {
        run Node(0);
        run Node(1)
    }
}

ltl both_finish { <> (finished[0] && finished[1]) }
