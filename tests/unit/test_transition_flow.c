/* SPDX-License-Identifier: MIT */
/*
 * src/transition/flow.c: who goes when. Plans made by hand, so that each rule stands alone: order of
 * arrival, conflicts, bytes, refusal, joined loads, the guard, callbacks (M191..M194, M258).
 */
#include "core_fixture.h"

#define BUDGET 100u

/* One plan of a test: admitted on a thread of its own, in flight until told to leave. */
struct plan {
    tn_manager *m;
    tn__ticket ticket;
    uint64_t bytes[2]; /* at P (destination) and N (source location) */
    bool optional;     /* the first need */
    tn_status load;    /* `loading`: how the load went */
    bool loading;
    tn__need needs[2];
    uint64_t handle;
    bool in_callback; /* the thread is inside a source callback of another manager */
    int rechecks;     /* how often the judge asks for another look */
    tn_status recheck;
    bool slow_look; /* it takes until `leave` */
    atomic_bool looking;
    tn_status judged;    /* TN_OK, or the judge's refusal */
    atomic_bool ready;   /* its thread has a slot */
    atomic_int admitted; /* order of admission, from 1; 0: not yet */
    atomic_int *order;
    sem_t leave;
    struct op op;
};

static void claims_handle(struct plan *p, uint64_t index) {
    p->handle = index;
    p->ticket.handles = &p->handle;
    p->ticket.handle_count = 1;
}

static enum tn__judgement judge(void *context, tn_status *status) {
    struct plan *p = context;
    tn__store *store = p->m->store;
    if (p->rechecks-- > 0)
        return TN__JUDGE_RECHECK;
    if (p->judged != TN_OK) {
        *status = tn__fail(p->judged, "judged");
        return TN__JUDGE_FAIL;
    }
    p->needs[0] = (tn__need){.ledger = tn__store_ledger(store, P),
                             .at = P,
                             .bytes = p->bytes[0],
                             .optional = p->optional};
    p->needs[1] = (tn__need){.ledger = tn__store_ledger(store, N), .at = N, .bytes = p->bytes[1]};
    return TN__JUDGE_GO;
}

static tn_status recheck(void *context) {
    struct plan *p = context;
    if (p->slow_look) {
        atomic_store(&p->looking, true);
        while (sem_wait(&p->leave) != 0)
            continue;
    }
    return p->recheck == TN_OK ? TN_OK : tn__fail(p->recheck, "looked again");
}

static tn_status fly(struct plan *p, tn__thread *thread) {
    tn__trans *t = p->m->trans;
    tn__judge by = {judge, recheck, p, false};
    p->ticket.needs = p->needs;
    p->ticket.need_count = 2;
    tn_status status = tn__flow_admit(t, thread, &p->ticket, &by);
    if (status != TN_OK)
        return status;
    p->ticket.loading = p->loading ? p->handle : 0;
    atomic_store(&p->admitted, atomic_fetch_add(p->order, 1) + 1);
    tn__unlock(&t->store->lock);
    while (sem_wait(&p->leave) != 0)
        continue;
    tn__lock(&t->store->lock);
    if (p->loading) {
        if (p->load != TN_OK)
            tn__fail(p->load, "the load failed");
        tn__flow_load_done(&p->ticket, p->load);
        tn__flow_wake(t);
    }
    tn__flow_leave(t, &p->ticket);
    tn__unlock(&t->store->lock);
    return p->loading ? p->load : TN_OK;
}

static tn_status run_plan(void *arg) {
    struct plan *p = arg;
    tn__thread *thread = NULL;
    tn__frame frame;
    tn_status status = tn__life_thread(p->m->life, &thread);
    if (status != TN_OK)
        return status;
    atomic_store(&p->ready, true);
    if (p->in_callback)
        tn__frame_push(thread, &frame, p->m->id + 1000, true);
    status = fly(p, thread);
    if (p->in_callback)
        tn__frame_pop(thread, &frame);
    return status;
}

struct scene {
    tn_manager *m;
    atomic_int order;
    struct plan plans[6];
};

static struct scene *scene_of(struct spec *f) {
    static struct scene s;
    s = (struct scene){.m = MANAGER(f, {P, BUDGET}, {N, BUDGET})};
    for (int i = 0; i < 6; i++) {
        s.plans[i].m = s.m;
        s.plans[i].order = &s.order;
        sem_init(&s.plans[i].leave, 0, 0);
    }
    return &s;
}

/* Start a plan that must get in flight. */
static void launch(struct plan *p) {
    OP_START(&p->op, run_plan, p, 0);
    wait_until(atomic_load(&p->admitted) != 0);
}

/* Start a plan that must wait, behind `before` others. */
static void queue(struct plan *p, size_t before) {
    OP_START(&p->op, run_plan, p, 0);
    wait_until(flow_count(p->m, false) == before + 1);
    pause_shortly();
    assert_int_equal(atomic_load(&p->admitted), 0);
}

static tn_status land(struct plan *p) {
    sem_post(&p->leave);
    return op_end(&p->op);
}

static void claimed(tn_manager *m, tn_location at, uint64_t total, uint64_t claim) {
    uint64_t got_total, got_claim;
    tn__ledger_read(tn__store_ledger(m->store, at), &got_total, &got_claim);
    assert_int_equal(got_total, total);
    assert_int_equal(got_claim, claim);
}

/* ---- Conflicts and order ----------------------------------------------------------------- */

static void plans_of_one_value_go_in_order_of_arrival(void **state) {
    struct scene *s = scene_of(*state);
    struct plan *p = s->plans;
    for (int i = 0; i < 4; i++)
        claims_handle(&p[i], 5);
    launch(&p[0]);
    queue(&p[1], 0);
    queue(&p[2], 1);
    queue(&p[3], 2);
    for (int i = 0; i < 4; i++) {
        wait_until(atomic_load(&p[i].admitted) != 0);
        assert_status(land(&p[i]), TN_OK);
        assert_int_equal(atomic_load(&p[i].admitted), i + 1);
    }
}

static void plans_of_different_values_overlap(void **state) {
    struct scene *s = scene_of(*state);
    struct plan *p = s->plans;
    for (int i = 0; i < 3; i++)
        claims_handle(&p[i], i == 2 ? 5 : 5 + (uint64_t)i);
    launch(&p[0]);
    launch(&p[1]);
    queue(&p[2], 0); /* of the first one's value */
    assert_int_equal(flow_count(s->m, true), 2);
    assert_status(land(&p[1]), TN_OK);
    pause_shortly();
    assert_int_equal(atomic_load(&p[2].admitted), 0);
    assert_status(land(&p[0]), TN_OK);
    assert_status(land(&p[2]), TN_OK);
}

/* SERIAL: any two conflict. */
static void plans_of_a_serial_manager_go_one_by_one(void **state) {
    struct scene *s = scene_of(*state);
    struct plan *p = s->plans;
    claims_handle(&p[0], 5);
    claims_handle(&p[1], 6);
    launch(&p[0]);
    queue(&p[1], 0);
    queue(&p[2], 1);
    assert_status(land(&p[0]), TN_OK);
    wait_until(atomic_load(&p[1].admitted) != 0);
    assert_int_equal(flow_count(s->m, true), 1);
    assert_status(land(&p[1]), TN_OK);
    assert_status(land(&p[2]), TN_OK);
}

/* An exclusive plan (close) waits for all, and keeps everybody behind it. */
static void exclusive_plan_waits_for_all_and_stops_all(void **state) {
    struct scene *s = scene_of(*state);
    struct plan *p = s->plans;
    claims_handle(&p[0], 5);
    p[1].ticket.exclusive = true;
    claims_handle(&p[2], 6);
    launch(&p[0]);
    queue(&p[1], 0);
    queue(&p[2], 1);
    assert_status(land(&p[0]), TN_OK);
    wait_until(atomic_load(&p[1].admitted) != 0);
    pause_shortly();
    assert_int_equal(atomic_load(&p[2].admitted), 0);
    assert_status(land(&p[1]), TN_OK);
    assert_status(land(&p[2]), TN_OK);
    assert_int_equal(atomic_load(&p[2].admitted), 3);
}

/* ---- Bytes ------------------------------------------------------------------------------- */

static void plan_that_does_not_fit_waits_for_claims_in_flight(void **state) {
    struct scene *s = scene_of(*state);
    struct plan *p = s->plans;
    for (int i = 0; i < 2; i++) {
        claims_handle(&p[i], 5 + (uint64_t)i);
        p[i].bytes[0] = 60;
    }
    launch(&p[0]);
    claimed(s->m, P, 60, 60);
    queue(&p[1], 0);
    claimed(s->m, P, 60, 60); /* a plan that waits has no claim */
    assert_status(land(&p[0]), TN_OK);
    wait_until(atomic_load(&p[1].admitted) != 0);
    claimed(s->m, P, 60, 60);
    assert_status(land(&p[1]), TN_OK);
    claimed(s->m, P, 0, 0);
}

/* M258: judged again when the claims are gone, and refused: they became charges. */
static void plan_that_does_not_fit_in_the_end_is_refused(void **state) {
    struct scene *s = scene_of(*state);
    struct plan *p = s->plans;
    tn__ledger *ledger = tn__store_ledger(s->m->store, P);
    claims_handle(&p[0], 5);
    p[0].bytes[0] = 60;
    claims_handle(&p[1], 6);
    p[1].bytes[0] = 41;
    p[1].bytes[1] = 10;
    launch(&p[0]);
    queue(&p[1], 0);
    tn__lock(&s->m->store->lock);
    tn__need_settle(&p[0].needs[0]);
    p[0].needs[0].held = false;
    tn__flow_wake(s->m->trans);
    tn__unlock(&s->m->store->lock);
    assert_status(op_end(&p[1].op), TN_ERR_BUDGET);
    assert_int_equal(p[1].op.error.requested_bytes, 41);
    claimed(s->m, N, 0, 0); /* all or none */
    assert_status(land(&p[0]), TN_OK);
    tn__ledger_uncharge(ledger, 60);
}

static void plan_that_does_not_fit_is_refused_at_once_when_nobody_claims(void **state) {
    struct scene *s = scene_of(*state);
    struct plan *p = s->plans;
    tn_reservation r = reserve(s->m, P, 50, "in the way");
    claims_handle(&p[0], 5);
    p[0].bytes[0] = 51;
    claims_handle(&p[1], 6);
    p[1].bytes[1] = BUDGET + 1;
    for (int i = 0; i < 2; i++) {
        OP_START(&p[i].op, run_plan, &p[i], 0);
        assert_status(op_end(&p[i].op), TN_ERR_BUDGET);
    }
    assert_at(p[1].op.error.at, N);
    claimed(s->m, P, 50, 0);
    claimed(s->m, N, 0, 0);
    release_reservation(&r);
}

/* M78: the destination of a direct load. */
static void optional_need_that_does_not_fit_is_left_out(void **state) {
    struct scene *s = scene_of(*state);
    struct plan *p = s->plans;
    tn_reservation r = reserve(s->m, P, 50, "in the way");
    claims_handle(&p[0], 5);
    p[0].bytes[0] = 51;
    p[0].bytes[1] = 20;
    p[0].optional = true;
    launch(&p[0]);
    assert_false(p[0].needs[0].claimed);
    assert_true(p[0].needs[1].claimed);
    claimed(s->m, P, 50, 0);
    claimed(s->m, N, 20, 20);
    assert_status(land(&p[0]), TN_OK);
    claimed(s->m, N, 0, 0);
    release_reservation(&r);
}

static void optional_need_waits_while_others_claim(void **state) {
    struct scene *s = scene_of(*state);
    struct plan *p = s->plans;
    for (int i = 0; i < 2; i++) {
        claims_handle(&p[i], 5 + (uint64_t)i);
        p[i].bytes[0] = 60;
        p[i].optional = true;
    }
    launch(&p[0]);
    queue(&p[1], 0);
    assert_status(land(&p[0]), TN_OK);
    wait_until(atomic_load(&p[1].admitted) != 0);
    assert_true(p[1].needs[0].claimed);
    assert_status(land(&p[1]), TN_OK);
}

/* First come, first served: a small plan does not overtake a big one that waits for bytes there,
 * but one elsewhere does. */
static void small_plan_waits_behind_a_big_one_at_its_location(void **state) {
    struct scene *s = scene_of(*state);
    struct plan *p = s->plans;
    for (int i = 0; i < 4; i++)
        claims_handle(&p[i], 5 + (uint64_t)i);
    p[0].bytes[0] = 60;
    p[1].bytes[0] = 60;
    p[2].bytes[0] = 10; /* it would fit */
    p[3].bytes[1] = 10;
    launch(&p[0]);
    queue(&p[1], 0);
    queue(&p[2], 1);
    launch(&p[3]);
    assert_status(land(&p[0]), TN_OK);
    wait_until(atomic_load(&p[2].admitted) != 0);
    assert_int_equal(atomic_load(&p[1].admitted), 3);
    for (int i = 1; i < 4; i++)
        assert_status(land(&p[i]), TN_OK);
    claimed(s->m, P, 0, 0);
    claimed(s->m, N, 0, 0);
}

/* A plan that gets in flight lets those go on that waited behind it for bytes of the same location,
 * and not only when it leaves. */
static void plan_that_gets_in_flight_wakes_those_behind_it(void **state) {
    struct scene *s = scene_of(*state);
    struct plan *p = s->plans;
    for (int i = 0; i < 3; i++) {
        claims_handle(&p[i], 5 + (uint64_t)i);
        p[i].bytes[0] = i == 2 ? 10 : 60;
    }
    launch(&p[0]);
    queue(&p[1], 0);
    tn__lock(&s->m->store->lock);
    p[1].rechecks = 1; /* it keeps its place, and its bytes are known, while it looks */
    p[1].slow_look = true;
    tn__unlock(&s->m->store->lock);
    assert_status(land(&p[0]), TN_OK);
    wait_until(atomic_load(&p[1].looking));
    queue(&p[2], 1);
    sem_post(&p[1].leave);
    wait_until(atomic_load(&p[2].admitted) != 0);
    assert_int_equal(atomic_load(&p[1].admitted), 2);
    assert_status(land(&p[1]), TN_OK);
    assert_status(land(&p[2]), TN_OK);
    claimed(s->m, P, 0, 0);
}

/* ---- Judging ----------------------------------------------------------------------------- */

static void plan_that_is_judged_on_old_news_looks_again(void **state) {
    struct scene *s = scene_of(*state);
    s->plans[0].rechecks = 2;
    launch(&s->plans[0]);
    assert_int_equal(s->plans[0].rechecks, -1);
    assert_status(land(&s->plans[0]), TN_OK);
}

static void plan_whose_second_look_fails_leaves_the_queue(void **state) {
    struct scene *s = scene_of(*state);
    struct plan *p = &s->plans[0];
    p->rechecks = 1;
    p->recheck = TN_ERR_HANDLE;
    OP_START(&p->op, run_plan, p, 0);
    assert_status(op_end(&p->op), TN_ERR_HANDLE);
    assert_int_equal(flow_count(s->m, false), 0);
}

/* It held up only those behind it, who must be told that it is gone. */
static void plan_whose_second_look_fails_wakes_those_behind_it(void **state) {
    struct scene *s = scene_of(*state);
    struct plan *p = s->plans;
    claims_handle(&p[0], 5);
    claims_handle(&p[1], 5);
    p[0].rechecks = 1;
    p[0].recheck = TN_ERR_HANDLE;
    p[0].slow_look = true;
    OP_START(&p[0].op, run_plan, &p[0], 0);
    wait_until(atomic_load(&p[0].looking));
    queue(&p[1], 1);
    assert_status(land(&p[0]), TN_ERR_HANDLE);
    wait_until(atomic_load(&p[1].admitted) != 0);
    assert_status(land(&p[1]), TN_OK);
}

static void plan_whose_judge_refuses_leaves_the_queue(void **state) {
    struct scene *s = scene_of(*state);
    struct plan *p = &s->plans[0];
    p->judged = TN_ERR_OWNERSHIP;
    OP_START(&p->op, run_plan, p, 0);
    assert_status(op_end(&p->op), TN_ERR_OWNERSHIP);
    assert_int_equal(flow_count(s->m, false), 0);
    assert_int_equal(flow_count(s->m, true), 0);
}

/* ---- Joined loads ------------------------------------------------------------------------ */

static void start_load(struct plan *p, tn_status result) {
    claims_handle(p, 5);
    p->loading = true;
    p->load = result;
    launch(p);
}

/* A joiner is in no queue. */
static void join_load(struct plan *p, struct plan *loader, uint32_t refs) {
    uint32_t seen = 0;
    claims_handle(p, 5);
    p->ticket.joins = true;
    OP_START(&p->op, run_plan, p, 0);
    while (seen != refs) {
        pause_shortly();
        tn__lock(&p->m->store->lock);
        seen = loader->ticket.flight ? loader->ticket.flight->refs : 0;
        tn__unlock(&p->m->store->lock);
    }
    assert_int_equal(flow_count(p->m, false), 0);
}

static void joined_load_that_fails_fails_for_all(void **state) {
    struct scene *s = scene_of(*state);
    struct plan *p = s->plans;
    start_load(&p[0], TN_ERR_SOURCE);
    join_load(&p[1], &p[0], 2);
    join_load(&p[2], &p[0], 3);
    assert_status(land(&p[0]), TN_ERR_SOURCE);
    for (int i = 1; i < 3; i++) {
        assert_status(op_end(&p[i].op), TN_ERR_SOURCE);
        assert_string_equal(p[i].op.error.message, "the load failed");
        assert_int_equal(atomic_load(&p[i].admitted), 0);
    }
}

static void joined_load_that_succeeds_is_followed_by_a_look(void **state) {
    struct scene *s = scene_of(*state);
    struct plan *p = s->plans;
    start_load(&p[0], TN_OK);
    join_load(&p[1], &p[0], 2);
    assert_status(land(&p[0]), TN_OK);
    wait_until(atomic_load(&p[1].admitted) != 0);
    assert_status(land(&p[1]), TN_OK);
}

/* Only an ensure joins, and only a load of its own value. */
static void drop_does_not_join_a_load(void **state) {
    struct scene *s = scene_of(*state);
    struct plan *p = s->plans;
    start_load(&p[0], TN_ERR_SOURCE);
    claims_handle(&p[1], 5);
    queue(&p[1], 0);
    assert_null(p[0].ticket.flight);
    assert_status(land(&p[0]), TN_ERR_SOURCE);
    wait_until(atomic_load(&p[1].admitted) != 0);
    assert_status(land(&p[1]), TN_OK);
}

/* No memory for the result: it waits like anybody else. */
static void ensure_that_cannot_join_waits(void **state) {
    struct scene *s = scene_of(*state);
    struct plan *p = s->plans;
    start_load(&p[0], TN_ERR_SOURCE);
    claims_handle(&p[1], 5);
    p[1].ticket.joins = true;
    tn__lock(&s->m->store->lock);
    OP_START(&p[1].op, run_plan, &p[1], 0);
    wait_until(atomic_load(&p[1].ready));
    tn__fault_alloc(1);
    tn__unlock(&s->m->store->lock);
    wait_until(flow_count(s->m, false) == 1);
    pause_shortly();
    assert_true(tn__fault_alloc_fired());
    tn__fault_alloc(0);
    assert_null(p[0].ticket.flight);
    assert_status(land(&p[0]), TN_ERR_SOURCE);
    wait_until(atomic_load(&p[1].admitted) != 0);
    assert_status(land(&p[1]), TN_OK);
}

/* ---- Guard, close, callbacks ------------------------------------------------------------- */

static void raise_guard(struct scene *s) {
    tn__lock(&s->m->store->lock);
    tn__life_guard_raise(s->m->life);
    tn__flow_wake(s->m->trans);
    tn__unlock(&s->m->store->lock);
}

static void waiting_plan_is_refused_when_the_guard_goes_up(void **state) {
    struct scene *s = scene_of(*state);
    struct plan *p = s->plans;
    claims_handle(&p[0], 5);
    claims_handle(&p[1], 5);
    launch(&p[0]);
    queue(&p[1], 0);
    raise_guard(s);
    assert_status(op_end(&p[1].op), TN_ERR_REENTRANCY);
    assert_int_equal(flow_count(s->m, false), 0);
    tn__life_guard_lower(s->m->life);
    assert_status(land(&p[0]), TN_OK);
}

static void joined_plan_is_refused_when_the_guard_goes_up(void **state) {
    struct scene *s = scene_of(*state);
    struct plan *p = s->plans;
    start_load(&p[0], TN_OK);
    join_load(&p[1], &p[0], 2);
    raise_guard(s);
    assert_status(op_end(&p[1].op), TN_ERR_REENTRANCY);
    tn__life_guard_lower(s->m->life);
    assert_int_equal(p[0].ticket.flight->refs, 1);
    assert_status(land(&p[0]), TN_OK);
}

static void plan_that_arrives_under_the_guard_is_refused(void **state) {
    struct scene *s = scene_of(*state);
    struct plan *p = s->plans;
    raise_guard(s);
    OP_START(&p[0].op, run_plan, &p[0], 0);
    assert_status(op_end(&p[0].op), TN_ERR_REENTRANCY);
    tn__life_guard_lower(s->m->life);
    launch(&p[1]);
    assert_status(land(&p[1]), TN_OK);
}

/* D3: the thread of a callback belongs to a plan in flight, so it must not wait for another. */
static void plan_in_a_callback_is_refused_instead_of_waiting(void **state) {
    struct scene *s = scene_of(*state);
    struct plan *p = s->plans;
    for (int i = 0; i < 3; i++)
        claims_handle(&p[i], 5);
    p[1].in_callback = true;
    launch(&p[0]);
    OP_START(&p[1].op, run_plan, &p[1], 0);
    assert_status(op_end(&p[1].op), TN_ERR_REENTRANCY);
    assert_int_equal(flow_count(s->m, false), 0);
    assert_status(land(&p[0]), TN_OK);
    p[2].in_callback = true; /* nothing to wait for */
    launch(&p[2]);
    assert_status(land(&p[2]), TN_OK);
}

static const struct CMUnitTest tests[] = {
    SPEC_BOTH(plans_of_one_value_go_in_order_of_arrival),
    SPEC_CONCURRENT(plans_of_different_values_overlap),
    SPEC_SERIAL(plans_of_a_serial_manager_go_one_by_one),
    SPEC_CONCURRENT(exclusive_plan_waits_for_all_and_stops_all),
    SPEC_CONCURRENT(plan_that_does_not_fit_waits_for_claims_in_flight),
    SPEC_CONCURRENT(plan_that_does_not_fit_in_the_end_is_refused),
    SPEC_BOTH(plan_that_does_not_fit_is_refused_at_once_when_nobody_claims),
    SPEC_BOTH(optional_need_that_does_not_fit_is_left_out),
    SPEC_CONCURRENT(optional_need_waits_while_others_claim),
    SPEC_CONCURRENT(small_plan_waits_behind_a_big_one_at_its_location),
    SPEC_CONCURRENT(plan_that_gets_in_flight_wakes_those_behind_it),
    SPEC_BOTH(plan_that_is_judged_on_old_news_looks_again),
    SPEC_BOTH(plan_whose_second_look_fails_leaves_the_queue),
    SPEC_BOTH(plan_whose_second_look_fails_wakes_those_behind_it),
    SPEC_BOTH(plan_whose_judge_refuses_leaves_the_queue),
    SPEC_BOTH(joined_load_that_fails_fails_for_all),
    SPEC_BOTH(joined_load_that_succeeds_is_followed_by_a_look),
    SPEC_BOTH(drop_does_not_join_a_load),
    SPEC_BOTH(ensure_that_cannot_join_waits),
    SPEC_BOTH(waiting_plan_is_refused_when_the_guard_goes_up),
    SPEC_BOTH(joined_plan_is_refused_when_the_guard_goes_up),
    SPEC_BOTH(plan_that_arrives_under_the_guard_is_refused),
    SPEC_CONCURRENT(plan_in_a_callback_is_refused_instead_of_waiting),
};

TN_TEST_MAIN("unit.transition_flow", tests)
