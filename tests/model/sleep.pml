/* SPDX-License-Identifier: MIT */
/*
 * The reaper's sleep: no pending lease is left in the queue of a reaper that sleeps.
 *
 * Stands for: tn__life_wake(), work(), go_to_sleep(), step(), run(), tn__reaper_stop()
 * (lifetime/reaper.c); enqueue() (lifetime/release.c); take_queued() and the list of waiting leases
 * (lifetime/reap.c); tn__store_note_garbage() (placement/collect.c); the queue of base/queue.c. The
 * garbage stands for that of the store and of the lifetimes.
 *
 * Three threads push one record each. A push has two steps, as in the queue: the tail moves, then
 * the link is written; until then the queue is not empty, but nothing can be popped. A fourth
 * thread commits a transition (garbage, then a wake-up), with GUARD inside a callback guard. The
 * work of a lease ends at any time, so a pass completes any number of those that wait. The reaper's
 * announcement goes through its store buffer; the other threads only use read-modify-writes here,
 * which empty theirs.
 *
 * Holds
 *  S1 when nothing can move any more, the queue, the list and the garbage are empty.
 *  S2 the semaphore never counts two wake-ups.
 *  S3 the reaper does not go round for ever without a pause while there is nothing it may do.
 *  S4 it ends when it is told to (STOP).
 *
 * Runs (read by run.sh)
 *   holds  three_pushers
 *   holds  guard                        -DGUARD
 *   holds  stop                         -DSTOP
 *   fails  no_second_look   assertion   -DNO_SECOND_LOOK
 *   fails  flag_release     assertion   -DFLAG_RELEASE
 *   fails  flag_first       assertion   -DFLAG_FIRST
 *   fails  post_is_lost     assertion   -DPOST_IS_LOST
 *   fails  guard_spins      assertion   -DGUARD -DGUARD_SPINS
 */
#define PUSHERS 3
#define SPINS_MAX (PUSHERS + 2) /* one for each time that somebody else did something */

byte tail, head;       /* pushes begun; records popped */
bit linked[PUSHERS];   /* second step of each push */
byte waiting;          /* the consumer's list */
byte gone;             /* completed and consumed */
bit garbage, guarded, asleep, stop, ended;
bit buffered;          /* the reaper's store of `asleep` is not visible yet */
byte posts, spins, over;

#define QUEUE_EMPTY (tail == head)

inline wake() {
    atomic {
        if
        :: asleep -> asleep = 0; posts++; assert(posts <= 1) /* S2 */
        :: else
        fi
    }
}

proctype Pusher() {
    byte mine;
#ifdef FLAG_FIRST
    bit seen = asleep;
#endif
    atomic { mine = tail; tail++ }
    linked[mine] = 1;
#ifdef FLAG_FIRST
    if
    :: seen -> wake()
    :: else
    fi;
#else
    wake();
#endif
#ifdef STOP
    over++
#endif
}

proctype Committer() {
#ifdef GUARD
    guarded = 1;
    guarded = 0;
#endif
    garbage = 1;
    wake();
#ifdef GUARD
    guarded = 1;
    guarded = 0;
#endif
#ifdef STOP
    over++
#endif
}

proctype Buffer() {
end:
    do
    :: atomic { buffered -> asleep = 1; buffered = 0 }
    od
}

/* A pass: pop what is linked, complete any number of the waiting ones; then the garbage. */
inline step() {
    did = 0;
    if
    :: guarded
    :: else ->
        do
        :: d_step { head < tail && linked[head] -> head++; waiting++ }
        :: else -> break
        od;
        atomic { /* the list is the consumer's own */
            do
            :: waiting > 0 -> waiting--; gone++; did = 1
            :: break
            od
        };
        garbage = 0
    fi
}

inline announce() {
#ifdef FLAG_RELEASE
    buffered = 1
#else
    asleep = 1
#endif
}

/* The reaper's read-modify-write: its own buffered store comes first. */
inline take_back() {
    atomic {
        if
        :: asleep || buffered -> asleep = 0; buffered = 0; taken = 1
        :: else -> taken = 0
        fi
    }
}

proctype Reaper() {
    bit did, work, taken;
    do
    :: stop -> break
    :: else ->
        step();
        if
        :: did -> spins = 0
        :: else ->
            if
#ifdef GUARD_SPINS
            :: waiting > 0 || !QUEUE_EMPTY -> spins = 0 /* back off */
#else
            :: waiting > 0 || !QUEUE_EMPTY || garbage -> spins = 0
#endif
            :: else ->
                announce();
#ifdef NO_SECOND_LOOK
                work = stop;
#else
                work = !QUEUE_EMPTY || waiting > 0;
                work = work || garbage;
                work = work || stop;
#endif
                taken = 0;
                if
                :: work -> take_back()
                :: else
                fi;
#ifdef POST_IS_LOST
                taken = work; /* goes on, although somebody has posted */
#endif
                if
                :: atomic { taken -> spins++; assert(spins <= SPINS_MAX) } /* S3 */
                :: else ->
end_asleep:
                    atomic { posts > 0 -> posts--; spins = 0 }
                fi;
                d_step { work = 0; taken = 0 }
            fi
        fi
    od;
    ended = 1
}

proctype Stopper() {
    over == PUSHERS + 1; /* nobody uses the manager any longer */
    stop = 1;
    posts++;
    ended
}

init {
    byte i;
    atomic {
        run Buffer();
        run Reaper();
        i = 0;
        do
        :: i < PUSHERS -> run Pusher(); i++
        :: else -> break
        od;
        run Committer();
#ifdef STOP
        run Stopper()
#endif
    }
#ifndef STOP
    timeout;
    assert(QUEUE_EMPTY && waiting == 0 && gone == PUSHERS && !garbage) /* S1 */
#endif
}
