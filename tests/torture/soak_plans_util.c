/* SPDX-License-Identifier: MIT */
/*
 * Uses, sequences and scopes of the soak, all drawn at random.
 */
#include "soak_torture.h"

#include <sched.h>

/* What a plan may say that ran in part, or not at all. */
#define PLAN_MAY                                                                                   \
    (SOAK_MAY(PLAN) | SOAK_MAY(PLAN_EXEC) | SOAK_MAY(STALE) | SOAK_MAY(SEARCH_LIMIT) | SOAK_LOAD)

static void count_failure(soak_world *w, tn_status status) {
    if (status == TN_ERR_STALE)
        SOAK_COUNT(w, stale);
    if (status == TN_ERR_PLAN)
        SOAK_COUNT(w, infeasible);
    if (status == TN_ERR_PLAN_EXEC)
        SOAK_COUNT(w, partial);
}

/* ---- Uses ---- */

#define REQUIREMENTS 3

typedef struct wish {
    uint32_t places[REQUIREMENTS];
    tn_requirement requirements[REQUIREMENTS];
    tn_reservation_spec reservation;
    tn_transfer_stream consumers[SOAK_DEVICES];
    uint32_t count, consumer_count;
} wish;

static void add_consumer(soak_world *w, tort_random *r, wish *x, tn_location at) {
    for (uint32_t i = 0; i < x->consumer_count; i++)
        if (x->consumers[i].at.index == at.index)
            return;
    x->consumers[x->consumer_count++] = (tn_transfer_stream){at, soak_stream(w, r, at)};
}

/* Mostly one location, as an operation has it; sometimes one each. */
static tn_status make_request(soak_world *w, tort_random *r, wish *x, tn_request **out) {
    tn_request_spec spec = TN_REQUEST_SPEC_INIT;
    tn_location at = soak_any_location(r);
    bool apart = tort_below(r, 4) == 0;
    x->consumer_count = 0;
    x->count = soak_choose_places(r, x->places, 1 + tort_below(r, REQUIREMENTS));
    for (uint32_t i = 0; i < x->count; i++) {
        at = apart ? soak_any_location(r) : at;
        x->requirements[i] = (tn_requirement){soak_handle(w, x->places[i]), at};
        if (soak_is_cuda(at))
            add_consumer(w, r, x, at);
    }
    x->reservation = (tn_reservation_spec){at, 1 + tort_below(r, 700), "workspace"};
    spec.name = "operation";
    spec.requirements = x->requirements;
    spec.requirement_count = x->count;
    spec.reservations = &x->reservation;
    spec.reservation_count = tort_below(r, 3) == 0;
    return tn_request_create(&spec, out);
}

static const char *body(soak_world *w, tort_random *r, const wish *x, soak_letter *letter) {
    tn_use_info info = TN_USE_INFO_INIT;
    TN_WORKER_STATUS(tn_use_read(letter->use, &info), TN_OK);
    TN_WORKER_CHECK(info.entered == 1);
    if (info.hit)
        SOAK_COUNT(w, hits);
    if (info.redecisions)
        SOAK_COUNT(w, redecided);
    for (uint32_t i = 0; i < x->count; i++) {
        const tn_requirement *q = &x->requirements[i];
        const void *data = NULL;
        tn_status status = tn_use_value(letter->use, q->handle, q->at, &data);
        if (status == TN_ERR_REENTRANCY && w->mode == TN_MODE_SERIAL)
            continue; /* a guard is up: it is not looked at */
        TN_WORKER_STATUS(status, TN_OK);
        soak_letter one = {.seen_count = 0};
        SOAK_TRY(soak_see(&one, data, x->places[i]));
        letter->seen[letter->seen_count++] = one.seen[0];
        for (uint32_t k = 0; k < x->consumer_count; k++)
            if (tn_location_equal(x->consumers[k].at, q->at))
                SOAK_TRY(soak_queue(w, r, x->consumers[k].stream, &one));
    }
    tort_spin(tort_below(r, 3000));
    return NULL;
}

const char *soak_use(soak_world *w, tort_random *r) {
    wish x;
    tn_request *request = NULL;
    tn_use_options options = TN_USE_OPTIONS_INIT;
    soak_letter letter = {.kind = SOAK_USE};
    TN_WORKER_STATUS(make_request(w, r, &x, &request), TN_OK);
    options.consumers = x.consumers;
    options.consumer_count = x.consumer_count;
    tn_status status = tn_use_create(w->controllers[tort_below(r, SOAK_CONTROLLERS)], request,
                                     &options, &letter.use);
    tn_request_destroy(request);
    TN_WORKER_STATUS(status, TN_OK);
    status = tn_use_enter(letter.use);
    if (status != TN_OK) {
        count_failure(w, status);
        SOAK_TRY(soak_expect(w, "the entry of a use", status, PLAN_MAY | SOAK_MAY(UNAVAILABLE)));
        tn_use_destroy(letter.use);
        return NULL;
    }
    SOAK_COUNT(w, uses);
    SOAK_TRY(body(w, r, &x, &letter));
    return tort_below(r, 4) ? soak_end(w, &letter) : soak_send(w, r, &letter);
}

/* ---- Sequences ---- */

static tn_action any_action(soak_world *w, tort_random *r) {
    tn_handle h = soak_handle(w, tort_below(r, SOAK_PLACES));
    tn_location at = soak_any_location(r);
    uint32_t dice = tort_below(r, 8);
    if (dice < 4)
        return tn_action_drop(h, at);
    return dice < 7 ? tn_action_ensure(h, at) : tn_action_move(h, at, tn_location_none());
}

const char *soak_plan(soak_world *w, tort_random *r) {
    tn_action actions[6];
    tn_run_options options = TN_RUN_OPTIONS_INIT;
    tn_plan_report *report = NULL;
    tn_plan_report_info info = {.size = sizeof info};
    uint32_t count = tort_below(r, 7);
    for (uint32_t i = 0; i < count; i++)
        actions[i] = any_action(w, r);
    if (tort_below(r, 8) == 0) {
        tn_status status = tn_manager_state_version(w->m, &options.expected_version);
        if (status != TN_OK)
            return soak_expect(w, "the version", status, 0);
    }
    tn_status status = tn_manager_execute_actions(w->m, "soak", actions, count, &options, &report);
    count_failure(w, status);
    SOAK_COUNT(w, plans);
    TN_WORKER_CHECK((report != NULL) == (status == TN_OK || status == TN_ERR_PLAN_EXEC));
    if (report) {
        TN_WORKER_STATUS(tn_plan_report_read(report, &info), TN_OK);
        TN_WORKER_CHECK(info.complete == (status == TN_OK));
        TN_WORKER_CHECK(info.complete ? info.transition_count == count
                                      : info.transition_count < count);
    }
    const char *text = soak_expect(w, "a sequence", status, PLAN_MAY);
    tn_plan_report_drop(report);
    return text;
}

/* ---- Scopes ---- */

static tn_status make_plan(soak_world *w, tort_random *r, tn_plan **out) {
    tn_action actions[9];
    tn_reservation_spec reservations[2];
    tn_plan_spec spec = TN_PLAN_SPEC_INIT;
    for (uint32_t i = 0; i < 9; i++)
        actions[i] = any_action(w, r);
    for (uint32_t i = 0; i < 2; i++)
        reservations[i] =
            (tn_reservation_spec){soak_any_location(r), tort_below(r, 600), "workspace"};
    spec.name = "scope";
    spec.reclaim = actions;
    spec.reclaim_count = tort_below(r, 4);
    spec.enter = actions + 3;
    spec.enter_count = tort_below(r, 4);
    spec.exit = actions + 6;
    spec.exit_count = tort_below(r, 3);
    spec.reservations = reservations;
    spec.reservation_count = tort_below(r, 3);
    return tn_plan_create(&spec, out);
}

static const char *look_at(soak_world *w, const tn_plan *plan) {
    tn_explanation *e = NULL;
    tn_explanation_info info = TN_EXPLANATION_INFO_INIT;
    tn_status status = tn_manager_explain(w->m, plan, TN_VERSION_ANY, &e);
    if (status == TN_OK) {
        TN_WORKER_STATUS(tn_explanation_read(e, &info), TN_OK);
        TN_WORKER_CHECK((info.reason == TN_REASON_NONE) == (info.feasible == 1));
    }
    tn_explanation_drop(e);
    return soak_expect(w, "an explanation", status, SOAK_MAY(STALE));
}

/* Destroyed while it is entered: its reservations go, and nothing is run. */
static const char *abandon(soak_world *w, tn_scope *scope) {
    tn_status status;
    while ((status = tn_scope_destroy(scope)) == TN_ERR_REENTRANCY)
        sched_yield();
    TN_WORKER_STATUS(status, TN_OK);
    SOAK_COUNT(w, abandoned);
    return NULL;
}

const char *soak_scope(soak_world *w, tort_random *r) {
    soak_letter letter = {.kind = SOAK_SCOPE};
    tn_plan *plan = NULL;
    TN_WORKER_STATUS(make_plan(w, r, &plan), TN_OK);
    const char *text = tort_below(r, 2) ? look_at(w, plan) : NULL;
    tn_status status = tn_scope_create(w->m, plan, NULL, &letter.scope);
    tn_plan_destroy(plan);
    SOAK_TRY(text);
    TN_WORKER_STATUS(status, TN_OK);
    status = tn_scope_enter(letter.scope);
    if (status != TN_OK) {
        count_failure(w, status);
        SOAK_TRY(soak_expect(w, "the entry of a scope", status, PLAN_MAY));
        TN_WORKER_STATUS(tn_scope_destroy(letter.scope), TN_OK);
        return NULL;
    }
    SOAK_COUNT(w, scopes);
    tort_spin(tort_below(r, 3000));
    uint32_t dice = tort_below(r, 8);
    if (dice == 0)
        return abandon(w, letter.scope);
    return dice < 5 ? soak_end(w, &letter) : soak_send(w, r, &letter);
}
