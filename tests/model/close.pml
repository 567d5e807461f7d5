/* SPDX-License-Identifier: MIT */
/*
 * Close and forced close against acquires and releases.
 *
 * Stands for: tn__life_close(), attempt(), tn__life_close_force(), shut_out(),
 * wait_for_everybody(), visit_detach(), detach_all() (lifetime/close.c); tn__decision_settle(),
 * tn__decision_meet(), tn__decision_outcome() (removal.c); commit(), manager_open() (acquire.c);
 * activate() (reserve.c); take(), take_one(), tn__hot_end() (hot.c), the same of each record;
 * attempt(), end_cuda(), leave(), fall_back() and, with HOST, end_host() (release.c);
 * tn__pending_complete() and tn__pending_consume() (reap.c).
 *
 * Each reader acquires once and, if it got its lease, releases it or keeps it; recording the events
 * may fail, and then the lease ends at once or is active again and is released once more. The
 * stores of an acquire go through a store buffer; read-modify-writes and the ends of sections empty
 * it. A grace period waits for one moment outside a section of each reader. A reader with a lease
 * may also look a payload up, in a section.
 *
 * Holds
 *  C1 nobody gets a lease from a closed manager.
 *  C2 when a close has succeeded no record is ACTIVE, RELEASING or PENDING, and none becomes so.
 *  C3 a close is refused only if something was open at some moment of the call.
 *  C4 an acquire fails as closed only if that close succeeds (a forced one may still fail to
 *     synchronise): an acquire and a close never both lose.
 *  C5 no look-up returns a payload of a closed manager.
 *  C6 everybody ends.
 *
 * Runs (read by run.sh)
 *   holds  plain
 *   holds  plain_host                     -DHOST
 *   holds  forced                         -DFORCED
 *   holds  forced_host                    -DFORCED -DHOST
 *   fails  no_heavy_fence      assertion  -DNO_HEAVY_FENCE
 *   fails  acquiring_ignored   assertion  -DACQUIRING_IGNORED
 *   fails  ends_at_once        assertion  -DFORCED -DENDS_AT_ONCE
 *   fails  no_waits            assertion  -DFORCED -DNO_WAITS
 *   fails  detach_once         assertion  -DFORCED -DDETACH_ONCE
 */
#define READERS 2
#define ATTEMPTS (READERS + 1) /* each reader aborts one at most */

mtype = { FREE, ACQUIRING, ACTIVE, RELEASING, PENDING, DONE, DETACHED };
mtype = { NOT_YET, TRYING, TAKEN, WITHDRAWN, ABORTED, GRANTED, FAILED };

#define OPEN 0
#define CLOSED 255 /* anything between: 1 + the number of the closing descriptor */

mtype word[READERS] = FREE;
mtype decision[ATTEMPTS] = NOT_YET;
byte manager = OPEN;
bit section[READERS], queued[READERS];
chan buffer[READERS] = [4] of { byte, mtype }; /* 0: the record's word; 1 + n: a decision */

bit closed;           /* the close has succeeded: storage is given back */
byte open_leases;     /* granted and not over */
bit closing, was_open; /* a close is running; something was open meanwhile */
bit refused_closed, may_fail;

inline apply(id, where, what) {
    if
    :: where == 0 -> word[id] = what
    :: else -> decision[where - 1] = what
    fi
}

proctype Memory() {
    byte where;
    mtype what;
end:
    do
    :: atomic { buffer[0]?where,what -> apply(0, where, what); where = 0; what = 0 }
    :: atomic { buffer[1]?where,what -> apply(1, where, what); where = 0; what = 0 }
    od
}

#define BUFFERED(id, where, what) buffer[id]!where,what

/* inside an atomic step of reader `id` */
inline empty_buffer(id) {
    do
    :: buffer[id]?where,what -> apply(id, where, what)
    :: empty(buffer[id]) -> break
    od;
    where = 0; what = 0
}

inline leave_section() { atomic { empty_buffer(id); section[id] = 0 } }

inline over() { open_leases-- }

proctype Reader(byte id) {
    byte where, seen;
    mtype what;
    bit mine, ok, again;

    /* acquire */
    section[id] = 1;
    if
    :: manager == CLOSED -> goto refused
    :: else
    fi;
    BUFFERED(id, 0, ACQUIRING);
    seen = manager;
    ok = (seen == OPEN);
    if
    :: seen != OPEN && seen != CLOSED ->
        atomic {
            empty_buffer(id);
            if
            :: decision[seen - 1] == TRYING -> decision[seen - 1] = ABORTED; mine = 1; ok = 1
            :: decision[seen - 1] == TAKEN -> ok = 0
            :: else -> ok = 1
            fi
        }
    :: else
    fi;
    if
    :: ok ->
        atomic {
            assert(!closed); /* C1 */
            open_leases++;
            was_open = was_open || closing;
            BUFFERED(id, 0, ACTIVE)
        }
    :: else -> BUFFERED(id, 0, FREE); refused_closed = 1
    fi;
    if
    :: mine -> BUFFERED(id, seen, (ok -> GRANTED : FAILED)); mine = 0
    :: else
    fi;
    seen = 0;
    leave_section();
    if
    :: !ok -> goto out
    :: else
    fi;
    ok = 0;

    /* look a payload up */
    section[id] = 1;
    if
    :: atomic { word[id] == ACTIVE -> assert(!closed) } /* C5; the second reading of the word */
    :: else
    fi;
    section[id] = 0;

    if
    :: true -> goto out /* keeps it */
    :: true
    fi;

    /* release */
release:
#ifdef HOST
    section[id] = 1;
    atomic {
        if
        :: word[id] == ACTIVE -> word[id] = FREE; over()
        :: else
        fi
    };
    section[id] = 0;
#else
    section[id] = 1;
    atomic {
        if
        :: word[id] == ACTIVE -> word[id] = RELEASING; ok = 1
        :: else -> ok = 0
        fi
    };
    section[id] = 0;
    if
    :: !ok -> goto out
    :: else
    fi;
    ok = 0;
    /* the events are recorded here, outside any section */
    section[id] = 1;
    if
    :: atomic { word[id] == RELEASING -> assert(!closed); word[id] = PENDING } /* C2 */
    :: atomic { word[id] == RELEASING -> assert(!closed); word[id] = FREE; over() } /* M144 */
    :: atomic { word[id] == RELEASING && !again -> /* M145 */
        assert(!closed); word[id] = ACTIVE; again = 1 }
#ifdef ENDS_AT_ONCE
    :: word[id] != RELEASING -> assert(false) /* somebody else left RELEASING */
#endif
    fi;
    section[id] = 0;
    if
    :: atomic { word[id] == ACTIVE && again -> skip }
        if
        :: true -> goto release
        :: true -> goto out /* stays active */
        fi
    :: word[id] == PENDING || word[id] == DONE -> queued[id] = 1
    :: else
    fi;
#endif
    goto out;
refused:
    section[id] = 0;
out:
    skip
}

inline complete(id) {
    atomic {
        if
        :: word[id] == PENDING -> word[id] = DONE; over()
        :: else
        fi
    }
}

/* Helpers and the consumer. */
proctype Reaper() {
end:
    do
    :: word[0] == PENDING -> complete(0)
    :: word[1] == PENDING -> complete(1)
    :: atomic { queued[0] && word[0] == DONE -> word[0] = FREE; queued[0] = 0 }
    :: atomic { queued[1] && word[1] == DONE -> word[1] = FREE; queued[1] = 0 }
    od
}

#define PROTECTED(id) (word[id] == ACTIVE || word[id] == RELEASING || word[id] == PENDING)

inline heavy_fence() {
    skip;
#ifndef NO_HEAVY_FENCE
    atomic {
        do
        :: buffer[0]?where,what -> apply(0, where, what)
        :: empty(buffer[0]) -> break
        od;
        do
        :: buffer[1]?where,what -> apply(1, where, what)
        :: empty(buffer[1]) -> break
        od;
        where = 0; what = 0
    }
#endif
}

/* Reads each record once, in order. */
inline scan() {
    in_use = 0; acquiring = 0;
    d_step {
        in_use = in_use || PROTECTED(0);
        acquiring = acquiring || word[0] == ACQUIRING
    };
    d_step {
        in_use = in_use || PROTECTED(1);
        acquiring = acquiring || word[1] == ACQUIRING
    }
#ifdef ACQUIRING_IGNORED
    ;acquiring = 0
#endif
}

proctype Closer() {
    byte n, where;
    mtype what;
    bit in_use, acquiring;
    atomic { closing = 1; was_open = open_leases > 0 };
again:
    scan();
    if
    :: in_use -> assert(was_open); goto out /* C3 */
    :: else
    fi;
    assert(n < ATTEMPTS);
    decision[n] = TRYING;
    manager = 1 + n;
    heavy_fence();
    do
    :: scan();
        if
        :: acquiring && !in_use && decision[n] == TRYING -> /* until there is something new */
            word[0] != ACQUIRING && word[1] != ACQUIRING || decision[n] != TRYING
        :: else -> break
        fi
    od;
    atomic {
        if
        :: decision[n] == TRYING -> decision[n] = (in_use -> WITHDRAWN : TAKEN)
        :: else
        fi
    };
    decision[n] != ABORTED; /* its reader owes the outcome */
    if
    :: decision[n] == TAKEN ->
        atomic {
            assert(!PROTECTED(0) && !PROTECTED(1)); /* C2 */
            manager = CLOSED; closed = 1
        }
    :: else -> manager = OPEN; n++; goto again
    fi;
out:
    closing = 0
}

inline grace_period() { section[0] == 0; section[1] == 0 }

inline wait_for_everybody() {
    skip;
#if !defined(NO_WAITS) && !defined(ENDS_AT_ONCE)
    grace_period();
    word[0] != RELEASING;
    word[1] != RELEASING;
    grace_period()
#endif
}

inline detach(id) {
    atomic {
        if
        :: word[id] == PENDING -> word[id] = DONE; over(); some = 1
        :: word[id] == ACTIVE -> word[id] = DETACHED; over(); some = 1
#ifdef ENDS_AT_ONCE
        :: word[id] == RELEASING || word[id] == ACQUIRING -> word[id] = DETACHED; over()
#else
        :: word[id] == RELEASING -> some = 1
#endif
        :: else
        fi
    }
}

proctype ForcedCloser() {
    byte where;
    mtype what;
    bit some;
    may_fail = 1;
    decision[0] = TAKEN; /* from the start: whoever meets it fails */
    manager = 1;
    heavy_fence();
    wait_for_everybody();
    /* the devices are synchronised here */
    if
    :: true -> manager = OPEN; goto out /* M238 */
    :: true
    fi;
    do
    :: some = 0;
        detach(0);
        detach(1);
        if
#if !defined(DETACH_ONCE) && !defined(ENDS_AT_ONCE)
        :: some -> wait_for_everybody() /* a release that began since may be active again */
#endif
        :: else -> break
        fi
    od;
    atomic {
        manager = CLOSED; closed = 1;
        assert(!PROTECTED(0) && !PROTECTED(1)) /* C2 */
    };
out:
    skip
}

init {
    atomic {
        run Memory();
        run Reaper();
#ifdef FORCED
        run ForcedCloser();
#else
        run Closer();
#endif
        run Reader(0);
        run Reader(1)
    }
    timeout;
    assert(!refused_closed || closed || may_fail) /* C4 */
}
