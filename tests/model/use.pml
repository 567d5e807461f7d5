/* SPDX-License-Identifier: MIT */
/*
 * Entry of a use: hit, or decide, enter a plan and borrow while it is in flight.
 *
 * Stands for: tn_use_enter(), enter(), hit(), hit_at_once(), undo(), decide(), try_by_placement(),
 * enter_by_placement(), acquire_all(), reserve_all(), release_all() (controller/enter.c);
 * tn__decide() (decide.c); run_entry(), tn__scope_bind() (transition/scope.c); tn__course_admit(),
 * judge(), take(), check_stale(), tn__course_leave() (admit.c); run(), reserve(), act() (course.c);
 * tn__flow_admit() (flow.c) without its queue.
 *
 * Values 0, 1 and 2 of a byte at one location, whose sources may FAIL. A use wants a set of them
 * and RES bytes; a value that it does not find is loaded, in the place of others that nobody has
 * leased. Bound to placement, its plan is refused as stale if the placement number has moved since
 * the decision; it decides again, BOUND times at most, and the last time it is bound to its claims
 * alone. Beside it another use, a plan that drops a value, a reserve that neither waits nor queues.
 *
 * Holds
 *  U1 nothing is removed while it is leased.
 *  U2 a use has all that it wants, or nothing when it is refused.
 *  U3 no location holds more than its budget; in the end nothing is claimed, reserved or taken.
 *  U4 what its plan has found resident under its claims, or made, is there for its leases; so an
 *     attempt that is bound to placement never loses a value between its admission and its leases.
 *  U5 a use decides at most BOUND + 1 times, and is stale only after that.
 *  U6 (FIT) where all values fit and nobody removes, no use is refused.
 *  U7 everybody ends.
 *
 * Not covered: the search for victims; the queue (flow.pml, plans.pml); how one step of the hit is
 * made (hot.pml); that a decision is of one state (stale.pml); entries bound to the version, which
 * are a decision, a scope, and a hit.
 *
 * Runs (read by run.sh)
 *   holds  alone_and_drop                 -DALONE -DDROP
 *   holds  fit                            -DFIT
 *   holds  reserves                       -DALONE -DDROP -DRES=1 -DRESERVE
 *   holds  failing                        -DTIGHT -DFAIL
 *   holds  tight_and_drop                 -DTIGHT -DDROP
 *   deep   decided_thrice                 -DTIGHT -DDROP -DBOUND=2
 *   deep   everything                     -DTIGHT -DDROP -DFAIL -DRES=1 -DRESERVE
 *   fails  ready_after_flight  assertion  -DALONE -DDROP -DREADY_AFTER_FLIGHT
 *   fails  found_unclaimed     assertion  -DALONE -DDROP -DFOUND_UNCLAIMED
 *   fails  placement_first     assertion  -DALONE -DDROP -DPLACEMENT_FIRST
 *   fails  placement_unchecked assertion  -DALONE -DDROP -DPLACEMENT_UNCHECKED
 *   fails  last_bound_too      assertion  -DFIT -DLAST_BOUND_TOO
 *   fails  without_bound       assertion  -DTIGHT -DDROP -DWITHOUT_BOUND
 *   fails  victim_not_taken    assertion  -DTIGHT -DVICTIM_NOT_TAKEN
 *   fails  undo_forgets        assertion  -DALONE -DDROP -DUNDO_FORGETS
 *   fails  ready_keeps_bytes   assertion  -DALONE -DDROP -DRES=1 -DREADY_KEEPS_BYTES
 *   fails  claims_first        assertion  -DTIGHT -DDROP -DCLAIMS_FIRST
 */
#ifndef RES
#define RES 0
#endif
#ifndef BOUND
#define BOUND 1
#endif
#define VALUES 3
#define ALL 7
#define IN(v) (1 << (v))

mtype = { FRESH, OK, STALE, PLAN, SOURCE };

byte budget;
byte resident, taken, claims; /* sets of values */
byte leased[VALUES];
byte reserved, claimed; /* bytes */
byte number;            /* of the placement */
mtype result[2] = FRESH;

#define COUNT(set) (((set) & 1) + (((set) >> 1) & 1) + (((set) >> 2) & 1))
#define TOTAL (COUNT(resident) + reserved + claimed)
#define LEASED ((leased[0] > 0) + 2 * (leased[1] > 0) + 4 * (leased[2] > 0))
#define LENDABLE (resident & ~taken)

/* ---- Lifetimes ---- */

inline acquire(v, r) {
    atomic {
        r = (LENDABLE & IN(v)) != 0;
        if
        :: r -> leased[v]++; got = got | IN(v)
        :: else
        fi
    }
}

inline acquire_all() {
    v = 0;
    do
    :: v < VALUES && ok ->
        if
        :: set & IN(v) -> acquire(v, ok)
        :: else
        fi;
        v++
    :: else -> break
    od;
    v = 0
}

inline release_all() {
    v = VALUES;
    do
    :: v > 0 ->
        v--;
        atomic {
            if
            :: got & IN(v) -> got = got & ~IN(v); leased[v]--
            :: else
            fi
        }
    :: else -> break
    od;
    if
    :: bytes -> atomic { reserved = reserved - bytes; bytes = 0 }
    :: else
    fi
}

/* All in one step, or nothing. */
inline hit_at_once() {
    atomic {
        ok = ((LENDABLE & set) == set && TOTAL + RES <= budget);
        if
        :: ok ->
            got = set; bytes = RES; reserved = reserved + RES;
            leased[0] = leased[0] + (set & 1);
            leased[1] = leased[1] + ((set >> 1) & 1);
            leased[2] = leased[2] + ((set >> 2) & 1)
        :: else
        fi
    }
}

inline hit() {
    hit_at_once();
    if
    :: ok -> goto entered
    :: else
    fi;
    ok = 1;
    acquire_all();
    if
    :: ok -> atomic {
        ok = (TOTAL + RES <= budget);
        if
        :: ok -> bytes = RES; reserved = reserved + RES
        :: else
        fi
    }
    :: else
    fi;
    if
    :: ok -> goto entered
    :: else
#ifndef UNDO_FORGETS
        -> release_all()
#endif
    fi
}

/* ---- Miss ---- */

#define VICTIM(v) (resident & ~set & ~victims & ~LEASED & IN(v))
#define NEED (COUNT(loads) + RES - COUNT(victims))

/* Of one state; claims of plans in flight are none of its business. */
inline decide() {
    d_step {
        decisions++;
        decided_at = number;
        loads = set & ~resident;
        victims = 0;
        v = 0;
        do
        :: v < VALUES && COUNT(resident) + reserved + NEED > budget ->
            if
            :: VICTIM(v) -> victims = victims | IN(v)
            :: else
            fi;
            v++
        :: else -> break
        od;
        v = 0;
        ok = COUNT(resident) + reserved + NEED <= budget;
        if
        :: !ok -> victims = 0; loads = 0
        :: else
        fi
    }
}

#ifdef FOUND_UNCLAIMED
#define HANDLES (loads | victims)
#else
#define HANDLES (set | victims)
#endif
#define SHORT(need) ((need) > 0 && TOTAL + (need) > budget)

/* The plan is judged by what is there now; what is missing of it waits for others in flight. */
inline admit() {
    atomic {
        (claims & HANDLES) == 0 && !(SHORT(COUNT(loads & ~resident) + RES -
                                           COUNT(victims & resident)) && claims);
        mine = HANDLES;
        loads = loads & ~resident;
        victims = victims & resident;
        safe = (resident & mine) | loads;
        if
        :: (victims & LEASED) || SHORT(NEED) -> ok = 0; mine = 0 /* protected, or no room */
        :: else ->
            ok = 1;
            claims = claims | mine;
            need = NEED;
            need = (need > 0 -> need : 0);
            claimed = claimed + need
        fi
    }
}

inline give_back_words() {
    atomic { taken = taken & ~victims; victims = 0 }
}

inline leave_flight() {
#ifdef CLAIMS_FIRST
    atomic { claims = claims & ~mine; mine = 0; claimed = claimed - need; need = 0 };
    give_back_words()
#else
    give_back_words();
    atomic { claims = claims & ~mine; mine = 0; claimed = claimed - need; need = 0 }
#endif
}

inline take() {
    if
    :: victims -> atomic {
#ifndef VICTIM_NOT_TAKEN
        if
        :: victims & LEASED -> ok = 0; victims = 0 /* met a use: simulated again, protected */
        :: else -> taken = taken | victims
        fi
#else
        ok = !(victims & LEASED);
        victims = (ok -> victims : 0)
#endif
    }
    :: else
    fi
}

inline drop_victims() {
    v = 0;
    do
    :: v < VALUES ->
        if
        :: victims & IN(v) -> atomic {
            assert(leased[v] == 0); /* U1 */
            resident = resident & ~IN(v);
            taken = taken & ~IN(v);
            victims = victims & ~IN(v);
            claimed++; need++;
            number++
        }
        :: else
        fi;
        v++
    :: else -> break
    od;
    v = 0
}

inline load_all() {
    v = 0;
    do
    :: v < VALUES && ok ->
        if
        :: loads & IN(v) ->
            if
            :: atomic { true ->
                assert(need > 0 && !(resident & IN(v)));
                resident = resident | IN(v);
                claimed--; need--;
                number++
            }
#ifdef FAIL
            :: true -> ok = 0; failed = 1
#endif
            fi
        :: else
        fi;
        v++
    :: else -> break
    od;
    v = 0
}

#ifdef LAST_BOUND_TOO
#define LAST 0
#elif defined(WITHOUT_BOUND)
#define LAST 0
#else
#define LAST (decisions == BOUND + 1)
#endif

inline check_placement() {
    atomic {
        if
        :: ok && !LAST && number != decided_at -> ok = 0
        :: else
        fi
    }
}

/* In flight. What was found and made is there (U4). */
inline ready() {
    acquire_all();
    if
    :: !ok ->
#ifndef WITHOUT_BOUND
        assert(LAST && (safe & set) != set); /* U4 */
#endif
#ifndef READY_KEEPS_BYTES
        release_all()
#else
        bytes = 0;
        release_all()
#endif
    :: else
    fi
}

/* `ok`; else `failed`: for good, or else stale. */
inline attempt() {
#ifdef PLACEMENT_FIRST
    ok = 1;
    check_placement();
    if
    :: ok -> admit()
    :: else
    fi;
#else
    admit();
#endif
    if
    :: ok ->
        take();
#if !defined(PLACEMENT_FIRST) && !defined(PLACEMENT_UNCHECKED)
        check_placement();
#endif
        if
        :: ok ->
            drop_victims();
            atomic {
                claimed = claimed - RES; need = need - RES;
                reserved = reserved + RES; bytes = RES
            };
            load_all();
#ifdef READY_AFTER_FLIGHT
            leave_flight();
#endif
            if
            :: ok -> ready()
            :: else -> release_all()
            fi
        :: else
        fi;
        leave_flight()
    :: else
    fi;
    d_step { loads = 0; victims = 0; safe = 0; decided_at = 0 }
}

proctype Use(bit i; byte set) {
    byte v, got, bytes, loads, victims, mine, safe, decisions, decided_at;
    short need;
    bit ok, failed;
    hit();
    do
    :: true ->
        decide();
        if
        :: !ok -> result[i] = PLAN; break
        :: else
        fi;
        attempt();
        if
        :: ok -> goto entered
        :: !ok && failed -> result[i] = SOURCE; break
        :: else
        fi;
#ifdef WITHOUT_BOUND
        assert(decisions <= BOUND + 1) /* U5 */
#else
        if
        :: decisions == BOUND + 1 -> result[i] = STALE; break
        :: else
        fi
#endif
    od;
    atomic {
        assert(got == 0 && bytes == 0 && mine == 0 && need == 0); /* U2 */
        assert(decisions <= BOUND + 1); /* U5 */
#ifdef FIT
        assert(false); /* U6 */
#endif
        goto out
    };
entered:
    atomic {
        assert(got == set && bytes == RES && (resident & set) == set); /* U2, U1 */
        assert(TOTAL <= budget); /* U3 */
        result[i] = OK
    };
    release_all();
out:
    atomic { decisions = 0; ok = 0; failed = 0 }
}

/* A plan that drops a value, if nobody has it. */
proctype Drop(byte v) {
    bit mine;
    atomic { (claims & IN(v)) == 0; claims = claims | IN(v) };
    atomic {
        mine = (resident & IN(v)) && leased[v] == 0;
        if
        :: mine -> taken = taken | IN(v)
        :: else
        fi
    };
    if
    :: mine -> atomic {
        assert(leased[v] == 0); /* U1 */
        resident = resident & ~IN(v);
        taken = taken & ~IN(v);
        number++
    }
    :: else
    fi;
    atomic { claims = claims & ~IN(v); mine = 0 }
}

/* A plan that loads a value. */
proctype Ensure(byte v) {
    bit mine;
    atomic {
        (claims & IN(v)) == 0 && (TOTAL < budget || (resident & IN(v)));
        claims = claims | IN(v);
        mine = !(resident & IN(v));
        claimed = claimed + mine
    };
    if
    :: mine -> atomic { resident = resident | IN(v); claimed--; number++ }
    :: else
    fi;
    atomic { claims = claims & ~IN(v); mine = 0 }
}

proctype Reserve() {
    byte n;
    do
    :: n < 2 ->
        n++;
        if
        :: d_step { TOTAL + 1 <= budget -> reserved++ }; reserved--
        :: TOTAL + 1 > budget
        fi
    :: else -> break
    od
}

init {
    atomic {
#if defined(ALONE)
        /* What it wants is there, and is dropped piece by piece. */
        budget = 3 + RES; resident = 7;
        run Use(0, 7);
        run Drop(0);
        run Drop(1);
        run Drop(2);
#elif defined(TIGHT)
        /* Room for two: each has to evict what the other does not use. */
        budget = 2 + RES; resident = 5;
        run Use(0, 3);
        run Use(1, 6);
#ifdef DROP
        run Drop(1);
        run Drop(2);
#endif
#elif defined(FIT)
        budget = 3; resident = 0;
        run Use(0, 3);
        run Use(1, 6);
        run Ensure(0);
#endif
#ifdef RESERVE
        run Reserve()
#endif
    }
    _nr_pr == 1;
    assert(claims == 0 && claimed == 0 && reserved == 0 && taken == 0); /* U3 */
    assert(LEASED == 0)
}
