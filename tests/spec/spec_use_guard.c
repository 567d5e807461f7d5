/* SPDX-License-Identifier: MIT */
/*
 * Uses inside and during source callbacks (M189, C140, C143): an exit is refused as a whole and can be
 * repeated; what has no way to be repeated (a failed entry, a destruction) leaves nothing behind.
 */
#include "spec_common.h"

struct world {
    struct spec *f;
    tn_manager *m;
    tn_controller *controller;
    tn_handle resident, loading;
    tt_source *source;
    tn_use *use, *other;
    tn_status (*inside)(struct world *x);
    tn_status seen; /* of `inside` */
};

static tn_status hook(void *context, const tn_load_request *request) {
    struct world *x = context;
    (void)request;
    x->seen = x->inside(x);
    return TN_OK;
}

static tn_use *make_use(struct world *x, tn_handle h, tn_location at) {
    tn_requirement need = {h, at};
    tn_reservation_spec workspace = {P, 8, "workspace"};
    tn_transfer_stream consumer = {C0, NULL};
    tn_request_spec spec = TN_REQUEST_SPEC_INIT;
    tn_use_options options = TN_USE_OPTIONS_INIT;
    tn_request *request = NULL;
    tn_use *use = NULL;

    spec.name = "use";
    spec.requirements = &need;
    spec.requirement_count = 1;
    spec.reservations = &workspace;
    spec.reservation_count = 1;
    assert_ok(tn_request_create(&spec, &request));
    if (at.kind == TN_LOCATION_CUDA) {
        consumer.stream = spec_stream(x->f, 0);
        options.consumers = &consumer;
        options.consumer_count = 1;
    }
    assert_ok(tn_use_create(x->controller, request, &options, &use));
    tn_request_destroy(request);
    return use;
}

static void begin(struct world *x, struct spec *f, uint32_t binding, tn_location at) {
    tn_controller_config config = TN_CONTROLLER_CONFIG_INIT;

    *x = (struct world){.f = f, .m = MANAGER(f, {P, 256}, {C0, 256}), .seen = TN_OK};
    config.binding = binding;
    assert_ok(tn_controller_create(x->m, &config, &x->controller));
    x->resident = adopt_rep(f, x->m, P);
    x->source = spec_source(f);
    x->source->hook = hook;
    x->source->hook_context = x;
    x->loading = register_src(x->m, x->source);
    x->use = make_use(x, x->resident, at);
}

/* A load, inside which `inside` is called. */
static void load(struct world *x, tn_status (*inside)(struct world *x)) {
    x->inside = inside;
    (void)ensure(x->m, x->loading, P);
    (void)drop(x->m, x->loading, P);
    x->inside = NULL;
}

static void expect_nothing_left(struct world *x) {
    tn_snapshot_info head = info(x->m);

    spec_finish(x->f);
    (void)version(x->m); /* reaps */
    head = info(x->m);
    assert_int_equal(head.lease_count + head.pending_lease_count + head.reservation_count, 0);
    assert_int_equal(reserved(x->m, P), 0);
    tn_controller_destroy(x->controller);
}

static tn_status exit_it(struct world *x) { return tn_use_exit(x->use); }

static tn_status destroy_it(struct world *x) {
    tn_use_destroy(x->use);
    return TN_OK;
}

static tn_status enter_other(struct world *x) { return tn_use_enter(x->other); }

static void exit_is_refused(struct spec *f, uint32_t binding, tn_location at) {
    struct world x;

    begin(&x, f, binding, at);
    assert_ok(tn_use_enter(x.use));
    load(&x, exit_it);
    assert_int_equal(x.seen, TN_ERR_REENTRANCY);
    assert_true(tn_use_active(x.use));
    assert_int_equal(info(x.m).lease_count, 1);
    assert_int_equal(reserved(x.m, P), 8);
    assert_status(tn_use_reset(x.use), TN_ERR_MISUSE);
    assert_ok(tn_use_exit(x.use));
    assert_false(tn_use_active(x.use));
    assert_ok(tn_use_exit(x.use));
    tn_use_destroy(x.use);
    expect_nothing_left(&x);
}

static void use_exit_inside_a_callback_can_be_repeated(void **state) {
    exit_is_refused(*state, TN_BIND_PLACEMENT, P);
    exit_is_refused(*state, TN_BIND_VERSION, P);
}

static void use_exit_on_cuda_inside_a_callback_can_be_repeated(void **state) {
    exit_is_refused(*state, TN_BIND_PLACEMENT, C0);
    exit_is_refused(*state, TN_BIND_VERSION, C0);
}

static void use_destroyed_inside_a_callback_is_over(void **state) {
    for (uint32_t binding = TN_BIND_VERSION; binding <= TN_BIND_PLACEMENT; binding++) {
        struct world x;

        begin(&x, *state, binding, binding == TN_BIND_VERSION ? P : C0);
        assert_ok(tn_use_enter(x.use));
        load(&x, destroy_it);
        expect_nothing_left(&x);
    }
}

static void use_entry_inside_a_callback_leaves_nothing(void **state) {
    for (uint32_t binding = TN_BIND_VERSION; binding <= TN_BIND_PLACEMENT; binding++) {
        struct world x;

        begin(&x, *state, binding, P);
        x.other = make_use(&x, x.resident, P);
        load(&x, enter_other);
        assert_int_equal(x.seen, TN_ERR_REENTRANCY);
        assert_false(tn_use_active(x.other));
        assert_ok(tn_use_reset(x.other));
        assert_ok(tn_use_enter(x.other));
        assert_ok(tn_use_exit(x.other));
        tn_use_destroy(x.other);
        tn_use_destroy(x.use);
        expect_nothing_left(&x);
    }
}

static const struct CMUnitTest tests[] = {
    SPEC_BOTH(use_exit_inside_a_callback_can_be_repeated),
    SPEC_BOTH(use_exit_on_cuda_inside_a_callback_can_be_repeated),
    SPEC_BOTH(use_destroyed_inside_a_callback_is_over),
    SPEC_BOTH(use_entry_inside_a_callback_leaves_nothing),
};

TN_TEST_MAIN("spec.use_guard", tests)
