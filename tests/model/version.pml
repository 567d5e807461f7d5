/* SPDX-License-Identifier: MIT */
/*
 * The state version and exact snapshots.
 *
 * Stands for: tn__count_begin(), tn__count_end() (lifetime/lifetime_priv.h); tn__life_counts(),
 * tn__life_count() (life.c); commit() (acquire.c), end_host() (release.c); activate() and
 * first_reserve(), tn__life_take_begin(), tn__life_take_end() (reserve.c); try() (snapshot/take.c);
 * tn__state_version() (lifetime/version.c); tn__store_publish() (placement/store.c). How a record
 * is read while it lives, and several effects at once: snapshot.pml.
 *
 * Each thread has a slot. LEASES: T0 acquires in record 0; T1 ends that lease, which is not its
 * own, and then makes an acquire that fails; T3 publishes a version. RESERVE: T2 makes the first
 * reserve at a location, which publishes the tracking and shows the reservation under one odd
 * counter, and then adopts from the reservation, which moves bytes from it to the version it
 * publishes and counts nothing by itself; T0 and T3 as before. An observer tries a snapshot and
 * then reads the state version. `truth` keeps, for each number of effects, the state that they
 * made.
 *
 * Holds
 *  V1 an exact snapshot shows the state that as many effects as its version says have made: so two
 *     of one version show one state, and none shows half an effect.
 *  V2 it shows the location tracked if and only if the reservation was made.
 *  V3 a state version that was read while nothing moved is the number of effects, and not smaller
 *     than an earlier one.
 *
 * Runs (read by run.sh)
 *   holds  leases                          -DLEASES
 *   holds  reserve                         -DRESERVE
 *   deep   all                             -DLEASES -DRESERVE
 *   fails  pointer_not_again    assertion  -DLEASES -DPOINTER_NOT_AGAIN
 *   fails  counters_not_again   assertion  -DLEASES -DCOUNTERS_NOT_AGAIN
 *   fails  acquiring_counted    assertion  -DLEASES -DACQUIRING_COUNTED
 *   fails  owners_slot          assertion  -DLEASES -DOWNERS_SLOT
 *   fails  even_before_effect   assertion  -DLEASES -DEVEN_BEFORE_EFFECT
 *   fails  publish_apart        assertion  -DRESERVE -DPUBLISH_APART
 *   fails  adopt_uncovered      assertion  -DRESERVE -DADOPT_UNCOVERED
 */
#define FREE 0
#define ACQUIRING 1
#define ACTIVE 2
#define BYTES 1 /* of the reservation; all of them are adopted */

byte counter[3];
byte word[3]; /* records 0 and 1: leases; 2: the reservation */
byte bytes;   /* of the reservation */

/* The current version. A pinned one keeps what it showed. */
#define TRACKED 1
#define OTHER 2
#define ADOPTED 4
byte number, shows;

byte effects, truth[8];
bit over[4];

#ifdef ACQUIRING_COUNTED
#define COUNTS(w) ((w) != FREE)
#else
#define COUNTS(w) ((w) == ACTIVE)
#endif
#define SEEN(k) (COUNTS(word[k]) -> (k == 2 -> 32 * (1 + bytes) : 8 << (k)) : 0)
#define TRUE(k) (word[k] == ACTIVE -> (k == 2 -> 32 * (1 + bytes) : 8 << (k)) : 0)

#define EFFECT(step)                                                                               \
    d_step { step; effects++; truth[effects] = shows + TRUE(0) + TRUE(1) + TRUE(2) }
#define PUBLISH(bits) EFFECT(number++; shows = shows | (bits))

inline begin(slot) { old = counter[slot]; counter[slot] = old + 1 }
inline end(slot, n) { counter[slot] = old + 2 * (n); old = 0 }

proctype T0() {
    byte old;
    begin(0);
    word[0] = ACQUIRING;
#ifdef EVEN_BEFORE_EFFECT
    end(0, 1);
    EFFECT(word[0] = ACTIVE)
#else
    EFFECT(word[0] = ACTIVE);
    end(0, 1)
#endif
}

#ifdef OWNERS_SLOT
#define SLOT_OF_RELEASE 0
#else
#define SLOT_OF_RELEASE 1
#endif

proctype T1() {
    byte old;
    bit won;
    if
    :: word[0] == ACTIVE ->
        begin(SLOT_OF_RELEASE);
        atomic {
            if
            :: word[0] == ACTIVE -> EFFECT(word[0] = FREE); won = 1
            :: else
            fi
        };
        end(SLOT_OF_RELEASE, won);
        won = 0
    :: word[0] != ACTIVE
    fi;
    begin(1);
    word[1] = ACQUIRING;
    word[1] = FREE;
    end(1, 0)
}

proctype T2() {
    byte old;
#ifdef PUBLISH_APART
    PUBLISH(TRACKED);
#endif
    begin(2);
    bytes = BYTES;
    word[2] = ACQUIRING;
#ifndef PUBLISH_APART
    PUBLISH(TRACKED);
#endif
    EFFECT(word[2] = ACTIVE);
    end(2, 1);
    /* adopt_reserved */
#ifndef ADOPT_UNCOVERED
    begin(2);
#endif
    bytes = 0;
    PUBLISH(ADOPTED);
#ifndef ADOPT_UNCOVERED
    end(2, 0)
#endif
}

proctype T3() { PUBLISH(OTHER) }

inline counts(sum, raw, odd) {
    d_step { c = counter[0]; sum = c / 2; raw = c; odd = c & 1; c = 0 };
#ifdef LEASES
    d_step { c = counter[1]; sum = sum + c / 2; raw = raw + c; odd = odd | (c & 1); c = 0 };
#endif
#ifdef RESERVE
    d_step { c = counter[2]; sum = sum + c / 2; raw = raw + c; odd = odd | (c & 1); c = 0 };
#endif
    skip
}

proctype Observer() {
    byte c, sum, raw, sum_again, raw_again, pinned, seen, version;
    bit odd, odd_again, exact;
    d_step { pinned = number; seen = shows };
    counts(sum, raw, odd);
    seen = seen + SEEN(0);
    seen = seen + SEEN(1);
    seen = seen + SEEN(2);
    counts(sum_again, raw_again, odd_again);
#ifdef COUNTERS_NOT_AGAIN
    exact = !odd;
#else
    exact = raw == raw_again && !odd && !odd_again;
#endif
#ifndef POINTER_NOT_AGAIN
    exact = exact && number == pinned;
#endif
    if
    :: atomic { exact ->
        version = pinned + sum_again;
        assert(version <= effects && seen == truth[version]); /* V1 */
        assert((seen & TRACKED) == (seen >= 32)) } /* V2 */
    :: else
    fi;
    d_step { sum = 0; raw = 0; sum_again = 0; raw_again = 0; odd = 0; odd_again = 0; seen = 0 };
    pinned = number;
    counts(sum, raw, odd);
    counts(sum_again, raw_again, odd_again);
    if
    :: sum == sum_again && !odd && !odd_again && number == pinned ->
        assert(pinned + sum_again >= version && pinned + sum_again <= effects) /* V3 */
    :: else
    fi
}

init {
    atomic {
        run T0();
#ifdef LEASES
        run T1();
#endif
#ifdef RESERVE
        run T2();
#endif
        run T3();
        run Observer()
    }
    _nr_pr == 1;
    assert(number + counter[0] / 2 + counter[1] / 2 + counter[2] / 2 == effects) /* V3 */
}
