/* SPDX-License-Identifier: MIT */
/*
 * The stale check of an admission, and of a decision.
 *
 * Stands for: check_stale(), check_same(), turn(), tn__course_admit(), tn__course_leave()
 * (transition/admit.c); the early check of tn__course_run() (course.c); settled(),
 * tn__state_version_settled() (lifetime/version.c); decide_once() (controller/decide.c). The other
 * side is tn__count_begin() to tn__count_end() of a lifetime operation, tn__removal_help() and
 * tn__removal_take(), and tn__store_publish().
 *
 * A plan wants value a removed and expects version 0. It looks (a use that it sees is a refusal),
 * claims, takes (a use met there is looked at again, up to TRIES times), and last, after a refusal
 * too, waits for each counter to be even, one after the other, reads the placement number, and
 * compares; if they differ it gives everything back and is stale. Beside it two threads, each with
 * its slot; what each does is a kind:
 *  0 nothing;
 *  1 ends a lease of a, which version 0 shows;
 *  2 acquires a, which a claimed value refuses;
 *  3 makes an operation that fails and counts nothing;
 *  4 publishes for another value.
 * With PENDING version 0 shows a pending lease of a, whose events are complete: the plan helps it,
 * or the reaper is faster. With DECIDE the plan is a decision: it settles, pins, scans, and settles
 * again; what it found is that of the version it then has.
 *
 * Holds
 *  T1 an admission that is not stale is what version 0 says: a is removed if it is free there, and
 *     in use if it is leased.
 *  T2 it is stale only if something has moved.
 *  T3 it ends: a counter does not stay odd.
 *  T4 what is stale or in use has given back what it took.
 *  T5 a decision that is not stale shows the state that as many effects as its version says made.
 *
 * Not covered: the claims (flow.pml, plans.pml); how a removal and an acquire meet (lease.pml); an
 * entry bound to the placement number (use.pml).
 *
 * Runs (read by run.sh)
 *   holds  release_and_acquire          -DA=1 -DB=2
 *   holds  two_acquires                 -DA=2 -DB=2
 *   holds  publish_and_acquire          -DA=4 -DB=2
 *   holds  failure_and_release          -DA=3 -DB=1
 *   holds  pending_lease                -DPENDING -DA=2
 *   holds  decision                     -DDECIDE -DA=1 -DB=2
 *   holds  decision_beside_publish      -DDECIDE -DA=4 -DB=2
 *   fails  compared_first    assertion  -DA=1 -DCOMPARED_FIRST
 *   fails  early_check_alone assertion  -DA=1 -DB=2 -DEARLY_CHECK_ALONE
 *   fails  odd_is_old        assertion  -DA=2 -DODD_IS_OLD
 *   fails  odd_is_new        assertion  -DA=3 -DODD_IS_NEW
 *   fails  refusal_unchecked assertion  -DA=2 -DREFUSAL_UNCHECKED
 *   fails  own_slot_skipped  assertion  -DPENDING -DA=0 -DOWN_SLOT_SKIPPED
 *   fails  taken_kept        assertion  -DA=1 -DTAKEN_KEPT
 *   fails  decided_while_odd assertion  -DDECIDE -DA=1 -DB=2 -DODD_IS_OLD
 *   fails  decided_once      assertion  -DDECIDE -DA=1 -DB=2 -DDECIDED_ONCE
 */
#ifndef B
#define B 0
#endif
#define TRIES 2

mtype = { NONE, REMOVED, IN_USE, STALE };

byte counter[3]; /* of the threads; 2: of the plan */
byte number;     /* of the placement */
#ifdef PENDING
#define PENDING_IN_0 1
#else
#define PENDING_IN_0 0
#endif
bit leased[2], pending = PENDING_IN_0;
#define LEASES (leased[0] + leased[1] + pending)
#define LEASED_IN_0 (A == 1 || B == 1 || PENDING_IN_0)

bit taken;
mtype result = NONE;

byte effects, truth[4];
#define STATE (number * 8 + leased[0] + 2 * leased[1])
#define EFFECT(step) step; effects++; truth[effects] = STATE

inline begin(slot) { old = counter[slot]; counter[slot] = old + 1 }
inline end(slot, n) { counter[slot] = old + 2 * (n) }

proctype Thread(bit i; byte kind) {
    byte old;
    bit won;
    if
    :: kind == 4 -> d_step { EFFECT(number++) }
    :: kind != 4 ->
        begin(i);
        atomic {
            if
            :: kind == 1 -> EFFECT(leased[i] = 0); won = 1
            :: kind == 2 && !taken -> EFFECT(leased[i] = 1); won = 1
            :: else
            fi
        };
        end(i, won)
    fi
}

/* Whoever finds the events complete. */
inline complete(slot) {
    begin(slot);
    atomic {
        if
        :: pending -> EFFECT(pending = 0); won = 1
        :: else -> won = 0
        fi
    };
    end(slot, won);
    d_step { old = 0; won = 0 }
}

/* Its slot is that of thread B, which does nothing then. */
proctype Reaper() {
    byte old;
    bit won;
    complete(1)
}

inline settled(slot) {
    atomic {
#if !defined(ODD_IS_OLD) && !defined(ODD_IS_NEW)
        (counter[slot] & 1) == 0;
#endif
#ifdef ODD_IS_NEW
        sum = sum + (counter[slot] + 1) / 2
#else
        sum = sum + counter[slot] / 2
#endif
    }
}

inline state_version_settled() {
    sum = 0;
    settled(0);
    settled(1);
#ifndef OWN_SLOT_SKIPPED
    settled(2);
#endif
    sum = sum + number
}

inline check_stale() {
    state_version_settled();
    moved = sum != 0;
    sum = 0
}

/* The same sum, without waiting. */
inline early_check() {
    sum = counter[0] / 2;
    sum = sum + counter[1] / 2;
    sum = sum + counter[2] / 2;
    sum = sum + number;
    moved = sum != 0;
    sum = 0
}

proctype Plan() {
    byte old, sum, tries;
    bit in_use, moved, won;
#ifdef COMPARED_FIRST
    check_stale();
#else
    early_check();
#endif
    if
    :: moved -> goto stale
    :: else
    fi;
    do
    :: tries < TRIES ->
        tries++;
        in_use = LEASES > 0; /* a look */
        if
        :: in_use && pending -> in_use = leased[0] || leased[1] /* its events are asked for */
        :: else
        fi;
        if
        :: in_use -> break
        :: else
        fi;
        if
        :: pending -> complete(2)
        :: else
        fi;
        atomic { in_use = LEASES > 0; taken = !in_use };
        if
        :: taken -> break
        :: else
        fi
    :: else -> break
    od;
#if defined(REFUSAL_UNCHECKED)
    if
    :: !in_use -> check_stale()
    :: else
    fi;
#elif !defined(COMPARED_FIRST) && !defined(EARLY_CHECK_ALONE)
    check_stale();
#endif
stale:
    if
    :: moved ->
        assert(effects > 0); /* T2 */
#ifndef TAKEN_KEPT
        taken = 0;
#endif
        result = STALE
    :: !moved && in_use -> result = IN_USE
    :: !moved && !in_use -> result = REMOVED
    fi;
    assert(result == STALE || (result == IN_USE) == LEASED_IN_0); /* T1 */
    assert(result == REMOVED || !taken) /* T4 */
}

proctype Decision() {
    byte sum, version, pinned, seen;
    state_version_settled();
    version = sum;
    d_step { pinned = number; seen = number * 8 };
    seen = seen + leased[0];
    seen = seen + 2 * leased[1];
#ifndef DECIDED_ONCE
    state_version_settled();
#endif
    if
    :: atomic { sum == version ->
        assert(version <= effects && seen == truth[version] && pinned <= version) } /* T5 */
    :: sum != version -> assert(effects > 0) /* T2 */
    fi
}

init {
    atomic {
        leased[0] = (A == 1);
        leased[1] = (B == 1);
        truth[0] = STATE;
        run Thread(0, A);
#ifdef PENDING
        run Reaper();
#else
        run Thread(1, B);
#endif
#ifdef DECIDE
        run Decision()
#else
        run Plan()
#endif
    }
}
