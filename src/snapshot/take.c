/* SPDX-License-Identifier: MIT */
/*
 * Taking a snapshot (S1), and the state version.
 */
#include "snapshot/snapshot_priv.h"

#define TRIES 8

static bool still_current(tn__store *store, const tn_version *version) {
    tn__rcu_lock();
    bool same = tn__store_current(store) == version;
    tn__rcu_unlock();
    return same;
}

static bool same_counts(const tn__counts *a, const tn__counts *b) {
    return a->raw == b->raw && a->slots == b->slots && !a->odd && !b->odd;
}

/* One try: pin, count, pass, count again. On TN_OK the version is pinned. */
static tn_status try(tn__life *life, tn_snapshot *s) {
    tn__counts before, after;
    s->pass.version = tn__store_pin(s->store);
    tn__life_counts(life, &before); /* before the records: each count is an acquire */
    tn_status status = tn__pass_run(life, &s->pass);
    if (status != TN_OK) {
        tn__store_unpin(s->store, s->pass.version);
        return status;
    }
    /* [count] the records -> the counters; the records' loads are relaxed and cannot order
     * themselves */
    tn__fence_acq();
    tn__life_counts(life, &after);
    s->exact = same_counts(&before, &after) && still_current(s->store, s->pass.version);
    s->state_version = s->pass.version->number + after.sum;
    return TN_OK;
}

static size_t place_of(const tn_version *v, tn_location at) {
    for (uint32_t i = 0; i < v->table->count; i++)
        if (tn__location_same(v->table->places[i].at, at))
            return i;
    return SIZE_MAX;
}

/* Sums per location, then the peaks, read last. An inexact sum is clamped down to the peak (M48,
 * M51). */
static void sum_places(tn_snapshot *s) {
    const tn_version *v = s->pass.version;
    size_t room = s->pass.mat_count ? s->pass.mat_room : 0;
    for (size_t i = 0; i < room; i++) {
        const tn__mat_count *m = &s->pass.mats[i];
        size_t k = m->mat ? place_of(v, m->mat->at) : SIZE_MAX;
        if (k == SIZE_MAX)
            continue;
        s->places[k].p.uses += m->p.uses;
        s->places[k].p.holds += m->p.holds;
        s->places[k].p.pending += m->p.pending;
    }
    for (size_t i = 0; i < s->pass.reserved_count; i++) {
        size_t k = place_of(v, s->pass.reserved[i].at);
        if (k == SIZE_MAX)
            continue;
        s->places[k].reservations++;
        s->places[k].reserved_bytes += s->pass.reserved[i].bytes;
    }
    for (uint32_t k = 0; k < v->table->count; k++) {
        tn__place_count *c = &s->places[k];
        const tn__place *place = &v->table->places[k];
        c->peak_charged = tn__load_rlx(&tn__store_ledger(s->store, place->at)->peak_charged);
        if (c->peak_charged < place->peak_used_bytes)
            /* settled by a transition that was not published then */
            c->peak_charged = place->peak_used_bytes;
        uint64_t most = c->peak_charged - place->used_bytes;
        TN_ASSERT(!s->exact || c->reserved_bytes <= most);
        if (c->reserved_bytes > most)
            c->reserved_bytes = most;
    }
}

static void read_allocators(tn_snapshot *s, tn_driver *driver) {
    const tn__table *table = s->pass.version->table;
    for (uint32_t k = 0; k < table->count; k++) {
        tn__place_count *c = &s->places[k];
        tn_location at = table->places[k].at;
        if (at.kind != TN_LOCATION_CUDA ||
            !tn__driver_readings(driver, at.index, &c->allocated, &c->held))
            c->allocated = c->held = UINT64_MAX;
    }
}

static tn_status fill(tn_snapshot *s, tn_driver *driver) {
    s->places = tn__zalloc((size_t)s->pass.version->table->count * sizeof *s->places);
    if (!s->places)
        return tn__no_memory();
    sum_places(s);
    read_allocators(s, driver);
    return TN_OK;
}

tn_status tn__snapshot_take(tn__store *store, tn__life *life, tn_driver *driver, uint64_t now_ns,
                            tn_snapshot **out) {
    tn_snapshot *s = tn__zalloc(sizeof *s);
    if (!s)
        return tn__no_memory();
    s->store = store;
    s->captured_at_ns = now_ns;
    tn_status status = try(life, s);
    for (int i = 1; i < TRIES && status == TN_OK && !s->exact; i++) {
        TN__BRANCH(snapshot_again);
        tn__store_unpin(store, s->pass.version);
        status = try(life, s);
    }
    if (!s->exact)
        TN__BRANCH(snapshot_inexact);
    /* Closed meanwhile: the version may be the last one, which has no values. */
    if (status == TN_OK && tn__life_closed(life)) {
        tn__store_unpin(store, s->pass.version);
        status = tn__life_enter_waited(life);
    }
    if (status == TN_OK) {
        status = fill(s, driver);
        if (status != TN_OK)
            tn__store_unpin(store, s->pass.version);
    }
    if (status != TN_OK) {
        tn__pass_fini(&s->pass);
        tn__free(s);
        return status;
    }
    *out = s;
    return TN_OK;
}

void tn_snapshot_drop(tn_snapshot *s) {
    if (!s)
        return;
    tn__thread *thread = tn__thread_self();
    if (thread)
        tn__rcu_thread_ready(thread);
    tn__store_unpin(s->store, s->pass.version);
    tn__pass_fini(&s->pass);
    tn__free(s->places);
    tn__free(s);
}
