/* SPDX-License-Identifier: MIT */
/* Property test of the manager: one call on both sides: leases, holds, reservations, work on
 * streams. */
#include "manager_property.h"

#include <stdio.h>
#include <string.h>

typedef unsigned long long ull;

#define FULL (TM_LIFETIMES - 1)
#define COLLECTION 8

/* ---- Taking ---------------------------------------------------------------------------------- */

typedef struct collection {
    tn_handle handles[COLLECTION];
    size_t count;
    tn_location at;
} collection;

/* One to eight handles; the later ones mostly where the first one is too. */
static collection draw_collection(run *r, side *s, const call *c) {
    collection out;
    memset(&out, 0, sizeof out);
    out.count = 1 + (c->arg[1] % 8 > 4 ? c->arg[1] / 8 % COLLECTION : 0);
    for (uint32_t k = 0; k < 4; k++) { /* mostly one that is somewhere */
        out.handles[0] = choose_value(r, s, c->arg[0] + 8 * k);
        tm_value *v = tm_find(&s->model, out.handles[0]);
        if (v && v->count)
            break;
    }
    out.at = choose_place(s, out.handles[0], c->arg[2]);
    for (size_t i = 1; i < out.count; i++) {
        uint32_t x = (uint32_t)property_mix(c->arg[3] + i) % 65536;
        out.handles[i] = choose_value(r, s, x);
        for (uint32_t k = 0; k < 8; k++) {
            tm_value *v = tm_find(&s->model, out.handles[i]);
            if (v && tm_resident(v, out.at))
                break;
            out.handles[i] = choose_value(r, s, x + 8 * k);
        }
    }
    size_t bad = c->arg[5] % out.count;
    out.handles[bad] = wrong_handle(r, s, out.handles[bad]);
    out.at = wrong_location(r, out.at);
    if (wrong(r, WRONG_VALUE))
        out.count = 0;
    return out;
}

static void say_collection(run *r, const collection *x) {
    say(r, "(");
    for (size_t i = 0; i < x->count; i++)
        say(r, "%s%s", i ? ", " : "", handle_text(r, x->handles[i]));
    say(r, ") at %s", location_text(x->at));
}

static bool run_acquire(run *r, side *s, const call *c) {
    if (s->model.lease_count >= FULL)
        return true;
    collection x = draw_collection(r, s, c);
    tn_stream stream = wrong_stream(r, x.at, choose_stream(r, x.at, c->arg[4]));
    bool null = wrong(r, WRONG_VALUE_2);
    tn_manager *m = wrong(r, WRONG_MANAGER) ? NULL : s->library;
    tn_lease *out = &s->leases[s->model.lease_count];
    say_collection(r, &x);
    say(r, ", %s\n", stream_text(r, stream));
    tn_status status;
    do {
        arm_faults(r, c);
        status = tn_manager_acquire(m, null ? NULL : x.handles, x.count, x.at, stream,
                                    wrong(r, WRONG_OUT) ? NULL : out);
    } while (again(r, s, status));
    if (!m || wrong(r, WRONG_OUT))
        return compare_refusal(r, s, status, TN_ERR_KIND);
    tm_lease *l;
    return compare_result(
        r, s, status, tm_acquire(&s->model, null ? NULL : x.handles, x.count, x.at, stream, &l));
}

static bool run_hold(run *r, side *s, const call *c) {
    if (s->model.hold_count >= FULL)
        return true;
    collection x = draw_collection(r, s, c);
    bool null = wrong(r, WRONG_VALUE_2);
    tn_manager *m = wrong(r, WRONG_MANAGER) ? NULL : s->library;
    tn_hold *out = &s->holds[s->model.hold_count];
    say_collection(r, &x);
    say(r, "\n");
    tn_status status;
    do {
        arm_faults(r, c);
        status = tn_manager_hold(m, null ? NULL : x.handles, x.count, x.at,
                                 wrong(r, WRONG_OUT) ? NULL : out);
    } while (again(r, s, status));
    if (!m || wrong(r, WRONG_OUT))
        return compare_refusal(r, s, status, TN_ERR_KIND);
    tm_hold *h;
    return compare_result(r, s, status,
                          tm_hold_take(&s->model, null ? NULL : x.handles, x.count, x.at, &h));
}

static bool run_reserve(run *r, side *s, const call *c) {
    static const uint8_t sizes[8] = {32, 8, 64, 0, 40, 24, 96, 1};
    if (s->model.reservation_count >= FULL)
        return true;
    char text[300], *label = text;
    snprintf(text, sizeof text, "r%u", r->step);
    uint64_t bytes = sizes[c->arg[1] % 8];
    if (c->arg[1] / 8 % 32 == 1)
        bytes = INT64_MAX;
    if (wrong(r, WRONG_VALUE))
        bytes = (uint64_t)INT64_MAX + 1 + c->arg[1];
    if (wrong(r, WRONG_VALUE_2))
        snprintf(text, sizeof text, "%s", c->arg[2] % 2 ? " \t" : "");
    if (wrong(r, WRONG_TYPE)) {
        memset(text, 'x', 256);
        text[256] = 0;
    }
    if (wrong(r, WRONG_ZERO_HANDLE))
        label = NULL;
    tn_location at = wrong_location(r, choose_location(c->arg[0]));
    tn_manager *m = wrong(r, WRONG_MANAGER) ? NULL : s->library;
    tn_reservation *out = &s->reservations[s->model.reservation_count];
    say(r, "%s, %llu\n", location_text(at), (ull)bytes);
    tn_status status;
    do {
        arm_faults(r, c);
        status = tn_manager_reserve(m, at, bytes, label, wrong(r, WRONG_OUT) ? NULL : out);
    } while (again(r, s, status));
    if (!m || wrong(r, WRONG_OUT))
        return compare_refusal(r, s, status, TN_ERR_KIND);
    tm_reservation *v;
    return compare_result(r, s, status, tm_reserve(&s->model, at, bytes, label, &v));
}

/* ---- Leases ---------------------------------------------------------------------------------- */

/* Mostly an active one; TM_LIFETIMES: there is none at all. */
static size_t choose_lease(side *s, uint32_t x, bool cuda) {
    size_t count = s->model.lease_count;
    for (size_t i = 0; i < count && x % 8; i++) {
        size_t k = (x / 8 + i) % count;
        if (s->model.leases[k].open && (s->model.leases[k].stream_count || !cuda))
            return k;
    }
    return count ? x / 8 % count : TM_LIFETIMES;
}

static bool run_lookup(run *r, side *s, const call *c) {
    size_t i = choose_lease(s, c->arg[0], false);
    if (i == TM_LIFETIMES)
        return true;
    tm_lease *l = &s->model.leases[i];
    tn_handle h =
        c->arg[1] % 4 ? l->handles[c->arg[1] / 4 % l->handle_count] : choose_value(r, s, c->arg[1]);
    const void *data = NULL;
    tm_materialization *x = NULL;
    say(r, "lease %zu, %s\n", i, handle_text(r, h));
    tn_status status = tn_lease_lookup(wrong(r, WRONG_MANAGER) ? NULL : &s->leases[i], h,
                                       wrong(r, WRONG_OUT) ? NULL : &data);
    if (wrong(r, WRONG_MANAGER) || wrong(r, WRONG_OUT))
        return compare_refusal(r, s, status, TN_ERR_KIND);
    tn_status expected = tm_lookup(l, h, &x);
    s->model.error_free |=
        TM_FREE_MANAGER | TM_FREE_HANDLE; /* which lease is what the caller knows */
    if (!compare_result(r, s, status, expected) || status != TN_OK)
        return !failed(r);
    if (!x->payload.data)
        x->payload.data = data; /* made by a copy: the same from now on */
    if (x->payload.data != data)
        return differ(r, "another payload than before");
    if (x->payload.seed != UINT64_MAX && !tt_check(data, x->payload.seed))
        return differ(r, "the payload's contents are wrong");
    return true;
}

static bool run_lease_read(run *r, side *s, const call *c) {
    size_t i = choose_lease(s, c->arg[0], false);
    if (i == TM_LIFETIMES)
        return true;
    const tm_lease *l = &s->model.leases[i];
    tn_handle h =
        c->arg[1] % 4 ? l->handles[c->arg[1] / 4 % l->handle_count] : choose_value(r, s, c->arg[1]);
    tn_handle list[TM_HANDLES];
    size_t count = TM_HANDLES;
    tn_location at = tn_location_none();
    bool contains = false, listed = false;
    tn_status expected = l->open ? TN_OK : TN_ERR_LIFETIME_CLOSED;
    say(r, "lease %zu\n", i);
    if (!compare_refusal(r, s, tn_lease_handles(&s->leases[i], list, &count), expected) ||
        !compare_refusal(r, s, tn_lease_location(&s->leases[i], &at), expected) ||
        !compare_refusal(r, s, tn_lease_contains(&s->leases[i], h, &contains), expected))
        return false;
    if (!l->open)
        return true;
    if (count != l->handle_count || !tn_location_equal(at, l->at))
        return differ(r, "%zu handles at %s", count, location_text(at));
    for (size_t k = 0; k < count; k++) {
        listed |= tn_handle_equal(h, l->handles[k]);
        if (!tn_handle_equal(list[k], l->handles[k]))
            return differ(r, "handle %zu is %s", k, handle_text(r, list[k]));
    }
    return contains == listed || differ(r, "contains says %d", contains);
}

static bool run_add_stream(run *r, side *s, const call *c) {
    size_t i = choose_lease(s, c->arg[0], true);
    if (i == TM_LIFETIMES)
        return true;
    tm_lease *l = &s->model.leases[i];
    tn_stream stream = choose_stream(r, l->at, c->arg[1]);
    stream = wrong_stream(r, l->at, stream ? stream : r->streams[0]);
    say(r, "lease %zu, %s\n", i, stream_text(r, stream));
    tn_status status;
    do {
        arm_faults(r, c);
        status = tn_lease_add_stream(wrong(r, WRONG_MANAGER) ? NULL : &s->leases[i], stream);
    } while (again(r, s, status));
    if (wrong(r, WRONG_MANAGER))
        return compare_refusal(r, s, status, TN_ERR_KIND);
    tn_status expected = tm_add_stream(l, stream);
    s->model.error_free |= TM_FREE_MANAGER;
    return compare_result(r, s, status, expected);
}

static bool run_release(run *r, side *s, const call *c) {
    size_t i = choose_lease(s, c->arg[0], false);
    if (i == TM_LIFETIMES)
        return true;
    uint32_t flags = c->arg[1] % 4 ? 0 : TN_RELEASE_WAIT;
    if (wrong(r, WRONG_VALUE))
        flags |= 2u << c->arg[1] % 31;
    say(r, "lease %zu, flags %u\n", i, flags);
    tn_status status;
    do {
        arm_faults(r, c);
        status = tn_lease_release(wrong(r, WRONG_MANAGER) ? NULL : &s->leases[i], flags);
    } while (again(r, s, status));
    if (wrong(r, WRONG_MANAGER))
        return compare_refusal(r, s, status, TN_ERR_KIND);
    tn_status expected = tm_release(&s->model.leases[i], flags);
    s->model.error_free |= TM_FREE_MANAGER;
    return compare_result(r, s, status, expected);
}

/* ---- Holds and reservations ------------------------------------------------------------------ */

static size_t choose_hold(side *s, uint32_t x) {
    size_t count = s->model.hold_count;
    for (size_t i = 0; i < count && x % 8; i++) {
        size_t k = (x / 8 + i) % count;
        if (s->model.holds[k].open)
            return k;
    }
    return count ? x / 8 % count : TM_LIFETIMES;
}

static bool run_hold_release(run *r, side *s, const call *c) {
    size_t i = choose_hold(s, c->arg[0]);
    if (i == TM_LIFETIMES)
        return true;
    say(r, "hold %zu\n", i);
    tn_status status = tn_hold_release(wrong(r, WRONG_MANAGER) ? NULL : &s->holds[i]);
    if (wrong(r, WRONG_MANAGER))
        return compare_refusal(r, s, status, TN_ERR_KIND);
    return compare_result(r, s, status, tm_hold_release(&s->model.holds[i]));
}

static bool run_hold_read(run *r, side *s, const call *c) {
    size_t i = choose_hold(s, c->arg[0]);
    if (i == TM_LIFETIMES)
        return true;
    const tm_hold *h = &s->model.holds[i];
    tn_handle list[TM_HANDLES];
    size_t count = TM_HANDLES;
    tn_location at = tn_location_none();
    tn_status expected = h->open ? TN_OK : TN_ERR_LIFETIME_CLOSED;
    say(r, "hold %zu\n", i);
    if (!compare_refusal(r, s, tn_hold_handles(&s->holds[i], list, &count), expected) ||
        !compare_refusal(r, s, tn_hold_location(&s->holds[i], &at), expected))
        return false;
    if (!h->open)
        return true;
    bool same = count == h->handle_count && tn_location_equal(at, h->at);
    for (size_t k = 0; k < count && same; k++)
        same = tn_handle_equal(list[k], h->handles[k]);
    return same || differ(r, "%zu handles at %s", count, location_text(at));
}

static size_t choose_reservation(side *s, uint32_t x) {
    size_t count = s->model.reservation_count;
    for (size_t i = 0; i < count && x % 8; i++) {
        size_t k = (x / 8 + i) % count;
        if (s->model.reservations[k].open)
            return k;
    }
    return count ? x / 8 % count : TM_LIFETIMES;
}

static bool run_reservation_release(run *r, side *s, const call *c) {
    size_t i = choose_reservation(s, c->arg[0]);
    if (i == TM_LIFETIMES)
        return true;
    say(r, "reservation %zu\n", i);
    tn_status status = tn_reservation_release(wrong(r, WRONG_MANAGER) ? NULL : &s->reservations[i]);
    if (wrong(r, WRONG_MANAGER))
        return compare_refusal(r, s, status, TN_ERR_KIND);
    return compare_result(r, s, status, tm_reservation_release(&s->model.reservations[i]));
}

static bool run_reservation_read(run *r, side *s, const call *c) {
    size_t i = choose_reservation(s, c->arg[0]);
    if (i == TM_LIFETIMES)
        return true;
    const tm_reservation *v = &s->model.reservations[i];
    tn_reservation_info info = {.size = wrong(r, WRONG_OUT) ? 4 : sizeof info};
    say(r, "reservation %zu\n", i);
    tn_status status =
        tn_reservation_read(wrong(r, WRONG_MANAGER) ? NULL : &s->reservations[i], &info);
    bool bad = wrong(r, WRONG_OUT) || wrong(r, WRONG_MANAGER);
    tn_status expected = bad ? TN_ERR_KIND : v->open ? TN_OK : TN_ERR_LIFETIME_CLOSED;
    if (!compare_refusal(r, s, status, expected) || status != TN_OK)
        return !failed(r);
    if (info.bytes != v->bytes || !tn_location_equal(info.at, v->at) ||
        strcmp(info.label, v->label) != 0)
        return differ(r, "reservation of %llu bytes at %s", (ull)info.bytes,
                      location_text(info.at));
    return true;
}

bool run_lifetime(run *r, side *s, const call *c) {
    switch (c->op) {
    case OP_ACQUIRE:
        return run_acquire(r, s, c);
    case OP_LOOKUP:
        return run_lookup(r, s, c);
    case OP_LEASE_READ:
        return run_lease_read(r, s, c);
    case OP_ADD_STREAM:
        return run_add_stream(r, s, c);
    case OP_RELEASE:
        return run_release(r, s, c);
    case OP_HOLD:
        return run_hold(r, s, c);
    case OP_HOLD_RELEASE:
        return run_hold_release(r, s, c);
    case OP_HOLD_READ:
        return run_hold_read(r, s, c);
    case OP_RESERVE:
        return run_reserve(r, s, c);
    case OP_RESERVATION_RELEASE:
        return run_reservation_release(r, s, c);
    default:
        return run_reservation_read(r, s, c);
    }
}

/* ---- The machine ----------------------------------------------------------------------------- */

/* Work that reads what a lease borrows, on one of its streams: the storage must outlive it. */
static bool read_leased(run *r, side *s, const call *c, uint64_t ns) {
    for (size_t i = 0; i < s->model.lease_count; i++) {
        size_t k = (c->arg[2] + i) % s->model.lease_count;
        tm_lease *l = &s->model.leases[k];
        const void *data;
        if (l->state != TM_ACTIVE || !l->stream_count)
            continue;
        if (tn_lease_lookup(&s->leases[k], l->handles[0], &data) != TN_OK)
            return differ(r, "lookup of lease %zu: %s", k, tn_last_error()->message);
        tn_stream stream = l->streams[c->arg[3] % l->stream_count];
        uint64_t bytes = tt_field_bytes(data, 0);
        if (!bytes)
            continue;
        say(r, "lease %zu on %s for %llu ns\n", k, stream_text(r, stream), (ull)ns);
        if (tn_sim_queue_read(r->sim, stream, tt_field_base(data, 0), bytes, ns) != TN_OK)
            return differ(r, "work cannot be queued: %s", tn_last_error()->message);
        tm_world_queue(&r->world, stream, ns);
        return true;
    }
    return true;
}

bool run_machine(run *r, side *s, const call *c) {
    uint64_t ns = 1 + c->arg[0] % 50;
    if (c->op == OP_ADVANCE) {
        say(r, "%llu ns\n", (ull)ns);
        tm_world_advance(&r->world, ns);
        return tn_sim_advance(r->sim, ns) == TN_OK || differ(r, "time stands still");
    }
    if (c->arg[1] % 4)
        return read_leased(r, s, c, ns);
    tn_stream stream = r->streams[c->arg[2] % 6];
    say(r, "%s for %llu ns\n", stream_text(r, stream), (ull)ns);
    tm_world_queue(&r->world, stream, ns);
    return tn_sim_queue_delay(r->sim, stream, ns) == TN_OK || differ(r, "work cannot be queued");
}
