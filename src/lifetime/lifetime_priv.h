/* SPDX-License-Identifier: MIT */
/*
 * Types shared by the files of this folder only.
 */
#ifndef TENURE_LIFETIME_PRIV_H
#define TENURE_LIFETIME_PRIV_H

#include <pthread.h>
#include <semaphore.h>

#include "base/queue.h"
#include "lifetime/lifetime_internal.h"

/* ---- Record word: {generation, state} --------------------------------------------------- */

enum tn__record_state {
    TN__FREE = 0,
    TN__ACQUIRING = 1, /* left only by the thread that entered it */
    TN__ACTIVE = 2,
    TN__RELEASING = 3, /* the same */
    TN__PENDING = 4,
    TN__DONE = 5,    /* over, but still queued: only the consumer makes it FREE */
    TN__DETACHED = 6 /* left by a forced close */
};

static inline uint64_t tn__word(uint64_t generation, enum tn__record_state state) {
    return (generation << 3) | (uint64_t)state;
}

static inline enum tn__record_state tn__word_state(uint64_t word) {
    return (enum tn__record_state)(word & 7);
}

static inline uint64_t tn__word_generation(uint64_t word) { return word >> 3; }

enum tn__record_kind { TN__KIND_LEASE = 1, TN__KIND_HOLD = 2, TN__KIND_RESERVATION = 3 };

/* Kind and location in one word, so that a scan reads them together. */
static inline uint64_t tn__what(enum tn__record_kind kind, tn_location at) {
    return ((uint64_t)kind << 40) | ((uint64_t)at.kind << 32) | at.index;
}

static inline enum tn__record_kind tn__what_kind(uint64_t what) {
    return (enum tn__record_kind)(what >> 40);
}

static inline tn_location tn__what_location(uint64_t what) {
    tn_location at = {(uint32_t)(what >> 32) & 0xff, (uint32_t)what};
    return at;
}

/* ---- Garbage: freed after a grace period ------------------------------------------------ */

typedef struct tn__garbage {
    struct tn__garbage *next;
    void (*free)(struct tn__garbage *garbage);
} tn__garbage;

/* ---- Parts of a record ------------------------------------------------------------------ */

/* One pinned materialization. All fields are atomic because scans read records that are being
 * rewritten; the words around the reading decide whether it counts. `mat` is compared by scans,
 * followed by nobody. */
typedef struct tn__pin {
    tn__mat *_Atomic mat;
    const void *_Atomic data; /* for lookups */
    _Atomic uint64_t index;
    const tn_value_type *_Atomic type;
    tn__removal *aborted; /* owner only: the plan this acquire has aborted */
} tn__pin;

/* Grows by replacement; old arrays stay until the manager is destroyed, because a scan may still
 * read them. */
typedef struct tn__pins {
    struct tn__pins *older;
    uint32_t room;
    tn__pin pin[];
} tn__pins;

/* An event of a pool. Memory is type-stable until the manager is destroyed. */
typedef struct tn__pool tn__pool;
struct tn__event {
    tn_event native;
    tn__pool *home;
    tn__event *next;     /* in a free list */
    tn__event *all_next; /* pool's list of all */
};

/* One context's events of one slot. */
struct tn__pool {
    tn__pool *next;
    uint32_t device;
    uint64_t context;
    tn__event *local; /* owner only */
    /* pushed by anyone (release), all taken by the owner (acquire) */
    tn__event *_Atomic returned;
    tn__event *all; /* owner only */
};

typedef struct tn__events {
    struct tn__events *older;
    uint32_t room;
    tn__event *_Atomic event[];
} tn__events;

/* A registered consumer stream. The first one is inside the record; further ones are freed after
 * a grace period, as another thread may be walking the list to add one. */
typedef struct tn__stream_node {
    tn__garbage garbage;
    tn_stream _Atomic stream;
    struct tn__stream_node *_Atomic next;
    _Atomic uint64_t context;
    _Atomic uint32_t device;
} tn__stream_node;

typedef struct tn__slot tn__slot;

#define TN__LABEL_WORDS 32u

typedef struct tn__record {
    tn__pair pair;  /* low: the word (see src/README.md); high: bytes of a reservation */
    tn__slot *slot; /* const while the block belongs to a manager */
    _Atomic uint64_t what;
    _Atomic uint32_t pin_count;
    _Atomic uint32_t event_count;
    tn__pins *_Atomic pins;
    tn__events *_Atomic events;
    tn__pair streams; /* low: generation while open, 0 when closed; high: tn__stream_node * */
    tn__stream_node first;
    _Atomic uint64_t open_generation; /* M146: a failed wait left the object open */
    _Atomic uint64_t admitted;        /* reservation: admission order, then tie */
    _Atomic uint64_t tie;
    _Atomic uint64_t *_Atomic label; /* reservation: TN__LABEL_WORDS words of text, kept */
    tn__queue_node queued;
    struct tn__record *next; /* free list, or the consumer's list */
} tn__record;

#define TN__BLOCK_RECORDS 32u

/* Records come in blocks from a process-wide pool and go back to it; never unmapped. */
typedef struct tn__block {
    struct tn__block *next; /* const while in use: newest first */
    _Atomic uint32_t used;  /* high-water mark: records above it were never used by this manager */
    tn__record records[TN__BLOCK_RECORDS];
} tn__block;

/* The records of one thread in one manager. */
struct tn__slot {
    _Atomic uint64_t counter; /* written by the owner only; odd while it makes effects visible */
    char pad[TN__CACHE_LINE - sizeof(uint64_t)];
    tn__life *life;
    tn__gate *gate;         /* the life's */
    uint64_t manager;       /* its id */
    tn__slot *next;         /* life's list; const after it is pushed */
    _Atomic uint32_t taken; /* 1: a thread owns it (see [slot-take]) */
    /* newest first; written by the owner (release), read by scans (acquire) */
    tn__block *_Atomic blocks;
    tn__record *free_local;          /* owner only */
    tn__record *_Atomic free_remote; /* pushed by anyone, all taken by the owner */
    tn__pool *pools;                 /* owner only */
    _Atomic uint64_t looks;          /* written by the owner: acquires that had to look up twice */
    uint64_t ties;                   /* owner only: admissions by this slot */
    /* owner only: locations seen tracked, by ledger position */
    uint64_t tracked[(TN__LEDGER_COUNT + 63) / 64];
};

/* ---- The manager's lifetimes ------------------------------------------------------------ */

/* Values of the manager word; anything else is the address of the descriptor of a closing plan. */
#define TN__MANAGER_FORKED ((uintptr_t)0)
#define TN__MANAGER_OPEN ((uintptr_t)1)
#define TN__MANAGER_GUARDED ((uintptr_t)2)
#define TN__MANAGER_CLOSED ((uintptr_t)3)

struct tn__life {
    tn__gate *gate;
    uint64_t manager;
    tn__store *store;
    tn_driver *driver;
    bool manual;
    void (*diagnostic)(void *context, const tn_diagnostic *diagnostic);
    void *diagnostic_context;
    tn__life *registry_next; /* process-wide list, under its lock */

    tn__mutex slots_lock;    /* rank SLOTS: taking over and adding slots */
    tn__slot *_Atomic slots; /* pushed under slots_lock (release), read by scans (acquire) */

    tn__mutex reap_lock; /* rank REAP: one consumer at a time */
    tn__queue queue;     /* pending leases, pushed at release */
    tn__record *waiting; /* consumer's list in release order, under reap_lock */
    tn__record **waiting_tail;
    _Atomic uint32_t waiting_some; /* the consumer's list is not empty: a hint, relaxed */

    tn__garbage *_Atomic garbage; /* pushed by anyone, all taken by collectors */

    pthread_t reaper;
    bool reaper_started;
    sem_t wake;
    _Atomic uint32_t asleep; /* see [sleep] */
    _Atomic uint32_t stop;
    /* a stream of an abandoned lease could not be synchronised: its storage is never freed (M148)
     * */
    _Atomic uint32_t waiters; /* releases that wait for their events: see [waiters] */
    bool keep_storage;
};

/* A plan's wish to remove: one decision for all its materializations, or for the manager word.
 * Fresh for each attempt. */
enum tn__decision {
    TN__TRYING = 0,
    TN__TAKEN = 1,
    TN__WITHDRAWN = 2, /* by the plan itself: a protection was seen */
    TN__ABORTED = 3,   /* by a reader, outcome undecided */
    TN__GRANTED = 4,   /* ... which then got its lease */
    TN__FAILED = 5     /* ... which then did not */
};

struct tn__removal {
    tn__garbage garbage;
    _Atomic uint32_t decision;
    /* what follows is the plan's alone */
    size_t count;    /* to be decided on: sorted by address, so that a scan finds them quickly */
    size_t total;    /* with those the plan has made itself */
    tn__mat *mats[]; /* each knows its place (mat->place); NULL: gone */
};

/* ---- Between the files ------------------------------------------------------------------ */

/* life.c */
tn__slot *tn__life_own_slot(tn__life *life, tn__thread *thread); /* NULL: no memory */
/* The same without making one; may be called in a section. NULL: there is none yet. */
tn__slot *tn__life_known_slot(tn__life *life, tn__thread *thread);
/* Make one, if the manager still exists. False: no memory. */
TN_NODISCARD bool tn__slot_make(uint64_t manager, tn__thread *thread);
/* Wait until no call of another thread is inside: sections, releases between their sections,
 * waiting releases, hot-path releases (whose counter is odd). For a destroy. */
void tn__life_wait_idle(tn__life *life);
void tn__life_registry_add(tn__life *life);
void tn__life_registry_remove(tn__life *life);
/* What the manager word says to an operation in a section: TN_OK, REENTRANCY, CLOSED or FORKED,
 * without setting the detail. */
tn_status tn__life_verdict(const tn__life *life, uintptr_t word, bool closed_ok);
TN__COLD tn_status tn__life_refuse(tn_status verdict);
void tn__garbage_push(tn__life *life, tn__garbage *garbage);

/* The slot's counter (L5). Both are relaxed or release stores by the owner. */
static inline uint64_t tn__count_begin(tn__slot *slot) {
    uint64_t c = tn__load_rlx(&slot->counter);
    TN_ASSERT((c & 1) == 0);
    /* [no-order] the deciding store or CAS that follows is a release: whoever sees the effect
     * sees the odd counter. */
    tn__store_rlx(&slot->counter, c + 1);
    return c;
}

static inline void tn__count_end(tn__slot *slot, uint64_t begun, uint64_t effects) {
    /* [count] release. Pairs: acquire in tn__life_counts(). Orders: the effects' stores -> the
     * even counter. Without: a snapshot takes the new count together with the old state and calls
     * it exact. */
    tn__store_rel(&slot->counter, begun + 2 * effects);
}

/* record.c */
tn__block *tn__block_obtain(void);
void tn__block_give_back(tn__block *block);
tn__record *tn__record_obtain(tn__slot *slot); /* FREE, owned by the caller; NULL: no memory */
/* FREE already; own: the calling thread's slot */
void tn__record_recycle(tn__record *record, tn__slot *own);
/* The label as text, padded with zeros: counts only if the record's word stays. */
void tn__record_label(tn__record *record, char label[TN__LABEL_BYTES]);
tn__pins *tn__record_pins(tn__record *record, size_t count);
tn__events *tn__record_events(tn__record *record, size_t count);
void tn__record_forget(tn__record *record); /* frees arrays; at destroy */

static inline uint64_t tn__record_word(tn__record *record) {
    /* [word] acquire. Pairs: release stores and CASes of the word. Orders: word -> the record's
     * fields. Without: fields of an earlier life of the record are taken for those of this one.
     * */
    return tn__load_acq(&record->pair.low);
}

/* Before a record's next life is written into it: once for each record that is taken. */
static inline void tn__record_begin(void) {
    /* [word] release fence. Pairs: acquire fences in scans. Orders: the end of the last life, and the
     * counter that was odd then -> every field of the next one, ACQUIRING included. A release store
     * of each is not enough, because what follows the first is not ordered by it. Without: a scan
     * takes a field of the next life for one of the last; an exact snapshot has a count of before an
     * end that it has seen. */
    tn__fence_rel();
}

/* events.c */
void tn__pools_destroy(tn__life *life, tn__slot *slot);

/* streams.c */
void tn__streams_open(tn__record *record, uint64_t generation, tn_stream stream,
                      const tn_stream_info *info);
tn__stream_node *tn__streams_close(tn__record *record); /* registration order */
void tn__streams_reopen(tn__record *record, uint64_t generation, tn__stream_node *nodes);
/* At destroy: whatever is still listed (a lease that a forced close detached). */
void tn__streams_forget(tn__record *record);
void tn__streams_retire(tn__life *life, tn__record *record, tn__stream_node *nodes);

/* reap.c */
/* Query all events of a pending record. False with *failed: a query failed (detail set). */
bool tn__pending_done(tn__life *life, tn__record *record, uint64_t word, bool *failed);
/* {g, PENDING} -> {g, DONE}, counted in the caller's slot if this call decides it. */
bool tn__pending_complete(tn__slot *own, tn__record *record, uint64_t word);
/* The consumer's last step: events back, FREE, recycled. */
void tn__pending_consume(tn__record *record, tn__slot *own);

/* reaper.c: the thread around the step */
TN_NODISCARD tn_status tn__reaper_start(tn__life *life);
void tn__reaper_stop(tn__life *life);

/* scan.c */
typedef enum tn__scan_step { TN__SCAN_ON, TN__SCAN_STOP } tn__scan_step;
/* Every record that was ever used; `word` was read before and is read again by the visitor's own
 * means. */
void tn__scan(tn__life *life,
              tn__scan_step (*visit)(void *context, tn__record *record, uint64_t word),
              void *context);

/* Wait until no record is RELEASING (a release on another thread is recording its events). No
 * section, no lock. */
void tn__scan_wait_releasing(tn__life *life);
/* Copy of a record's pins if its word is still `word` afterwards; the count, or SIZE_MAX if it
 * changed. */
typedef struct tn__pin_view {
    tn__pins *pins;
    size_t count;
} tn__pin_view;
static inline tn__pin_view tn__pin_view_of(tn__record *record) {
    /* [arrays] */
    tn__pin_view view = {tn__load_acq(&record->pins), tn__load_rlx(&record->pin_count)};
    if (!view.pins)
        view.count = 0;
    else if (view.count > view.pins->room)
        view.count = view.pins->room;
    return view;
}

/* reap.c: as tn__life_help(), for those that a removal names */
TN_NODISCARD tn_status tn__removal_help(tn__life *life, const tn__removal *removal,
                                        bool *out_protected);
/* removal.c: the decision word, for removals and for close */
TN_NODISCARD tn__removal *tn__removal_new(tn__mat *const *mats, size_t count, size_t later);
/* Whether it is one of those to be decided on. */
bool tn__removal_names(const tn__removal *removal, const tn__mat *mat);
/* A reader's part: false: TAKEN, the reader fails. True: it may go on; *mine: this call aborted
 * the plan and owes it an outcome. */
bool tn__decision_meet(tn__removal *removal, bool *mine);
void tn__decision_outcome(tn__removal *removal, bool granted);
/* A writer's part after the heavy fence: 1 TAKEN; 0 a protection stands (or was granted): give
 * up; -1: aborted by a reader that then failed: try anew. `mats` NULL: any record counts (close).
 * */
int tn__decision_settle(tn__life *life, tn__removal *removal);
/* The same where nothing may be taken: the fence failed. */
void tn__decision_withdraw(tn__removal *removal);

#endif
