/* SPDX-License-Identifier: MIT */
/*
 * Slots: one owner each, taken over when a thread exits, together with their records and counts.
 *
 * Stands for: take_over(), slot_push(), make(), find(), give_back_slots(), prune(),
 * registry_live(), tn__life_registry_remove() (lifetime/slot.c); tn__record_obtain(),
 * tn__record_recycle() (record.c); tn__count_begin(), tn__count_end(); the test for the own slot in
 * tn__fast_release() (fast.h); tn__scan() (scan.c); slots_destroy() (life.c).
 *
 * Threads come, acquire one lease each, hand it over, end a lease of somebody else, and exit; a
 * thread takes over a free slot or adds one. With PLAN, a plan scans all slots and removes what no
 * lease pins (acquires that come later find the plan: lease.pml). With DESTROY one thread exits
 * while the manager is destroyed. With CACHE a thread whose manager is gone ends a lease of another
 * manager, whose slot may be at the old one's address.
 *
 * Holds
 *  S1 one thread at a time works in a slot.
 *  S2 the counters count every effect.
 *  S3 a record is handed out to one acquire at a time, and none is lost.
 *  S4 the plan removes nothing that a lease pins, whoever's lease it is.
 *  S5 (DESTROY) no exit touches a freed slot.
 *  S6 (CACHE) a thread works only in slots of its own.
 *
 * Runs (read by run.sh)
 *   holds  threads
 *   holds  plan                              -DPLAN
 *   holds  destroy                           -DDESTROY
 *   holds  cache                             -DCACHE
 *   fails  given_back_early       assertion  -DGIVEN_BACK_EARLY
 *   fails  taken_without_cas      assertion  -DTAKEN_WITHOUT_CAS
 *   fails  scan_by_threads        assertion  -DPLAN -DSCAN_BY_THREADS
 *   fails  foreign_to_local       assertion  -DFOREIGN_TO_LOCAL
 *   fails  count_starts_anew      assertion  -DCOUNT_STARTS_ANEW
 *   fails  no_registry            assertion  -DDESTROY -DNO_REGISTRY
 *   fails  cache_by_address       assertion  -DCACHE -DCACHE_BY_ADDRESS
 */
#ifdef PLAN
#define THREADS 2
#else
#define THREADS 3
#endif
#define SLOTS THREADS
#define NONE 255

#if !defined(DESTROY) && !defined(CACHE)

/* Slot s has one record, number s. */
byte slots;                 /* added so far */
bit taken[SLOTS];
byte counter[SLOTS];
byte own_free[SLOTS], returned[SLOTS]; /* free lists: sets of records */
bit used[SLOTS];            /* the record was handed out before */
bit leased[SLOTS];          /* the record's state */
bit handed[SLOTS];          /* the lease in this record may be ended by anybody */
byte working[SLOTS];        /* threads inside, for S1 */
byte effects, over;
bit removing, removed;

inline work(s) { d_step { working[s]++; assert(working[s] == 1) } } /* S1 */
inline rest(s) { working[s]-- }

inline begin() { old = counter[mine]; counter[mine] = old + 1 }
inline end(n) { counter[mine] = old + 2 * (n); old = 0 }

inline take_slot() {
#ifdef TAKEN_WITHOUT_CAS
    s = 0;
    do
    :: s < slots && !taken[s] -> taken[s] = 1; mine = s; break /* look, then store; no lock */
    :: s < slots && taken[s] -> s++
    :: else -> break
    od;
    if
    :: mine == NONE -> atomic { mine = slots; slots++; taken[mine] = 1 }
    :: else
    fi;
    s = 0;
#else
    atomic { /* under slots_lock; an exit gives back without it, so this is a CAS */
        s = 0;
        do
        :: s < slots && !taken[s] -> taken[s] = 1; mine = s; break
        :: s < slots && taken[s] -> s++
        :: else -> mine = slots; slots++; taken[mine] = 1; break
        od;
        s = 0
    };
#endif
#ifdef COUNT_STARTS_ANEW
    counter[mine] = 0;
#endif
    skip
}

/* A record of the own slot, or NONE: its only one is in use. */
inline obtain() {
    if
    :: own_free[mine] == 0 ->
        atomic { won = returned[mine]; returned[mine] = 0 }; /* takes all */
        own_free[mine] = won; won = 0
    :: else
    fi;
    if
    :: own_free[mine] != 0 -> record = mine; own_free[mine] = 0
    :: own_free[mine] == 0 && !used[mine] -> record = mine; used[mine] = 1
    :: else
    fi
}

inline acquire() {
    work(mine);
    obtain();
    if
    :: record != NONE ->
        begin();
        atomic {
            assert(!leased[record]); /* S3 */
            if
            :: removing || removed
            :: else -> leased[record] = 1; effects++; won = 1
            fi
        };
        end(won);
        if
        :: !won -> own_free[mine] = 1
        :: else
        fi
    :: else
    fi;
    rest(mine);
    if
    :: won -> handed[record] = 1
    :: else
    fi;
    record = NONE; won = 0
}

/* End a lease that was handed over, if there is one. */
inline release() {
    atomic {
        if
        :: handed[0] -> record = 0; handed[0] = 0
        :: handed[1] -> record = 1; handed[1] = 0
#if THREADS > 2
        :: handed[2] -> record = 2; handed[2] = 0
#endif
        :: else
        fi
    };
    if
    :: record != NONE ->
        work(mine);
        begin();
        atomic { assert(leased[record]); leased[record] = 0; effects++ };
        end(1);
#ifdef FOREIGN_TO_LOCAL
        own_free[record] = 1;
#else
        if
        :: record == mine -> own_free[record] = 1
        :: else -> returned[record] = 1
        fi;
#endif
        rest(mine);
        record = NONE
    :: else
    fi
}

proctype Thread() {
    byte mine = NONE, record = NONE, s, old;
    bit won;
    take_slot();
#ifdef GIVEN_BACK_EARLY
    release();
    taken[mine] = 0;
    acquire();
#else
    release();
    acquire();
    taken[mine] = 0;
#endif
    over++
}

/* One plan. It is refused if it sees a lease; readers that come after its fence fail on it. */
proctype Plan() {
    byte s;
    bit in_use;
    removing = 1;
    do
    :: s < slots ->
        if
#ifdef SCAN_BY_THREADS
        :: !taken[s]
#endif
        :: leased[s] -> in_use = 1
        :: else
        fi;
        s++
    :: else -> break
    od;
    if
    :: in_use -> removing = 0
    :: else -> removed = 1
    fi
}

init {
    byte i, sum;
    atomic {
        do
        :: i < THREADS -> run Thread(); i++
        :: else -> break
        od;
        i = 0;
#ifdef PLAN
        run Plan()
#endif
    }
    _nr_pr == 1;
    d_step {
        do
        :: i < SLOTS -> sum = sum + counter[i] / 2; assert((counter[i] & 1) == 0); i++
        :: else -> break
        od;
        i = 0;
        assert(sum == effects); /* S2 */
        do
        :: i < SLOTS ->
            assert(!removed || !leased[i]); /* S4 */
            assert(!used[i] || leased[i] + own_free[i] + returned[i] == 1); /* S3 */
            i++
        :: else -> break
        od
    }
}

#elif defined(DESTROY)

bit registered = 1, locked, freed, taken = 1;

inline lock() { atomic { !locked -> locked = 1 } }
inline unlock() { locked = 0 }

/* The exit of a thread that has a note of its slot. */
proctype Thread() {
    bit live;
#ifdef NO_REGISTRY
    live = 1;
#else
    lock();
    live = registered;
#endif
    if
    :: live -> atomic { assert(!freed); taken = 0 } /* S5 */
    :: else
    fi;
#ifndef NO_REGISTRY
    unlock();
#endif
    skip
}

proctype Destroy() {
    lock();
    registered = 0;
    unlock();
    freed = 1
}

init { atomic { run Thread(); run Destroy() } }

#else

/* Addresses 0 and 1. T knows a slot of manager 1 at address 0; then manager 1 goes, and U makes its
 * slot of manager 2 wherever there is room. */
byte owner[2];      /* which thread's the slot at an address is; 0: free */
byte manager_of[2];
byte lease_at = NONE;
#define T 1
#define U 2

proctype Old() {
    byte cached_slot = 0, cached_manager = 1;
    owner[0] = 0; /* destroyed by somebody; T is not told */
    lease_at != NONE;
    if
#ifdef CACHE_BY_ADDRESS
    :: lease_at == cached_slot -> assert(owner[lease_at] == T) /* S6 */
#else
    :: lease_at == cached_slot && manager_of[lease_at] == cached_manager ->
        assert(owner[lease_at] == T) /* S6 */
#endif
    :: else /* the slow way: a slot of its own */
    fi
}

proctype New() {
    byte at;
    atomic {
        if
        :: owner[0] == 0 -> at = 0
        :: owner[1] == 0 -> at = 1
        fi;
        owner[at] = U;
        manager_of[at] = 2
    };
    lease_at = at
}

init {
    atomic {
        owner[0] = T;
        manager_of[0] = 1;
        run Old();
        run New()
    }
}

#endif
