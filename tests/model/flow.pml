/* SPDX-License-Identifier: MIT */
/*
 * Who goes when: the waiting queue of the transitions.
 *
 * Stands for: tn__flow_admit(), examine(), claim_all(), must_wait(), others_hold(), behind(),
 * blocker(), wait_turn(), join(), tn__flow_load_done(), tn__flow_leave() (transition/flow.c);
 * look(), judge(), admit(), run_all() (action.c); tn__choose() (choose.c); call_source(),
 * admit_destination(), load() (perform.c); tn__run_commit(), publish(), lower(), give_back(),
 * leave() (commit.c); the sums of placement/ledger.c; with SERIAL also tn__life_guard_raise() and
 * tn__life_enter_waited().
 *
 * Two values of one byte with sources at P; locations P and C. A plan looks (without the lock), is
 * admitted, works, and commits; its source, its copy and its removal may fail. A waiter sleeps
 * until a broadcast. What is done under the writer lock is one step, but a reserve, which does not
 * take it, may come between the judging of bytes and their claim. Storage is freed without the
 * lock, and its bytes are given back afterwards. Reservations are given back without a word to the
 * queue.
 *
 * Holds
 *  W1 everybody ends with a result; no state but the finished one is without successor.
 *  W2 no location holds more than its budget, and in the end nothing is claimed.
 *  W3 a plan is refused for bytes only if, at some moment of its call, it would not have fitted
 *     even without what plans in flight hold for a while.
 *  W4 a value is loaded by one plan at a time, and who joined a load that failed does not load.
 *  W5 (live) a waiter ends although others come and go for ever.
 *
 * Runs (read by run.sh)
 *   holds  behind_a_load                     -DBEHIND_A_LOAD
 *   holds  loads                             -DLOADS
 *   holds  queue                             -DQUEUE
 *   holds  bytes                             -DBYTES
 *   holds  reserves                          -DRESERVES
 *   holds  serial                            -DSERIAL
 *   holds  callbacks                         -DCALLBACKS
 *   deep   any_order                         -DBEHIND_A_LOAD -DANY_ORDER
 *   live   stream_elsewhere                  -DSTREAM=P
 *   live   stream_here                       -DSTREAM=C
 *   fails  broadcast_at_settle    stuck      -DQUEUE -DBROADCAST_AT_SETTLE
 *   fails  claimed_only           assertion  -DBYTES -DCLAIMED_ONLY
 *   fails  freeing_ignored        assertion  -DBYTES -DFREEING_IGNORED
 *   fails  claim_after_fit        assertion  -DRESERVES -DCLAIM_AFTER_FIT
 *   fails  claims_kept            assertion  -DBYTES -DCLAIMS_KEPT
 *   fails  joiner_loads           assertion  -DLOADS -DJOINER_LOADS
 *   fails  guard_no_broadcast     stuck      -DSERIAL -DGUARD_NO_BROADCAST
 *   fails  callback_waits         stuck      -DCALLBACKS -DCALLBACK_WAITS
 *   fails  any_in_flight          cycle      -DSTREAM=P -DANY_IN_FLIGHT
 *   fails  no_queue               cycle      -DSTREAM=C -DNO_QUEUE
 */
#define P 0
#define C 1
#define NONE 15
#define PLANS 4

mtype = { ENSURE, MOVE, DROP };                      /* actions */
mtype = { NO_OP, REMOVE, COPY, LOAD };               /* how they are done */
mtype = { GO, SLEEP, RECHECK, REFUSED, STAY };       /* what examining says */
mtype = { NOTHING, OK, BUDGET, FAILED, REENTRANCY }; /* results */

#if defined(BEHIND_A_LOAD) && !defined(ANY_ORDER)
#define MAY_FAIL false /* only the load in front */
#else
#define MAY_FAIL true
#endif

#define IN(l) (1 << (l))
#define AT(i, l) ((i) * 2 + (l))

byte resident[2], changed[2]; /* of each value: where, and how often its record was replaced */
byte budget[2], used[2], reserved[2], claimed[2], temporary[2];
#define TOTAL(l) (used[l] + reserved[l] + claimed[l] + temporary[l])

bit locked; /* the writer lock, across two steps */
bit waiting[PLANS], in_flight[PLANS], loading[PLANS], asleep[PLANS], woken[PLANS];
byte place[PLANS], places; /* in the queue */
byte handle[PLANS] = NONE;
/* Of plan i at location l, index AT(i, l). */
bit need[PLANS * 2];  /* bytes */
bit mine[PLANS * 2];  /* the claim */
bit held[PLANS * 2];  /* by a plan in flight, as a claim or a temporary charge */
bit freeing[PLANS * 2]; /* storage is being freed; its bytes are claimed until then */
bit load_over[PLANS], load_failed[PLANS]; /* what those who joined are told */
mtype result[PLANS] = NOTHING;
bit guarded;

#ifdef SERIAL
#define CLASH(a, b) 1
#else
#define CLASH(a, b) (handle[a] == handle[b])
#endif
#define SAME_BYTES(a, b)                                                                           \
    ((need[AT(a, P)] && need[AT(b, P)]) || (need[AT(a, C)] && need[AT(b, C)]))
#define IN_FRONT(a, b) (waiting[a] && place[a] < place[b] && (CLASH(a, b) || SAME_BYTES(a, b)))
#define BLOCKS(a, b) (in_flight[a] && CLASH(a, b))
#define ANY(what, x) (what(0, x) || what(1, x) || what(2, x) || what(3, x))
#ifdef NO_QUEUE
#define BEHIND(i) 0
#else
#define BEHIND(i) ANY(IN_FRONT, i)
#endif

#if defined(CLAIMED_ONLY)
#define HOLDS(a, l) (in_flight[a] && (mine[AT(a, l)] || freeing[AT(a, l)]))
#elif defined(FREEING_IGNORED)
#define HOLDS(a, l) (in_flight[a] && held[AT(a, l)])
#elif defined(ANY_IN_FLIGHT)
#define HOLDS(a, l) in_flight[a]
#else
#define HOLDS(a, l) (in_flight[a] && (held[AT(a, l)] || freeing[AT(a, l)]))
#endif

#define FITS(l) (TOTAL(l) + 1 <= budget[l])
#define CANNOT_FIT(l) (used[l] + reserved[l] + 1 > budget[l]) /* W3 */

inline broadcast() {
    d_step {
        woken[0] = woken[0] || asleep[0]; asleep[0] = 0;
        woken[1] = woken[1] || asleep[1]; asleep[1] = 0;
        woken[2] = woken[2] || asleep[2]; asleep[2] = 0;
        woken[3] = woken[3] || asleep[3]; asleep[3] = 0
    }
}

inline left_the_queue() {
#ifdef BROADCAST_AT_SETTLE
    skip
#else
    broadcast()
#endif
}

inline append() { waiting[i] = 1; places++; place[i] = places }

/* Places are renumbered, so that a queue that was empty begins anew. */
inline unlink() {
    waiting[i] = 0;
    place[i] = 0;
    if
    :: !waiting[0] && !waiting[1] && !waiting[2] && !waiting[3] -> places = 0
    :: else
    fi
}

/* `look()`: the decision table on the current version. */
inline look() {
    d_step {
        seen = changed[h];
        others = resident[h] & ~IN(at);
        if
        :: action == DROP -> step = ((resident[h] & IN(at)) -> REMOVE : NO_OP)
        :: action != DROP && (resident[h] & IN(at)) ->
            step = (action == MOVE && others -> REMOVE : NO_OP)
        :: action != DROP && !(resident[h] & IN(at)) -> step = (others -> COPY : LOAD)
        fi;
        others = 0
    }
}

/* ---- Bytes ---- */

inline claim(l) {
    d_step {
        if
        :: FITS(l) -> claimed[l]++; mine[AT(i, l)] = 1; held[AT(i, l)] = 1
        :: else
        fi
    }
}

inline unclaim(l) {
    d_step {
        if
        :: mine[AT(i, l)] ->
            mine[AT(i, l)] = 0;
#ifndef CLAIMS_KEPT
            claimed[l]--
#endif
        :: else
        fi;
        held[AT(i, l)] = 0
    }
}

#define MUST_WAIT(l) (need[AT(i, l)] && !FITS(l) && ANY(HOLDS, l))
#define OPTIONAL(l) (step == LOAD && l == at && at != P) /* found out after the load */

/* After MUST_WAIT was false for both; a reserve may have come between. */
inline claim_one(l) {
    if
    :: v == GO && need[AT(i, l)] ->
        claim(l);
        if
        :: mine[AT(i, l)]
#ifndef CLAIM_AFTER_FIT
        :: !mine[AT(i, l)] && ANY(HOLDS, l) -> v = SLEEP
        :: !mine[AT(i, l)] && !ANY(HOLDS, l) ->
#else
        :: !mine[AT(i, l)] ->
#endif
            if
            :: OPTIONAL(l) -> no_room = CANNOT_FIT(l)
            :: else -> assert(CANNOT_FIT(l)); v = REFUSED /* W3 */
            fi
        fi
    :: else
    fi
}

inline examine() {
    if
    :: ANY(BLOCKS, i) || BEHIND(i) -> v = SLEEP
    :: else ->
        if
        :: changed[h] != seen -> v = RECHECK
        :: else ->
            need[AT(i, P)] = (step == LOAD || (step == COPY && at == P));
            need[AT(i, C)] = ((step == LOAD || step == COPY) && at == C);
            if
            :: BEHIND(i) || MUST_WAIT(P) || MUST_WAIT(C) -> v = SLEEP
            :: else -> v = GO
            fi
        fi
    fi
}

/* The load that this plan may join, or NONE: the first plan in flight that blocks it. */
#define JOINABLE(a)                                                                                \
    (BLOCKS(a, i) && loading[a] && action == ENSURE && handle[a] == h)
inline load_in_front() {
    if
    :: JOINABLE(0) -> front = 0
    :: !JOINABLE(0) && JOINABLE(1) -> front = 1
    :: !JOINABLE(0) && !JOINABLE(1) && JOINABLE(2) -> front = 2
    :: !JOINABLE(0) && !JOINABLE(1) && !JOINABLE(2) && JOINABLE(3) -> front = 3
    :: else -> front = NONE
    fi
}

#define LOADS_IT(a, x) (in_flight[a] && loading[a] && handle[a] == (x))

/* ---- A plan ---- */

inline leave_flight() {
    unclaim(P);
    unclaim(C);
    d_step {
        need[AT(i, P)] = 0; need[AT(i, C)] = 0;
        in_flight[i] = 0; loading[i] = 0; load_over[i] = 1
    };
    broadcast()
}

/* Sleep until a broadcast; a joiner leaves the queue meanwhile. Under the lock. */
inline sleep_or_join() {
    if
#ifndef CALLBACK_WAITS
    :: inside -> status = REENTRANCY /* D3 */
#endif
    :: else ->
        load_in_front();
        if
        :: front != NONE -> unlink(); left_the_queue()
        :: else
        fi;
        asleep[i] = 1
    fi
}

/* Woken, under the lock. A joiner goes on sleeping until the load is over. */
inline wake_up() {
    woken[i] = 0;
    if
    :: guarded -> status = REENTRANCY
    :: else
    fi;
    if
    :: status == OK && front != NONE && !load_over[front] -> asleep[i] = 1
    :: front != NONE && (status != OK || load_over[front]) ->
        if
#ifndef JOINER_LOADS
        :: load_over[front] && load_failed[front] -> status = FAILED
#endif
        :: else
        fi;
        joined_failed = load_failed[front];
        front = NONE;
        append()
    :: front == NONE
    fi
}

inline refused() {
    unlink();
    need[AT(i, P)] = 0; need[AT(i, C)] = 0;
    left_the_queue()
}

/* `inside`: on a thread that is in a source callback. */
proctype Plan(byte i; mtype action; bit h; bit at; bit inside) {
    byte seen, others, front = NONE;
    mtype step, v, status = OK;
    bit no_room, joined_failed;
#if defined(BEHIND_A_LOAD) && !defined(ANY_ORDER)
    i == 0 || in_flight[0] || result[0] != NOTHING;
#endif
    look();
    do
    :: status != OK -> goto out
    :: else ->
        atomic {
            !locked && !asleep[i];
            v = GO;
            if
            :: woken[i] -> wake_up()
            :: else
            fi;
            if
            :: handle[i] == NONE -> /* enters */
                handle[i] = h;
                append();
                if
                :: guarded -> status = REENTRANCY
                :: else
                fi
            :: else
            fi;
            if
            :: status != OK -> v = REFUSED; refused()
            :: status == OK && asleep[i] -> v = STAY /* until the load is over */
            :: else -> examine()
            fi;
            if
            :: v == GO -> locked = 1
            :: v == SLEEP ->
                sleep_or_join();
                if
                :: status != OK -> refused()
                :: else
                fi
            :: v == RECHECK || v == REFUSED || v == STAY
            fi
        };
        if
        :: v == RECHECK -> look()
        :: v == SLEEP || v == REFUSED || v == STAY
        :: v == GO ->
            atomic {
                claim_one(P);
                claim_one(C);
                locked = 0;
                if
                :: v == SLEEP -> unclaim(P); unclaim(C);
                    sleep_or_join();
                    if
                    :: status != OK -> refused()
                    :: else
                    fi
                :: v == REFUSED -> unclaim(P); unclaim(C); status = BUDGET; refused()
                :: v == GO ->
                    unlink();
                    assert(step != LOAD || (!ANY(LOADS_IT, h) && !joined_failed)); /* W4 */
                    in_flight[i] = 1;
                    loading[i] = (step == LOAD);
#ifdef SERIAL
                    guarded = (step == LOAD);
#endif
#ifdef GUARD_NO_BROADCAST
                    if
                    :: step != LOAD -> left_the_queue()
                    :: else
                    fi;
#else
                    left_the_queue();
#endif
                    v = NOTHING;
                    break
                fi
            }
        fi
    od;

    /* ---- Work, no lock ---- */
    if
    :: step == NO_OP
    :: step == REMOVE || step == COPY ->
        if
        :: true
        :: MAY_FAIL -> status = FAILED
        fi
    :: step == LOAD ->
        d_step { /* the claim becomes a temporary charge */
            mine[AT(i, P)] = 0; claimed[P]--; temporary[P]++
        };
#ifdef SERIAL
        /* The callback waits for another thread that calls the manager. */
        if
        :: i == 0 -> result[1] != NOTHING
        :: else
        fi;
        guarded = 0;
#endif
#ifdef CALLBACKS
        if
        :: !inside -> run Plan(i + 2, ENSURE, 1 - h, C, 1); result[i + 2] != NOTHING
        :: else
        fi;
#endif
        if
        :: true
        :: true -> status = FAILED
        fi;
        atomic {
            !locked;
            loading[i] = 0; load_over[i] = 1; load_failed[i] = (status != OK);
            broadcast()
        };
        if
        :: status == OK && at == C ->
            if
            :: !mine[AT(i, C)] -> atomic { !locked; claim(C) }
            :: else
            fi;
            if
            :: !mine[AT(i, C)] ->
                status = BUDGET; assert(no_room) /* W3: it could not at admission */
            :: mine[AT(i, C)]
            :: mine[AT(i, C)] && MAY_FAIL -> status = FAILED /* the copy */
            fi
        :: else
        fi
    fi;

    /* ---- Commit, under the lock ---- */
    atomic {
        !locked;
        if
        :: status == OK && step != NO_OP ->
            changed[h]++;
            if
            :: step != REMOVE ->
                resident[h] = resident[h] | IN(at);
                used[at]++;
                if
                :: step == LOAD && at == P -> temporary[P]--
                :: else -> claimed[at]--; mine[AT(i, at)] = 0
                fi
            :: else
            fi;
            if
            :: action == DROP || (action == MOVE && step != LOAD) ->
                others = (action == DROP -> at : 1 - at);
                resident[h] = resident[h] & ~IN(others);
                used[others]--; claimed[others]++; /* until its storage is freed */
                freeing[AT(i, others)] = 1
            :: else
            fi
        :: else
        fi;
        if
        :: step == LOAD && (at == C || status != OK) ->
            temporary[P]--; claimed[P]++; mine[AT(i, P)] = 1
        :: else
        fi;
        assert(TOTAL(P) <= budget[P] && TOTAL(C) <= budget[C]) /* W2 */
    };
    /* Storage is freed here. */
    atomic {
        !locked;
        if
        :: freeing[AT(i, P)] -> freeing[AT(i, P)] = 0; claimed[P]--
        :: else
        fi;
        if
        :: freeing[AT(i, C)] -> freeing[AT(i, C)] = 0; claimed[C]--
        :: else
        fi;
        leave_flight()
    };
out:
    skip;
    d_step {
        seen = 0; others = 0; no_room = 0; joined_failed = 0; front = NONE;
        result[i] = status
    }
}

/* A reservation that is given back: nobody is told. */
proctype GiveBack(bit l; byte times) {
    do
    :: times > 0 -> reserved[l]--; times--
    :: else -> break
    od
}

/* A reserve never waits, and looks at the sum only. */
proctype Reserve(bit l) {
    if
    :: d_step { FITS(l) -> reserved[l]++ }; reserved[l]--
    :: !FITS(l)
    fi
}

#ifdef STREAM
/* A plan that comes and goes for ever, at one location, for another value. It queues like anybody
 * else, holds a byte for a while, and gives it back. */
proctype Stream() {
    byte i = 1;
    do
    :: atomic {
        need[AT(1, STREAM)] = 1;
        if
        :: !waiting[1] && !in_flight[1] -> append()
        :: else
        fi;
        if
        :: BEHIND(1) || !FITS(STREAM) -> asleep[1] = 1
        :: else -> unlink(); claim(STREAM); in_flight[1] = 1; broadcast()
        fi
    };
        if
        :: in_flight[1] -> atomic { leave_flight() }
        :: !in_flight[1] && woken[1] -> woken[1] = 0
        fi
    od
}

ltl ends { <> (result[0] != NOTHING) }
#endif

init {
    atomic {
#if defined(BEHIND_A_LOAD)
        /* A load; behind it a drop and a move of its value, and a plan that does not fit. */
        budget[P] = 2; budget[C] = 2; reserved[C] = 2; resident[1] = IN(P); used[P] = 1;
        run Plan(0, ENSURE, 0, C, 0);
        run Plan(1, DROP, 0, C, 0);
        run Plan(2, MOVE, 0, P, 0);
        run Plan(3, ENSURE, 1, C, 0);
        run GiveBack(C, 2)
#elif defined(LOADS)
        budget[P] = 1; budget[C] = 1;
        run Plan(0, ENSURE, 0, C, 0);
        run Plan(1, ENSURE, 0, C, 0);
        run Plan(2, ENSURE, 0, C, 0)
#elif defined(QUEUE)
        /* Both want the byte at C; the third waits behind the second. */
        budget[P] = 2; budget[C] = 1; resident[0] = IN(P); resident[1] = IN(P); used[P] = 2;
        run Plan(0, ENSURE, 0, C, 0);
        run Plan(1, ENSURE, 1, C, 0);
        run Plan(2, DROP, 1, P, 0)
#elif defined(BYTES)
        /* A move frees the byte at P that a load needs for a while. */
        budget[P] = 1; budget[C] = 2; resident[0] = IN(P); used[P] = 1;
        run Plan(0, MOVE, 0, C, 0);
        run Plan(1, ENSURE, 1, C, 0);
        run Plan(2, ENSURE, 0, P, 0)
#elif defined(RESERVES)
        budget[P] = 2; budget[C] = 2;
        run Plan(0, ENSURE, 0, P, 0);
        run Plan(1, ENSURE, 1, P, 0);
        run Reserve(P);
        run Reserve(P)
#elif defined(SERIAL)
        budget[P] = 2; budget[C] = 2; resident[1] = IN(P); used[P] = 1;
        run Plan(0, ENSURE, 0, C, 0);
        run Plan(1, ENSURE, 1, C, 0);
        run Plan(2, ENSURE, 0, P, 0)
#elif defined(CALLBACKS)
        budget[P] = 4; budget[C] = 4;
        run Plan(0, ENSURE, 0, C, 0);
        run Plan(1, ENSURE, 1, C, 0)
#elif defined(STREAM)
        budget[P] = 2; budget[C] = 1; reserved[C] = (STREAM == P -> 1 : 0);
        resident[0] = IN(P); used[P] = 1;
        run Plan(0, ENSURE, 0, C, 0);
        run Stream()
#endif
    }
#ifndef STREAM
    _nr_pr == 1;
    assert(claimed[P] == 0 && claimed[C] == 0 && temporary[P] == 0 && temporary[C] == 0) /* W2 */
#endif
}
