/* SPDX-License-Identifier: MIT */
/*
 * The course of a plan: streams, admission, then step by step. What is committed stays (M88);
 * after a failure the rest of the claims and removals is given back.
 */
#include "transition/transition_priv.h"

/* ---- Transfer streams ------------------------------------------------------------------- */

static tn_status check_stream(tn__trans *t, const tn_transfer_stream *s) {
    tn_location at;
    tn_stream_info info;
    tn_status status = tn__driver_check_location(t->driver, s->at, &at);
    if (status != TN_OK)
        return status;
    bool cuda = at.kind == TN_LOCATION_CUDA;
    status = tn__driver_check_stream(t->driver, s->stream, cuda ? at.index : 0, &info);
    if (status == TN_ERR_KIND || cuda)
        return status;
    return tn__fail(TN_ERR_VALUE, "a host destination takes no transfer stream");
}

tn_status tn__streams_check(tn__trans *t, const tn_transfer_stream *streams, size_t count) {
    if (count > 0 && !streams)
        return tn__fail(TN_ERR_KIND, "the transfer streams are NULL");
    for (size_t i = 0; i < count; i++) {
        tn_status status = check_stream(t, &streams[i]);
        for (size_t j = 0; j < i && status == TN_OK; j++)
            if (tn__location_same(streams[i].at, streams[j].at))
                status = tn__fail(TN_ERR_VALUE, "two transfer streams for one location");
        if (status != TN_OK)
            return status;
    }
    return TN_OK;
}

tn_stream tn__streams_for(const tn_transfer_stream *streams, size_t count,
                          const tn_action *action) {
    if (action->kind != TN_ACTION_ENSURE && action->kind != TN_ACTION_MOVE)
        return NULL;
    for (size_t i = 0; i < count; i++)
        if (tn__location_same(streams[i].at, action->at))
            return streams[i].stream;
    return NULL;
}

/* ---- Steps ------------------------------------------------------------------------------ */

static tn_status act(tn__course *c, const tn__sim_part *part, size_t i, size_t step) {
    tn__run run = {.t = c->t,
                   .thread = c->thread,
                   .action = part->actions[i],
                   .stream = tn__streams_for(c->streams, c->stream_count, &part->actions[i]),
                   .ticket = &c->ticket,
                   .claims = &c->claims,
                   .removal = c->removal,
                   .removed_later = c->later[step]};
    tn_status status = tn__step_run(&run);
    if (status == TN_OK)
        tn__plan_report_add(c->report, part->phase, &run.report);
    return status;
}

static tn_status reserve(tn__course *c, const tn_reservation_spec *spec) {
    tn_location at;
    tn__need need = {.ledger = NULL};
    tn_status status = tn__driver_check_location(c->t->driver, spec->at, &at);
    if (status != TN_OK)
        return status;
    tn__lock(&c->t->store->lock);
    need.ledger = tn__store_ledger(c->t->store, at);
    tn__claims_lend(&c->claims, &need, at, spec->bytes);
    tn__unlock(&c->t->store->lock);
    status = tn__life_reserve_claimed(c->t->life, at, spec->bytes, spec->label,
                                      &c->reservations[c->reserved]);
    c->reserved += status == TN_OK;
    tn__lock(&c->t->store->lock);
    if (status != TN_OK)
        tn__claims_return(&c->claims, need.ledger, spec->bytes);
    else
        tn__claims_step(&c->claims);
    tn__flow_wake(c->t);
    tn__unlock(&c->t->store->lock);
    return status;
}

static tn_status step(tn__course *c, const tn__sim_part *part, size_t i, size_t step) {
    tn_status status = part->phase == TN_PHASE_RESERVE ? reserve(c, &part->reservations[i])
                                                       : act(c, part, i, step);
    return status == TN_OK ? TN_OK : tn__plan_failed(c->name, part, i);
}

void tn__release_all(tn_reservation *reservations, size_t count) {
    tn_error kept = *tn__error_current();
    while (count-- > 0)
        if (tn__record_release_inside(reservations[count].record, reservations[count].generation) !=
            TN_OK)
            tn__error_restore(&kept);
}

static tn_status run_steps(tn__course *c) {
    size_t done = 0;
    tn_status status = TN_OK;
    for (size_t p = 0; p < c->run_count && status == TN_OK; p++)
        for (size_t i = 0; i < c->parts[p].count && status == TN_OK; i++)
            status = step(c, &c->parts[p], i, done++);
    return status;
}

/* The steps, then `ready`, still in flight: nobody else can remove what the plan has made or found.
 * A failure is unwound before anybody else has a turn (M205). */
static tn_status run(tn__course *c) {
    tn_status status = run_steps(c);
    c->ran = status == TN_OK;
    if (status == TN_OK && c->ready)
        status = c->ready(c->ready_context);
    if (status != TN_OK) {
        tn__release_all(c->reservations, c->reserved);
        c->reserved = 0;
    }
    return status;
}

tn_status tn__course_run(tn__course *c) {
    if (c->expected != TN_VERSION_ANY) { /* early; the definite check is admission's last step */
        uint64_t actual = tn__state_version(c->t->store, c->t->life);
        if (actual != c->expected)
            return tn__stale(c->t->manager, c->expected, actual);
    }
    tn_status status = tn__streams_check(c->t, c->streams, c->stream_count);
    if (status == TN_OK)
        status = tn__course_admit(c);
    if (status == TN_OK) {
        status = run(c);
        tn__course_leave(c);
        /* if it could not get ready, that is the end, and all of it ran (C137) */
        tn__plan_report_end(c->report, tn__trans_now(c->t), c->ran && status != TN_OK);
    }
    tn__course_fini(c);
    return status;
}
