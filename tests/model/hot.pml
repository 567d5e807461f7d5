/* SPDX-License-Identifier: MIT */
/*
 * Several leases and reservations in one step.
 *
 * Stands for: take(), show_all(), show_lease(), show_reservation(), all_live(), charge_all(),
 * commit(), activate(), give_up(), end_all() (lifetime/hot.c); where that gives up, hit(),
 * acquire_all(), reserve_all(), undo() (controller/enter.c) over commit() and states()
 * (lifetime/acquire.c), charge() and activate() (reserve.c). Against it tn__removal_take(),
 * tn__decision_settle() and tn__removal_commit() (removal.c), tn__life_close() (close.c), and a
 * reserve by somebody else (reserve.c, placement/ledger.c).
 *
 * Values a (1) and b (2). A use enters ROUNDS times: a lease of a, a lease of b, and with RES
 * reservations of a byte at each of RES locations, whose budget is a byte; then it ends them, last
 * first. Each has a record of its own. Stores go through a store buffer, which empties at any time,
 * at a read-modify-write (so at a charge), at the end of a section, and at a heavy fence. A plan
 * removes WANT; CLOSE closes the manager instead; COMPETE reserves the byte at the last location.
 *
 * Holds
 *  L1 storage is not freed while a lease pins it.
 *  L2 a use has all of its leases and reservations, or none when it is refused.
 *  B1 no location holds more than its budget; what is refused gives its bytes back, and in the end
 *     the charge is that of the reservations that are.
 *  R1 a plan or a close is refused only if something it speaks of was lent, or reserved, in its
 *     call.
 *  R2 a use is refused only if a value was gone or taken, bytes were short, or the manager was
 *     closing at some moment of it; a use and a plan never both lose for each other's sake alone.
 *  C1 nothing is granted by a closed manager.
 *  L3 everybody ends, a use without waiting for anybody.
 *
 * Not covered: the counter (snapshot.pml); guards (guard.pml); CUDA; more than one use.
 *
 * Runs (read by run.sh)
 *   holds  bundle                          -DROUNDS=2 -DRES=1 -DWANT=3
 *   holds  one_of_two                      -DROUNDS=2 -DRES=0 -DWANT=2
 *   holds  two_plans                       -DRES=0 -DWANT=1 -DWANT_TOO=2
 *   holds  compete                         -DRES=2 -DWANT=2 -DCOMPETE
 *   holds  close                           -DROUNDS=2 -DRES=1 -DCLOSE
 *   holds  close_and_compete               -DRES=1 -DCLOSE -DCOMPETE
 *   deep   two_plans_two_rounds            -DROUNDS=2 -DRES=1 -DWANT=1 -DWANT_TOO=2
 *   deep   close_two_rounds                -DROUNDS=2 -DRES=2 -DCLOSE -DCOMPETE
 *   fails  no_heavy_fence       assertion  -DRES=0 -DWANT=3 -DNO_HEAVY_FENCE
 *   fails  states_first         assertion  -DRES=0 -DWANT=3 -DSTATES_FIRST
 *   fails  one_after_the_other  assertion  -DRES=0 -DWANT=2 -DONE_AFTER_THE_OTHER
 *   fails  states_ignored       assertion  -DRES=0 -DWANT=2 -DSTATES_IGNORED
 *   fails  active_before_word   assertion  -DRES=1 -DCLOSE -DACTIVE_BEFORE_WORD
 *   fails  word_first           assertion  -DRES=0 -DCLOSE -DWORD_FIRST
 *   fails  bytes_kept           assertion  -DRES=1 -DCLOSE -DBYTES_KEPT
 *   fails  first_bytes_kept     assertion  -DRES=2 -DWANT=2 -DCOMPETE -DFIRST_BYTES_KEPT
 *   fails  added_then_undone    assertion  -DRES=1 -DWANT=2 -DCOMPETE -DADDED_THEN_UNDONE
 *   fails  undo_forgets         assertion  -DRES=1 -DWANT=2 -DCOMPETE -DUNDO_FORGETS
 *   fails  bytes_before_record  assertion  -DRES=1 -DWANT=2 -DCOMPETE -DBYTES_BEFORE_RECORD
 */
#ifndef ROUNDS
#define ROUNDS 1
#endif
#ifndef WANT_TOO
#define WANT_TOO 0
#endif
#define BUDGET 1

#define FREE 0
#define ACQUIRING 1
#define ACTIVE 2

#define LIVE 0
#define GONE 255
#define OPEN 0
#define CLOSED 255

#define TRYING 0
#define TAKEN 1
#define WITHDRAWN 2
#define ABORTED 3
#define GRANTED 4
#define FAILED 5

/* 0, 1: the words of the leases of a and b; 2, 3: their pins; 4, 5: those of the reservations */
byte memory[6];
byte other;            /* the word of the competitor's record */
byte state[2];         /* of a and b */
byte manager = OPEN;   /* or a descriptor's number, or CLOSED */
byte decision[10];
byte descriptors;
byte version = 3, freed, claims;
byte total[2];         /* of the locations */
chan buffer = [6] of { byte, byte }; /* 0 to 5: memory; 10 + n: a decision */

/* What really is. */
byte lent;             /* values */
byte held[2];          /* bytes of reservations that were granted and have not ended */
byte own;              /* of these, the use's, at all locations */
bit calling[2], was_lent[2];
bit closed, taken_some, competed;
bit over;              /* the use */

#define MASK(p) (p -> WANT_TOO : WANT)
#ifdef CLOSE
#define WANT 0
#endif
#define OPENED (lent || held[0] || held[1])

inline apply() {
    if
    :: where < 10 -> memory[where] = what
    :: else -> decision[where - 10] = what
    fi
}

inline empty_buffer() {
    do
    :: buffer?where,what -> apply()
    :: empty(buffer) -> break
    od;
    where = 0; what = 0
}

proctype Memory() {
    byte where, what;
end:
    do
    :: atomic { buffer?where,what -> apply(); where = 0; what = 0 }
    od
}

#define STORE(where, what) buffer!where,what

inline note() {
#ifdef CLOSE
    was_lent[0] = was_lent[0] || (calling[0] && OPENED)
#else
    was_lent[0] = was_lent[0] || (calling[0] && (lent & MASK(0)));
    was_lent[1] = was_lent[1] || (calling[1] && (lent & MASK(1)))
#endif
}

/* Inside an atomic step. */
inline lend(mask) {
    assert((freed & (mask)) == 0); /* L1 */
    assert(!closed); /* C1 */
    lent = lent | (mask);
    note()
}

inline hold(at) {
    assert(!closed); /* C1 */
    held[at]++;
    assert(held[at] <= BUDGET); /* B1 */
    note()
}

/* ---- Bytes ---- */

/* By anybody; `r`: whether they fit. A compare-and-swap empties the buffer. */
inline charge(at, r) {
#ifdef ADDED_THEN_UNDONE
    total[at]++;
    assert(total[at] <= BUDGET); /* B1 */
    if
    :: total[at] > BUDGET -> total[at]--; r = 0
    :: else -> r = 1
    fi
#else
    d_step {
        r = (total[at] < BUDGET);
        total[at] = total[at] + r
    }
#endif
}

inline uncharge(at) { total[at]-- }

/* ---- The hot way ---- */

inline show_all() {
#if RES > 0
    STORE(4, ACQUIRING);
#endif
#if RES > 1
    STORE(5, ACQUIRING);
#endif
    STORE(0, ACQUIRING);
    if
    :: version & 1 -> STORE(2, 1)
    :: else -> ok = 0
    fi;
    if
    :: ok ->
        STORE(1, ACQUIRING);
        if
        :: version & 2 -> STORE(3, 1)
        :: else -> ok = 0
        fi
    :: else
    fi
}

inline all_live() {
    if
    :: ok -> ok = (state[0] == LIVE)
    :: else
    fi;
    if
    :: ok -> ok = (state[1] == LIVE)
    :: else
    fi
#ifdef STATES_IGNORED
    ;ok = 1
#endif
}

inline charge_all() {
#if RES > 0
    if
    :: ok -> atomic { empty_buffer(); charge(0, ok) }
    :: else
    fi;
#endif
#if RES > 1
    if
    :: ok ->
        atomic { empty_buffer(); charge(1, ok) };
        if
        :: ok
        :: else ->
#ifndef FIRST_BYTES_KEPT
            uncharge(0)
#else
            skip
#endif
        fi
    :: else
    fi;
#endif
    skip
}

inline uncharge_all() {
#ifndef BYTES_KEPT
#if RES > 0
    atomic { empty_buffer(); uncharge(0) };
#endif
#if RES > 1
    atomic { empty_buffer(); uncharge(1) };
#endif
#endif
    skip
}

/* The last load; what is granted is granted by it. */
inline manager_open() {
    if
    :: ok -> atomic {
        ok = (manager == OPEN);
        if
        :: ok ->
            lend(3);
#if RES > 0
            hold(0);
#endif
#if RES > 1
            hold(1);
#endif
            own = RES
        :: else
        fi
    }
        if
        :: ok
        :: else -> uncharge_all()
        fi
    :: else
    fi
}

inline leave_records(what) {
#if RES > 0
    STORE(4, what);
#endif
#if RES > 1
    STORE(5, what);
#endif
    STORE(0, what);
    STORE(1, what)
}

inline take() {
    ok = (manager == OPEN); /* the entry check */
    if
    :: ok ->
#ifdef STATES_FIRST
        all_live();
        show_all();
#elif defined(WORD_FIRST)
        skip; /* the entry check is all */
        show_all();
        all_live();
#elif defined(ONE_AFTER_THE_OTHER)
        /* a is finished before b is shown */
        STORE(0, ACQUIRING);
        STORE(2, 1);
        ok = (state[0] == LIVE);
        if
        :: ok -> atomic { lend(1); STORE(0, ACTIVE) }
        :: else -> STORE(0, FREE)
        fi;
        if
        :: ok ->
            STORE(1, ACQUIRING);
            STORE(3, 1);
            ok = (state[1] == LIVE)
        :: else
        fi;
#else
        show_all();
        all_live();
#endif
        charge_all();
#ifdef WORD_FIRST
        if
        :: ok -> atomic { lend(3) }
        :: else
        fi;
#else
#ifdef ACTIVE_BEFORE_WORD
        if
        :: ok -> STORE(0, ACTIVE)
        :: else
        fi;
#endif
        manager_open();
#endif
        if
        :: ok -> leave_records(ACTIVE); got = 3
        :: else -> leave_records(FREE)
        fi
    :: else
    fi;
    atomic { empty_buffer(); assert(ok || (lent == 0 && own == 0)) } /* L2 */
}

/* ---- The slow way: one after the other; it aborts what it meets ---- */

inline meet(d, mine) {
    atomic {
        empty_buffer();
        if
        :: decision[d] == TRYING -> decision[d] = ABORTED; mine = d
        :: decision[d] == TAKEN -> ok = 0
        :: else
        fi
    }
}

inline outcome(d, granted) {
    if
    :: d -> STORE(10 + d, (granted -> GRANTED : FAILED)); d = 0
    :: else
    fi
}

/* The manager word, and what is granted. */
inline grant(mask, at) {
    if
    :: mask -> lend(mask)
    :: else -> hold(at); own++
    fi
}

inline commit(mask, at) {
    if
    :: ok ->
        atomic {
            seen = manager;
            if
            :: seen == OPEN -> grant(mask, at)
            :: seen == CLOSED -> ok = 0
            :: else
            fi
        };
        if
        :: ok && seen != OPEN ->
            meet(seen, mine_too);
            if
            :: ok -> atomic { grant(mask, at) }
            :: else
            fi
        :: else
        fi;
        seen = 0
    :: else
    fi
}

inline acquire(v) {
    STORE(v, ACQUIRING);
    do
    :: looks == 2 || !(version & (1 << v)) -> ok = 0; break
    :: else ->
        looks++;
        STORE(2 + v, 1);
        seen = state[v];
        if
        :: seen == LIVE -> break
        :: seen == GONE
        :: else -> meet(seen, mine); break
        fi
    od;
    atomic { seen = 0; looks = 0 };
    commit((1 << v), 0);
    if
    :: ok -> STORE(v, ACTIVE)
    :: else -> STORE(v, FREE)
    fi;
    outcome(mine, ok);
    outcome(mine_too, ok);
    atomic { empty_buffer(); got = got + ok }
}

inline reserve(at) {
    atomic { empty_buffer(); charge(at, ok) };
    if
    :: ok ->
        STORE(4 + at, ACQUIRING);
        commit(0, at);
        if
        :: ok -> STORE(4 + at, ACTIVE)
        :: else -> STORE(4 + at, FREE)
        fi;
        outcome(mine_too, ok);
        atomic { empty_buffer(); reserved = reserved + ok };
        if
        :: !ok -> uncharge(at)
        :: else
        fi
    :: else
    fi
}

/* ---- Ends ---- */

inline end_lease(v) {
    atomic {
        assert(memory[v] == ACTIVE && (freed & (1 << v)) == 0); /* L1 */
        memory[v] = FREE;
        lent = lent & ~(1 << v)
    }
}

inline end_reservation(at) {
#ifdef BYTES_BEFORE_RECORD
    uncharge(at);
    atomic { assert(memory[4 + at] == ACTIVE); memory[4 + at] = FREE; held[at]--; own-- }
#else
    atomic { assert(memory[4 + at] == ACTIVE); memory[4 + at] = FREE; held[at]--; own-- };
    uncharge(at)
#endif
}

/* `got`: leases, 3 both; `reserved`. Leases first, last first. */
inline end_all() {
    if
    :: got > 1 -> end_lease(1)
    :: else
    fi;
    if
    :: got > 0 -> end_lease(0)
    :: else
    fi;
#if RES > 1
    if
    :: reserved > 1 -> end_reservation(1)
    :: else
    fi;
#endif
#if RES > 0
    if
    :: reserved > 0 -> end_reservation(0)
    :: else
    fi;
#endif
    d_step { got = 0; reserved = 0 }
}

proctype Use() {
    byte where, what, n, seen, got, reserved, looks, mine, mine_too;
    bit ok;
    do
    :: n < ROUNDS ->
        n++;
        take();
        if
        :: ok -> reserved = RES; goto entered
        :: else
        fi;
        ok = (manager != CLOSED);
        if
        :: ok -> acquire(0)
        :: else
        fi;
        if
        :: ok -> acquire(1)
        :: else
        fi;
#if RES > 0
        if
        :: ok -> reserve(0)
        :: else
        fi;
#endif
#if RES > 1
        if
        :: ok -> reserve(1)
        :: else
        fi;
#endif
        if
        :: ok -> goto entered
        :: else
        fi;
#ifndef UNDO_FORGETS
        end_all();
#endif
        atomic {
            assert(taken_some || competed || closed); /* R2 */
            assert(lent == 0 && own == 0) /* L2 */
        };
        goto next;
entered:
        atomic { assert(lent == 3 && own == RES) }; /* L2 */
        end_all();
next:
        ok = 0
    :: else -> break
    od;
    over = 1
}

#ifdef COMPETE
/* A reserve at the last location, on the slow way; its own buffer would be that of reserve(). */
proctype Competitor() {
    bit ok;
    byte mine;
    atomic { charge(RES - 1, ok); competed = ok };
    if
    :: ok ->
        other = ACQUIRING;
        atomic {
            if
            :: manager == CLOSED -> ok = 0
            :: manager == OPEN
            :: else ->
                if
                :: decision[manager] == TRYING -> decision[manager] = ABORTED; mine = manager
                :: decision[manager] == TAKEN -> ok = 0
                :: else
                fi
            fi;
            if
            :: ok -> hold(RES - 1)
            :: else
            fi
        };
        if
        :: ok -> other = ACTIVE
        :: else -> other = FREE
        fi;
        if
        :: mine -> decision[mine] = (ok -> GRANTED : FAILED)
        :: else
        fi;
        if
        :: ok -> atomic { other = FREE; held[RES - 1]-- }
        :: else
        fi;
        uncharge(RES - 1)
    :: else
    fi
}
#endif

/* ---- A plan, or a close: every record counts then ---- */

#ifdef CLOSE
#define COUNTS(record) 1
#define SHOWN_BY_OTHER other
#else
#define COUNTS(record) ((mask & (1 << (record))) && memory[2 + record])
#define SHOWN_BY_OTHER FREE
#endif

inline look_at(word, counts) {
    d_step {
        if
        :: (word) == ACTIVE && (counts) -> in_use = 1
        :: (word) == ACQUIRING && (counts) -> acquiring = 1
        :: else
        fi
    }
}

inline scan() {
    d_step { in_use = 0; acquiring = 0 };
    look_at(memory[0], COUNTS(0));
    look_at(memory[1], COUNTS(1));
#ifdef CLOSE
#if RES > 0
    look_at(memory[4], 1);
#endif
#if RES > 1
    look_at(memory[5], 1);
#endif
    look_at(other, 1)
#endif
}

#define SOMEBODY_ACQUIRES                                                                          \
    (memory[0] == ACQUIRING || memory[1] == ACQUIRING || memory[4] == ACQUIRING ||                 \
     memory[5] == ACQUIRING || SHOWN_BY_OTHER == ACQUIRING)

inline set_words(value, open) {
#ifdef CLOSE
    manager = open;
#else
    if
    :: mask & 1 -> state[0] = value
    :: else
    fi;
    if
    :: mask & 2 -> state[1] = value
    :: else
    fi
#endif
}

proctype Plan(bit p) {
    byte mask = MASK(p), where, what, d;
    bit in_use, acquiring;
    atomic {
        (claims & mask) == 0;
        claims = claims | mask;
        calling[p] = 1;
        note()
    };
    scan();
    if
    :: in_use -> goto refused
    :: else
    fi;
again:
    atomic { assert(descriptors < 9); descriptors++; d = descriptors };
    set_words(d, d);
#ifndef NO_HEAVY_FENCE
    d_step {
        do
        :: buffer?where,what -> apply()
        :: empty(buffer) -> break
        od;
        where = 0; what = 0
    };
#endif
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
        :: decision[d] == TRYING ->
            decision[d] = (in_use -> WITHDRAWN : TAKEN);
            taken_some = taken_some || !in_use
        :: else
        fi
    };
    decision[d] != ABORTED; /* its reader owes the outcome */
    if
    :: decision[d] == TAKEN -> goto taken
    :: decision[d] == FAILED && !in_use -> set_words(LIVE, OPEN); goto again
    :: else
    fi;
    set_words(LIVE, OPEN);
refused:
    atomic { assert(was_lent[p]); goto done }; /* R1 */
taken:
#ifdef CLOSE
    atomic { manager = CLOSED; closed = 1; assert(!OPENED) }; /* C1 */
#else
    set_words(GONE, OPEN);
    version = version & ~mask;
    atomic { assert((lent & mask) == 0); freed = freed | mask }; /* L1 */
#endif
done:
    atomic { calling[p] = 0; claims = claims & ~mask }
}

init {
    atomic {
        run Memory();
        run Use();
#ifdef COMPETE
        run Competitor();
#endif
        run Plan(0);
#if WANT_TOO
        run Plan(1)
#endif
    }
    timeout;
    assert(over); /* L3 */
    assert(total[0] == 0 && total[1] == 0 && held[0] == 0 && held[1] == 0) /* B1 */
}
