/* SPDX-License-Identifier: MIT */
/*
 * A section entered by the thread's own word against a grace period.
 *
 * Stands for: tn__rcu_enter(), tn__rcu_leave(), tn__rcu_wake() (base/rcu.h); what liburcu's
 * synchronize_rcu() does with them.
 *
 * A reader has two sections in which it loads a pointer and looks at what it points to. A writer points
 * elsewhere, waits for a grace period, and frees. The writer's membarriers make the reader's steps
 * happen in the order of its program, as far as the compiler has kept it: each mutant is a step that one of
 * the three compiler fences keeps in its place. Left out: more than one grace period, nested sections,
 * the loading of the phase apart from the storing of the word (liburcu's part).
 *
 * Holds
 *  G1 what a reader looks at in a section is not freed.
 *  G2 the grace period ends.
 *
 * Runs (read by run.sh)
 *   holds  section
 *   fails  pointer_first   assertion  -DPOINTER_FIRST
 *   fails  word_early      assertion  -DWORD_EARLY
 *   fails  look_early      stuck      -DLOOK_EARLY
 */
byte pointer, word, phase = 1;
bit freed[2], waits;

#define IN_OLD_SECTION (word != 0 && word != phase)

proctype Reader() {
    byte seen, round;
    bit look;
    do
    :: round < 2 ->
        round++;
#ifdef POINTER_FIRST
        seen = pointer;
#endif
        word = phase;
#ifndef POINTER_FIRST
        seen = pointer;
#endif
#ifdef WORD_EARLY
        word = 0;
#endif
        assert(!freed[seen]); /* G1 */
#ifdef LOOK_EARLY
        look = waits;
#endif
        word = 0;
#ifndef LOOK_EARLY
        look = waits;
#endif
        if
        :: look -> waits = 0 /* tn__rcu_wake() */
        :: else
        fi
    :: else -> break
    od
}

proctype Writer() {
    pointer = 1;
    phase = 2;
    do
    :: IN_OLD_SECTION ->
        waits = 1;
        if
        :: IN_OLD_SECTION -> !waits /* G2 */
        :: else -> waits = 0
        fi
    :: else -> break
    od;
    freed[0] = 1
}

init {
    run Reader();
    run Writer()
}
