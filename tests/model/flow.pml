/* SPDX-License-Identifier: MIT */
/*
 * Who goes when: the waiting queue of the transitions.
 *
 * Stands for: tn__flow_admit(), examine(), claim_all(), others_hold(), behind(), blocker(),
 * wait_turn(), join(), tn__flow_load_done(), tn__flow_leave() (transition/flow.c); look(), judge(),
 * admit(), run_all() (action.c); tn__choose() (choose.c); call_source(), admit_destination(), load()
 * (perform.c); tn__run_commit(), give_back() (commit.c); the sums of placement/ledger.c; with SERIAL
 * also tn__life_guard_raise() and tn__life_enter_waited().
 *
 * Two values with sources at P, locations P and C. What the code does under the writer lock is one
 * atomic step here; a waiter sleeps until a broadcast. A plan looks (without the lock), is admitted,
 * works, and commits; its source, its copy and its removal may fail. Reservations are given back
 * without a word to the queue.
 *
 * Holds
 *  W1 everybody ends with a result; no state but the finished one is without successor.
 *  W2 no location holds more than its budget, and in the end nothing is claimed.
 *  W3 a plan is refused for bytes only if it would not have fitted with everything given back that plans
 *     in flight only hold for a while, at some moment of its call.
 *  W4 a value is loaded by one plan at a time, and who joined a load that failed does not load.
 *  W5 (live runs) a waiter ends although others come and go for ever.
 *
 * Runs (read by run.sh)
 *   holds  behind_a_load                     -DBEHIND_A_LOAD
 *   holds  loads                             -DLOADS
 *   holds  bytes                             -DBYTES
 *   holds  serial                            -DSERIAL -DGUARD
 *   holds  callbacks                         -DCALLBACKS
 *   live   stream_elsewhere                  -DSTREAM=P
 *   live   stream_here                       -DSTREAM=C
 *   fails  broadcast_at_settle    stuck      -DBYTES -DBROADCAST_AT_SETTLE
 *   fails  claimed_only           assertion  -DBYTES -DCLAIMED_ONLY
 *   fails  guard_no_broadcast     stuck      -DSERIAL -DGUARD -DGUARD_NO_BROADCAST
 *   fails  callback_waits         stuck      -DCALLBACKS -DCALLBACK_WAITS
 *   fails  claims_kept            assertion  -DBYTES -DCLAIMS_KEPT
 *   fails  any_in_flight          cycle      -DSTREAM=P -DANY_IN_FLIGHT
 *   fails  no_queue               cycle      -DSTREAM=C -DNO_QUEUE
 */
#define P 0
#define C 1
#define NONE 255

mtype = { ENSURE, MOVE, DROP };                     /* actions */
mtype = { NO_OP, REMOVE, COPY, LOAD };              /* how they are done */
mtype = { NOTHING, OK, BUDGET, FAILED, REENTRANCY }; /* results */

#define PLANS 5

/* Values 0 and 1: where resident (bit P, bit C), how often replaced, bytes. */
byte resident[2], changed[2];
#define BYTES_OF(h) 1

/* Ledgers. */
byte budget[2], used[2], reserved[2], claimed[2], temporary[2];
#define TOTAL(l) (used[l] + reserved[l] + claimed[l] + temporary[l])
#define W2(l) assert(TOTAL(l) <= budget[l])

/* Tickets. */
bit waiting[PLANS], in_flight[PLANS], loading[PLANS], sleeping[PLANS], woken[PLANS];
byte place[PLANS], next_place = 1;         /* in the queue */
byte handle[PLANS] = NONE;
byte to_need[PLANS], from_need[PLANS];     /* bytes at `to` and, for a load, at P */
byte to[PLANS];
bit to_held[PLANS], from_held[PLANS];      /* by a plan in flight, claimed or as a temporary charge */
bit to_claimed[PLANS], from_claimed[PLANS];
bit load_over[PLANS], load_failed[PLANS];  /* what those who joined are told */
mtype result[PLANS] = NOTHING;
byte loads, guard_of = NONE;

inline broadcast() {
    d_step {
        k = 0;
        do
        :: k < PLANS -> woken[k] = woken[k] || sleeping[k]; sleeping[k] = 0; k++
        :: else -> break
        od;
        k = 0
    }
}

#ifdef BROADCAST_AT_SETTLE
#define LEFT_THE_QUEUE skip
#else
#define LEFT_THE_QUEUE broadcast()
#endif

#ifdef SERIAL
#define CLASH(a, b) 1
#else
#define CLASH(a, b) (handle[a] == handle[b])
#endif

#define NEED_AT(a, l) ((to_need[a] && to[a] == l) || (from_need[a] && l == P))
#define SAME_BYTES(a, b) ((NEED_AT(a, P) && NEED_AT(b, P)) || (NEED_AT(a, C) && NEED_AT(b, C)))
#define IN_FRONT(a, b) (waiting[a] && place[a] < place[b] && (CLASH(a, b) || SAME_BYTES(a, b)))
#define BLOCKS(a, b) (in_flight[a] && CLASH(a, b))
#define ANY(what, i) (what(0, i) || what(1, i) || what(2, i) || what(3, i) || what(4, i))
#ifdef NO_QUEUE
#define BEHIND(i) 0
#else
#define BEHIND(i) ANY(IN_FRONT, i)
#endif

#ifdef CLAIMED_ONLY
#define HOLDS_AT(a, l)                                                                             \
    (in_flight[a] && ((to_claimed[a] && to[a] == l) || (from_claimed[a] && l == P)))
#elif defined(ANY_IN_FLIGHT)
#define HOLDS_AT(a, l) in_flight[a]
#else
#define HOLDS_AT(a, l) (in_flight[a] && ((to_held[a] && to[a] == l) || (from_held[a] && l == P)))
#endif
#define OTHERS_HOLD(l) ANY(HOLDS_AT, l)

/* W3: does not fit, even without what is held for a while. */
#define CANNOT_FIT(l, bytes) (used[l] + reserved[l] + (bytes) > budget[l])

/* ---- Look ---- */

#define AT(l) (1 << (l))

inline look() {
    atomic {
        seen = changed[h];
        source = resident[h] & ~AT(at);
        if
        :: action == DROP -> step = ((resident[h] & AT(at)) -> REMOVE : NO_OP)
        :: action == ENSURE ->
            if
            :: resident[h] & AT(at) -> step = NO_OP
            :: else -> step = (resident[h] -> COPY : LOAD)
            fi
        :: action == MOVE ->
            if
            :: (resident[h] & AT(at)) -> step = (source -> REMOVE : NO_OP)
            :: else -> step = (source -> COPY : LOAD)
            fi
        fi
    }
}

/* ---- Examine: under the lock ---- */

/* Claim at l; `got`. */
inline claim(l, bytes, flag, held) {
    if
    :: TOTAL(l) + bytes <= budget[l] -> claimed[l] = claimed[l] + bytes; flag[i] = 1; held[i] = 1
    :: else
    fi
}

inline unclaim(l, bytes, flag, held) {
    if
    :: flag[i] -> claimed[l] = claimed[l] - bytes; flag[i] = 0
    :: else
    fi;
    held[i] = 0
}

inline unclaim_all() {
#ifndef CLAIMS_KEPT
    unclaim(to[i], to_need[i], to_claimed, to_held);
    unclaim(P, from_need[i], from_claimed, from_held);
#else
    to_held[i] = 0; from_held[i] = 0;
#endif
    skip
}

mtype = { GO, WAIT, RECHECK, REFUSED };

inline claim_all() {
    v = GO;
    if
    :: from_need[i] ->
        claim(P, from_need[i], from_claimed, from_held);
        if
        :: !from_claimed[i] ->
            if
            :: OTHERS_HOLD(P) -> v = WAIT
            :: else -> assert(CANNOT_FIT(P, from_need[i])); v = REFUSED /* W3 */
            fi
        :: else
        fi
    :: else
    fi;
    if
    :: v == GO && to_need[i] ->
        claim(to[i], to_need[i], to_claimed, to_held);
        if
        :: to_claimed[i]
        :: !to_claimed[i] && OTHERS_HOLD(to[i]) -> v = WAIT
        :: !to_claimed[i] && !OTHERS_HOLD(to[i]) ->
            assert(CANNOT_FIT(to[i], to_need[i])); /* W3 */
            if
            :: from_need[i] /* a load finds out afterwards */
            :: else -> v = REFUSED
            fi
        fi
    :: else
    fi;
    if
    :: v != GO -> unclaim_all()
    :: else
    fi
}

inline examine() {
    if
    :: ANY(BLOCKS, i) || BEHIND(i) -> v = WAIT
    :: else ->
        if
        :: changed[h] != seen -> v = RECHECK
        :: else ->
            to_need[i] = (step == COPY || step == LOAD -> BYTES_OF(h) : 0);
            from_need[i] = (step == LOAD && at != P -> BYTES_OF(h) : 0);
            if
            :: BEHIND(i) -> v = WAIT
            :: else -> claim_all()
            fi
        fi
    fi
}

/* The load that this plan may join, or NONE. */
inline load_in_front() {
    front = NONE;
    k = 0;
    do
    :: k < PLANS && BLOCKS(k, i) && front == NONE -> front = k; k++
    :: k < PLANS && !(BLOCKS(k, i) && front == NONE) -> k++
    :: else -> break
    od;
    k = 0;
    if
    :: front != NONE && !(loading[front] && action == ENSURE && handle[front] == h) -> front = NONE
    :: else
    fi
}

inline append() { waiting[i] = 1; place[i] = next_place; next_place++ }
inline leave_queue() { waiting[i] = 0; place[i] = 0 }

/* ---- Settle: under the lock ---- */

inline leave_flight() {
    unclaim_all();
    loading[i] = 0;
    load_over[i] = 1;
    in_flight[i] = 0;
    to_need[i] = 0; from_need[i] = 0;
    broadcast()
}

/* `i`: the ticket; `inside`: on a thread that is in a source callback. */
proctype Plan(byte i; mtype action; byte h; byte at; bit inside) {
    byte seen, source, k, front;
    mtype step, v, status;
    bit joined_failed;
    atomic { handle[i] = h; to[i] = at };
    look();
    status = OK;
    atomic {
        append();
        if
        :: guard_of != NONE -> status = REENTRANCY
        :: else
        fi
    };
    do
    :: status != OK -> break
    :: else ->
        atomic {
            examine();
            if
            :: v == GO ->
                leave_queue();
                in_flight[i] = 1;
                loading[i] = (step == LOAD);
                if
                :: step == LOAD ->
                    k = 0; /* W4 */
                    do
                    :: k < PLANS -> assert(k == i || !loading[k] || handle[k] != h); k++
                    :: else -> break
                    od;
                    k = 0;
                    assert(!joined_failed)
                :: else
                fi;
#ifdef GUARD
                if
                :: step == LOAD -> guard_of = i
                :: else
                fi;
#endif
#ifdef GUARD_NO_BROADCAST
                if
                :: step != LOAD -> LEFT_THE_QUEUE
                :: else
                fi;
#else
                LEFT_THE_QUEUE;
#endif
                break
            :: v == REFUSED -> status = BUDGET
            :: v == RECHECK
            :: v == WAIT ->
#ifndef CALLBACK_WAITS
                if
                :: inside -> status = REENTRANCY
                :: else ->
#endif
                    load_in_front();
                    if
                    :: front != NONE -> leave_queue(); LEFT_THE_QUEUE
                    :: else
                    fi;
                    sleeping[i] = 1
#ifndef CALLBACK_WAITS
                fi
#endif
            fi
        };
        if
        :: v == RECHECK -> look()
        :: v == WAIT && status == OK ->
            /* asleep until woken; a joiner also until the load is over */
            do
            :: atomic {
                woken[i] -> woken[i] = 0;
                if
                :: guard_of != NONE -> status = REENTRANCY
                :: else
                fi;
                if
                :: status != OK || front == NONE || load_over[front] ->
                    if
                    :: front != NONE ->
                        if
                        :: load_over[front] && load_failed[front] -> status = FAILED; joined_failed = 1
                        :: else
                        fi;
                        front = NONE;
                        append()
                    :: else
                    fi;
                    break
                :: else -> sleeping[i] = 1
                fi
            }
            od
        :: else
        fi
    od;
    if
    :: status != OK -> atomic { leave_queue(); to_need[i] = 0; from_need[i] = 0; LEFT_THE_QUEUE }; goto out
    :: else
    fi;

    /* ---- Work, no lock ---- */
    if
    :: step == NO_OP
    :: step == REMOVE
        if
        :: true
        :: true -> status = FAILED /* in use */
        fi
    :: step == COPY
        if
        :: true
        :: true -> status = FAILED
        fi
    :: step == LOAD ->
        /* the claim becomes a temporary charge */
        atomic {
            if
            :: at == P -> claimed[P] = claimed[P] - to_need[i]; temporary[P] = temporary[P] + to_need[i]; to_claimed[i] = 0
            :: else -> claimed[P] = claimed[P] - from_need[i]; temporary[P] = temporary[P] + from_need[i]; from_claimed[i] = 0
            fi;
            loads++
        };
#ifdef GUARD
        /* The callback waits for another thread that calls the manager, if there is one. */
        if
        :: i == 0 -> result[1] != NOTHING
        :: else
        fi;
        guard_of = NONE;
#endif
#ifdef CALLBACKS
        run Plan(i + 2, ENSURE, 1 - h, C, 1);
        result[i + 2] != NOTHING;
#endif
        if
        :: true
        :: true -> status = FAILED
        fi;
        atomic { loading[i] = 0; load_over[i] = 1; load_failed[i] = (status != OK); broadcast() };
        if
        :: status == OK && at != P ->
            atomic {
                if
                :: !to_claimed[i] -> claim(C, to_need[i], to_claimed, to_held)
                :: else
                fi;
                if
                :: !to_claimed[i] -> status = BUDGET /* it did not fit at admission either: W3 */
                :: else ->
                    if
                    :: true
                    :: true -> status = FAILED /* the copy */
                    fi
                fi
            }
        :: else
        fi
    fi;

    /* ---- Commit, under the lock ---- */
    atomic {
        if
        :: step == LOAD && at == P -> temporary[P] = temporary[P] - to_need[i]
        :: step == LOAD && at != P -> temporary[P] = temporary[P] - from_need[i]
        :: else
        fi;
        if
        :: status == OK && step != NO_OP ->
            changed[h]++;
            if
            :: step == REMOVE && action == DROP ->
                used[at] = used[at] - BYTES_OF(h); resident[h] = resident[h] & ~AT(at)
            :: else ->
                if
                :: to_claimed[i] -> claimed[at] = claimed[at] - to_need[i]; to_claimed[i] = 0
                :: else
                fi;
                if
                :: step != REMOVE -> used[at] = used[at] + BYTES_OF(h); resident[h] = resident[h] | AT(at)
                :: else
                fi;
                if
                :: action == MOVE && step != LOAD ->
                    used[1 - at] = used[1 - at] - BYTES_OF(h); resident[h] = resident[h] & AT(at)
                :: else
                fi
            fi
        :: else
        fi;
        W2(P); W2(C);
        leave_flight()
    };
out:
    d_step { seen = 0; source = 0; front = 0; joined_failed = 0; result[i] = status }
}

/* A reservation that is given back: nobody is told. */
proctype GiveBack(byte l; byte bytes) { reserved[l] = reserved[l] - bytes }

/* A reserve never waits, and looks at the sum only. */
proctype Reserve(byte l) {
    if
    :: atomic { TOTAL(l) + 1 <= budget[l] -> reserved[l]++; W2(l) }; reserved[l]--
    :: atomic { TOTAL(l) + 1 > budget[l] }
    fi
}

#ifdef STREAM
/* Short plans that come and go at one location for ever. They queue like anybody else: each holds a
 * byte for a while and gives it back. */
proctype Stream() {
    byte k;
    do
    :: atomic {
        to[1] = STREAM; to_need[1] = 1;
        if
        :: !waiting[1] -> waiting[1] = 1; place[1] = next_place; next_place = (next_place == 250 -> 250 : next_place)
        :: else
        fi;
        if
        :: BEHIND(1) || TOTAL(STREAM) + 1 > budget[STREAM] -> sleeping[1] = 1
        :: else ->
            waiting[1] = 0; in_flight[1] = 1; to_held[1] = 1; to_claimed[1] = 1; claimed[STREAM]++;
            broadcast()
        fi
    };
        if
        :: in_flight[1] ->
            atomic { in_flight[1] = 0; to_held[1] = 0; to_claimed[1] = 0; to_need[1] = 0; claimed[STREAM]--; broadcast() }
        :: woken[1] -> woken[1] = 0
        fi
    od
}

ltl ends { <> (result[0] != NOTHING) }
#endif

init {
    atomic {
#if defined(BEHIND_A_LOAD)
        /* A load in flight or not yet, a drop and a move of the same value, a plan that does not fit until
         * something is given back, two reservations. */
        budget[P] = 2; budget[C] = 2; reserved[C] = 2;
        run Plan(0, ENSURE, 0, C, 0);
        run Plan(1, DROP, 0, C, 0);
        run Plan(2, MOVE, 0, P, 0);
        run Plan(3, ENSURE, 1, C, 0);
        run GiveBack(C, 1);
        run GiveBack(C, 1)
#elif defined(LOADS)
        budget[P] = 1; budget[C] = 1;
        run Plan(0, ENSURE, 0, C, 0);
        run Plan(1, ENSURE, 0, C, 0);
        run Plan(2, ENSURE, 0, C, 0)
#elif defined(BYTES)
        budget[P] = 2; budget[C] = 1; resident[1] = AT(P); used[P] = 1;
        run Plan(0, ENSURE, 0, C, 0);
        run Plan(1, ENSURE, 1, C, 0);
        run Plan(2, ENSURE, 0, P, 0);
        run Plan(3, DROP, 1, C, 0);
        run Reserve(P)
#elif defined(GUARD)
        budget[P] = 2; budget[C] = 2; resident[1] = AT(P); used[P] = 1;
        run Plan(0, ENSURE, 0, C, 0);
        run Plan(1, ENSURE, 1, C, 0);
        run Plan(2, ENSURE, 0, P, 0)
#elif defined(CALLBACKS)
        budget[P] = 4; budget[C] = 4;
        run Plan(0, ENSURE, 0, C, 0);
        run Plan(1, ENSURE, 1, C, 0)
#elif defined(STREAM)
        budget[P] = 2; budget[C] = 1; reserved[C] = (STREAM == P -> 1 : 0);
        resident[0] = AT(P); used[P] = 1;
        run Plan(0, ENSURE, 0, C, 0);
        run Stream()
#endif
    }
#ifndef STREAM
    _nr_pr == 1;
    assert(claimed[P] == 0 && claimed[C] == 0 && temporary[P] == 0 && temporary[C] == 0) /* W2 */
#endif
}
