/* SPDX-License-Identifier: MIT */
/*
 * placement: which values exist and where they are resident, as immutable versions; and the byte
 * ledger of each location.
 *
 * Invariants
 *  P1 a published version, and everything reachable from it, never changes, except the state
 *     words of materializations.
 *  P2 versions are totally ordered by their number.
 *  P3 in every version `used` of a location is the sum of the charges of the materializations
 *     there.
 *  P4 a node is in use by exactly the versions born <= number < replaced. It is freed after a
 *     grace period that began after its replacement, if then no pinned version lies between:
 *     first the grace period, then the look at the pins.
 *  B1 total = used + reserved + temporary + claimed never exceeds the budget, at any instant
 *     (never add-then-undo).
 *
 * Who calls: readers (tn__store_current() and lookups) from any thread inside an RCU section or
 * with a pin; the builder, the owner index and tn__store_publish() under store->lock (rank
 * STATE); ledgers from any thread, lock-free; tn__store_collect() without locks.
 */
#ifndef TENURE_PLACEMENT_INTERNAL_H
#define TENURE_PLACEMENT_INTERNAL_H

#include <tenure/manager.h>
#include <tenure/value.h>

#include "base/atomic.h"
#include "base/lockrank.h"
#include "base/rcu.h"
#include "value/value_internal.h"

/* ---- Nodes of versions ------------------------------------------------------------------ */

/* Kinds of node, for freeing. */
enum tn__node_kind { TN__NODE_RADIX, TN__NODE_VALUE, TN__NODE_MAT, TN__NODE_TABLE };

/* Head of everything a version is made of. Only the writer touches it after publication. */
typedef struct tn__node {
    struct tn__node *next; /* builder's lists, then the retired list */
    uint64_t born;         /* number of the first version that has it */
    uint64_t replaced;     /* number of the first version without it; UINT64_MAX while current */
    uint32_t kind;
} tn__node;

/* What a materialization's state word says: one of these, or the address of the tn__removal that
 * wants it (lifetime). */
#define TN__MAT_LIVE ((uintptr_t)0)
#define TN__MAT_GONE ((uintptr_t)1)

/* One materialization: const after publication but for `state`. Freed by P4; its payload goes
 * when it is removed. */
typedef struct tn__mat {
    tn__node node;
    /* written by the plan that removes it (LIVE <-> descriptor -> GONE); read by acquires */
    _Atomic uintptr_t state;
    /* its place in the descriptor that wants it; the claiming plan's alone */
    uint32_t place;
    tn_payload payload; /* owned until the removal is committed */
    uint64_t index;     /* of its value */
    tn_location at;
    uint64_t logical_bytes;
    uint64_t storage_bytes; /* actual, measured */
    uint64_t charged_bytes;
    size_t storage_count; /* of the distinct non-empty allocations: entries of the owner index */
    tn_storage storages[];
} tn__mat;

/* One value. Immutable. */
typedef struct tn__value {
    tn__node node;
    uint64_t index;
    const tn_value_type *type;
    uint64_t logical_bytes;
    uint64_t charge_bytes;
    /* NULL: must-preserve, or discarded; only a plan that claims the handle follows it */
    tn__source *source;
    tn_location source_at; /* kind none without a source */
    uint8_t replicable;
    uint8_t discarded;
    uint16_t mat_count;
    uint8_t reconstructible; /* of its spec, also once discarded (M10) */
    tn__mat *mats[];         /* installation order */
} tn__value;

/* A persistent radix tree, index -> pointer; fan-out 32. An empty one is all zero. */
#define TN__RADIX_BITS 5u
#define TN__RADIX_FAN (1u << TN__RADIX_BITS)

typedef struct tn__radix_node {
    tn__node node;
    void *slots[TN__RADIX_FAN]; /* nodes of the level below, or items at the lowest */
} tn__radix_node;

typedef struct tn__radix {
    tn__radix_node *root;
    uint32_t levels; /* at most 13 */
} tn__radix;

/* For an index that is not deeper than the tree. NULL: absent. Compiled into hot paths. */
static inline void *tn__radix_descend(const tn__radix *r, uint64_t index) {
    void *at = r->root;
    uint32_t shift = r->levels * TN__RADIX_BITS;
    if (tn__unlikely(!at))
        return NULL;
    do { /* a root has at least one level */
        shift -= TN__RADIX_BITS;
        at = ((const tn__radix_node *)at)->slots[(index >> shift) & (TN__RADIX_FAN - 1)];
    } while (at && shift > 0);
    return at;
}

/* One tracked location in one version. */
typedef struct tn__place {
    tn_location at;
    uint64_t used_bytes;
    uint64_t peak_used_bytes;
    uint64_t value_count;
    tn__radix resident; /* value index -> tn__mat * at this location */
} tn__place;

/* Tracked locations in tracking order. */
typedef struct tn__table {
    tn__node node;
    uint32_t count;
    tn__place places[];
} tn__table;

/* One version. Its memory is freed when its count is 0 and a grace period has passed since. */
typedef struct tn_version {
    struct tn_version *next; /* store's list, oldest first; writer only */
    uint64_t number;         /* the placement number: grows by the M118 count of each publish */
    tn__radix values;        /* index -> tn__value * */
    tn__table *table;
    /* highest index issued; an absent index up to it is a forgotten discarded value (D12) */
    uint64_t issued;
    uint64_t value_count; /* visible values, discarded ones included */
    /* 1 while current, plus one per snapshot; 0: nobody may take one any longer */
    _Atomic uint64_t refs;
    tn__node *kept; /* replaced nodes that this pinned version still has; collector only */
} tn_version;

/* Lookups, in any version the caller may read. NULL: absent. */
const tn__value *tn__version_value(const tn_version *v, uint64_t index);
tn__mat *tn__value_mat(const tn__value *value, tn_location at);
const tn__place *tn__version_place(const tn_version *v, tn_location at);
/* The first value with index >= `index`; NULL: none. */
const tn__value *tn__version_next(const tn_version *v, uint64_t index);
/* The first materialization at a place whose value index is >= `index`; NULL: none. */
tn__mat *tn__place_next(const tn__place *place, uint64_t index);
/* All items of a tree, in ascending order of index. */
void tn__radix_items(const tn__radix *r, void (*item)(void *context, void *item), void *context);
/* M7 but for the foreign check, without a detail: why the handle is refused, or *out. */
enum tn_handle_cause tn__version_judge(const tn_version *v, uint64_t index,
                                       const tn_value_type *type, const tn__value **out);
/* TN_ERR_HANDLE with its detail. `manager` is the manager that was called. */
TN__COLD tn_status tn__handle_refuse(uint64_t manager, tn_handle handle,
                                     enum tn_handle_cause cause);
/* M7, all of it: TN_OK with *out, or TN_ERR_HANDLE with its cause in the detail.
 * `manager` is this manager's id. */
TN_NODISCARD tn_status tn__version_resolve(const tn_version *v, uint64_t manager, tn_handle handle,
                                           const tn__value **out);

/* ---- Ledgers: admission words ----------------------------------------------------------- */

/* No budget. */
#define TN__UNLIMITED UINT64_MAX

/*
 * The bytes of one location. word.low = total, word.high = claimed; changed together by one
 * 128-bit CAS. charged = total - claimed raises the peak at the CAS that raises it. Raise: word,
 * peak, then publish or record; lower: record or publish, then word. Sums are at most INT64_MAX
 * (G42), also without a budget. A change by 0 bytes always succeeds (M43).
 */
typedef struct tn__ledger {
    tn__pair word;
    _Atomic uint64_t peak_charged; /* raised by whoever charged; never lowered */
    uint64_t budget;               /* TN__UNLIMITED, or bytes; const after creation */
} __attribute__((aligned(TN__CACHE_LINE))) tn__ledger;

/* total += bytes if it fits; raises the peak. */
bool tn__ledger_charge(tn__ledger *l, uint64_t bytes);
/* total -= bytes. */
void tn__ledger_uncharge(tn__ledger *l, uint64_t bytes);
/* total += bytes and claimed += bytes if it fits; no peak. */
bool tn__ledger_claim(tn__ledger *l, uint64_t bytes);
/* total -= bytes and claimed -= bytes. */
void tn__ledger_unclaim(tn__ledger *l, uint64_t bytes);
/* claimed -= bytes: they are charged from now on; raises the peak. */
void tn__ledger_settle(tn__ledger *l, uint64_t bytes);
/* claimed += bytes: charged bytes become claimed ones (bytes that a plan frees and needs again, a
 * failed load). */
void tn__ledger_reclaim(tn__ledger *l, uint64_t bytes);
/* One consistent reading of both words. */
void tn__ledger_read(const tn__ledger *l, uint64_t *total, uint64_t *claimed);

/* ---- The store -------------------------------------------------------------------------- */

/* Locations have fixed ledger positions: 0 pageable, 1 pinned, 2 + N for cuda:N. */
#define TN__LEDGER_COUNT (2u + TN_CUDA_INDEX_MAX + 1u)

/* Owner index entries: writer only. */
typedef struct tn__owners tn__owners;

typedef struct tn__store {
    tn__mutex lock; /* rank STATE: the short writer lock of the manager */
    /* written under lock (release); read by anyone in an RCU section (acquire) */
    tn_version *_Atomic current;
    tn__ledger *ledgers;     /* TN__LEDGER_COUNT */
    tn__owners *owners;      /* under lock */
    uint64_t manager;        /* id; const */
    uint64_t keep_discarded; /* const */
    _Atomic uint64_t refs;   /* the manager and each snapshot */
    /* 1: something was published, or the last pin of an old version given back, since the last
     * collect began. Relaxed: see tn__store_note_garbage() */
    _Atomic uint64_t garbage;
    /* under lock: */
    tn_version *oldest, *newest; /* all versions whose memory exists */
    tn__node *retired;           /* nodes replaced since the last collect, youngest first */
    bool collecting;             /* one collector at a time; others do nothing */
    uint64_t *discarded;         /* ring of visible discarded indices, oldest first */
    uint64_t discarded_first, discarded_count, discarded_room;
    /* figures, under lock */
    uint64_t versions_published, versions_freed;
} tn__store;

/* Budgets are checked already. TN_ERR_HOST_MEMORY. The first version has number 0 and tracks the
 * budgeted locations. */
TN_NODISCARD tn_status tn__store_create(uint64_t manager, const tn_budget *budgets, size_t count,
                                        uint64_t keep_discarded, tn__store **out);
/* Give up one reference; the last one frees every node, whatever version it is in, and the store.
 * Payloads are gone by then. */
void tn__store_release(tn__store *s);

tn__ledger *tn__store_ledger(tn__store *s, tn_location at);

/* TN_ERR_BUDGET with the numbers of now (M50); this thread is ready for sections. `budget_bytes`
 * is TN__UNLIMITED where only the sum would overflow. */
TN__COLD tn_status tn__store_refuse(tn__store *s, tn_location at, uint64_t bytes);

/* The current version; in an RCU section. */
static inline const tn_version *tn__store_current(tn__store *s) {
    /* [publish] acquire. Pairs: release in tn__store_publish(). Orders: pointer load -> loads of
     * what it points to. Without: a reader walks half-built tables. */
    return tn__load_acq(&s->current);
}

/* Take a counted reference on the current version and on the store: increment-if-not-zero inside
 * a section, else reload (F-H03). NULL: the thread's own block cannot be made (its first call, no
 * memory). */
const tn_version *tn__store_pin(tn__store *s);
/* Give both back. No lock. */
void tn__store_unpin(tn__store *s, const tn_version *v);

/* Free what nobody can see: takes the retired list, waits for one grace period if there is
 * anything, then looks at the pinned versions. While another thread collects it does nothing.
 * Adds nodes and versions to *freed. No lock may be held. TN_ERR_REENTRANCY inside an RCU
 * section. */
TN_NODISCARD tn_status tn__store_collect(tn__store *s, uint64_t *freed);
/* Whether anything was replaced or unpinned since the last collect began; racy. What a pin keeps
 * alive does not count. */
bool tn__store_has_garbage(tn__store *s);

/* ---- The builder: the next version, privately ------------------------------------------- */

/*
 * Under store->lock from begin to publish or abort. Every step may fail with TN_ERR_HOST_MEMORY
 * (detail set); then call tn__build_abort(). Nothing is visible before tn__store_publish(), which
 * cannot fail.
 */
typedef struct tn__build {
    tn__store *store;
    tn_version *next;   /* private until published */
    tn__node *fresh;    /* nodes made by this build */
    tn__node *stale;    /* nodes of the current version that it replaces */
    uint64_t counted;   /* increments of M118 so far */
    uint64_t discarded; /* index discarded by this build, 0: none; at most one */
} tn__build;

TN_NODISCARD tn_status tn__build_begin(tn__store *s, tn__build *b);
/* Frees all that the build made, but no materialization: those it installed are the caller's
 * again. */
void tn__build_abort(tn__build *b);
/* The next version gets number current + counted (at least + 1), is published by one
 * store-release, and the replaced nodes are retired. */
void tn__store_publish(tn__build *b);

/* Track a location unless it is (counts 1 if it was not). */
TN_NODISCARD tn_status tn__build_track(tn__build *b, tn_location at);
/* A new value without materializations; its index is issued here (counts nothing). */
TN_NODISCARD tn_status tn__build_add_value(tn__build *b, const tn_value_spec *spec,
                                           tn__source *source, tn_location source_at,
                                           uint64_t *out_index);
/* A materialization object for tn__build_install(), made beforehand, without a lock. Owns the
 * payload only after tn__store_publish(). */
TN_NODISCARD tn_status tn__mat_create(tn_payload payload, tn_location at,
                                      const tn__measured *measured, uint64_t charge, tn__mat **out);
/* one that was never published; the payload stays the caller's */
void tn__mat_discard(tn__mat *mat);
/* Append it to its value's list, add its charge to `used` of its (tracked) location, raise
 * peak_used (counts 1). */
TN_NODISCARD tn_status tn__build_install(tn__build *b, uint64_t index, tn__mat *mat);
/* Remove it from its value and location, subtract its charge (counts 1). Its node is retired at
 * publish. */
TN_NODISCARD tn_status tn__build_remove(tn__build *b, tn__mat *mat);
/* Mark the value discarded: no source, no materializations (remove them first) (counts 1).
 * Forgets the oldest discarded value if more than keep_discarded are visible. */
TN_NODISCARD tn_status tn__build_discard(tn__build *b, uint64_t index);
/* Close: drop all values, keep the table with used 0 and no residents (counts 1). Calls `each`
 * (or NULL) on every materialization once nothing can fail any more. Sources are the caller's:
 * walk the values first. */
TN_NODISCARD tn_status tn__build_clear(tn__build *b, void (*each)(void *context, tn__mat *mat),
                                       void *context);
/* Count events that happen with this publish but are not built (close, ...). */
static inline void tn__build_count(tn__build *b, uint64_t events) { b->counted += events; }

/* ---- The owner index: who owns which backing allocation (M64..M66) ---------------------- */

/* Claim all of a payload's allocations for (handle, at), or none. TN_ERR_OWNERSHIP with the
 * owners named in the detail; TN_ERR_HOST_MEMORY. Under store->lock. Zero-size allocations never
 * clash; host memory is one device, each CUDA index another. */
TN_NODISCARD tn_status tn__owners_claim(tn__store *s, const tn_storage *storages, size_t count,
                                        tn_handle handle, tn_location at);
/* Give them up. Under store->lock. */
void tn__owners_release(tn__store *s, const tn_storage *storages, size_t count);

#endif
