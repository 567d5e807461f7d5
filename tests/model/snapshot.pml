/* SPDX-License-Identifier: MIT */
/*
 * What a pass over the records sees while they live, and when it is exact.
 *
 * Stands for: try(), still_current(), same_counts() (snapshot/take.c); in_version(), add_pins(),
 * each(), tn__pass_run() (pass.c); tn__scan(), visit_walk(), show(), same_life() (lifetime/scan.c);
 * tn__life_counts() (life.c). Beside it commit() (acquire.c), take(), end_all() (hot.c), attempt(),
 * end_cuda(), fall_back(), leave() (release.c), tn__pending_complete(), tn__pending_consume()
 * (reap.c), tn__store_publish() (placement/store.c).
 *
 * Values a and b are resident; with TRANSITIONS one publishes b, and with REMOVE another one
 * removes a when nobody pins it. An owner leases a or b on CUDA in record 0 (or fails, which is no
 * effect), releases it (RELEASING is no effect; PENDING is one, or FREE if the streams were
 * synchronised instead; active again is none), and leases again in the same record; the reaper
 * makes it DONE, which is an effect, and then FREE, which is none. HOT: another thread takes and
 * ends two records under one odd counter each. The observer makes one try of a snapshot. `truth`
 * keeps, for each number of effects, the state that they made, and `between` whether that was in
 * the middle of a step.
 *
 * Holds
 *  V1 an exact snapshot shows the state that as many effects as its version says have made, never
 *     one in the middle of a step.
 *  V4 what a pass counts of a record, exact or not, is of one life: the one that pinned it.
 *  V5 a pin of what the pinned version does not have is not counted.
 *
 * Not covered: reservations and first reserves (version.pml); slots that are added meanwhile (one
 * whose counter is 0 counts as there).
 *
 * Runs (read by run.sh)
 *   holds  reuse                           -DLIVES=2 -DNO_FALL_BACK
 *   holds  hot                             -DLIVES=0 -DHOT -DTRANSITIONS
 *   holds  transitions                     -DLIVES=1 -DTRANSITIONS -DREMOVE
 *   deep   cuda                            -DLIVES=2
 *   deep   cuda_and_transitions            -DLIVES=2 -DTRANSITIONS -DREMOVE
 *   deep   cuda_and_hot                    -DLIVES=1 -DHOT -DNO_FALL_BACK
 *   fails  odd_ignored          assertion  -DLIVES=1 -DODD_IGNORED
 *   fails  pointer_only         assertion  -DLIVES=1 -DPOINTER_ONLY
 *   fails  counters_only        assertion  -DLIVES=1 -DTRANSITIONS -DCOUNTERS_ONLY
 *   fails  first_word_only      assertion  -DLIVES=2 -DFIRST_WORD_ONLY
 *   fails  same_word            assertion  -DLIVES=1 -DSAME_WORD
 *   fails  releasing_is_gone    assertion  -DLIVES=1 -DRELEASING_IS_GONE
 *   fails  acquiring_counted    assertion  -DLIVES=1 -DACQUIRING_COUNTED
 *   fails  done_is_pending      assertion  -DLIVES=1 -DDONE_IS_PENDING
 *   fails  pending_uncounted    assertion  -DLIVES=1 -DPENDING_UNCOUNTED
 *   fails  counted_one_by_one   assertion  -DLIVES=0 -DHOT -DCOUNTED_ONE_BY_ONE
 *   fails  outside_counted      assertion  -DLIVES=1 -DTRANSITIONS -DOUTSIDE_COUNTED
 */
#define FREE 0
#define ACQUIRING 1
#define ACTIVE 2
#define RELEASING 3
#define PENDING 4
#define DONE 5
#define WORD(g, s) ((g) * 8 + (s))
#define STATE(w) ((w) & 7)
#define GENERATION(w) ((w) >> 3)
#define IN_USE(w) (STATE(w) == ACTIVE || STATE(w) == RELEASING)

#define A 1
#define B 2

#ifdef HOT
#define RECORDS 3
#define SLOTS 3
#else
#define RECORDS 1
#define SLOTS 2
#endif

byte counter[SLOTS]; /* of the owner, the reaper, the hot thread */
byte word[RECORDS], pin[RECORDS];
/* The current version. */
byte number;
#ifdef TRANSITIONS
byte shows = A;
#else
byte shows = A + B;
#endif

byte effects, truth[16];
bit between[16];
byte pinned_by[3]; /* what each life of record 0 pins */
bit queued, watched, middle;

/* A state: what is resident (2 bits), uses of a and b (2 bits each), pending of each (1 bit). */
#define USE_OF(r, x) (IN_USE(word[r]) && pin[r] == (x))
#ifdef HOT
#define USES(x) (USE_OF(0, x) + USE_OF(1, x) + USE_OF(2, x))
#else
#define USES(x) USE_OF(0, x)
#endif
#define PENDINGS(x) (STATE(word[0]) == PENDING && pin[0] == (x))
#define STATE_NOW                                                                                  \
    (shows + 4 * USES(A) + 16 * USES(B) + 64 * PENDINGS(A) + 128 * PENDINGS(B))

/* Kept while there is an observer: what was before nobody can see. */
#define NOTE(middle)                                                                               \
    effects++;                                                                                     \
    truth[effects] = (watched -> STATE_NOW : 0);                                                   \
    between[effects] = (watched -> middle : 0)
#define EFFECT(step, in_middle) d_step { step; middle = in_middle; NOTE(in_middle) }

inline count_begin(slot) { old = counter[slot]; counter[slot] = old + 1 }
inline count_end(slot, n) { counter[slot] = old + 2 * (n); old = 0 }

proctype Owner() {
    byte old, g;
    bit again;
    do
    :: g < LIVES && STATE(word[0]) == FREE ->
        g++; again = 0;
        count_begin(0);
        word[0] = WORD(g, ACQUIRING);
        if
        :: shows & A -> d_step { pinned_by[g] = A; pin[0] = A }
        :: shows & B -> d_step { pinned_by[g] = B; pin[0] = B }
        fi;
        if
        :: shows & pinned_by[g] -> EFFECT(word[0] = WORD(g, ACTIVE), 0); count_end(0, 1)
        :: true -> word[0] = WORD(g, FREE); count_end(0, 0) /* for another value's sake */
        fi;
        if
        :: STATE(word[0]) == ACTIVE ->
            skip;
release:
            word[0] = WORD(g, RELEASING);
            /* events are recorded here */
            count_begin(0);
            if
#ifdef PENDING_UNCOUNTED
            :: EFFECT(word[0] = WORD(g, PENDING), 0); count_end(0, 0); queued = 1
#else
            :: EFFECT(word[0] = WORD(g, PENDING), 0); count_end(0, 1); queued = 1
#endif
#ifndef NO_FALL_BACK
            :: EFFECT(word[0] = WORD(g, FREE), 0); count_end(0, 1)
            :: !again -> word[0] = WORD(g, ACTIVE); count_end(0, 0); again = 1; goto release
#endif
            fi
        :: else
        fi
    :: g == LIVES || STATE(word[0]) == DONE || STATE(word[0]) == PENDING -> break
    od
}

proctype Reaper() {
    byte old;
end:
    do
    :: queued && STATE(word[0]) == PENDING ->
        count_begin(1);
        EFFECT(word[0] = WORD(GENERATION(word[0]), DONE), 0);
        count_end(1, 1);
        queued = 0;
        word[0] = WORD(GENERATION(word[0]), FREE)
    od
}

#ifdef HOT
proctype Hot() {
    byte old;
    count_begin(2);
    word[1] = ACQUIRING;
    pin[1] = A;
    word[2] = ACQUIRING;
    pin[2] = A;
    if
    :: shows & A ->
        EFFECT(word[1] = ACTIVE, 1);
#ifdef COUNTED_ONE_BY_ONE
        count_end(2, 1);
        count_begin(2);
        EFFECT(word[2] = ACTIVE, 0);
        count_end(2, 1);
#else
        EFFECT(word[2] = ACTIVE, 0);
        count_end(2, 2);
#endif
        count_begin(2);
        EFFECT(word[2] = FREE, 1);
        EFFECT(word[1] = FREE, 0);
        count_end(2, 2)
    :: else -> word[1] = FREE; word[2] = FREE; count_end(2, 0)
    fi
}
#endif

/* Nobody pins a: the protocol of lease.pml, in one step. */
#define FREE_OF_A(r) (STATE(word[r]) == FREE || STATE(word[r]) == DONE || pin[r] != A)

proctype Transitions() {
    EFFECT(number++; shows = shows | B, 0);
#ifdef REMOVE
    if
#ifdef HOT
    :: d_step { FREE_OF_A(0) && FREE_OF_A(1) && FREE_OF_A(2) ->
#else
    :: d_step { FREE_OF_A(0) ->
#endif
        number++; shows = B; NOTE(0) }
    :: true
    fi
#endif
}

/* ---- The observer ---- */

inline counts(raw, sum, odd) {
    d_step { raw = counter[0]; sum = counter[0] / 2; odd = counter[0] & 1 };
    d_step { raw = raw + counter[1]; sum = sum + counter[1] / 2; odd = odd | (counter[1] & 1) }
#ifdef HOT
    ;d_step { raw = raw + counter[2]; sum = sum + counter[2] / 2; odd = odd | (counter[2] & 1) }
#endif
}

#if defined(ACQUIRING_COUNTED)
#define SEEN(w) (STATE(w) >= ACQUIRING && STATE(w) <= PENDING)
#elif defined(RELEASING_IS_GONE)
#define SEEN(w) (STATE(w) == ACTIVE || STATE(w) == PENDING)
#elif defined(DONE_IS_PENDING)
#define SEEN(w) (STATE(w) >= ACTIVE && STATE(w) <= DONE)
#else
#define SEEN(w) (STATE(w) >= ACTIVE && STATE(w) <= PENDING)
#endif
#if defined(FIRST_WORD_ONLY)
#define SAME_LIFE(w, again) true
#elif defined(SAME_WORD)
#define SAME_LIFE(w, again) ((w) == (again))
#else
#define SAME_LIFE(w, again) (GENERATION(w) == GENERATION(again) && SEEN(again))
#endif

/* A record as word, pins, word. */
inline visit(r) {
    w = word[r];
    if
    :: SEEN(w) ->
        x = pin[r];
        atomic {
            if
            :: SAME_LIFE(w, word[r]) ->
#ifdef OUTSIDE_COUNTED
                if
                :: true ->
#else
                if
                :: seen & x -> /* in the pinned version */
#endif
                    assert(r != 0 || x == pinned_by[GENERATION(w)]); /* V4 */
                    assert(had & x); /* V5 */
                    if
                    :: STATE(w) >= PENDING -> seen = seen + (x == A -> 64 : 128)
                    :: else -> seen = seen + (x == A -> 4 : 16)
                    fi
                :: else
                fi
            :: else
            fi;
            w = 0; x = 0
        }
    :: else -> w = 0
    fi
}

proctype Observer() {
    byte first, had, seen, pinned, raw, sum, raw_again, sum_again, w, x;
    bit odd, odd_again, exact;
    d_step {
        watched = 1; first = effects; truth[first] = STATE_NOW; between[first] = middle;
        pinned = number; seen = shows; had = shows
    };
    counts(raw, sum, odd);
    visit(0);
#ifdef HOT
    visit(1);
    visit(2);
#endif
    counts(raw_again, sum_again, odd_again);
#if defined(ODD_IGNORED)
    exact = raw == raw_again && number == pinned;
#elif defined(POINTER_ONLY)
    exact = number == pinned;
#elif defined(COUNTERS_ONLY)
    exact = raw == raw_again && !odd && !odd_again;
#else
    exact = raw == raw_again && !odd && !odd_again && number == pinned;
#endif
    if
    :: exact -> atomic {
        sum = pinned + sum_again;
        assert(sum >= first && sum <= effects); /* V1 */
        assert(seen == truth[sum] && !between[sum]) }
    :: else
    fi;
    d_step {
        watched = 0;
        do
        :: first <= effects -> truth[first] = 0; between[first] = 0; first++
        :: else -> break
        od;
        first = 0; had = 0; seen = 0; pinned = 0; raw = 0; sum = 0; raw_again = 0; sum_again = 0;
        odd = 0; odd_again = 0; exact = 0
    }
}

init {
    atomic {
        run Owner();
        run Reaper();
#ifdef HOT
        run Hot();
#endif
#ifdef TRANSITIONS
        run Transitions();
#endif
        run Observer()
    }
    timeout;
    assert(number + counter[0] / 2 + counter[1] / 2 <= effects)
}
