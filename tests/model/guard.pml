/* SPDX-License-Identifier: MIT */
/*
 * The callback guard and destroy against operations that are past their check.
 *
 * Stands for: tn__life_guard_raise(), tn__life_guard_wait(), tn__life_guard_lower(),
 * wait_for_everybody() (lifetime/close.c); end_cuda(), leave(), enqueue(), end_host() (release.c);
 * commit() (acquire.c) and activate() (reserve.c), which are alike here; with DESTROY,
 * tn_manager_destroy() of a closed manager (manager/manager.c, life.c).
 *
 * One CUDA release, one host release and one acquire against a guard. Each operation checks the
 * manager word inside the section in which it takes effect; a CUDA release has a second section
 * without a check. The tail of each is what it still does after its effect: the counter, the
 * queue.
 *
 * Holds
 *  G1 while the callback runs nothing of these operations takes effect or is counted.
 *  G2 whoever checks while the callback runs is refused.
 *  G3 everybody ends.
 *  D1 destroy, which begins when all calls have returned (its contract), frees nothing that a call
 *     still touches.
 *
 * Not claimed, as nobody can look meanwhile: the completion of a pending lease (tn__pending_complete())
 * and the host release of the hot path have no section, and may be decided while the callback runs.
 *
 * Runs (read by run.sh)
 *   holds  guard
 *   holds  destroy                        -DDESTROY
 *   fails  one_grace_period    assertion  -DONE_GRACE_PERIOD
 *   fails  releasing_ignored   assertion  -DRELEASING_IGNORED
 *   fails  releasing_first     assertion  -DRELEASING_FIRST
 *   fails  check_outside       assertion  -DCHECK_OUTSIDE
 *   fails  release_unchecked   assertion  -DRELEASE_UNCHECKED
 *   fails  destroy_early       assertion  -DDESTROY -DDESTROY_EARLY
 */
#define CUDA 0 /* records, and the threads that work on them */
#define HOST 1
#define NEW 2

mtype = { FREE, ACQUIRING, ACTIVE, RELEASING, PENDING, DONE };
mtype word[3];
bit section[3], guarded, callback, closed, freed;
byte queued, returned, counted;

/* A step that others could see, or that needs the manager's memory. */
inline effect() { assert(!callback && !freed) }
inline touch() { assert(!freed) }

/* Into a section, past the check; else to `label`. */
#ifdef CHECK_OUTSIDE
#define ENTER(id, label)                                                                           \
    if                                                                                             \
    :: guarded -> goto label                                                                       \
    :: else                                                                                        \
    fi;                                                                                            \
    section[id] = 1
#else
#define ENTER(id, label)                                                                           \
    section[id] = 1;                                                                               \
    if                                                                                             \
    :: guarded -> section[id] = 0; goto label                                                      \
    :: else -> assert(!callback) /* G2 */                                                          \
    fi
#endif

proctype CudaRelease() {
#ifdef RELEASE_UNCHECKED
    section[CUDA] = 1;
#else
    ENTER(CUDA, out);
#endif
    atomic { word[CUDA] == ACTIVE -> effect(); word[CUDA] = RELEASING };
    section[CUDA] = 0;
    touch(); /* records the events */
    section[CUDA] = 1;
    if
    :: atomic { effect(); word[CUDA] = PENDING };
        atomic { effect(); counted++ };
        section[CUDA] = 0;
        atomic { touch(); queued++ }
    :: atomic { effect(); word[CUDA] = FREE }; /* the streams were synchronised */
        atomic { effect(); counted++ };
        section[CUDA] = 0
    :: atomic { effect(); word[CUDA] = ACTIVE }; /* that failed too */
        section[CUDA] = 0
    fi;
out:
    returned++
}

proctype HostRelease() {
    ENTER(HOST, out);
    atomic { word[HOST] == ACTIVE -> effect(); word[HOST] = FREE };
    atomic { effect(); counted++ };
    section[HOST] = 0;
    touch(); /* the record goes back to its slot */
out:
    returned++
}

proctype Acquire() {
    ENTER(NEW, out);
    atomic { touch(); word[NEW] = ACQUIRING };
    if
    :: closed -> word[NEW] = FREE
    :: else ->
        atomic { effect(); word[NEW] = ACTIVE };
        atomic { effect(); counted++ }
    fi;
    section[NEW] = 0;
out:
    returned++
}

/* Anybody who finds the events complete, and the consumer; destroy stops it first. */
proctype Reaper() {
end:
    do
    :: atomic { !freed && word[CUDA] == PENDING -> word[CUDA] = DONE }
    :: atomic { !freed && queued > 0 && word[CUDA] == DONE -> word[CUDA] = FREE; queued-- }
    od
}

inline grace_period() { section[0] == 0; section[1] == 0; section[2] == 0 }

inline wait_releasing() {
#ifdef RELEASING_IGNORED
    skip
#else
    word[CUDA] != RELEASING
#endif
}

proctype Guard() {
    guarded = 1;
#ifdef RELEASING_FIRST
    wait_releasing();
    grace_period();
#else
    grace_period();
    wait_releasing();
#ifndef ONE_GRACE_PERIOD
    grace_period();
#endif
#endif
    callback = 1;
    callback = 0;
    guarded = 0
}

/* Close, decided as in close.pml, then destroy. */
proctype Destroy() {
#ifndef DESTROY_EARLY
    returned == 2;
#endif
    if
    :: atomic {
        (word[CUDA] == FREE || word[CUDA] == DONE) && word[HOST] == FREE && word[NEW] == FREE ->
        closed = 1
    };
        freed = 1
    :: word[CUDA] == ACTIVE /* it cannot be closed */
    fi
}

init {
    atomic {
        word[CUDA] = ACTIVE;
        word[HOST] = ACTIVE;
        word[NEW] = FREE;
        run CudaRelease();
        run HostRelease();
#ifdef DESTROY
        run Destroy();
#else
        run Acquire();
        run Guard();
#endif
        run Reaper()
    }
}
