/* SPDX-License-Identifier: MIT */
/*
 * The callback guard, and destroy, against operations that are past their check.
 *
 * Stands for: tn__life_guard_raise(), tn__life_guard_wait(), tn__life_guard_lower(),
 * wait_for_everybody(), tn__life_wait_idle() (lifetime/close.c); tn__life_destroy() (life.c);
 * attempt(), end_cuda(), leave(), wait_and_complete(), end_host() (release.c); tn__fast_release()
 * (fast.h); commit() (acquire.c), activate() (reserve.c), take() and take_one() (hot.c), which are
 * alike here; tn__hot_end() (hot.c), which is end_host().
 *
 * Releases of a CUDA lease, of a host lease, of a host lease on the hot path, and of a CUDA lease
 * with wait; and an acquire. Each checks the manager word inside the section in which it takes
 * effect, but the hot path, which has no section; a CUDA release has a second section without a
 * check. With DESTROY the manager is closed as soon as nothing is open, and then destroyed, though
 * the releases have not returned.
 *
 * Holds
 *  G1 while the callback runs, nothing of these operations takes effect or is counted.
 *  G2 whoever checks while the callback runs is refused.
 *  G3 everybody ends.
 *  D1 (DESTROY) nothing is freed that a release still touches.
 *
 * Not claimed, as nobody can look meanwhile: the completion of a pending lease
 * (tn__pending_complete()) and the release of the hot path have no section, and may be decided
 * while a callback runs.
 *
 * Runs (read by run.sh)
 *   holds  guard
 *   holds  destroy                        -DDESTROY
 *   fails  one_grace_period    assertion  -DONE_GRACE_PERIOD
 *   fails  releasing_ignored   assertion  -DRELEASING_IGNORED
 *   fails  releasing_first     assertion  -DRELEASING_FIRST
 *   fails  check_outside       assertion  -DCHECK_OUTSIDE
 *   fails  release_unchecked   assertion  -DRELEASE_UNCHECKED
 *   fails  tail_outside        assertion  -DDESTROY -DTAIL_OUTSIDE
 *   fails  no_grace_period     assertion  -DDESTROY -DNO_GRACE_PERIOD
 *   fails  waiters_ignored     assertion  -DDESTROY -DWAITERS_IGNORED
 *   fails  counters_ignored    assertion  -DDESTROY -DCOUNTERS_IGNORED
 */
#define CUDA 0 /* records, and the threads that work on them */
#define HOST 1
#define NEW 2
#define LEAF 3
#define WAIT 4
#define RECORDS 5

mtype = { FREE, ACQUIRING, ACTIVE, RELEASING, PENDING, DONE };
mtype word[RECORDS] = FREE;
bit section[RECORDS], odd[RECORDS], guarded, callback, freed;
byte queued, waiters;

/* A step that others could see; and any use of the manager. */
inline effect() { assert(!callback && !freed) }
inline touch() { assert(!freed) }

inline turn_odd(id) { atomic { touch(); odd[id] = 1 } }
inline turn_even(id) { atomic { effect(); odd[id] = 0 } }

/* Into a section, past the check; else to `label`. */
#ifdef CHECK_OUTSIDE
#define ENTER(id, label)                                                                           \
    if                                                                                             \
    :: guarded -> goto label                                                                       \
    :: else                                                                                        \
    fi;                                                                                            \
    section[id] = 1
#elif defined(RELEASE_UNCHECKED)
#define ENTER(id, label)                                                                           \
    section[id] = 1;                                                                               \
    if                                                                                             \
    :: guarded && id == NEW -> section[id] = 0; goto label                                         \
    :: else                                                                                        \
    fi
#else
#define ENTER(id, label)                                                                           \
    section[id] = 1;                                                                               \
    if                                                                                             \
    :: guarded -> section[id] = 0; goto label                                                      \
    :: else -> assert(!callback) /* G2 */                                                          \
    fi
#endif

inline enqueue() { atomic { touch(); queued++ } }

proctype CudaRelease() {
    ENTER(CUDA, out);
    atomic { effect(); word[CUDA] = RELEASING };
    section[CUDA] = 0;
    touch(); /* records the events */
    section[CUDA] = 1;
    turn_odd(CUDA);
    if
    :: atomic { effect(); word[CUDA] = PENDING };
        turn_even(CUDA);
#ifdef TAIL_OUTSIDE
        section[CUDA] = 0;
        enqueue()
#else
        enqueue();
        section[CUDA] = 0
#endif
    :: atomic { effect(); word[CUDA] = FREE }; /* the streams were synchronised */
        turn_even(CUDA);
        touch(); /* the record goes back to its slot */
        section[CUDA] = 0
    :: atomic { effect(); word[CUDA] = ACTIVE }; /* that failed too */
        odd[CUDA] = 0;
        section[CUDA] = 0
    fi;
out:
    skip
}

proctype HostRelease() {
    ENTER(HOST, out);
    turn_odd(HOST);
    atomic { effect(); word[HOST] = FREE };
    turn_even(HOST);
    touch();
    section[HOST] = 0;
out:
    skip
}

proctype Acquire() {
    ENTER(NEW, out);
    turn_odd(NEW);
    word[NEW] = ACQUIRING;
    atomic { effect(); word[NEW] = ACTIVE };
    turn_even(NEW);
    section[NEW] = 0;
out:
    skip
}

/* No section: the counter stays odd until the last use of the slot. */
proctype LeafRelease() {
    turn_odd(LEAF);
    word[LEAF] = FREE;
    touch();
    atomic { touch(); odd[LEAF] = 0 }
}

/* The releasing thread is the record's consumer; nobody else is told of it. */
proctype WaitingRelease() {
    section[WAIT] = 1;
    word[WAIT] = RELEASING;
    section[WAIT] = 0;
    touch();
    section[WAIT] = 1;
    atomic { touch(); waiters++ };
    turn_odd(WAIT);
    word[WAIT] = PENDING;
    turn_even(WAIT);
    section[WAIT] = 0;
    touch(); /* waits for the events */
    turn_odd(WAIT);
    atomic {
        if
        :: word[WAIT] == PENDING -> word[WAIT] = DONE
        :: else /* somebody helped */
        fi
    };
    turn_even(WAIT);
    atomic { touch(); word[WAIT] = FREE };
    atomic { touch(); waiters-- }
}

/* Whoever finds events complete, and the consumer, which destroy stops first. */
proctype Reaper() {
end:
    do
    :: atomic { !freed && word[CUDA] == PENDING -> word[CUDA] = DONE }
    :: atomic { !freed && word[WAIT] == PENDING -> word[WAIT] = DONE }
    :: atomic { !freed && queued > 0 && word[CUDA] == DONE -> word[CUDA] = FREE; queued-- }
    od
}

inline grace_period() {
    section[0] == 0; section[1] == 0; section[2] == 0; section[3] == 0; section[4] == 0
}

inline wait_releasing() {
#ifdef RELEASING_IGNORED
    skip
#else
    word[CUDA] != RELEASING; word[WAIT] != RELEASING
#endif
}

inline wait_for_everybody() {
#ifdef RELEASING_FIRST
    wait_releasing();
    grace_period();
#elif defined(ONE_GRACE_PERIOD)
    grace_period();
    wait_releasing();
#elif !defined(NO_GRACE_PERIOD)
    grace_period();
    wait_releasing();
    grace_period();
#endif
    skip
}

proctype Guard() {
    guarded = 1;
    wait_for_everybody();
    callback = 1;
    callback = 0;
    guarded = 0
}

#define OVER(id) (word[id] == FREE || word[id] == DONE)

/* Close is decided as in close.pml. */
proctype Destroy() {
    if
    :: OVER(CUDA) && OVER(HOST) && OVER(LEAF) && OVER(WAIT)
    :: word[CUDA] == ACTIVE -> goto out /* it may stay so: not closed */
    fi;
    wait_for_everybody();
#ifndef WAITERS_IGNORED
    waiters == 0;
#endif
#ifndef COUNTERS_IGNORED
    !odd[0]; !odd[1]; !odd[2]; !odd[3]; !odd[4];
#endif
    freed = 1;
out:
    skip
}

init {
    atomic {
        word[CUDA] = ACTIVE;
        word[HOST] = ACTIVE;
        run CudaRelease();
        run HostRelease();
        run Reaper();
#ifdef DESTROY
        word[LEAF] = ACTIVE;
        word[WAIT] = ACTIVE;
        run LeafRelease();
        run WaitingRelease();
        run Destroy()
#else
        run Acquire();
        run Guard()
#endif
    }
}
