/* SPDX-License-Identifier: MIT */
/*
 * Adding a consumer stream to a lease against its release and the reuse of its record.
 *
 * Stands for: tn__lease_add_stream(), look(), add(), listed(), head_set(), tn__streams_open(),
 * tn__streams_close(), tn__streams_reopen(), tn__streams_retire() (lifetime/streams.c); the calls
 * of them in end_cuda() and fall_back() (release.c) and in acquire() (acquire.c).
 *
 * The head of a record's list is {generation, first node}, changed by one CAS and read in two
 * loads. The owner of the lease (generation 1, stream 1 in the record's own node) releases it;
 * recording may fail once, then the list is opened again. After the release the record is used for
 * generation 2. Two threads add streams 2 and 3 (SAME: both stream 2) to generation 1, each with a
 * node of its own. Retired nodes are freed after a grace period.
 *
 * Holds
 *  A1 a stream was added with success if and only if the release that ended the lease recorded an
 *     event on it.
 *  A2 the list of generation 2 has its own stream only.
 *  A3 nobody reads a freed node.
 *
 * Not claimed: a stream that two threads add while a failing release opens the list again may be
 * listed twice; it then gets two events.
 *
 * Runs (read by run.sh)
 *   holds  two_streams
 *   holds  same_stream                   -DSAME
 *   fails  no_generation      assertion  -DNO_GENERATION
 *   fails  list_not_closed    assertion  -DLIST_NOT_CLOSED
 *   fails  word_then_append   assertion  -DNO_GENERATION -DWORD_AGAIN
 *   fails  freed_at_once      assertion  -DFREED_AT_ONCE
 */
#define FREE 0
#define ACQUIRING 1
#define ACTIVE 2
#define RELEASING 3
#define PENDING 4
#define WORD(g, s) ((g) * 8 + (s))

/* Nodes: 1 is inside the record, 2 and 3 are the adders'. */
byte word = WORD(1, ACTIVE), generation = 1, first = 1;
byte next[4], stream[4];
bit retired[4], freed[4], section[4], recorded[4], added[4];
bit ended, over; /* generation 1 has been released; the owner has ended */

#ifdef NO_GENERATION
#define SAME_HEAD(g, f) (first == f)
#else
#define SAME_HEAD(g, f) (generation == g && first == f)
#endif

inline list(n) { assert(!freed[n]) /* A3 */ }

proctype Adder(byte mine) {
    byte low, high, n;
    bit known, done;
    section[mine] = 1;
    done = word != WORD(1, ACTIVE);
    section[mine] = 0;
    if
    :: done -> goto out
    :: else
    fi;
#ifdef SAME
    stream[mine] = 2;
#else
    stream[mine] = mine;
#endif
    section[mine] = 1;
    do
    :: low = generation;
        high = first;
#ifdef NO_GENERATION
#ifdef WORD_AGAIN
        if
        :: word != WORD(1, ACTIVE) -> break
        :: else
        fi;
#endif
        if
        :: high == 0 -> break
        :: else
        fi;
#else
        if
        :: low != 1 -> break
        :: else
        fi;
#endif
        known = 0;
        n = high;
        do
        :: n != 0 -> list(n); known = known || stream[n] == stream[mine]; n = next[n]
        :: else -> break
        od;
        next[mine] = high;
        atomic {
            if
            :: SAME_HEAD(low, high) ->
                if
                :: !known -> first = mine
                :: else
                fi;
                done = 1
            :: else
            fi
        };
        if
        :: done -> added[stream[mine]] = 1; break
        :: else
        fi
    od;
    section[mine] = 0;
out:
    skip
}

inline reverse(from, to) {
    n = from; to = 0;
    do
    :: n != 0 -> later = next[n]; next[n] = to; to = n; n = later
    :: else -> break
    od;
    later = 0
}

inline close_list() {
    do
    :: low = generation;
        high = first;
        atomic {
            if
            :: SAME_HEAD(low, high) ->
#ifndef LIST_NOT_CLOSED
                generation = 0; first = 0;
#endif
                break
            :: else
            fi
        }
    od;
    low = 0
}

/* A grace period that began after node `n` was retired. */
proctype Collector(byte n) {
    if
    :: retired[n] ->
#ifndef FREED_AT_ONCE
        section[2] == 0;
        section[3] == 0;
#endif
        freed[n] = 1
    :: over
    fi
}

proctype Owner() {
    byte low, high, n, nodes, later;
    bit failed;
release:
    word = WORD(1, RELEASING);
    close_list();
    reverse(high, nodes);
    if
    :: !failed -> failed = 1; /* M145: open again */
        reverse(nodes, high);
        d_step { generation = 1; first = high };
        word = WORD(1, ACTIVE);
        goto release
    :: true
    fi;
    n = nodes;
    do
    :: n != 0 -> list(n); recorded[stream[n]] = 1; n = next[n]
    :: else -> break
    od;
    ended = 1;
    /* retire: the record's own node stays */
    n = nodes;
    do
    :: n != 0 ->
        if
        :: n != 1 -> retired[n] = 1
        :: else
        fi;
        n = next[n]
    :: else -> break
    od;
    word = WORD(1, PENDING);
    word = WORD(1, FREE);
    /* generation 2 */
    stream[1] = 0;
    next[1] = 0;
    d_step { generation = 2; first = 1 };
    word = WORD(2, ACQUIRING);
    word = WORD(2, ACTIVE);
    word = WORD(2, RELEASING);
    close_list();
    assert(high == 1 && next[1] == 0); /* A2 */
    over = 1
}

init {
    atomic {
        stream[1] = 1;
        run Owner();
        run Adder(2);
        run Adder(3);
        run Collector(2);
        run Collector(3)
    }
    _nr_pr == 1;
    assert(ended && recorded[1] && recorded[2] == added[2] && recorded[3] == added[3]) /* A1 */
}
