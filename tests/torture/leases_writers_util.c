/* SPDX-License-Identifier: MIT */
/*
 * The threads that change placement, reserve bytes, take snapshots, and reap by hand.
 */
#include "leases_torture.h"

#include <sched.h>
#include <string.h>

/* ---- Actions ---- */

/* What any action may say here. */
static const char *expected(tort_world *w, const char *what, tn_status status) {
    const tn_error *e = tn_last_error();
    switch (status) {
    case TN_OK:
        return NULL;
    case TN_ERR_IN_USE:
        TN_WORKER_CHECK(e->use_count + e->hold_count + e->pending_count >= 1);
        TORT_COUNT(w, in_use);
        return NULL;
    case TN_ERR_BUDGET:
        TORT_COUNT(w, full);
        return NULL;
    case TN_ERR_HANDLE:
        TN_WORKER_CHECK(e->handle_cause == TN_HANDLE_DISCARDED);
        return NULL;
    case TN_ERR_REENTRANCY:
        TN_WORKER_CHECK(w->config.mode == TN_MODE_SERIAL);
        sched_yield();
        return NULL;
    default:
        return tn_test_text("%s gave %s: %s", what, tn_status_name(status), e->message);
    }
}

/* Plans that only remove: their payloads are poisoned as soon as they are decided. */
static tn_status drop(tort_world *w, uint32_t place, tn_location at) {
    tn_report report = TN_REPORT_INIT;
    tort_poison_at_taken(true);
    tn_status status = tn_manager_drop(w->m, tort_handle(w, place), at, &report);
    tort_poison_at_taken(false);
    if (status == TN_OK && !report.no_op)
        TORT_COUNT(w, removed);
    return status;
}

static const char *discard(tort_world *w, uint32_t place) {
    tort_poison_at_taken(true);
    tn_status status = tn_manager_discard(w->m, tort_handle(w, place), NULL);
    tort_poison_at_taken(false);
    if (status != TN_OK)
        return expected(w, "discard", status);
    TORT_COUNT(w, gone);
    TN_WORKER_STATUS(tort_register(w, place), TN_OK);
    return NULL;
}

static const char *move(tort_world *w, tort_random *r, uint32_t place) {
    tn_report report = TN_REPORT_INIT;
    tn_location to = tort_location(tort_below(r, TORT_LOCATIONS));
    tn_status status =
        tn_manager_move(w->m, tort_handle(w, place), to, tn_location_none(), NULL, &report);
    if (status == TN_OK && !report.no_op)
        TORT_COUNT(w, moved);
    return expected(w, "move", status);
}

/* Room is made by dropping what is there, as an evictor does. */
static const char *ensure(tort_world *w, tort_random *r, uint32_t place) {
    tn_location at = tort_location(tort_below(r, TORT_LOCATIONS));
    bool own = at.kind == TN_LOCATION_CUDA && tort_below(r, 2) == 0;
    tn_stream stream = own ? w->streams[tort_below(r, TORT_STREAMS)] : NULL;
    tn_report report = TN_REPORT_INIT;
    tn_status status = TN_ERR_BUDGET;
    for (int tries = 0; tries < 6 && status == TN_ERR_BUDGET && !tort_over(w); tries++) {
        status = tn_manager_ensure(w->m, tort_handle(w, place), at, stream, &report);
        if (status == TN_OK && !report.no_op)
            TORT_COUNT(w, ensured);
        const char *text = expected(w, "ensure", status);
        if (!text && status == TN_ERR_BUDGET)
            text = expected(w, "drop", drop(w, tort_below(r, TORT_PLACES), at));
        if (text)
            return text;
    }
    return NULL;
}

const char *tort_remover(tort_world *w, int index) {
    tort_random r = tort_random_of((uint64_t)index);
    const char *text = NULL;
    while (!text && !tort_over(w)) {
        uint32_t place = tort_below(&r, TORT_PLACES), dice = tort_below(&r, 100);
        if (dice < 50)
            text = ensure(w, &r, place);
        else if (dice < 75)
            text = expected(w, "drop", drop(w, place, tort_location(tort_below(&r, 3))));
        else if (dice < 90)
            text = move(w, &r, place);
        else
            text = discard(w, place);
    }
    return text;
}

/* ---- Reservations ---- */

static tn_status end_value(tort_world *w, tn_handle handle) {
    tn_status status;
    while ((status = tn_manager_discard(w->m, handle, NULL)) == TN_ERR_REENTRANCY)
        sched_yield();
    return status;
}

/* Allocate in reserved bytes and hand it over. Nobody else knows the value. */
static const char *adopt(tort_world *w, tort_random *r, const tn_reservation *reservation,
                         tn_location at, uint32_t place) {
    tn_payload payload;
    tn_handle handle;
    TN_WORKER_STATUS(tort_payload_make(w->driver, at, place, &payload), TN_OK);
    tn_status status =
        tn_manager_adopt_reserved(w->m, payload, at, TN_REPLICABLE, reservation, &handle);
    if (status != TN_OK) {
        tn_payload_destroy(payload);
        return expected(w, "adopt", status);
    }
    TORT_COUNT(w, adopted);
    tort_spin(tort_below(r, 2000));
    TN_WORKER_STATUS(end_value(w, handle), TN_OK);
    return NULL;
}

const char *tort_reserver(tort_world *w, int index) {
    tort_random r = tort_random_of((uint64_t)index);
    while (!tort_over(w)) {
        tn_location at = tort_location(tort_below(&r, TORT_LOCATIONS));
        uint32_t place = tort_below(&r, TORT_PLACES);
        uint64_t more = tort_below(&r, 4) ? 0 : 1 + tort_below(&r, 128);
        tn_reservation reservation;
        tn_status status =
            tn_manager_reserve(w->m, at, tort_bytes_of(place) + more, "torture", &reservation);
        const char *text = expected(w, "reserve", status);
        if (!text && status == TN_ERR_BUDGET)
            text = expected(w, "drop", drop(w, tort_below(&r, TORT_PLACES), at));
        if (text)
            return text;
        if (status != TN_OK)
            continue;
        TORT_COUNT(w, reserved);
        if (tort_below(&r, 2) == 0)
            text = adopt(w, &r, &reservation, at, place);
        if (text)
            return text;
        while ((status = tn_reservation_release(&reservation)) == TN_ERR_REENTRANCY)
            sched_yield();
        TN_WORKER_STATUS(status, TN_OK);
    }
    return NULL;
}

/* ---- Snapshots ---- */

/* What a snapshot says, in numbers that must not differ between two of the same version. */
typedef struct digest {
    uint64_t version;
    uint64_t values, mats, used[TORT_LOCATIONS], reserved[TORT_LOCATIONS];
    uint64_t uses[TORT_LOCATIONS], holds[TORT_LOCATIONS], pending[TORT_LOCATIONS];
    uint64_t places; /* a sum over value indices, locations and counts */
} digest;

static size_t slot_of(tn_location at) { return at.kind - TN_LOCATION_PAGEABLE; }

static const char *sum_values(const tn_snapshot *s, digest *d) {
    tn_value_info value = {.size = sizeof value};
    uint64_t cursor = 0;
    bool more = false;
    for (;;) {
        tn_materialization_info mats[TORT_LOCATIONS] = {{.size = sizeof mats[0]}};
        size_t count = TORT_LOCATIONS;
        TN_WORKER_STATUS(tn_snapshot_next(s, &cursor, &value, &more), TN_OK);
        if (!more)
            return NULL;
        TN_WORKER_STATUS(tn_snapshot_materializations(s, value.handle, mats, &count), TN_OK);
        TN_WORKER_CHECK(count <= TORT_LOCATIONS && count == value.materialization_count);
        d->values++;
        d->mats += count;
        for (size_t i = 0; i < count; i++) {
            size_t k = slot_of(mats[i].at);
            d->used[k] += mats[i].charged_bytes;
            d->uses[k] += mats[i].use_count;
            d->holds[k] += mats[i].hold_count;
            d->pending[k] += mats[i].pending_count;
            d->places +=
                (value.handle.index * 4 + k) *
                (1 + 3 * mats[i].use_count + 7 * mats[i].hold_count + 11 * mats[i].pending_count);
        }
    }
}

/* M48, M51: always within budget and peak; when exact the sums are the sums. */
static const char *check_location(const tn_location_info *p, digest *d, bool exact) {
    size_t k = slot_of(p->at);
    TN_WORKER_CHECK(p->used_bytes + p->reserved_bytes <= p->peak_charged_bytes);
    TN_WORKER_CHECK(p->peak_charged_bytes <= p->budget_bytes);
    TN_WORKER_CHECK(p->remaining_bytes == p->budget_bytes - p->used_bytes - p->reserved_bytes);
    TN_WORKER_CHECK(p->used_bytes <= p->peak_used_bytes);
    TN_WORKER_CHECK(p->used_bytes == d->used[k]); /* P3: in any version */
    d->reserved[k] = p->reserved_bytes;
    if (exact) {
        TN_WORKER_CHECK(p->use_count == d->uses[k]);
        TN_WORKER_CHECK(p->hold_count == d->holds[k]);
        TN_WORKER_CHECK(p->pending_count == d->pending[k]);
    }
    return NULL;
}

static const char *read_snapshot(const tn_snapshot *s, digest *d, bool *exact) {
    tn_snapshot_info head = {.size = sizeof head};
    tn_location_info places[TORT_LOCATIONS] = {{.size = sizeof places[0]}};
    size_t count = TORT_LOCATIONS;
    memset(d, 0, sizeof *d);
    TN_WORKER_STATUS(tn_snapshot_read(s, &head), TN_OK);
    d->version = head.state_version;
    *exact = head.exact != 0;
    const char *text = sum_values(s, d);
    if (text)
        return text;
    TN_WORKER_CHECK(head.value_count == d->values);
    TN_WORKER_STATUS(tn_snapshot_locations(s, places, &count), TN_OK);
    TN_WORKER_CHECK(count == TORT_LOCATIONS);
    for (size_t i = 0; i < count && !text; i++)
        text = check_location(&places[i], d, *exact);
    return text;
}

/* M124: two exact ones of the same version are equal. */
static const char *compare(const digest *before, const digest *now) {
    TN_WORKER_CHECK(now->version >= before->version);
    if (before->version == now->version)
        TN_WORKER_CHECK(memcmp(before, now, sizeof *now) == 0);
    return NULL;
}

#define KEPT 3

typedef struct kept {
    tn_snapshot *snapshot;
    digest digest;
    bool exact;
} kept;

/* P1: what a snapshot says never changes. */
static const char *drop_kept(kept *k) {
    digest now;
    bool exact;
    if (!k->snapshot)
        return NULL;
    const char *text = read_snapshot(k->snapshot, &now, &exact);
    if (!text && (exact != k->exact || memcmp(&now, &k->digest, sizeof now) != 0))
        text = "a snapshot has changed";
    tn_snapshot_drop(k->snapshot);
    k->snapshot = NULL;
    return text;
}

static const char *take_one(tort_world *w, kept *k, digest *last) {
    tn_status status = tn_snapshot_take(w->m, &k->snapshot);
    if (status != TN_OK) {
        k->snapshot = NULL;
        return expected(w, "snapshot", status);
    }
    const char *text = read_snapshot(k->snapshot, &k->digest, &k->exact);
    if (k->exact)
        TORT_COUNT(w, exact);
    else
        TORT_COUNT(w, inexact);
    if (!text && k->exact) {
        text = compare(last, &k->digest);
        *last = k->digest;
    }
    return text;
}

static const char *check_version(tort_world *w, uint64_t *last) {
    uint64_t version = 0;
    tn_status status = tn_manager_state_version(w->m, &version);
    if (status != TN_OK)
        return expected(w, "version", status);
    TN_WORKER_CHECK(version >= *last);
    *last = version;
    return NULL;
}

const char *tort_snapshots(tort_world *w, int index) {
    tort_random r = tort_random_of((uint64_t)index);
    kept ring[KEPT] = {{0}};
    digest last = {0};
    uint64_t version = 0;
    const char *text = NULL;
    while (!text && !tort_over(w)) {
        kept *k = &ring[tort_below(&r, KEPT)];
        text = drop_kept(k);
        if (!text)
            text = take_one(w, k, &last);
        if (!text)
            text = check_version(w, &version);
        tort_spin(tort_below(&r, tort_quiet_world(w) ? 1000 : 100000));
    }
    for (int i = 0; i < KEPT; i++)
        if (ring[i].snapshot)
            tn_snapshot_drop(ring[i].snapshot);
    return text;
}

/* ---- Manual reaping ---- */

const char *tort_steps(tort_world *w, int index) {
    tort_random r = tort_random_of((uint64_t)index);
    while (!tort_over(w)) {
        const char *text = expected(w, "step", tn_manager_step(w->m, NULL));
        if (text)
            return text;
        tort_spin(tort_below(&r, 50000));
    }
    return NULL;
}
