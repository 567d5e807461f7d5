/* SPDX-License-Identifier: MIT */
/*
 * The store's life, pins, and publication.
 *
 * A pin is a count in the version. It is taken by increment-if-not-zero inside an RCU section: a
 * version that was replaced and has no other pin stays at 0 for ever, so a reader that was late
 * loads the pointer again.
 */
#include "base/thread.h"
#include "placement/placement_priv.h"

/* ---- Create ----------------------------------------------------------------------------- */

static tn__ledger *make_ledgers(const tn_budget *budgets, size_t count, tn__store *s) {
    tn__ledger *ledgers = tn__zalloc_line(TN__LEDGER_COUNT * sizeof(tn__ledger));
    if (!ledgers)
        return NULL;
    s->ledgers = ledgers;
    for (uint32_t i = 0; i < TN__LEDGER_COUNT; i++)
        ledgers[i].budget = TN__UNLIMITED;
    for (size_t i = 0; i < count; i++)
        tn__store_ledger(s, budgets[i].at)->budget = budgets[i].bytes;
    return ledgers;
}

static tn__table *make_table(const tn_budget *budgets, size_t count) {
    tn__table *table = tn__zalloc(sizeof *table + count * sizeof table->places[0]);
    if (!table)
        return NULL;
    tn__node_init(&table->node, TN__NODE_TABLE);
    table->node.born = 0;
    table->count = (uint32_t)count;
    for (size_t i = 0; i < count; i++)
        table->places[i].at = tn__location_plain(budgets[i].at);
    return table;
}

static tn_version *make_version(const tn_budget *budgets, size_t count) {
    tn_version *v = tn__zalloc(sizeof *v);
    if (!v)
        return NULL;
    v->table = make_table(budgets, count);
    if (!v->table) {
        tn__version_free(v);
        return NULL;
    }
    tn__store_rlx(&v->refs, 1);
    return v;
}

static void free_parts(tn__store *s) {
    tn__owners_destroy(s->owners);
    tn__free(s->discarded);
    tn__free(s->ledgers);
    tn__mutex_fini(&s->lock);
    tn__free(s);
}

tn_status tn__store_create(uint64_t manager, const tn_budget *budgets, size_t count,
                           uint64_t keep_discarded, tn__store **out) {
    tn__store *s = tn__zalloc(sizeof *s);
    if (!s)
        return tn__no_memory();
    tn__mutex_init(&s->lock, TN__RANK_STATE);
    s->manager = manager;
    s->keep_discarded = keep_discarded;
    tn__store_rlx(&s->refs, 1);
    s->owners = tn__owners_create();
    if (!s->owners || !make_ledgers(budgets, count, s) ||
        !(s->oldest = make_version(budgets, count))) {
        free_parts(s);
        return tn__no_memory();
    }
    s->newest = s->oldest;
    tn__store_rlx(&s->current, s->newest); /* the store itself is not shared yet */
    *out = s;
    return TN_OK;
}

tn__ledger *tn__store_ledger(tn__store *s, tn_location at) {
    TN_ASSERT(at.kind >= TN_LOCATION_PAGEABLE && at.kind <= TN_LOCATION_CUDA);
    TN_ASSERT(at.kind != TN_LOCATION_CUDA || at.index <= TN_CUDA_INDEX_MAX);
    return &s->ledgers[at.kind == TN_LOCATION_CUDA ? 2 + at.index : at.kind - TN_LOCATION_PAGEABLE];
}

/* ---- Destroy ---------------------------------------------------------------------------- */

static void free_visited(void *context, tn__node *n) {
    (void)context;
    tn__node_free(n);
}

static void free_value(void *context, void *item) {
    (void)context;
    tn__value *value = item;
    for (uint32_t i = 0; i < value->mat_count; i++)
        tn__node_free(&value->mats[i]->node);
    tn__node_free(&value->node);
}

/* Free all nodes of the current version. */
static void free_tree(tn_version *v) {
    const tn__radix_visitor values = {free_value, free_visited, NULL};
    const tn__radix_visitor resident = {NULL, free_visited, NULL};
    tn__radix_walk(&v->values, &values);
    for (uint32_t i = 0; i < v->table->count; i++)
        tn__radix_walk(&v->table->places[i].resident, &resident);
    tn__node_free(&v->table->node);
}

/* [store-ref], the freeing side: nobody else refers to the store. Every node is in the current
 * version or in one list (N2). */
static void destroy(tn__store *s) {
    free_tree(s->newest);
    tn__node_free_list(s->retired);
    for (tn_version *v = s->oldest, *next; v; v = next) {
        next = v->next;
        tn__node_free_list(v->kept);
        tn__version_free(v);
    }
    free_parts(s);
}

void tn__store_release(tn__store *s) {
    /* [store-ref] acq_rel. Pairs: itself on other threads. Orders: every use of the store before
     * this -> destroy() by the last. Without: the store is freed while another thread's last reads
     * and writes of it are still under way. */
    if (tn__sub_acq_rel(&s->refs, 1) == 1)
        destroy(s);
}

/* ---- Pins ------------------------------------------------------------------------------- */

/* [no-order] what the count protects was ordered by the acquire load of the pointer, and the
 * collector looks at counts only after a grace period, which orders this increment (inside a
 * section) before its look. */
static bool take(tn_version *v) {
    uint64_t refs = tn__load_rlx(&v->refs);
    while (refs != 0)
        if (tn__cas_rlx(&v->refs, &refs, refs + 1))
            return true;
    return false;
}

const tn_version *tn__store_pin(tn__store *s) {
    tn__thread *thread = tn__thread_self();
    if (!thread)
        return NULL;
    tn__rcu_thread_ready(thread);
    tn__rcu_lock();
    tn_version *v;
    do {
        /* [publish] acquire: as in tn__store_current(). */
        v = tn__load_acq(&s->current);
        TN__AT(TN__POINT_PIN_VERSION, s);
    } while (!take(v));
    tn__rcu_unlock();
    tn__add_rlx(&s->refs, 1); /* the caller keeps the store alive meanwhile */
    return v;
}

void tn__store_unpin(tn__store *s, const tn_version *v) {
    /* [version-ref] acq_rel (release is needed). Pairs: acquire in judge_versions(). Orders: this
     * thread's reads of the version's nodes -> the collector's frees. Without: the collector frees
     * what this thread is still reading. */
    if (tn__sub_acq_rel(&((tn_version *)v)->refs, 1) == 1)
        tn__store_note_garbage(s);
    tn__store_release(s);
}

/* ---- Publish ---------------------------------------------------------------------------- */

/* Nodes of this build enter the next version; those it dropped again were never in one. A dropped
 * materialization is retired like any other, because its address was handed out. */
static void bear(tn__store *s, tn__node *fresh, uint64_t number) {
    for (tn__node *n = fresh, *next; n; n = next) {
        next = n->next;
        if (n->replaced != TN__DROPPED) {
            n->born = number;
        } else if (n->kind == TN__NODE_MAT) {
            n->born = n->replaced = number;
            n->next = s->retired;
            s->retired = n;
        } else {
            tn__node_free(n);
        }
    }
}

static void retire(tn__store *s, tn__node *stale, uint64_t number) {
    for (tn__node *n = stale, *next; n; n = next) {
        next = n->next;
        TN_ASSERT(n->born < number && n->replaced == TN__CURRENT);
        n->replaced = number;
        n->next = s->retired;
        s->retired = n;
    }
}

/* P3 as far as it is cheap: an empty place has no bytes and no tree. */
static void check_places(const tn_version *v) {
    for (uint32_t i = 0; TN_CHECKS && i < v->table->count; i++) {
        const tn__place *p = &v->table->places[i];
        TN_ASSERT(p->value_count != 0 || (p->used_bytes == 0 && p->resident.root == NULL));
        TN_ASSERT(p->used_bytes <= p->peak_used_bytes && p->value_count <= v->value_count);
    }
}

void tn__store_publish(tn__build *b) {
    tn__store *s = b->store;
    tn_version *old = s->newest, *next = b->next;
    tn__assert_locked(&s->lock);
    next->number = old->number + (b->counted ? b->counted : 1);
    check_places(next);
    bear(s, b->fresh, next->number);
    retire(s, b->stale, next->number);
    if (next->value_count == 0)
        s->discarded_count = 0;
    else if (b->discarded)
        tn__discards_push(s, b->discarded);
    old->next = next;
    s->newest = next;
    s->versions_published++;
    /* [publish] release. Pairs: acquire in tn__store_current() and tn__store_pin(). Orders: all
     * stores that build *next -> this pointer store. Without: a reader walks half-built tables. */
    tn__store_rel(&s->current, next);
    /* [no-order] the collector learns of this under the lock; a pin that fails on the 0 loads the
     * pointer again, and if that is still the old one, again. */
    tn__sub_rlx(&old->refs, 1);
    tn__store_note_garbage(s);
    *b = (tn__build){0};
}
