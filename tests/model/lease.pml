/* SPDX-License-Identifier: MIT */
/*
 * Acquires of two values against removals; releases on the host and on CUDA; reuse of records.
 *
 * Stands for: commit(), pin_all(), states(), outcomes() (lifetime/acquire.c) and their copies for
 * one value (fast.h) and several (hot.c), which give up where these abort; tn__removal_take(),
 * attempt(), tn__decision_settle(), visit_verdict(), tn__decision_meet(), tn__decision_outcome(),
 * tn__removal_commit(), tn__removal_cancel() (removal.c); over_already(), end_host(), end_cuda(),
 * leave(), enqueue() (release.c); tn__life_help(), pass(), tn__pending_complete(),
 * tn__pending_consume() (reap.c); tn__record_obtain() and tn__record_recycle() (record.c);
 * tn__heavy_fence(), tn__light_fence().
 *
 * Two values, a (1) and b (2). Readers have one record each and acquire a set of values ROUNDS
 * times; their stores go through store buffers, which empty at any time, at a read-modify-write, at
 * the end of a section, and at a heavy fence. Plans want a set removed; overlapping plans exclude
 * each other by their claims on the handles; one may take and then fail. A lease is released by its
 * reader and, with FOREIGN, by another thread too. With CUDA, readers leave work on a device, which
 * reads what they pinned until it ends, at any time.
 *
 * Holds
 *  L1 storage is not freed while a lease pins it, or work queued before its release reads it.
 *  L2 a lease of both values pins both.
 *  L3 readers wait for nobody: they end also if a plan stops half-way (STOPS).
 *  L4 each generation of a record ends once, and is completed and queued once.
 *  R1 a plan is refused as "in use" only if one of its values was leased at some moment of its
 *     call.
 *  R2 everybody ends; the bound on attempts is never reached.
 *
 * Not covered: more than two readers; machines that reorder more than TSO does; reclaim of
 * descriptors (RCU is assumed); the manager word (close.pml).
 *
 * Runs (read by run.sh)
 *   holds  two_plans                        -DROUNDS=2
 *   holds  failing_plan                     -DP0=1 -DP1=2 -DP1_FAILS
 *   holds  both_and_failing                 -DROUNDS=2 -DP1=2 -DP1_FAILS
 *   holds  two_readers                      -DREADERS=2 -DP1=0
 *   holds  foreign_release                  -DROUNDS=2 -DP1=0 -DFOREIGN
 *   holds  cuda                             -DROUNDS=2 -DP1=0 -DCUDA
 *   holds  cuda_foreign                     -DROUNDS=1 -DP1=0 -DCUDA -DFOREIGN
 *   holds  fence_mode                       -DROUNDS=2 -DP1=0 -DFENCE_MODE
 *   holds  stopped_plan                     -DROUNDS=2 -DP1=0 -DSTOPS
 *   deep   failing_plan_two_rounds          -DROUNDS=2 -DP0=1 -DP1=2 -DP1_FAILS
 *   deep   two_readers_two_plans            -DREADERS=2
 *   deep   two_readers_failing_plan         -DREADERS=2 -DP1=2 -DP1_FAILS
 *   deep   two_readers_any_values           -DREADERS=2 -DANY_WANT
 *   deep   two_readers_two_rounds           -DREADERS=2 -DROUNDS=2 -DP1=0
 *   deep   two_readers_cuda                 -DREADERS=2 -DP1=0 -DCUDA
 *   deep   cuda_foreign_two_rounds          -DROUNDS=2 -DP1=0 -DCUDA -DFOREIGN
 *   fails  no_heavy_fence        assertion  -DP1=0 -DNO_HEAVY_FENCE
 *   fails  no_light_fence        assertion  -DP1=0 -DFENCE_MODE -DNO_LIGHT_FENCE
 *   fails  pins_after_states     assertion  -DP1=0 -DPINS_AFTER_STATES
 *   fails  acquiring_ignored     assertion  -DP1=0 -DACQUIRING_IGNORED
 *   fails  acquiring_in_use      assertion  -DACQUIRING_IN_USE
 *   fails  taker_by_record       assertion  -DROUNDS=2 -DP0=1 -DP1=2 -DP1_FAILS -DTAKER_BY_RECORD
 *   fails  one_word_reading      assertion  -DROUNDS=2 -DP0=1 -DP1=0 -DONE_WORD_READING
 *   fails  outcome_first         assertion  -DP1=0 -DOUTCOME_FIRST
 *   fails  done_reused           assertion  -DROUNDS=2 -DP1=0 -DCUDA -DDONE_REUSED
 *   fails  pending_first         assertion  -DP1=0 -DCUDA -DPENDING_FIRST
 *   fails  double_release        assertion  -DP1=0 -DFOREIGN -DDOUBLE_RELEASE
 */
#ifndef READERS
#define READERS 1
#endif
#ifndef ROUNDS
#define ROUNDS 1
#endif
#ifndef P0
#define P0 3
#endif
#ifndef P1
#define P1 1
#endif
#ifdef P1_FAILS
#define P1_END 1
#else
#define P1_END 0
#endif
#define ATTEMPTS (READERS * ROUNDS + 1) /* of one plan: each acquire aborts it once at most */

/* A record's word {generation, state}. */
#define FREE 0
#define ACQUIRING 1
#define ACTIVE 2
#define RELEASING 3
#define PENDING 4
#define DONE 5
#define WORD(g, s) ((g) * 8 + (s))
#define STATE(w) ((w) & 7)
#define GENERATION(w) ((w) >> 3)
#define IN_USE(w) (STATE(w) == ACTIVE || STATE(w) == RELEASING || STATE(w) == PENDING)

/* A materialization's state word: LIVE, GONE, or a descriptor's number. */
#define LIVE 0
#define GONE 255

/* A descriptor's decision. */
#define TRYING 0
#define TAKEN 1
#define WITHDRAWN 2
#define ABORTED 3 /* + the reader */
#define GRANTED 8
#define FAILED 9

byte memory[READERS * 3];        /* word, pin of a, pin of b */
byte state[2];                   /* of a and b */
byte decision[2 * ATTEMPTS + 1];
byte descriptors;                /* made so far */
byte version = 3;                /* what is resident */
byte freed, claims;
chan buffer[READERS] = [6] of { byte, byte }; /* 0 to 2: the record; 10 + n: a decision */

/* What really happens, for the claims above. */
byte leased[2];                  /* leases that pin a, b */
bit calling[2], was_leased[2];   /* plan p is in its call; one of its values was leased in it */
byte pinned[READERS], handed[READERS], ended[READERS], completed[READERS], queued[READERS];
bit work[READERS], recorded[READERS];
byte finished;

#define MASK(p) (p -> P1 : P0)

inline apply(r, where, what) {
    if
    :: where < 10 -> memory[r * 3 + where] = what
    :: else -> decision[where - 10] = what
    fi
}

/* Inside an atomic step; `where` and `what` are the caller's. */
inline empty_buffer(r) {
    do
    :: buffer[r]?where,what -> apply(r, where, what)
    :: empty(buffer[r]) -> break
    od;
    where = 0; what = 0
}

proctype Memory(byte r) {
    byte where, what;
end:
    do
    :: atomic { buffer[r]?where,what -> apply(r, where, what); where = 0; what = 0 }
    od
}

inline now_leased(mask) {
    leased[0] = leased[0] + (mask & 1);
    leased[1] = leased[1] + (mask >> 1);
    was_leased[0] = was_leased[0] || (calling[0] && (P0 & mask));
    was_leased[1] = was_leased[1] || (calling[1] && (P1 & mask))
}

inline no_longer_leased(mask) {
    leased[0] = leased[0] - (mask & 1);
    leased[1] = leased[1] - (mask >> 1)
}

/* ---- Release of generation g of record r, by anybody ---- */

inline release(r, g, won) {
#ifdef DOUBLE_RELEASE
    if
    :: memory[r * 3] == WORD(g, ACTIVE) -> won = 1
    :: else -> won = 0
    fi;
    if
    :: won -> atomic { ended[r]++; assert(ended[r] == 1); memory[r * 3] = WORD(g, FREE);
                       no_longer_leased(pinned[r]) }
    :: else
    fi;
#elif !defined(CUDA)
    atomic {
        if
        :: memory[r * 3] == WORD(g, ACTIVE) ->
            assert((freed & pinned[r]) == 0); /* L1 */
            memory[r * 3] = WORD(g, FREE);
            ended[r]++; assert(ended[r] == 1); /* L4 */
            no_longer_leased(pinned[r])
        :: else
        fi
    };
#else
    atomic {
        if
        :: memory[r * 3] == WORD(g, ACTIVE) ->
            memory[r * 3] = WORD(g, RELEASING);
            ended[r]++; assert(ended[r] == 1); /* L4 */
            won = 1
        :: else -> won = 0
        fi
    };
    if
    :: won ->
#ifdef PENDING_FIRST
        atomic { assert(memory[r * 3] == WORD(g, RELEASING)); memory[r * 3] = WORD(g, PENDING) };
        recorded[r] = 1;
#else
        recorded[r] = 1;
        atomic { assert(memory[r * 3] == WORD(g, RELEASING)); memory[r * 3] = WORD(g, PENDING) };
#endif
        atomic { queued[r]++; assert(queued[r] == 1); won = 0 } /* L4 */
    :: else
    fi;
#endif
}

/* Whoever finds the events complete. One that was not recorded for this lease counts as such. */
inline complete(r, seen) {
    seen = memory[r * 3];
    if
    :: STATE(seen) == PENDING && (!recorded[r] || !work[r]) ->
        atomic {
            if
            :: memory[r * 3] == seen ->
                memory[r * 3] = WORD(GENERATION(seen), DONE);
                completed[r]++; assert(completed[r] == 1); /* L4 */
                no_longer_leased(pinned[r])
            :: else
            fi;
            seen = 0
        }
    :: else -> seen = 0
    fi
}

/* ---- Acquire ---- */

#define STORE(where, what) buffer[r]!where,what
#ifdef DONE_REUSED
#define REUSABLE(w) (STATE(w) == FREE || STATE(w) == DONE)
#else
#define REUSABLE(w) (STATE(w) == FREE)
#endif

inline load_pins() {
    STORE(1, want & 1);
    STORE(2, want >> 1)
}

inline light_fence() {
#if defined(FENCE_MODE) && !defined(NO_LIGHT_FENCE)
    atomic { empty_buffer(r) }
#else
    skip
#endif
}

/* Load one state word and its decision. Abort what is TRYING; `taken`: cannot go on. */
inline meet(v, mine) {
    seen = state[v];
    if
    :: seen == GONE -> gone = 1; seen = 0
    :: seen == LIVE
    :: else ->
        if
        :: decision[seen] == TRYING ->
            atomic {
                empty_buffer(r);
                if
                :: decision[seen] == TRYING -> decision[seen] = ABORTED + r; mine = seen
                :: decision[seen] == TAKEN -> taken = 1
                :: else
                fi;
                seen = 0
            }
        :: decision[seen] == TAKEN -> taken = 1; seen = 0
        :: else -> seen = 0
        fi
    fi
}

inline outcomes(granted) {
#ifndef TAKER_BY_RECORD
    if
    :: mine0 -> STORE(10 + mine0, (granted -> GRANTED : FAILED))
    :: else
    fi;
    if
    :: mine1 -> STORE(10 + mine1, (granted -> GRANTED : FAILED))
    :: else
    fi;
#endif
    d_step { mine0 = 0; mine1 = 0 }
}

proctype Reader(byte r) {
    byte where, what, g, want, seen, mine0, mine1, looks;
    bit gone, taken, won;
    do
    :: g < ROUNDS ->
        if
#if READERS > 1 && !defined(ANY_WANT)
        :: true -> want = 3
#else
        :: true -> want = 3
        :: true -> want = 2
        :: ROUNDS > 1 && P1 != 0 -> want = 1
#endif
        fi;
        if
        :: g > 0 && !REUSABLE(memory[r * 3]) -> break /* it would take another record */
        :: else
        fi;
        d_step { g++; ended[r] = 0; completed[r] = 0; recorded[r] = 0; looks = 0 };
        STORE(0, WORD(g, ACQUIRING));
look:
        gone = 0; taken = 0;
        if
        :: (version & want) != want -> goto failed
        :: else
        fi;
#ifndef PINS_AFTER_STATES
        load_pins();
        light_fence();
#endif
        if
        :: want & 1 -> meet(0, mine0)
        :: else
        fi;
        if
        :: (want & 2) && !gone && !taken -> meet(1, mine1)
        :: else
        fi;
#ifdef PINS_AFTER_STATES
        load_pins();
#endif
        if
        :: taken -> goto failed
        :: gone && looks == 0 -> looks = 1; goto look
        :: gone && looks == 1 -> goto failed
        :: else
        fi;
#ifdef OUTCOME_FIRST
        outcomes(1);
#endif
        atomic {
            STORE(0, WORD(g, ACTIVE));
            assert((freed & want) == 0); /* L1, L2 */
            pinned[r] = want;
            now_leased(want)
#ifdef CUDA
            ;work[r] = 1
#endif
        };
        outcomes(1);
        atomic { empty_buffer(r); handed[r] = g };
        release(r, g, won);
        goto next;
failed:
        STORE(0, WORD(g, FREE));
        outcomes(0);
next:
        atomic { empty_buffer(r); seen = 0; want = 0; looks = 0; gone = 0; taken = 0 }
    :: else -> break
    od;
    finished++
}

/* Another holder of a copy of the lease. */
proctype Foreign() {
    byte g;
    bit won;
    if
    :: handed[0] > 0 -> g = handed[0]; release(0, g, won)
    :: finished == READERS
    fi
}

/* The device: work ends at any time. */
proctype Device() {
end:
    do
    :: work[0] -> work[0] = 0
#if READERS > 1
    :: work[1] -> work[1] = 0
#endif
    od
}

inline consume(r) {
    if
    :: STATE(memory[r * 3]) == PENDING -> complete(r, seen)
    :: else -> atomic {
        assert(STATE(memory[r * 3]) == DONE); /* L4: nobody else has reused it */
        queued[r]--;
        memory[r * 3] = WORD(GENERATION(memory[r * 3]), FREE)
    }
    fi
}

proctype Reaper() {
    byte seen;
end:
    do
    :: queued[0] > 0 -> consume(0)
#if READERS > 1
    :: queued[1] > 0 -> consume(1)
#endif
    od
}

/* ---- Removal ---- */

inline heavy_fence() {
    skip;
#if !defined(NO_HEAVY_FENCE) && !defined(FENCE_MODE)
    d_step {
        do
        :: buffer[0]?where,what -> apply(0, where, what)
        :: empty(buffer[0]) -> break
        od;
#if READERS > 1
        do
        :: buffer[1]?where,what -> apply(1, where, what)
        :: empty(buffer[1]) -> break
        od;
#endif
        where = 0; what = 0
    }
#endif
}

#define PINS(r) ((memory[(r) * 3 + 1] && (mask & 1)) || (memory[(r) * 3 + 2] && (mask & 2)))

/* A record as word, pins, word. */
inline look_at(r) {
    word = memory[r * 3];
    if
    :: STATE(word) == FREE || STATE(word) == DONE
    :: else ->
        if
        :: PINS(r) ->
            d_step {
                if
#ifndef ONE_WORD_READING
                :: memory[r * 3] != word -> acquiring = 1 /* it moved on */
#endif
                :: else ->
                    if
                    :: STATE(word) == ACQUIRING -> acquiring = 1
                    :: else -> in_use = 1
                    fi
                fi
            }
        :: else
        fi
    fi;
    word = 0
}

inline scan() {
    d_step { in_use = 0; acquiring = 0 };
    look_at(0);
#if READERS > 1
    if
    :: !in_use -> look_at(1)
    :: else
    fi;
#endif
#ifdef ACQUIRING_IGNORED
    acquiring = 0;
#endif
#ifdef ACQUIRING_IN_USE
    in_use = in_use || acquiring;
#endif
    skip
}

inline set_states(value) {
    if
    :: mask & 1 -> state[0] = value
    :: else
    fi;
    if
    :: mask & 2 -> state[1] = value
    :: else
    fi
}

#define SOMEBODY_ACQUIRES                                                                          \
    (STATE(memory[0]) == ACQUIRING ||                                                              \
     (READERS > 1 && STATE(memory[(READERS - 1) * 3]) == ACQUIRING))

inline may_stop() {
#ifdef STOPS
    if
    :: true
    :: true -> goto stopped
    fi
#else
    skip
#endif
}

proctype Plan(bit p) {
    byte mask = MASK(p), where, what, word, seen, d, tries;
    bit in_use, acquiring;
    atomic {
        (claims & mask) == 0;
        claims = claims | mask;
        calling[p] = 1;
        was_leased[p] = (leased[0] && (mask & 1)) || (leased[1] && (mask & 2))
    };
#ifdef CUDA
    complete(0, seen); /* help */
#if READERS > 1
    complete(1, seen);
#endif
#endif
    if
    :: (version & mask) != mask -> goto done /* absent: nothing to do */
    :: else
    fi;
    scan();
    if
    :: in_use -> goto refused
    :: else
    fi;
again:
    atomic { assert(tries < ATTEMPTS); descriptors++; d = descriptors; tries++ }; /* R2 */
    set_states(d);
    may_stop();
    heavy_fence();
    do
    :: scan();
        if
        :: acquiring && !in_use && decision[d] == TRYING -> /* until there is something new */
            !SOMEBODY_ACQUIRES || decision[d] != TRYING
        :: else -> break
        fi
    od;
    atomic {
        if
        :: decision[d] == TRYING -> decision[d] = (in_use -> WITHDRAWN : TAKEN)
        :: else
        fi
    };
    may_stop();
    if
    :: decision[d] == TAKEN -> goto taken
    :: decision[d] == WITHDRAWN -> goto give_up
    :: else
    fi;
#ifdef TAKER_BY_RECORD
    /* Judge the reader that aborted by its record's present state. */
    where = decision[d] - ABORTED;
    STATE(memory[where * 3]) != ACQUIRING;
    in_use = IN_USE(memory[where * 3]);
    where = 0;
#else
    decision[d] == GRANTED || decision[d] == FAILED; /* its reader owes the outcome */
    in_use = in_use || decision[d] == GRANTED;
#endif
    if
    :: in_use -> goto give_up
    :: else -> set_states(LIVE); goto again
    fi;
give_up:
    set_states(LIVE);
refused:
    atomic { assert(was_leased[p]); goto done }; /* R1 */
taken:
    if
    :: p == 1 && P1_END -> set_states(LIVE) /* the plan fails: given back */
    :: else ->
        set_states(GONE);
        may_stop();
        version = version & (3 - mask);
        atomic {
            assert(!(leased[0] && (mask & 1)) && !(leased[1] && (mask & 2))); /* L1 */
            assert(!(work[0] && (pinned[0] & mask)));
#if READERS > 1
            assert(!(work[1] && (pinned[1] & mask)));
#endif
            freed = freed | mask
        }
    fi;
done:
    atomic { calling[p] = 0; claims = claims & (3 - mask) }
#ifdef STOPS
    ;goto over;
stopped:
end_stopped:
    false;
over:
    skip
#endif
}

init {
    byte i;
    atomic {
        i = 0;
        do
        :: i < READERS -> run Reader(i); run Memory(i); i++
        :: else -> break
        od;
#ifdef FOREIGN
        run Foreign();
#endif
#ifdef CUDA
        run Device();
        run Reaper();
#endif
        run Plan(0);
#if P1 != 0
        run Plan(1)
#endif
    }
#ifdef STOPS
    timeout;
    assert(finished == READERS) /* L3 */
#endif
}
