/* SPDX-License-Identifier: MIT */
/*
 * A plan that is short of bytes: what it has seen of them is of several moments.
 *
 * Stands for: look(), simulate(), judge() (transition/admit.c); tn__sim_places_begin()
 * (plan/overlay.c); tn__guards_reserved() (guards.c); examine(), judged(), judged_short(),
 * moved_on(), others_hold(), holds(), must_wait(), claim_all(), behind() (flow.c); publish(),
 * raise(), lower(), settle_rest() (commit.c); tn__claims_step() (claims.c); change(),
 * tn__ledger_read() (placement/ledger.c); reserve(), end_reservation() (lifetime/reserve.c,
 * release.c).
 *
 * One location. A plan makes a byte there and removes it again (or, with STAYS, the last one keeps
 * it), each on a handle of its own (with SAME_HANDLE the first two share one). It looks without a
 * lock, at the version, at the records, and at the ledger, one after the other; the first time it
 * counts by version and records, later perhaps by the ledger alone. Under the lock it waits for its
 * turn and is judged by what it saw: short, it waits for others in flight that hold bytes there; if
 * there is nobody, it looks again, by the ledger, if that is not what it saw, LOOKS times at most;
 * else it is refused. A commit changes the ledger and the version in several steps, which a look
 * may come between. A reserve changes the ledger and its record, one after the other, and tells
 * nobody.
 *
 * Holds
 *  S2 a plan is refused only if, at some moment of its call, it would not have fitted even without
 *     what plans in flight hold for a while; so one that fits alone, beside plans that all give
 *     back, is never refused.
 *  S3 the location never holds more than its budget; in the end nothing is claimed.
 *  S4 everybody ends.
 *
 * LOOKS is 16 in the code. A look is spent on a change by reservations; once because a plan is
 * judged before it is known to stand behind others; and on each plan in front of it whose bytes are
 * not known while it waits for a handle, if a look sees these bytes and the judgement does not. So
 * S2 holds if there are fewer of these than looks.
 *
 * Runs (read by run.sh)
 *   holds  beside                         -DPLANS=2
 *   holds  three                          -DPLANS=3
 *   holds  same_handle                    -DPLANS=3 -DSAME_HANDLE
 *   holds  serial                         -DPLANS=3 -DSERIAL
 *   holds  reserves                       -DPLANS=2 -DBUDGET=2 -DRESERVES=2
 *   holds  reserves_in_the_way            -DPLANS=2 -DRESERVES=2
 *   holds  stays                          -DPLANS=3 -DSTAYS -DBUDGET=2
 *   holds  stays_in_the_way               -DPLANS=2 -DSTAYS
 *   deep   three_and_reserves             -DPLANS=3 -DBUDGET=2 -DRESERVES=2
 *   deep   four                           -DPLANS=4
 *   deep   four_same_handle               -DPLANS=4 -DSAME_HANDLE -DLOOKS=3
 *   fails  ledger_with_itself  assertion  -DPLANS=2 -DLEDGER_WITH_ITSELF
 *   fails  with_itself_serial  assertion  -DPLANS=2 -DSERIAL -DLEDGER_WITH_ITSELF
 *   fails  too_few_looks       assertion  -DPLANS=4 -DSAME_HANDLE
 *   fails  looked_once         assertion  -DPLANS=2 -DSERIAL -DLOOKED_ONCE
 *   fails  claims_only         assertion  -DPLANS=2 -DCLAIMS_ONLY
 *   fails  flight_last         assertion  -DPLANS=4 -DFLIGHT_LAST
 *   fails  claimed_at_last     assertion  -DPLANS=2 -DBUDGET=2 -DRESERVES=1 -DCLAIMED_AT_LAST
 */
#ifndef BUDGET
#define BUDGET 1
#endif
#ifndef RESERVES
#define RESERVES 0
#endif
#ifndef LOOKS
#define LOOKS 2
#endif

mtype = { GO, SLEEP, RECHECK, REFUSED };

/* The location. */
byte total, claimed; /* the ledger: both are read at once */
byte used;           /* in the current version */
byte shown;          /* reserved, by the records */

bit locked;
bit waiting[PLANS], asleep[PLANS], woken[PLANS], in_flight[PLANS];
bit known[PLANS];              /* its bytes are known to the queue */
bit held[PLANS], frees[PLANS]; /* in flight: a claim; a step to come removes */
bit freeing[PLANS];            /* storage is being freed */
byte place[PLANS], places;

/* What really is. */
byte stays, reserved;
bit calling[PLANS], was_full[PLANS], over[PLANS];

#if PLANS > 3
#define ANY(what) (what(0) || what(1) || what(2) || what(3))
#elif PLANS > 2
#define ANY(what) (what(0) || what(1) || what(2))
#else
#define ANY(what) (what(0) || what(1))
#endif

#if defined(SERIAL)
#define CLASH(a) 1
#elif defined(SAME_HANDLE)
#define CLASH(a) ((a) < 2 && i < 2) /* of the first two */
#else
#define CLASH(a) 0
#endif
#define BLOCKS(a) (in_flight[a] && a != i && CLASH(a))
#define IN_FRONT(a) (waiting[a] && place[a] < place[i] && (CLASH(a) || (known[a] && known[i])))

#if defined(CLAIMS_ONLY)
#define HOLDS(a) (in_flight[a] && a != i && (held[a] || freeing[a]))
#else
#define HOLDS(a) (in_flight[a] && a != i && (held[a] || frees[a] || freeing[a]))
#endif

#define FITS (total + 1 <= BUDGET)
#define FULL (stays + reserved + 1 > BUDGET) /* S2 */

inline note() {
    was_full[0] = was_full[0] || (calling[0] && FULL);
    was_full[1] = was_full[1] || (calling[1] && FULL)
#if PLANS > 2
    ;was_full[2] = was_full[2] || (calling[2] && FULL)
#endif
#if PLANS > 3
    ;was_full[3] = was_full[3] || (calling[3] && FULL)
#endif
}

inline wake(a) { woken[a] = woken[a] || asleep[a]; asleep[a] = 0 }
inline broadcast() {
    d_step {
        wake(0);
        wake(1)
#if PLANS > 2
        ;wake(2)
#endif
#if PLANS > 3
        ;wake(3)
#endif
    }
}

#define CLOSE_RANKS(a) place[a] = (place[a] > place[i] -> place[a] - 1 : place[a])
inline unlink() {
    d_step {
        CLOSE_RANKS(0);
        CLOSE_RANKS(1);
#if PLANS > 2
        CLOSE_RANKS(2);
#endif
#if PLANS > 3
        CLOSE_RANKS(3);
#endif
        places--;
        waiting[i] = 0; place[i] = 0; known[i] = 0
    }
}

/* Version, records, ledger. */
inline look() {
    if
    :: squeezed -> began = total - claimed
    :: else ->
        began = used;
        began = began + shown;
        found = total - claimed
    fi;
    fits = (began + 1 <= BUDGET)
}

inline judged() {
    if
    :: outdated -> outdated = 0; v = RECHECK
    :: else ->
        known[i] = 1;
        if
        :: fits -> v = GO
        :: else ->
#ifdef LEDGER_WITH_ITSELF
            /* "Has it changed since the look?", whatever the look made of it. */
            if
            :: total - claimed != found && looks < LOOKS -> looks++; v = RECHECK
            :: else ->
                outdated = ANY(HOLDS);
                v = (outdated -> SLEEP : REFUSED)
            fi
#elif defined(FLIGHT_LAST)
            if
            :: total - claimed != began && looks < LOOKS -> looks++; squeezed = 1; v = RECHECK
            :: else ->
                outdated = ANY(HOLDS);
                v = (outdated -> SLEEP : REFUSED)
            fi
#else
            outdated = ANY(HOLDS);
            if
            :: outdated -> v = SLEEP
#ifndef LOOKED_ONCE
            :: !outdated && total - claimed != began && looks < LOOKS ->
                looks++; squeezed = 1; v = RECHECK
#endif
            :: else -> v = REFUSED
            fi
#endif
        fi
    fi
}

inline examine() {
    if
    :: ANY(BLOCKS) || ANY(IN_FRONT) -> v = SLEEP
    :: else ->
        judged();
        if
        :: v == GO && (ANY(IN_FRONT) || (!FITS && ANY(HOLDS))) -> v = SLEEP
        :: else
        fi
    fi
}

/* A reserve may have come between. */
inline claim() {
    d_step {
        if
        :: FITS -> total++; claimed++; held[i] = 1
        :: else
#ifdef CLAIMED_AT_LAST
            -> v = REFUSED
#else
            -> if
            :: ANY(HOLDS) -> v = SLEEP
            :: else -> squeezed = 1; v = RECHECK
            fi
#endif
        fi
    }
}

inline sleep_or_leave() {
    if
    :: v == SLEEP -> asleep[i] = 1
    :: v == REFUSED ->
        assert(was_full[i]); /* S2 */
        unlink();
        broadcast()
    :: else
    fi
}

inline lock() { atomic { !locked; locked = 1 } }

proctype Plan(byte i) {
    byte began, found, looks;
    mtype v = SLEEP;
    bit fits, squeezed, outdated;
    atomic { calling[i] = 1; note() };
    look();
    do
    :: v == REFUSED -> goto out
    :: v == RECHECK -> look(); v = SLEEP
    :: v == SLEEP ->
        atomic {
            !locked && !asleep[i];
            woken[i] = 0;
            if
            :: !waiting[i] -> waiting[i] = 1; places++; place[i] = places
            :: else
            fi;
            examine();
            if
            :: v == GO -> locked = 1
            :: else -> sleep_or_leave()
            fi
        }
    :: v == GO ->
        atomic {
            claim();
            locked = 0;
            if
            :: v == GO ->
                in_flight[i] = 1;
#ifdef STAYS
                frees[i] = (i + 1 < PLANS);
#else
                frees[i] = 1;
#endif
                unlink();
                broadcast();
                break
            :: else -> sleep_or_leave()
            fi
        }
    od;
    atomic { began = 0; found = 0; looks = 0; fits = 0; squeezed = 0; outdated = 0; v = SLEEP };

    /* It makes a byte, or fails. */
    if
    :: goto leave
    :: true
    fi;
    lock();
    claimed--;                        /* raise() */
    used++;                           /* publish */
#ifdef STAYS
    atomic {
        if
        :: i + 1 == PLANS -> stays++; note()
        :: else
        fi
    };
#endif
    atomic { held[i] = 0; broadcast(); locked = 0 };

    /* It removes it. */
    if
    :: frees[i] ->
        lock();
        used--;                       /* publish */
        atomic { claimed++; freeing[i] = 1; locked = 0 }; /* lower() */
        /* storage is freed here */
        lock();
        d_step { total--; claimed--; frees[i] = 0; freeing[i] = 0 };
        atomic { broadcast(); locked = 0 }
    :: else
    fi;
leave:
    lock();
    d_step {
        if
        :: held[i] -> total--; claimed--
        :: else
        fi;
        held[i] = 0; frees[i] = 0; in_flight[i] = 0
    };
    atomic { broadcast(); locked = 0 };
out:
    atomic {
        assert(total <= BUDGET && claimed <= total); /* S3 */
        calling[i] = 0; was_full[i] = 0; over[i] = 1; v = 0
    }
}

proctype Reserve() {
    byte n;
    do
    :: n < RESERVES ->
        n++;
        if
        :: d_step { FITS -> total++; reserved++; note() };
            shown++;
            shown--;
            d_step { total--; reserved-- }
        :: !FITS
        fi
    :: else -> break
    od
}

init {
    atomic {
        run Plan(0);
        run Plan(1);
#if PLANS > 2
        run Plan(2);
#endif
#if PLANS > 3
        run Plan(3);
#endif
        run Reserve()
    }
    _nr_pr == 1;
    assert(claimed == 0 && total == used && used == stays && shown == 0) /* S3 */
}
