/* SPDX-License-Identifier: MIT */
/*
 * The stale check of an admission that was given an expected state version.
 *
 * Stands for: the last step of such an admission, which plans, scopes and decisions will have:
 * after its claims, or after a refusal was found, wait until each counter is even, then compare the
 * state version with the expected one; if they differ, give everything back and answer "stale". The
 * single actions of src/transition/ expect no version and have no such step. The other side is
 * tn__count_begin() to tn__count_end() of a lifetime operation, and tn__removal_take().
 *
 * A plan wants value a removed and expects version 0. Beside it a thread, by KIND,
 *  0 ends the only lease of a, which version 0 shows;
 *  1 acquires a, which is free in version 0; a claimed value refuses it;
 *  2 makes an operation that fails and counts nothing.
 *
 * Holds
 *  T1 KIND 0: the plan is refused as in use, or stale: it never removes what version 0 shows
 *     leased.
 *  T2 KIND 1: the plan removes, or is stale: "in use" contradicts an unmoved version 0.
 *  T3 KIND 2: the plan removes: nothing has moved.
 *  T4 the plan ends: a counter does not stay odd.
 *
 * Runs (read by run.sh)
 *   holds  release_beside               -DKIND=0
 *   holds  acquire_beside               -DKIND=1
 *   holds  failure_beside               -DKIND=2
 *   fails  compared_first    assertion  -DKIND=0 -DCOMPARED_FIRST
 *   fails  odd_is_old        assertion  -DKIND=1 -DODD_IS_OLD
 *   fails  odd_is_new        assertion  -DKIND=2 -DODD_IS_NEW
 *   fails  refusal_unchecked assertion  -DKIND=1 -DREFUSAL_UNCHECKED
 */
mtype = { NONE, REMOVED, IN_USE, STALE };

byte counter;
bit leased = (KIND == 0), taken;
mtype result = NONE;

proctype Lifetime() {
    byte old, effects;
    old = counter;
    counter = old + 1;
#if KIND == 0
    atomic { leased = 0; effects = 1 };
#elif KIND == 1
    atomic {
        if
        :: taken
        :: else -> leased = 1; effects = 1
        fi
    };
#endif
    counter = old + 2 * effects
}

inline compare() {
#ifdef ODD_IS_NEW
    moved = (counter + 1) / 2 != 0
#else
#ifndef ODD_IS_OLD
    (counter & 1) == 0;
#endif
    moved = counter / 2 != 0
#endif
}

proctype Plan() {
    bit in_use, moved;
#ifdef COMPARED_FIRST
    compare();
#endif
    atomic {
        in_use = leased;
        taken = !leased
    };
#ifndef COMPARED_FIRST
#ifdef REFUSAL_UNCHECKED
    if
    :: !in_use -> compare()
    :: else
    fi;
#else
    compare();
#endif
#endif
    if
    :: moved -> taken = 0; result = STALE
    :: !moved && in_use -> result = IN_USE
    :: !moved && !in_use -> result = REMOVED
    fi;
#if KIND == 0
    assert(result != REMOVED) /* T1 */
#elif KIND == 1
    assert(result != IN_USE) /* T2 */
#else
    assert(result == REMOVED) /* T3 */
#endif
}

init { atomic { run Lifetime(); run Plan() } }
