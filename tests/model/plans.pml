/* SPDX-License-Identifier: MIT */
/*
 * What whole plans claim: several handles and, per location, the most that the rest of the plan
 * needs.
 *
 * Stands for: tn__course_admit(), judge() (transition/admit.c); tn__sim_needs() (plan/overlay.c);
 * tn__claims_fill(), tn__claims_step() (claims.c); step(), run() (course.c); examine(),
 * claim_all(), holds(), join(), tn__flow_claim() (flow.c); run_exit() (scope.c). `flow.pml` has
 * single actions in more detail: looks at a state that may change, the guard, callbacks, storage
 * that is being freed, a reserve between judging and claiming. `short.pml` has what a plan sees of
 * bytes before its turn, `made.pml` what its replicas are to readers.
 *
 * Two locations; handles are a mask. A plan has up to three steps, each puts or takes one byte at a
 * location; each put may fail, which ends the plan: what it did stays. What is done under the
 * writer lock is one step. A waiter sleeps until a broadcast. An exit claims handles only, and each
 * of its actions waits for claims in flight, not behind the queue. A reserve neither waits nor
 * tells anybody when it is given back.
 *
 * Holds
 *  Q1 everybody ends; no state but the finished one is without successor.
 *  Q2 no location holds more than its budget, and in the end nothing is claimed.
 *  Q3 an admitted plan has the bytes of each of its steps: bytes that it frees stay claimed while
 *     its rest needs them.
 *  Q4 a plan, or an action of an exit, is refused for bytes only if it would not fit without the
 *     claims of plans in flight, and none of these will remove any there.
 *  Q5 who joined a load that failed does not load.
 *  Q6 (live) a large plan ends although small ones come and go for ever.
 *
 * Runs (read by run.sh)
 *   holds  freed                             -DFREED
 *   holds  crossing                          -DCROSSING
 *   holds  exits                             -DEXITS
 *   holds  exits_crossing                    -DEXITS_CROSSING
 *   holds  joins                             -DJOINS
 *   holds  queue                             -DQUEUE
 *   live   large                             -DLARGE
 *   deep   mixed                             -DMIXED
 *   fails  claims_only            assertion  -DCROSSING -DCLAIMS_ONLY
 *   fails  freed_given_back       assertion  -DFREED -DFREED_GIVEN_BACK
 *   fails  add_then_undo          assertion  -DFREED -DADD_THEN_UNDO
 *   fails  refused_at_once        assertion  -DCROSSING -DREFUSED_AT_ONCE
 *   fails  exit_queues            stuck      -DEXITS -DEXIT_QUEUES
 *   fails  exit_refused_at_once   assertion  -DEXITS -DEXIT_REFUSED_AT_ONCE
 *   fails  refusals_do_not_tell   stuck      -DQUEUE -DREFUSALS_DO_NOT_TELL
 *   fails  claims_kept            stuck      -DCROSSING -DCLAIMS_KEPT
 *   fails  joiner_loads           assertion  -DJOINS -DJOINER_LOADS
 *   fails  no_queue               cycle      -DLARGE -DNO_QUEUE
 */
#define P 0
#define C 1
#define NONE 15
#define PLANS 4

/* Steps. A load puts at P; ensures of its handle may join it. */
#define PUT_P 1
#define PUT_C 2
#define TAKE_P 3
#define TAKE_C 4
#define LOAD 5
#define PUTS(c, l) ((c) == 1 + (l) || ((c) == LOAD && (l) == P))
#define TAKES(c, l) ((c) == 3 + (l))
#define DELTA(c, l) (PUTS(c, l) -> 1 : (TAKES(c, l) -> -1 : 0))

mtype = { GO, SLEEP, REFUSED };             /* what judging says */
mtype = { NOTHING, OK, BUDGET, FAILED };    /* results */

#define AT(i, l) ((i) * 2 + (l))

byte budget[2], used[2], reserved[2], claimed[2];
#define TOTAL(l) (used[l] + reserved[l] + claimed[l])

byte handles_claimed;
bit waiting[PLANS], asleep[PLANS], woken[PLANS], loading[PLANS];
bit load_over[PLANS], load_failed[PLANS]; /* what those who joined are told */
byte place[PLANS], places;                /* in the queue */
byte handles[PLANS];
byte need[PLANS * 2], mine[PLANS * 2]; /* of plan i at location l, index AT(i, l) */
bit frees[PLANS * 2]; /* plan i, in flight, still has a take at l to do */
mtype result[PLANS] = NOTHING;

#define SAME_BYTES(a, b)                                                                           \
    ((need[AT(a, P)] && need[AT(b, P)]) || (need[AT(a, C)] && need[AT(b, C)]))
#define IN_FRONT(a, b)                                                                             \
    (waiting[a] && place[a] < place[b] && ((handles[a] & handles[b]) || SAME_BYTES(a, b)))
#ifdef NO_QUEUE
#define BEHIND(i) 0
#else
#define BEHIND(i) (IN_FRONT(0, i) || IN_FRONT(1, i) || IN_FRONT(2, i) || IN_FRONT(3, i))
#endif
#define FITS(i, l) (need[AT(i, l)] == 0 || TOTAL(l) + need[AT(i, l)] <= budget[l])
#define FREED_LATER(l)                                                                             \
    (frees[AT(0, l)] || frees[AT(1, l)] || frees[AT(2, l)] || frees[AT(3, l)])
#if defined(REFUSED_AT_ONCE)
#define MAY_FIT_LATER(l) 0
#elif defined(CLAIMS_ONLY)
#define MAY_FIT_LATER(l) (claimed[l] > 0)
#else
#define MAY_FIT_LATER(l) (claimed[l] > 0 || FREED_LATER(l))
#endif
#define WITHIN_BUDGETS (TOTAL(P) <= budget[P] && TOTAL(C) <= budget[C])

inline broadcast() {
    d_step {
        woken[0] = woken[0] || asleep[0]; asleep[0] = 0;
        woken[1] = woken[1] || asleep[1]; asleep[1] = 0;
        woken[2] = woken[2] || asleep[2]; asleep[2] = 0;
        woken[3] = woken[3] || asleep[3]; asleep[3] = 0
    }
}

inline append() { waiting[i] = 1; places++; place[i] = places }

/* Places are renumbered, so that they stay small. */
#define CLOSE_RANKS(a) place[a] = (place[a] > place[i] -> place[a] - 1 : place[a])
inline unlink() {
    d_step {
        if
        :: waiting[i] ->
            CLOSE_RANKS(0); CLOSE_RANKS(1); CLOSE_RANKS(2); CLOSE_RANKS(3);
            places--
        :: else
        fi;
        waiting[i] = 0;
        place[i] = 0
    }
}

/* ---- Claims ---- */

/* The most bytes at l that the steps from the k-th on need at one time. */
inline suffix(l) {
    sum = 0; top = 0;
    if
    :: k <= 0 -> sum = sum + DELTA(s0, l); top = (sum > top -> sum : top)
    :: else
    fi;
    if
    :: k <= 1 -> sum = sum + DELTA(s1, l); top = (sum > top -> sum : top)
    :: else
    fi;
    if
    :: k <= 2 -> sum = sum + DELTA(s2, l); top = (sum > top -> sum : top)
    :: else
    fi
}

inline claim(l) {
    claimed[l] = claimed[l] + need[AT(i, l)];
    mine[AT(i, l)] = mine[AT(i, l)] + need[AT(i, l)];
    need[AT(i, l)] = 0
}

inline unclaim(l) {
#ifndef CLAIMS_KEPT
    claimed[l] = claimed[l] - mine[AT(i, l)];
#endif
    mine[AT(i, l)] = 0
}

/* After a step: what the rest does not need goes back (Q3). */
inline trim(l) {
    suffix(l);
#ifndef FREED_GIVEN_BACK
    assert(mine[AT(i, l)] >= top);
#endif
    if
    :: mine[AT(i, l)] > top ->
        claimed[l] = claimed[l] - (mine[AT(i, l)] - top);
        mine[AT(i, l)] = top
    :: else
    fi
}

/* Whether the steps from the k-th on take from l. */
inline will_free(l) {
    frees[AT(i, l)] = ((k <= 0 && TAKES(s0, l)) || (k <= 1 && TAKES(s1, l)) ||
                       (k <= 2 && TAKES(s2, l)))
}

#define ADD_ALL(l) claimed[l] = claimed[l] + need[AT(i, l)]
#define UNDO_ALL(l) claimed[l] = claimed[l] - need[AT(i, l)]

/* Under the lock. */
inline judge() {
    if
    :: BEHIND(i) || (handles_claimed & handles[i]) -> v = SLEEP
    :: else ->
        if
        :: FITS(i, P) && FITS(i, C) -> v = GO
        :: !FITS(i, P) -> v = (MAY_FIT_LATER(P) -> SLEEP : REFUSED)
        :: FITS(i, P) && !FITS(i, C) -> v = (MAY_FIT_LATER(C) -> SLEEP : REFUSED)
        fi
    fi
}

/* Bytes that do not fit without anybody's claims, and nobody in flight will remove any (Q4). */
#define TOO_MUCH(i, l)                                                                             \
    (need[AT(i, l)] && used[l] + reserved[l] + need[AT(i, l)] > budget[l] && !FREED_LATER(l))

/* The load that an ensure may join, or NONE. */
#define JOINABLE(a) (loading[a] && a != i && (handles[a] & handles[i]))
inline load_in_front() {
    if
    :: !ensures -> front = NONE
    :: ensures && JOINABLE(0) -> front = 0
    :: ensures && !JOINABLE(0) && JOINABLE(1) -> front = 1
    :: ensures && !JOINABLE(0) && !JOINABLE(1) && JOINABLE(2) -> front = 2
    :: ensures && !JOINABLE(0) && !JOINABLE(1) && !JOINABLE(2) -> front = NONE
    fi
}

/* Woken, under the lock: one who joined a load sleeps until that is over. */
inline wake_up() {
    woken[i] = 0;
    if
    :: front == NONE
    :: front != NONE && !load_over[front] -> asleep[i] = 1
    :: front != NONE && load_over[front] ->
        if
#ifndef JOINER_LOADS
        :: load_failed[front] -> status = FAILED
        :: else
#else
        :: true
#endif
        fi;
        joined_failed = load_failed[front];
        if
        :: !joined_failed -> s0 = 0; loads = 0 /* finds the value resident */
        :: else
        fi;
        front = NONE;
        append()
    fi
}

inline leave_queue() {
    unlink();
    need[AT(i, P)] = 0; need[AT(i, C)] = 0
}

/* Wait for the turn, and claim. */
inline admit() {
    atomic {
        d_step { suffix(P); need[AT(i, P)] = top; suffix(C); need[AT(i, C)] = top };
#ifdef ADD_THEN_UNDO
        ADD_ALL(P); ADD_ALL(C)
    };
    assert(WITHIN_BUDGETS);
    atomic {
        UNDO_ALL(P); UNDO_ALL(C);
#endif
        append();
        v = SLEEP
    };
    do
    :: v != SLEEP || status != OK -> break
    :: else ->
        atomic {
            !asleep[i];
            if
            :: woken[i] -> wake_up()
            :: else
            fi;
            if
            :: status != OK -> leave_queue(); broadcast()
            :: status == OK && asleep[i]
            :: status == OK && !asleep[i] ->
                judge();
                if
                :: v == GO ->
                    claim(P); claim(C);
                    will_free(P); will_free(C);
                    handles_claimed = handles_claimed | handles[i];
                    unlink();
                    assert(!joined_failed || !loads); /* Q5 */
                    loading[i] = loads;
                    broadcast()
                :: v == REFUSED ->
                    assert(TOO_MUCH(i, P) || TOO_MUCH(i, C)); /* Q4 */
                    status = BUDGET;
                    leave_queue();
#ifndef REFUSALS_DO_NOT_TELL
                    broadcast()
#endif
                :: v == SLEEP ->
                    load_in_front();
                    if
                    :: front != NONE -> unlink(); broadcast()
                    :: else
                    fi;
                    asleep[i] = 1
                fi
            fi
        }
    od
}

/* One step of the work and its commit. */
inline settle(c, l) {
    if
    :: PUTS(c, l) ->
        assert(mine[AT(i, l)] >= 1); /* Q3 */
        mine[AT(i, l)]--; claimed[l]--; used[l]++
    :: TAKES(c, l) ->
        assert(used[l] >= 1);
        used[l]--;
#ifndef FREED_GIVEN_BACK
        mine[AT(i, l)]++; claimed[l]++
#endif
    :: else
    fi
}

inline perform(c) {
    if
    :: c == 0 || status != OK
    :: c != 0 && status == OK ->
        if
        :: true
        :: c != TAKE_P && c != TAKE_C -> status = FAILED
        fi;
        atomic {
            if
            :: c == LOAD ->
                loading[i] = 0; load_over[i] = 1; load_failed[i] = (status != OK);
                broadcast()
            :: else
            fi;
            k++;
            if
            :: status == OK ->
                settle(c, P); settle(c, C);
                d_step { trim(P); trim(C); will_free(P); will_free(C) };
                broadcast();
                assert(WITHIN_BUDGETS) /* Q2 */
            :: else
            fi
        }
    fi
}

inline leave_flight() {
    unclaim(P); unclaim(C);
    handles_claimed = handles_claimed & ~handles[i];
    loading[i] = 0; load_over[i] = 1;
    frees[AT(i, P)] = 0; frees[AT(i, C)] = 0
}

/* ---- A plan; then, if it is a scope, the exit ---- */

/* An exit action in flight: bytes of others' claims are waited for (Q4), the queue is not. */
inline exit_action(l) {
    need[AT(i, l)] = PUTS(exit, l);
#ifdef EXIT_QUEUES
    atomic { append() };
#endif
    v = SLEEP;
    do
    :: v != SLEEP -> break
    :: else ->
        atomic {
            !asleep[i];
            woken[i] = 0;
            if
#ifdef EXIT_QUEUES
            :: BEHIND(i) -> asleep[i] = 1
            :: !BEHIND(i) && FITS(i, l) -> v = GO
            :: !BEHIND(i) && !FITS(i, l) && MAY_FIT_LATER(l) -> asleep[i] = 1
            :: !BEHIND(i) && !FITS(i, l) && !MAY_FIT_LATER(l) -> v = REFUSED
#elif defined(EXIT_REFUSED_AT_ONCE)
            :: FITS(i, l) -> v = GO
            :: !FITS(i, l) -> v = REFUSED
#else
            :: FITS(i, l) -> v = GO
            :: !FITS(i, l) && MAY_FIT_LATER(l) -> asleep[i] = 1
            :: !FITS(i, l) && !MAY_FIT_LATER(l) -> v = REFUSED
#endif
            fi;
            if
            :: v == GO && PUTS(exit, l) -> used[l]++
            :: v == GO && TAKES(exit, l) -> assert(used[l] >= 1); used[l]--
            :: v == REFUSED -> assert(TOO_MUCH(i, l)); status = BUDGET
            :: else
            fi;
            assert(WITHIN_BUDGETS);
            if
            :: v != SLEEP -> leave_queue(); broadcast()
            :: else
            fi
        }
    od
}

proctype Plan(byte i; byte h; byte s0; byte s1; byte s2; byte exit; bit ensures) {
    byte k, front = NONE;
    short sum, top;
    mtype v, status = OK;
    bit joined_failed, loads = (s0 == LOAD);
    handles[i] = h;
    admit();
    if
    :: status == OK ->
        perform(s0); perform(s1); perform(s2);
        atomic { leave_flight(); broadcast() };
        if
        :: exit != 0 && status == OK -> /* the body is over */
            k = 3; loads = 0; ensures = 0;
            admit();
            if
            :: PUTS(exit, P) || TAKES(exit, P) -> exit_action(P)
            :: PUTS(exit, C) || TAKES(exit, C) -> exit_action(C)
            fi;
            atomic { leave_flight(); broadcast() }
        :: else
        fi
    :: else
    fi;
    d_step {
        k = 0; sum = 0; top = 0; front = NONE; joined_failed = 0; v = 0;
        result[i] = status
    }
}

/* It never waits, looks at the sum only, and tells nobody when it is given back. */
proctype Reserve(bit l) {
    if
    :: d_step { TOTAL(l) + 1 <= budget[l] -> reserved[l]++ }; reserved[l]--
    :: TOTAL(l) + 1 > budget[l]
    fi
}

#ifdef LARGE
/* A small plan at C that comes and goes for ever, and leaves nothing behind. */
proctype Stream(byte i) {
    handles[i] = 0;
    do
    :: atomic {
        need[AT(i, C)] = 1;
        if
        :: !waiting[i] && !mine[AT(i, C)] -> append()
        :: else
        fi;
        if
        :: BEHIND(i) || !FITS(i, C) -> asleep[i] = 1
        :: else -> unlink(); claim(C); broadcast()
        fi
    };
        if
        :: mine[AT(i, C)] -> atomic { unclaim(C); broadcast() }
        :: !mine[AT(i, C)] && woken[i] -> woken[i] = 0
        fi
    od
}

ltl ends { <> (result[0] != NOTHING) }
#endif

init {
    atomic {
#if defined(FREED)
        /* A plan frees the byte at P, works, and needs it again; others want it meanwhile. */
        budget[P] = 1; budget[C] = 1; used[P] = 1;
        run Plan(0, 1, TAKE_P, PUT_C, PUT_P, 0, 0);
        run Plan(1, 2, PUT_P, 0, 0, 0, 0);
        run Plan(2, 4, PUT_P, TAKE_P, 0, 0, 0);
        run Reserve(P)
#elif defined(CROSSING)
        /* Two plans that need each other's bytes and handles. */
        budget[P] = 1; budget[C] = 1;
        run Plan(0, 3, PUT_P, PUT_C, TAKE_P, 0, 0);
        run Plan(1, 3, PUT_C, PUT_P, TAKE_C, 0, 0);
        run Plan(2, 4, PUT_C, PUT_P, 0, 0, 0);
        run Plan(3, 8, PUT_P, TAKE_P, 0, 0, 0)
#elif defined(EXITS)
        /* The exit needs a byte at P that a plan in flight may hold; behind that one waits a plan
         * that wants the exit's handle too. */
        budget[P] = 1; budget[C] = 2;
        run Plan(0, 1, 0, 0, 0, PUT_P, 0);
        run Plan(1, 2, PUT_C, PUT_P, TAKE_P, 0, 0);
        run Plan(2, 5, PUT_P, 0, 0, 0, 0)
#elif defined(EXITS_CROSSING)
        budget[P] = 2; budget[C] = 1; used[P] = 1;
        run Plan(0, 1, PUT_C, 0, 0, PUT_P, 0);
        run Plan(1, 2, PUT_P, 0, 0, PUT_C, 0);
        run Plan(2, 3, TAKE_P, PUT_P, 0, 0, 0);
        run Reserve(C)
#elif defined(JOINS)
        /* A plan that loads, two ensures of the same value, a drop of it. */
        budget[P] = 2; budget[C] = 1;
        run Plan(0, 1, LOAD, PUT_C, 0, 0, 0);
        run Plan(1, 1, LOAD, 0, 0, 0, 1);
        run Plan(2, 1, PUT_C, TAKE_C, 0, 0, 0);
        run Reserve(P)
#elif defined(QUEUE)
        /* The first two want the byte at C, the third waits behind the second for its handle. */
        budget[P] = 3; budget[C] = 1;
        run Plan(0, 1, PUT_C, 0, 0, 0, 0);
        run Plan(1, 2, PUT_P, PUT_C, 0, 0, 0);
        run Plan(2, 6, PUT_P, 0, 0, 0, 0);
        run Plan(3, 4, PUT_P, 0, 0, 0, 0)
#elif defined(MIXED)
        budget[P] = 2; budget[C] = 2; used[P] = 1;
        run Plan(0, 1, TAKE_P, PUT_C, PUT_P, PUT_P, 0);
        run Plan(1, 3, PUT_C, PUT_P, TAKE_C, PUT_C, 0);
        run Plan(2, 6, LOAD, PUT_C, 0, TAKE_P, 0);
        run Plan(3, 4, LOAD, 0, 0, 0, 1);
        run Reserve(P);
        run Reserve(C)
#elif defined(LARGE)
        budget[P] = 1; budget[C] = 2;
        run Plan(0, 1, PUT_C, PUT_C, 0, 0, 0);
        run Stream(1);
        run Stream(2)
#endif
    }
#ifndef LARGE
    _nr_pr == 1;
    assert(claimed[P] == 0 && claimed[C] == 0 && handles_claimed == 0); /* Q2 */
    assert(WITHIN_BUDGETS)
#endif
}
