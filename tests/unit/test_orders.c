/* SPDX-License-Identifier: MIT */
/*
 * What one thread has done is there for another one that is let go on by a tagged word alone
 * ([manager-word], [ledger-word], [count], [slots], [event-shown], [own-stream]). All other hand-overs
 * here are relaxed, so that ThreadSanitizer sees what is missing.
 */
#include "core_fixture.h"
#include "driver_fake.h"

/* ---- A callback, then an operation that it had kept out ([manager-word]) ---------------------- */

enum { HOST, SEVERAL, RESERVE, RELEASE, VERSION, OPERATIONS };

static struct guarded {
    tn_manager *m;
    tn_handle v[2];
    int which;
    int effect; /* of the callback: plain */
    _Atomic int warm, inside, refused, done;
} g;

static tn_status in_callback(void *context, const tn_load_request *request) {
    (void)context;
    (void)request;
    g.effect = 1;
    tn__store_rlx(&g.inside, 1);
    while (!tn__load_rlx(&g.refused) && !tn_test_workers_failed())
        sched_yield();
    return TN_OK;
}

/* The guard is down, and nothing is published yet: a new version would order it, too. */
static void before_commit(enum tn__point point, void *object) {
    (void)object;
    while (point == TN__POINT_COMMIT && !tn__load_rlx(&g.done) && !tn_test_workers_failed())
        sched_yield();
}

static tn_status operate(int which, tn_lease *lease) {
    tn_reservation room;
    uint64_t version;
    tn_status status;
    switch (which) {
    case HOST:
        status = tn_manager_acquire(g.m, g.v, 1, P, NULL, lease);
        return status;
    case SEVERAL:
        return tn_manager_acquire(g.m, g.v, 2, P, NULL, lease);
    case RESERVE:
        status = tn_manager_reserve(g.m, P, 1, "room", &room);
        return status == TN_OK ? tn_reservation_release(&room) : status;
    case RELEASE:
        return tn_lease_release(lease, 0);
    default:
        return tn_manager_state_version(g.m, &version);
    }
}

static const char *kept_out(int which) {
    tn_lease lease = {0};
    for (int i = 0; i < 2; i++) { /* the hot paths want a thread that has been here */
        TN_WORKER_STATUS(operate(which == RELEASE ? HOST : which, &lease), TN_OK);
        if (which == HOST || which == SEVERAL)
            TN_WORKER_STATUS(tn_lease_release(&lease, 0), TN_OK);
        else if (which == RELEASE && i == 0)
            TN_WORKER_STATUS(tn_lease_release(&lease, 0), TN_OK);
    }
    tn__store_rlx(&g.warm, 1);
    while (!tn__load_rlx(&g.inside) && !tn_test_workers_failed())
        sched_yield();
    TN_WORKER_STATUS(operate(which, &lease), TN_ERR_REENTRANCY);
    tn__store_rlx(&g.refused, 1);
    tn_status status;
    while ((status = operate(which, &lease)) == TN_ERR_REENTRANCY)
        sched_yield();
    TN_WORKER_STATUS(status, TN_OK);
    TN_WORKER_CHECK(g.effect == 1);
    tn__store_rlx(&g.done, 1);
    if (which == HOST || which == SEVERAL)
        TN_WORKER_STATUS(tn_lease_release(&lease, 0), TN_OK);
    return NULL;
}

static const char *call_back_and_keep_out(int index, void *arg) {
    tn_handle *loading = arg;
    if (index > 0)
        return kept_out(g.which);
    while (!tn__load_rlx(&g.warm) && !tn_test_workers_failed())
        sched_yield();
    TN_WORKER_STATUS(tn_manager_ensure(g.m, *loading, P, NULL, NULL), TN_OK);
    return NULL;
}

static void callback_precedes_what_it_has_kept_out(void **state) {
    struct spec *f = *state;
    NEED_POINTS();
    for (int which = 0; which < OPERATIONS; which++) {
        tn_manager *m = MANAGER(f, {P, 1024});
        tt_source *source = spec_source(f);
        source->hook = in_callback;
        g = (struct guarded){.m = m, .v = {adopt_rep(f, m, P), adopt_rep(f, m, P)}, .which = which};
        tn_handle loading = register_src(m, source);
        at_points(before_commit);
        const char *fault = tn_test_workers_run(2, call_back_and_keep_out, &loading);
        at_points(NULL);
        assert_null_text(fault);
    }
}

/* ---- A close that is met ([manager-word]) ----------------------------------------------------- */

static struct met {
    tn_manager *m;
    tn_handle v;
} met;

#define USES 40 /* each keeps the close from ending */

/* A close is under way from now on, or has been. */
static void meet_a_close(enum tn__point point, void *object) {
    (void)object;
    for (int i = 0; point == TN__POINT_PINS_STORED && i < 200; i++) {
        if (tn__load_rlx(&met.m->life->gate->word) > TN__MANAGER_CLOSED)
            break;
        sched_yield();
    }
}

static const char *close_or_use(int index, void *arg) {
    (void)arg;
    tn_status status = TN_ERR_IN_USE;
    while (index == 0 && status == TN_ERR_IN_USE && !tn_test_workers_failed())
        status = tn_manager_close(met.m, 0);
    for (int i = 0; i < USES && index > 0; i++) {
        tn_hold hold;
        tn_reservation room;
        status = index == 1 ? tn_manager_hold(met.m, &met.v, 1, P, &hold)
                            : tn_manager_reserve(met.m, P, 1, "room", &room);
        if (status == TN_ERR_CLOSED)
            break;
        TN_WORKER_STATUS(status, TN_OK);
        TN_WORKER_STATUS(index == 1 ? tn_hold_release(&hold) : tn_reservation_release(&room),
                         TN_OK);
    }
    TN_WORKER_CHECK(status == TN_OK || status == TN_ERR_CLOSED);
    return NULL;
}

static void a_close_that_is_met_is_there(void **state) {
    struct spec *f = *state;
    NEED_POINTS();
    for (int i = 0; i < 10; i++) {
        tn_manager *m = MANAGER(f, {P, 1024});
        met = (struct met){.m = m, .v = adopt_rep(f, m, P)};
        at_points(meet_a_close);
        const char *fault = tn_test_workers_run(3, close_or_use, NULL);
        at_points(NULL);
        assert_null_text(fault);
        spec_destroy(f, m);
    }
}

/* ---- The last release, and the end of its manager ([count]) ----------------------------------- */

static struct last {
    tn_manager *m;
    tn_handle v;
    _Atomic int lent, gone;
} last;

/* Whoever destroys learns from the close that the lease is over, not from the release. */
static const char *release_or_destroy(int index, void *arg) {
    tn_status status = TN_ERR_IN_USE;
    (void)arg;
    if (index == 0) {
        while (!tn__load_rlx(&last.lent) && !tn_test_workers_failed())
            sched_yield();
        while (status == TN_ERR_IN_USE)
            status = tn_manager_close(last.m, 0);
        TN_WORKER_STATUS(status, TN_OK);
        TN_WORKER_STATUS(tn_manager_destroy(last.m), TN_OK);
        tn__store_rlx(&last.gone, 1);
        return NULL;
    }
    for (int i = 0; i < 3; i++) { /* warm, so that the last one takes the leaf path */
        tn_lease lease;
        TN_WORKER_STATUS(tn_manager_acquire(last.m, &last.v, 1, P, NULL, &lease), TN_OK);
        tn__store_rlx(&last.lent, i == 2);
        TN_WORKER_STATUS(tn_lease_release(&lease, 0), TN_OK);
    }
    while (!tn__load_rlx(&last.gone) && !tn_test_workers_failed())
        sched_yield(); /* the end of a thread orders much */
    return NULL;
}

static void manager_ends_after_its_last_release(void **state) {
    struct spec *f = *state;
    tn_config config = spec_config(f);
    for (int i = 0; i < 40; i++) {
        last = (struct last){.m = NULL};
        assert_ok(tn_manager_create(&config, &last.m));
        last.v = adopt_rep(f, last.m, P);
        assert_null_text(tn_test_workers_run(2, release_or_destroy, NULL));
    }
}

/* ---- Bytes that are given up ([ledger-word]) -------------------------------------------------- */

static struct room {
    tn__ledger *ledger;
    int owner; /* plain: whoever has the bytes writes it */
} room;

static const char *have_the_bytes(int index, void *arg) {
    (void)arg;
    for (int i = 0; i < 100; i++) {
        while (!tn__ledger_charge(room.ledger, 8) && !tn_test_workers_failed())
            sched_yield();
        room.owner = index;
        TN_WORKER_CHECK(room.owner == index);
        tn__ledger_uncharge(room.ledger, 8);
    }
    return NULL;
}

static void bytes_come_with_what_was_done_before_they_were_given_up(void **state) {
    tn_manager *m = MANAGER(*state, {P, 8});
    room = (struct room){.ledger = tn__store_ledger(m->store, P)};
    assert_null_text(tn_test_workers_run(2, have_the_bytes, NULL));
}

/* ---- A release, and who looks at its events while they are made ([event-shown]) --------------- */

static struct shown {
    tn_manager *m;
    tn_handle v;
    tn_stream stream;
    tn_lease lease;
    _Atomic int lent, over;
} shown;

/* Made and shown, and the word does not say so yet. */
static void give_time_to_look(enum tn__point point, void *object) {
    (void)object;
    for (int i = 0; point == TN__POINT_RECORDED && i < 20; i++)
        pause_shortly();
}

static const char *release_or_look(int index, void *arg) {
    bool failed;
    (void)arg;
    if (index == 0) {
        TN_WORKER_STATUS(tn_manager_acquire(shown.m, &shown.v, 1, C0, shown.stream, &shown.lease),
                         TN_OK);
        tn__store_rel(&shown.lent, 1);
        TN_WORKER_STATUS(tn_lease_release(&shown.lease, 0), TN_OK);
        tn__store_rlx(&shown.over, 1);
        return NULL;
    }
    while (!tn__load_acq(&shown.lent) && !tn_test_workers_failed())
        sched_yield();
    uint64_t word = tn__word(shown.lease.generation, TN__PENDING);
    while (!tn__load_rlx(&shown.over) && !tn_test_workers_failed())
        (void)tn__pending_done(shown.m->life, shown.lease.record, word, &failed);
    return NULL;
}

static void event_is_made_before_a_record_shows_it(void **state) {
    struct spec *f = *state;
    NEED_POINTS();
    for (int i = 0; i < 5; i++) {
        tn_manager *m = MANAGER(f);
        shown = (struct shown){.m = m, .v = adopt_rep(f, m, C0), .stream = spec_stream(f, 0)};
        at_points(give_time_to_look);
        const char *fault = tn_test_workers_run(2, release_or_look, NULL);
        at_points(NULL);
        assert_null_text(fault);
        spec_finish(f);
        spec_destroy(f, m);
    }
}

/* ---- A thread's first call, and who counts the slots ([slots]) -------------------------------- */

static struct counted {
    tn_manager *m;
    _Atomic int ready, over;
} counted;

static const char *begin_or_count(int index, void *arg) {
    tn__thread *thread = NULL;
    (void)arg;
    if (index == 0) {
        while (!tn__load_rlx(&counted.ready) && !tn_test_workers_failed())
            sched_yield();
        pause_shortly();
        TN_WORKER_STATUS(tn__life_thread(counted.m->life, &thread), TN_OK);
        pause_shortly();
        tn__store_rlx(&counted.over, 1);
        while (tn__load_rlx(&counted.over) != 2 && !tn_test_workers_failed())
            sched_yield(); /* the end of a thread orders much */
        return NULL;
    }
    TN_WORKER_STATUS(tn__life_thread(counted.m->life, &thread), TN_OK);
    tn__store_rlx(&counted.ready, 1);
    while (!tn__load_rlx(&counted.over) && !tn_test_workers_failed())
        (void)tn__state_version_settled(counted.m->store, counted.m->life);
    tn__store_rlx(&counted.over, 2);
    return NULL;
}

static void slot_is_made_before_it_is_counted(void **state) {
    struct spec *f = *state;
    for (int i = 0; i < 5; i++) {
        counted = (struct counted){.m = MANAGER(f)};
        assert_null_text(tn_test_workers_run(2, begin_or_count, NULL));
        spec_destroy(f, counted.m);
    }
}

/* ---- A manager's own stream, and another thread that uses it ([own-stream]) ------------------- */

#define OWN_STREAMS 40

static struct own {
    tn__trans *trans;
    _Atomic int arrived;
} own;

/* A stream that is nothing but a plain field. */
static tn_status plain_stream_create(void *self, uint32_t device, tn_stream *out) {
    uint32_t *stream = malloc(sizeof *stream);
    (void)self;
    if (!stream)
        return TN_ERR_HOST_MEMORY;
    *stream = device;
    *out = (tn_stream)stream;
    for (int i = 0; i < 20 && device % 2 == 0; i++)
        sched_yield(); /* two make one each */
    return TN_OK;
}

static tn_status plain_stream_destroy(void *self, tn_stream stream) {
    (void)self;
    free(stream);
    return TN_OK;
}

static tn_status plain_stream_info(void *self, tn_stream stream, tn_stream_info *out) {
    (void)self;
    out->device = *(const uint32_t *)stream;
    return TN_OK;
}

static const char *use_own_streams(int index, void *arg) {
    (void)arg;
    for (uint32_t device = 0; device < OWN_STREAMS; device++) {
        tn_stream stream = NULL;
        tn_stream_info info;
        tn__add_rlx(&own.arrived, 1);
        while (tn__load_rlx(&own.arrived) < 2 * (int)(device + 1) && !tn_test_workers_failed())
            sched_yield();
        bool second = device % 2 && index; /* comes when it is there */
        while (second && !tn__load_rlx(&own.trans->streams[device]) && !tn_test_workers_failed())
            sched_yield();
        TN_WORKER_STATUS(tn__trans_stream(own.trans, device, NULL, &stream, &info), TN_OK);
        TN_WORKER_CHECK(info.device == device);
    }
    return NULL;
}

static void own_stream_is_made_before_another_thread_uses_it(void **state) {
    tn_driver_ops ops = fake_ops();
    (void)state;
    ops.stream_create = plain_stream_create;
    ops.stream_destroy = plain_stream_destroy;
    ops.stream_info = plain_stream_info;
    tn_driver *driver;
    fake.devices = OWN_STREAMS;
    assert_ok(tn_driver_create(&ops, &fake, &driver));
    own = (struct own){.trans = NULL};
    assert_ok(tn__trans_create(&(tn__trans_config){.driver = driver}, &own.trans));
    assert_null_text(tn_test_workers_run(2, use_own_streams, NULL));
    tn__trans_destroy(own.trans);
    tn_driver_destroy(driver);
}

static const struct CMUnitTest tests[] = {
    SPEC_SERIAL(callback_precedes_what_it_has_kept_out),
    SPEC_CONCURRENT(a_close_that_is_met_is_there),
    SPEC_BOTH(manager_ends_after_its_last_release),
    SPEC_CONCURRENT(event_is_made_before_a_record_shows_it),
    SPEC_CONCURRENT(slot_is_made_before_it_is_counted),
    cmocka_unit_test(own_stream_is_made_before_another_thread_uses_it),
    SPEC_CONCURRENT(bytes_come_with_what_was_done_before_they_were_given_up),
};

TN_TEST_MAIN("unit.orders", tests)
