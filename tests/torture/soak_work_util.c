/* SPDX-License-Identifier: MIT */
/*
 * The threads of the soak that borrow, act, and look.
 */
#include "soak_torture.h"

#include <sched.h>

/* ---- Borrow ---- */

#define LEASE_VALUES 4

static const char *lease(soak_world *w, tort_random *r, tn_location at) {
    uint32_t places[LEASE_VALUES], count = soak_choose_places(r, places, 1 + tort_below(r, 3));
    tn_handle handles[LEASE_VALUES];
    tn_stream stream = soak_stream(w, r, at);
    soak_letter letter = {.kind = SOAK_LEASE};
    for (uint32_t i = 0; i < count; i++)
        handles[i] = soak_handle(w, places[i]);
    tn_status status = tn_manager_acquire(w->m, handles, count, at, stream, &letter.lease);
    if (status != TN_OK)
        return soak_expect(w, "acquire", status, SOAK_MAY(UNAVAILABLE));
    SOAK_COUNT(w, leases);
    for (uint32_t i = 0; i < count; i++) {
        const void *data = NULL;
        status = tn_lease_lookup(&letter.lease, handles[i], &data);
        if (status == TN_OK)
            SOAK_TRY(soak_see(&letter, data, places[i]));
        SOAK_TRY(soak_expect(w, "lookup", status, 0));
    }
    if (stream) {
        tn_stream other = soak_stream(w, r, at);
        TN_WORKER_STATUS(tn_lease_add_stream(&letter.lease, other), TN_OK);
        SOAK_TRY(soak_queue(w, r, stream, &letter));
        SOAK_TRY(soak_queue(w, r, other, &letter));
    }
    tort_spin(tort_below(r, 2000));
    return tort_below(r, 2) ? soak_end(w, &letter) : soak_send(w, r, &letter);
}

const char *soak_borrow(soak_world *w, tort_random *r) {
    tn_location at = soak_any_location(r);
    uint32_t dice = tort_below(r, 16);
    soak_letter letter = {.kind = SOAK_HOLD};
    tn_status status;
    if (dice < 12)
        return lease(w, r, at);
    if (dice < 14) {
        tn_handle h = soak_handle(w, tort_below(r, SOAK_PLACES));
        status = tn_manager_hold(w->m, &h, 1, at, &letter.hold);
        if (status == TN_OK)
            SOAK_COUNT(w, holds);
    } else {
        letter.kind = SOAK_RESERVATION;
        status = tn_manager_reserve(w->m, at, tort_below(r, 1024), "soak", &letter.reservation);
        if (status == TN_OK)
            SOAK_COUNT(w, reservations);
    }
    if (status != TN_OK)
        return soak_expect(w, "a hold or reservation", status,
                           SOAK_MAY(UNAVAILABLE) | SOAK_MAY(BUDGET));
    return tort_below(r, 2) ? soak_end(w, &letter) : soak_send(w, r, &letter);
}

/* ---- Act ---- */

static const char *renew(soak_world *w, uint32_t place) {
    tn_status status = tn_manager_discard(w->m, soak_handle(w, place), NULL);
    if (status == TN_OK)
        TN_WORKER_STATUS(soak_register(w, place), TN_OK);
    return soak_expect(w, "discard", status, SOAK_MAY(IN_USE));
}

/* A result: reserve, allocate, adopt into the reservation, and end it. */
static const char *adopt(soak_world *w, tort_random *r) {
    uint32_t place = tort_below(r, SOAK_PLACES);
    tn_location at = soak_any_location(r);
    soak_letter letter = {.kind = SOAK_RESERVATION};
    tn_payload payload;
    tn_handle handle;
    tn_status status =
        tn_manager_reserve(w->m, at, tort_bytes_of(place), "result", &letter.reservation);
    if (status != TN_OK)
        return soak_expect(w, "reserve", status, SOAK_MAY(BUDGET));
    SOAK_COUNT(w, reservations);
    TN_WORKER_STATUS(tort_payload_make(w->driver, at, place, &payload), TN_OK);
    while ((status = tn_manager_adopt_reserved(w->m, payload, at, TN_REPLICABLE,
                                               &letter.reservation, &handle)) == TN_ERR_REENTRANCY)
        sched_yield();
    TN_WORKER_STATUS(status, TN_OK);
    tort_spin(tort_below(r, 2000));
    while ((status = tn_manager_discard(w->m, handle, NULL)) == TN_ERR_REENTRANCY)
        sched_yield();
    TN_WORKER_STATUS(status, TN_OK);
    return soak_end(w, &letter);
}

const char *soak_act(soak_world *w, tort_random *r) {
    uint32_t place = tort_below(r, SOAK_PLACES), dice = tort_below(r, 16);
    tn_handle h = soak_handle(w, place);
    tn_location at = soak_any_location(r);
    if (dice < 6)
        return soak_expect(w, "ensure", tn_manager_ensure(w->m, h, at, soak_stream(w, r, at), NULL),
                           SOAK_LOAD);
    if (dice < 10)
        return soak_expect(w, "drop", tn_manager_drop(w->m, h, at, NULL), SOAK_MAY(IN_USE));
    if (dice < 12)
        return soak_expect(w, "move", tn_manager_move(w->m, h, at, tn_location_none(), NULL, NULL),
                           SOAK_LOAD);
    return dice < 13 ? renew(w, place) : adopt(w, r);
}

/* ---- Look ---- */

static const char *look_at_snapshot(soak_world *w) {
    tn_snapshot *s = NULL;
    tn_location_info infos[SOAK_LOCATIONS] = {{.size = sizeof infos[0]}};
    size_t count = SOAK_LOCATIONS;
    tn_status status = tn_snapshot_take(w->m, &s);
    if (status != TN_OK)
        return soak_expect(w, "snapshot", status, 0);
    TN_WORKER_STATUS(tn_snapshot_locations(s, infos, &count), TN_OK);
    TN_WORKER_CHECK(count == SOAK_LOCATIONS);
    for (size_t i = 0; i < count; i++) {
        TN_WORKER_CHECK(infos[i].used_bytes + infos[i].reserved_bytes <= infos[i].budget_bytes);
        TN_WORKER_CHECK(infos[i].peak_charged_bytes <= infos[i].budget_bytes);
    }
    tn_snapshot_drop(s);
    SOAK_COUNT(w, snapshots);
    return NULL;
}

const char *soak_look(soak_world *w, tort_random *r) {
    tn_controller *c = w->controllers[tort_below(r, SOAK_CONTROLLERS)];
    tn_handle h = soak_handle(w, tort_below(r, SOAK_PLACES));
    uint32_t dice = tort_below(r, 64);
    sched_yield();
    if (dice < 24)
        return soak_expect(w, "metadata",
                           tn_controller_set_metadata(c, h, (int64_t)tort_below(r, 5) - 2, NULL),
                           0);
    if (dice == 24)
        return soak_expect(w, "trace", tn_manager_clear_trace(w->m), 0);
    if (dice == 25) {
        TN_WORKER_STATUS(tn_driver_trim_pinned(w->driver, NULL), TN_OK);
        return NULL;
    }
    return look_at_snapshot(w);
}
