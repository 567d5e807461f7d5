/* SPDX-License-Identifier: MIT */
/*
 * A replica that a plan makes and removes again, and what a plan that fails gives back.
 *
 * Stands for: tn__removal_take(), take_none(), tn__removal_add(), tn__removal_commit(),
 * tn__removal_end() (lifetime/removal.c); mark_later(), take(), turn(), tn__course_leave()
 * (transition/admit.c); publish() (commit.c); leave() (action.c), the same for one action;
 * tn__garbage_push(), tn__life_collect() (lifetime/life.c); the reader of acquire.c, as in
 * lease.pml, with its section.
 *
 * Value a (1) is resident, b (2) is made by the plan, which publishes it already taken, uses it,
 * and removes it. With TAKES it removes a too, in one decision with b; without, it has nothing to
 * decide and its descriptor is taken from the start. It may fail before or after each of its
 * commits: what it has made and not removed stays, and is an ordinary replica from then on. A
 * second plan waits for the handle of b (with SECOND of a), and removes that. The handles' claims
 * exclude the two. A descriptor is freed a grace period after all state words have left it. A
 * reader acquires a, b or both, through a store buffer.
 *
 * Holds
 *  L1 storage is not freed while a lease pins it, and no lease is granted on what a plan in flight
 *     will still remove.
 *  L3 everybody ends.
 *  K1 in the end what is resident is LIVE, whether its plan succeeded or failed.
 *  K2 only the plan that holds a handle's claim writes the state word of its materialization.
 *  K3 nobody looks into a descriptor that was freed.
 *
 * Runs (read by run.sh)
 *   holds  makes
 *   holds  takes_and_makes                -DTAKES
 *   holds  second_plan                    -DROUNDS=1 -DSECOND=2
 *   holds  second_plan_of_taken           -DROUNDS=1 -DTAKES -DSECOND=1
 *   fails  not_taken           assertion  -DNOT_TAKEN
 *   fails  published_first     assertion  -DPUBLISHED_FIRST
 *   fails  undecided           assertion  -DUNDECIDED
 *   fails  made_first          assertion  -DTAKES -DMADE_FIRST
 *   fails  not_given_back      assertion  -DNOT_GIVEN_BACK
 *   fails  only_taken_back     assertion  -DTAKES -DONLY_TAKEN_BACK
 *   fails  claims_first        assertion  -DROUNDS=1 -DSECOND=2 -DCLAIMS_FIRST
 *   fails  claims_first_taken  assertion  -DROUNDS=1 -DTAKES -DSECOND=1 -DCLAIMS_FIRST
 *   fails  freed_at_once       assertion  -DFREED_AT_ONCE
 *   fails  freed_before_back   assertion  -DFREED_BEFORE_BACK
 */
#ifndef ROUNDS
#define ROUNDS 2
#endif
#define ATTEMPTS (ROUNDS + 1)

#define FREE 0
#define ACQUIRING 1
#define ACTIVE 2

#define LIVE 0
#define GONE 255

#define TRYING 0
#define TAKEN 1
#define WITHDRAWN 2
#define ABORTED 3
#define GRANTED 4
#define FAILED 5

byte memory[3];                  /* the reader's word, pin of a, pin of b */
byte state[2];
byte decision[2 * ATTEMPTS + 1];
bit garbage[2 * ATTEMPTS + 1], collected[2 * ATTEMPTS + 1];
byte descriptors;
byte version = 1, freed, claims; /* masks */
byte will_remove;                /* what a plan in flight has taken */
byte leased;
bit section;
chan buffer = [6] of { byte, byte }; /* 0 to 2: the record; 10 + n: a decision */

inline apply() {
    if
    :: where < 10 -> memory[where] = what
    :: else -> assert(!collected[where - 10]); decision[where - 10] = what /* K3 */
    fi
}

inline empty_buffer() {
    do
    :: buffer?where,what -> apply()
    :: empty(buffer) -> break
    od;
    where = 0; what = 0
}

proctype Memory() {
    byte where, what;
end:
    do
    :: atomic { buffer?where,what -> apply(); where = 0; what = 0 }
    od
}

/* ---- Reader: as in lease.pml ---- */

inline meet(v, mine) {
    seen = state[v];
    if
    :: seen == GONE -> gone = 1
    :: seen == LIVE
    :: else ->
        atomic {
            assert(!collected[seen]); /* K3 */
            if
            :: decision[seen] == TRYING -> empty_buffer(); decision[seen] = ABORTED; mine = seen
            :: decision[seen] == TAKEN -> taken = 1
            :: else
            fi
        }
    fi;
    seen = 0
}

inline outcomes(granted) {
    if
    :: mine0 -> buffer!10 + mine0,(granted -> GRANTED : FAILED)
    :: else
    fi;
    if
    :: mine1 -> buffer!10 + mine1,(granted -> GRANTED : FAILED)
    :: else
    fi;
    d_step { mine0 = 0; mine1 = 0 }
}

proctype Reader() {
    byte where, what, n, want, seen, mine0, mine1, looks;
    bit gone, taken;
    do
    :: n < ROUNDS ->
        n++;
        if
        :: true -> want = 1
        :: true -> want = 2
        :: true -> want = 3
        fi;
        section = 1;
        buffer!0,ACQUIRING;
look:
        if
        :: (version & want) != want -> goto failed
        :: else
        fi;
        buffer!1,(want & 1);
        buffer!2,(want >> 1);
        if
        :: want & 1 -> meet(0, mine0)
        :: else
        fi;
        if
        :: (want & 2) && !gone && !taken -> meet(1, mine1)
        :: else
        fi;
        if
        :: taken -> goto failed
        :: gone && looks == 0 -> looks = 1; gone = 0; goto look
        :: gone && looks == 1 -> goto failed
        :: else
        fi;
        atomic {
            assert(((freed | will_remove) & want) == 0); /* L1 */
            buffer!0,ACTIVE;
            leased = want
        };
        outcomes(1);
        atomic { empty_buffer(); section = 0 };
        atomic {
            assert((freed & want) == 0); /* L1 */
            memory[0] = FREE; leased = 0
        };
        goto next;
failed:
        buffer!0,FREE;
        outcomes(0);
        atomic { empty_buffer(); section = 0 };
next:
        atomic { seen = 0; want = 0; looks = 0; gone = 0; taken = 0 }
    :: else -> break
    od
}

/* ---- Plans ---- */

inline store(v, value) {
    atomic { assert(claims_mine & (1 << v)); state[v] = value } /* K2 */
}

inline store_all(mask, value) {
    if
    :: (mask) & 1 -> store(0, value)
    :: else
    fi;
    if
    :: (mask) & 2 -> store(1, value)
    :: else
    fi
}

#define PINS (((mask & 1) && memory[1]) || ((mask & 2) && memory[2]))

/* tn__removal_take(): `got` tells whether it is taken. */
inline take(mask) {
    skip;
again:
    atomic { assert(tries < ATTEMPTS); descriptors++; tries++; d = descriptors };
    store_all(mask, d);
    d_step {
        do
        :: buffer?where,what -> apply()
        :: empty(buffer) -> break
        od;
        where = 0; what = 0
    };
    do
    :: atomic {
        in_use = (memory[0] == ACTIVE && PINS);
        if
        :: memory[0] == ACQUIRING && PINS && decision[d] == TRYING ->
            memory[0] != ACQUIRING || decision[d] != TRYING
        :: else -> break
        fi
    }
    od;
    atomic {
        if
        :: decision[d] == TRYING -> decision[d] = (in_use -> WITHDRAWN : TAKEN)
        :: else
        fi
    };
    decision[d] != ABORTED;
    if
    :: decision[d] == TAKEN -> atomic { got = 1; will_remove = will_remove | mask }
    :: else ->
        store_all(mask, LIVE);
        if
        :: in_use || decision[d] == GRANTED -> garbage[d] = 1
        :: else -> garbage[d] = 1; goto again
        fi
    fi
}

inline remove(v) {
    atomic { store(v, GONE); left = left & ~(1 << v) };
    version = version & ~(1 << v);
    atomic {
        assert(!(leased & (1 << v))); /* L1 */
        freed = freed | (1 << v); will_remove = will_remove & ~(1 << v)
    }
}

inline may_fail() {
    if
    :: true
    :: true -> goto failed
    fi
}

inline leave_flight(mask) {
    atomic { claims = claims & ~(mask); claims_mine = 0 }
}

/* tn__removal_end(): what is left of the plan's list. */
inline end_removal() {
    atomic { will_remove = will_remove & ~left };
#ifdef FREED_BEFORE_BACK
    garbage[d] = 1;
#endif
#ifdef ONLY_TAKEN_BACK
    left = left & 1;
#endif
#ifndef NOT_GIVEN_BACK
    store_all(left, LIVE);
#endif
    left = 0;
    garbage[d] = 1
}

proctype Maker() {
    byte where, what, d, tries;
    byte left, claims_mine; /* its list; the handles it has claimed */
    bit in_use, got;
    atomic { claims == 0; claims = 3; claims_mine = 3 };
#ifdef MADE_FIRST
    /* the replica is made before the plan is decided */
    descriptors++; store(1, 1); version = 3; descriptors--;
#endif
#ifdef TAKES
    if
    :: (version & 1) == 0 -> goto out
    :: else
    fi;
    take(1);
    if
    :: !got -> goto out
    :: else -> left = 1
    fi;
#else
    atomic { descriptors++; d = descriptors };
#ifndef UNDECIDED
    decision[d] = TAKEN;
#endif
#endif
    may_fail();
    /* commit of the step that makes b */
#ifdef NOT_TAKEN
    atomic { left = left | 2; version = version | 2; will_remove = will_remove | 2 };
#elif defined(PUBLISHED_FIRST)
    atomic { version = version | 2; will_remove = will_remove | 2 };
    atomic { store(1, d); left = left | 2 };
#else
    atomic { store(1, d); left = left | 2; will_remove = will_remove | 2 };
    version = version | 2;
#endif
    may_fail();
#ifdef TAKES
    if
    :: true ->
        remove(0);
        may_fail();
        remove(1)
    :: true ->
        remove(1);
        may_fail();
        remove(0)
    fi;
#else
    remove(1);
#endif
failed:
#ifdef CLAIMS_FIRST
    atomic { claims = 0 };
    /* K2 by what it leads to */
    atomic { will_remove = will_remove & ~left };
    if
    :: left & 1 -> state[0] = LIVE
    :: else
    fi;
    if
    :: left & 2 -> state[1] = LIVE
    :: else
    fi;
    left = 0;
    garbage[d] = 1;
#else
    end_removal();
#endif
out:
    leave_flight(3)
}

#ifdef SECOND
/* It removes its value, if that is resident. */
proctype Second() {
    byte where, what, d, tries, left, claims_mine;
    bit in_use, got;
    atomic { (claims & SECOND) == 0; claims = claims | SECOND; claims_mine = SECOND };
    if
    :: (version & SECOND) == 0 -> goto out
    :: else
    fi;
    take(SECOND);
    if
    :: !got -> goto out
    :: else -> left = SECOND
    fi;
    remove(SECOND - 1);
    garbage[d] = 1;
out:
    leave_flight(SECOND)
}
#endif

/* Frees descriptors after a grace period. */
proctype Collector() {
    byte d;
end:
    do
    :: d_step { garbage[1] && !collected[1] -> d = 1 }; goto synchronize
    :: d_step { garbage[2] && !collected[2] -> d = 2 }; goto synchronize
    :: d_step { garbage[3] && !collected[3] -> d = 3 }; goto synchronize
    :: false ->
synchronize:
#ifndef FREED_AT_ONCE
        !section;
#endif
        atomic { collected[d] = 1; d = 0 }
    od
}

#define WELL(v) (!(version & (1 << v)) || state[v] == LIVE)

init {
    atomic {
        run Memory();
        run Collector();
        run Reader();
#ifdef SECOND
        run Second();
#endif
        run Maker()
    }
    timeout;
    assert(WELL(0) && WELL(1)); /* K1 */
    assert(claims == 0)
}
