/* SPDX-License-Identifier: MIT */
/*
 * Pins of a version against its reclaim.
 *
 * Stands for: tn__store_pin(), take(), tn__store_unpin(), tn__store_publish() (placement/store.c);
 * tn__store_note_garbage(), take_garbage(), judge_versions(), judge_retired(), finish()
 * (placement/collect.c).
 *
 * A writer publishes versions 1 and 2. Node 0 is in version 0 only, node 1 in versions 0 and 1,
 * node 2 in version 1 only. Two observers pin the current version, read its nodes, and let go: by
 * the count (a snapshot), or, HAZARD, one of them by a mark of its thread (what a decision may
 * use). The collector works while there is garbage; a node that a pinned version still has is kept
 * by the youngest such version. A grace period waits for one moment outside a section of each
 * observer.
 *
 * Holds
 *  P1 no pinned version is freed, and no node of one.
 *  P2 what an observer pins was current at some moment of its call.
 *  P3 a count that has reached 0 stays 0.
 *  P4 when all is over one version is left: nothing was forgotten.
 *
 * P1 has two guards, and with the count each of them is enough: the collector looks at the pins
 * after the grace period, and nobody counts up from 0. A mark has only the first. So LOOK_FIRST
 * fails by itself with HAZARD, and with NO_ZERO_CHECK without; P3 alone shows NO_ZERO_CHECK.
 *
 * Runs (read by run.sh)
 *   holds  counted
 *   holds  hazard                            -DHAZARD
 *   holds  zero_check_alone                  -DLOOK_FIRST
 *   holds  grace_period_alone                -DNO_ZERO_CHECK -DP3_OFF
 *   fails  look_first             assertion  -DHAZARD -DLOOK_FIRST
 *   fails  look_first_no_zero     assertion  -DLOOK_FIRST -DNO_ZERO_CHECK -DP3_OFF
 *   fails  no_zero_check          assertion  -DNO_ZERO_CHECK
 *   fails  count_outside_section  assertion  -DCOUNT_OUTSIDE_SECTION -DNO_ZERO_CHECK -DP3_OFF
 *   fails  no_mark_at_unpin       assertion  -DNO_MARK_AT_UNPIN
 *   fails  kept_by_nobody         assertion  -DKEPT_BY_NOBODY
 */
#define VERSIONS 3
#define NODES 3

/* Node n is in versions BORN to REPLACED - 1. */
#define BORN(n) (n == 2 -> 1 : 0)
#define REPLACED(n) (n == 0 -> 1 : 2)

/* Where a node is: in the current version; retired; KEPT + the version that keeps it; freed. */
#define IN_CURRENT 0
#define RETIRED 1
#define KEPT 2
#define FREED 255

byte current, oldest;
byte refs[VERSIONS]; /* the current version has one of its own */
bit freed[VERSIONS], marked[VERSIONS];
byte node[NODES];
bit garbage, section[2], writer_over;

#define HAS_FREED_NODE(v)                                                                          \
    ((v == 0 && (node[0] == FREED || node[1] == FREED)) ||                                         \
     (v == 1 && (node[1] == FREED || node[2] == FREED)))

#ifdef P3_OFF
#define ZERO_STAYS
#else
#define ZERO_STAYS assert(refs[v] != 0); /* P3 */
#endif

proctype Observer(bit me) {
    byte v, first;
    bit hazard, got;
#ifdef HAZARD
    hazard = me;
#endif
    section[me] = 1;
    first = current;
again:
    v = current;
#ifdef COUNT_OUTSIDE_SECTION
    section[me] = 0;
#endif
    if
    :: hazard -> marked[v] = 1
    :: else ->
        atomic {
            if
#ifndef NO_ZERO_CHECK
            :: refs[v] == 0 -> goto again
#endif
            :: else -> ZERO_STAYS refs[v]++
            fi
        }
    fi;
    section[me] = 0;
    assert(v >= first); /* P2 */
    assert(!freed[v] && !HAS_FREED_NODE(v)); /* P1: reads it */
    if
    :: hazard -> marked[v] = 0; garbage = 1
    :: else ->
        atomic { refs[v]--; got = refs[v] == 0 };
#ifndef NO_MARK_AT_UNPIN
        if
        :: got -> garbage = 1
        :: else
        fi
#endif
    fi
}

/* Under the writer lock, which the collector takes too. */
proctype Writer() {
    byte old;
    do
    :: current < VERSIONS - 1 ->
        atomic {
            old = current;
            refs[old + 1] = 1;
            if
            :: old == 0 -> node[0] = RETIRED
            :: else -> node[1] = RETIRED; node[2] = RETIRED
            fi;
            current = old + 1;
            old = 0
        };
        atomic { refs[current - 1]--; garbage = 1 }
    :: else -> break
    od;
    writer_over = 1
}

inline grace_period() { section[0] == 0; section[1] == 0 }

#define STAYS(v) (refs[v] != 0 || marked[v])

inline look(v) {
    stays[v] = v >= from && v < to && !freed[v] && STAYS(v)
}

/* Keep a node with the youngest pinned version older than its replacement, or free it. `pinned`:
 * that version + 1, or 0. */
inline judge(n) {
    if
#ifndef KEPT_BY_NOBODY
    :: pinned != 0 && pinned - 1 >= BORN(n) -> node[n] = KEPT + pinned - 1
#endif
    :: else -> node[n] = FREED
    fi
}

inline judge_version(v) {
    if
    :: v < from || v >= to || freed[v]
    :: else ->
        if
        :: stays[v] -> pinned = v + 1
        :: else ->
            freed[v] = 1;
            n = 0;
            do
            :: n < NODES && node[n] == KEPT + v -> judge(n); n++
            :: n < NODES && node[n] != KEPT + v -> n++
            :: else -> break
            od
        fi
    fi
}

/* The nodes that this collector took: those that were replaced before `to`. */
inline judge_retired() {
    n = 0;
    do
    :: n < NODES ->
        if
        :: node[n] == RETIRED && REPLACED(n) <= to ->
            pinned = 0;
            if
            :: stays[0] && REPLACED(n) > 0 -> pinned = 1
            :: else
            fi;
            if
            :: stays[1] && REPLACED(n) > 1 -> pinned = 2
            :: else
            fi;
            judge(n)
        :: else
        fi;
        n++
    :: else -> break
    od
}

/* All versions but the current one are in the list from `oldest`; those that stay are put back. */
proctype Collector() {
    byte from, to, n, pinned;
    bit stays[VERSIONS];
end:
    do
    :: atomic { garbage -> garbage = 0; from = oldest; to = current };
#ifdef LOOK_FIRST
        look(0);
        look(1);
        grace_period();
#else
        grace_period();
        look(0);
        look(1);
#endif
        d_step {
            judge_version(0);
            judge_version(1);
            judge_retired();
            do
            :: oldest < to && freed[oldest] -> oldest++
            :: else -> break
            od;
            from = 0; to = 0; n = 0; pinned = 0; stays[0] = 0; stays[1] = 0
        }
    od
}

init {
    atomic {
        refs[0] = 1;
        run Collector();
        run Writer();
        run Observer(0);
        run Observer(1)
    }
    timeout;
    assert(writer_over && freed[0] && freed[1]); /* P4 */
    assert(node[0] == FREED && node[1] == FREED && node[2] == FREED)
}
