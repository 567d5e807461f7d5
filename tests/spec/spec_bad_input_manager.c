/* SPDX-License-Identifier: MIT */
/* What a program can get wrong: manager.h. */
#include "spec_bad_input.h"

static void create(void **state) {
    struct spec *f = *state;
    tn_budget budget = {P, 1};
    tn_config config = spec_config(f);
    tn_manager *m = NULL;

    assert_status(tn_manager_create(NULL, NULL), TN_ERR_KIND);
    assert_status(tn_manager_create(&config, NULL), TN_ERR_KIND);
    config.mode = 2;
    assert_status(tn_manager_create(&config, &m), TN_ERR_KIND);
    config = spec_config(f);
    config.reaper = 2;
    assert_status(tn_manager_create(&config, &m), TN_ERR_KIND);
    config = spec_config(f);
    config.budget_count = 1;
    assert_status(tn_manager_create(&config, &m), TN_ERR_KIND);
    config.budgets = &budget;
    budget.at = bad_kind;
    assert_status(tn_manager_create(&config, &m), TN_ERR_KIND);
    budget.at = C2;
    assert_status(tn_manager_create(&config, &m), TN_ERR_VALUE);
    budget.at = C0;
    config.driver = NULL; /* no CUDA without a driver */
    assert_status(tn_manager_create(&config, &m), TN_ERR_VALUE);
    config = spec_config(f);
    config.ring_blocks = TN_RING_BLOCKS_MAX + 1;
    assert_status(tn_manager_create(&config, &m), TN_ERR_VALUE);
    config.ring_blocks = TN_RING_BLOCKS_MAX;
    config.ring_block_bytes = (uint64_t)INT64_MAX / TN_RING_BLOCKS_MAX + 1;
    assert_status(tn_manager_create(&config, &m), TN_ERR_VALUE);
    config = spec_config(f);
    config.reserved0 = 1;
    assert_status(tn_manager_create(&config, &m), TN_ERR_VALUE);
    assert_null(m);
    config = spec_config(f);
    CHECK_IN(tn_config, &config, ({
                 tn_status status_ = tn_manager_create(it, &m);
                 if (status_ == TN_OK)
                     assert_ok(tn_manager_destroy(m));
                 status_;
             }));
}

static void manager_is_null(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle h = adopt_rep(f, m, P);
    tn_value_spec spec = tt_spec(32, 32);
    tn_source source = tt_source_of(spec_source(f));
    tn_payload v = spec_v(f, P);
    tn_reservation r = reserve(m, P, 64, "r");
    tn_reservation r2 = {NULL, 0};
    tn_lease lease = {NULL, 0};
    tn_hold held = {NULL, 0};
    tn_snapshot *s = NULL;
    uint64_t n = 0;
    size_t count = 0;

    assert_status(tn_manager_close(NULL, 0), TN_ERR_KIND);
    assert_ok(tn_manager_destroy(NULL));
    assert_int_equal(tn_manager_id(NULL), 0);
    assert_status(tn_manager_state_version(NULL, &n), TN_ERR_KIND);
    assert_status(tn_manager_locations(NULL, NULL, &count), TN_ERR_KIND);
    assert_status(tn_manager_adopt(NULL, v, P, TN_EXCLUSIVE, &h), TN_ERR_KIND);
    assert_status(tn_manager_adopt_reserved(NULL, v, P, TN_EXCLUSIVE, &r, &h), TN_ERR_KIND);
    assert_status(tn_manager_register_source(NULL, &spec, &source, P, &h), TN_ERR_KIND);
    assert_status(tn_manager_ensure(NULL, h, P, NULL, NULL), TN_ERR_KIND);
    assert_status(tn_manager_copy(NULL, h, P, NULL, NULL), TN_ERR_KIND);
    assert_status(tn_manager_move(NULL, h, P, NOWHERE, NULL, NULL), TN_ERR_KIND);
    assert_status(tn_manager_drop(NULL, h, P, NULL), TN_ERR_KIND);
    assert_status(tn_manager_discard(NULL, h, NULL), TN_ERR_KIND);
    assert_status(tn_manager_step(NULL, &n), TN_ERR_KIND);
    assert_status(tn_manager_trace(NULL, NULL, &count), TN_ERR_KIND);
    assert_status(tn_manager_clear_trace(NULL), TN_ERR_KIND);
    assert_status(tn_manager_acquire(NULL, &h, 1, P, NULL, &lease), TN_ERR_KIND);
    assert_status(tn_manager_hold(NULL, &h, 1, P, &held), TN_ERR_KIND);
    assert_status(tn_manager_reserve(NULL, P, 1, "r", &r2), TN_ERR_KIND);
    assert_status(tn_snapshot_take(NULL, &s), TN_ERR_KIND);
    tt_free(v);
}

static void close_and_reads(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f, {P, 64}, {N, 64});
    tn_handle h = adopt_rep(f, m, P);
    tn_location at[1] = {{9, 9}};
    tn_report reports[2];
    size_t count;

    assert_status(tn_manager_close(m, 4), TN_ERR_VALUE);
    assert_status(tn_manager_close(m, UINT32_MAX), TN_ERR_VALUE);
    assert_int_equal(version(m), 1); /* it is open */
    assert_status(tn_manager_state_version(m, NULL), TN_ERR_KIND);
    assert_status(tn_manager_locations(m, at, NULL), TN_ERR_KIND);
    count = 1;
    assert_status(tn_manager_locations(m, NULL, &count), TN_ERR_KIND);
    assert_ok(tn_manager_locations(m, at, &count)); /* truncated; the real total */
    assert_int_equal(count, 2);
    assert_at(at[0], P);
    count = 0;
    assert_ok(tn_manager_locations(m, NULL, &count));
    assert_int_equal(count, 2);
    assert_ok(tn_manager_step(m, NULL));

    ensure(m, h, N);
    ensure(m, h, N);
    drop(m, h, N);
    assert_status(tn_manager_trace(m, reports, NULL), TN_ERR_KIND);
    count = 2;
    assert_status(tn_manager_trace(m, NULL, &count), TN_ERR_KIND);
    reports[0].size = 0;
    assert_status(tn_manager_trace(m, reports, &count), TN_ERR_KIND);
    reports[0].size = sizeof(reports[0]);
    count = 2;
    assert_ok(tn_manager_trace(m, reports, &count)); /* the oldest that fit */
    assert_int_equal(count, 3);
    assert_int_equal(reports[0].no_op, 0);
    assert_int_equal(reports[1].no_op, 1);
    assert_int_equal(reports[1].action.kind, TN_ACTION_ENSURE);
}

/* Elements of arrays are as large as the first says: an older caller's are shorter. */
static void arrays_of_older_callers(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f, {P, 64}, {N, 65});
    const size_t size = offsetof(tn_location_info, used_bytes);
    unsigned char *rows = malloc(2 * size + 1);
    tn_snapshot *s = NULL;
    size_t count = 2;
    tn_location_info row;

    assert_non_null(rows);
    memset(rows, 0xee, 2 * size + 1);
    memcpy(rows, &size, sizeof(size));
    assert_ok(tn_snapshot_take(m, &s));
    assert_ok(tn_snapshot_locations(s, (tn_location_info *)(void *)rows, &count));
    assert_int_equal(count, 2);
    for (size_t i = 0; i < 2; i++) {
        memset(&row, 0, sizeof(row));
        memcpy(&row, rows + i * size, size);
        assert_int_equal(row.budget_bytes, 64 + i);
        assert_at(row.at, i == 0 ? P : N);
    }
    assert_int_equal(rows[2 * size], 0xee);
    tn_snapshot_drop(s);
    free(rows);
}

static void adopt(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_payload v = spec_v(f, P);
    tn_value_type broken = *tt_type();
    tn_handle h = {0, 0, NULL};

    broken.measure = NULL;
    assert_status(tn_manager_adopt(m, (tn_payload){NULL, NULL}, P, TN_EXCLUSIVE, &h), TN_ERR_KIND);
    assert_status(tn_manager_adopt(m, (tn_payload){tt_type(), NULL}, P, TN_EXCLUSIVE, &h),
                  TN_ERR_KIND);
    assert_status(tn_manager_adopt(m, (tn_payload){NULL, v.data}, P, TN_EXCLUSIVE, &h),
                  TN_ERR_KIND);
    assert_status(tn_manager_adopt(m, (tn_payload){&broken, v.data}, P, TN_EXCLUSIVE, &h),
                  TN_ERR_KIND);
    assert_status(tn_manager_adopt(m, v, P, TN_EXCLUSIVE, NULL), TN_ERR_KIND);
    assert_status(tn_manager_adopt(m, v, bad_kind, TN_EXCLUSIVE, &h), TN_ERR_KIND);
    assert_status(tn_manager_adopt(m, v, C2, TN_EXCLUSIVE, &h), TN_ERR_VALUE);
    assert_status(tn_manager_adopt(m, v, tn_location_cuda(128), TN_EXCLUSIVE, &h), TN_ERR_VALUE);
    assert_status(tn_manager_adopt(m, v, P, 2, &h), TN_ERR_KIND);
    assert_null(h.type);
    assert_locations(m);
    assert_int_equal(version(m), 0);
    /* A payload that no kind of check before state refuses: also on a closed manager (G16). */
    assert_ok(tn_manager_close(m, 0));
    assert_status(tn_manager_adopt(m, (tn_payload){NULL, NULL}, P, TN_EXCLUSIVE, &h), TN_ERR_KIND);
    assert_status(tn_manager_adopt(m, v, P, TN_EXCLUSIVE, &h), TN_ERR_CLOSED);
    tt_free(v);
}

static void adopt_reserved(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f, {P, 64}, {N, 64});
    tn_manager *other = MANAGER(f);
    tn_payload v = spec_v(f, P);
    tn_reservation none = {NULL, 0};
    tn_reservation small = reserve(m, P, 31, "small");
    tn_reservation elsewhere = reserve(m, N, 64, "elsewhere");
    tn_reservation foreign = reserve(other, P, 64, "foreign");
    tn_reservation ended = reserve(m, P, 33, "ended");
    tn_reservation good;
    tn_handle h = {0, 0, NULL};

    release_reservation(&ended);
    assert_status(tn_manager_adopt_reserved(m, v, P, TN_EXCLUSIVE, NULL, &h), TN_ERR_KIND);
    assert_status(tn_manager_adopt_reserved(m, v, P, TN_EXCLUSIVE, &small, NULL), TN_ERR_KIND);
    assert_status(tn_manager_adopt_reserved(m, v, P, TN_EXCLUSIVE, &none, &h),
                  TN_ERR_LIFETIME_CLOSED);
    assert_status(tn_manager_adopt_reserved(m, v, P, TN_EXCLUSIVE, &ended, &h),
                  TN_ERR_LIFETIME_CLOSED);
    assert_status(tn_manager_adopt_reserved(m, v, P, TN_EXCLUSIVE, &small, &h), TN_ERR_BUDGET);
    assert_status(tn_manager_adopt_reserved(m, v, P, TN_EXCLUSIVE, &elsewhere, &h), TN_ERR_VALUE);
    assert_status(tn_manager_adopt_reserved(m, v, P, TN_EXCLUSIVE, &foreign, &h), TN_ERR_VALUE);
    assert_status(tn_manager_adopt_reserved(m, v, P, 2, &small, &h), TN_ERR_KIND);
    assert_status(
        tn_manager_adopt_reserved(m, (tn_payload){NULL, NULL}, P, TN_EXCLUSIVE, &small, &h),
        TN_ERR_KIND);
    assert_status(tn_manager_adopt_reserved(m, v, N, TN_EXCLUSIVE, &elsewhere, &h),
                  TN_ERR_MATERIALIZATION);
    assert_null(h.type);
    assert_int_equal(used(m, P), 0);
    assert_int_equal(reserved(m, P), 31);

    /* What it is for: the total does not change, the rest stays reserved. */
    release_reservation(&small);
    good = reserve(m, P, 60, "good");
    assert_ok(tn_manager_adopt_reserved(m, v, P, TN_EXCLUSIVE, &good, &h));
    assert_int_equal(used(m, P), 32);
    assert_int_equal(reserved(m, P), 28);
    assert_peaks(m, P, 32, 64); /* 31 + 33 before */
    assert_true(tn_reservation_active(&good));
    release_reservation(&good);
    assert_int_equal(used(m, P), 32);
    assert_int_equal(reserved(m, P), 0);
}

static void register_source(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tt_source *s = spec_source(f);
    tn_value_spec spec = tt_spec(32, 32);
    tn_source source = tt_source_of(s);
    tn_source bad;
    tn_handle h = {0, 0, NULL};

    assert_status(tn_manager_register_source(m, NULL, &source, P, &h), TN_ERR_KIND);
    assert_status(tn_manager_register_source(m, &spec, NULL, P, &h), TN_ERR_KIND);
    assert_status(tn_manager_register_source(m, &spec, &source, P, NULL), TN_ERR_KIND);
    assert_status(tn_manager_register_source(m, &spec, &source, bad_kind, &h), TN_ERR_KIND);
    assert_status(tn_manager_register_source(m, &spec, &source, C2, &h), TN_ERR_VALUE);
    bad = source;
    bad.kind = 0;
    assert_status(tn_manager_register_source(m, &spec, &bad, P, &h), TN_ERR_KIND);
    bad.kind = 3;
    assert_status(tn_manager_register_source(m, &spec, &bad, P, &h), TN_ERR_KIND);
    spec.storage_bytes = 31;
    assert_status(tn_manager_register_source(m, &spec, &source, P, &h), TN_ERR_VALUE);
    spec = tt_spec(32, too_many_bytes);
    assert_status(tn_manager_register_source(m, &spec, &source, P, &h), TN_ERR_VALUE);
    spec = tt_spec(32, 32);
    spec.replica_mode = 2;
    assert_status(tn_manager_register_source(m, &spec, &source, P, &h), TN_ERR_KIND);
    spec = tt_spec(32, 32);
    assert_null(h.type);
    assert_locations(m);
    assert_int_equal(s->forgotten, 0); /* a refused source stays the caller's */
    CHECK_IN(tn_value_spec, &spec, tn_manager_register_source(m, it, &source, P, &h));
    CHECK_IN(tn_source, &source, tn_manager_register_source(m, &spec, it, P, &h));
    assert_ok(tn_manager_close(m, 0));
    assert_status(tn_manager_register_source(m, NULL, &source, P, &h), TN_ERR_KIND);
    assert_status(tn_manager_register_source(m, &spec, &source, P, &h), TN_ERR_CLOSED);
}

static void handles(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_manager *other = MANAGER(f);
    tn_handle good = adopt_rep(f, m, P);
    tn_handle gone = adopt_rep(f, m, P);
    tn_handle kinds[4];
    static const uint32_t causes[] = {TN_HANDLE_FOREIGN, TN_HANDLE_UNKNOWN, TN_HANDLE_DISCARDED,
                                      TN_HANDLE_UNKNOWN};
    tn_lease lease = {NULL, 0};
    tn_hold held = {NULL, 0};

    discard(m, gone);
    kinds[0] = adopt_rep(f, other, P);
    kinds[1] = (tn_handle){good.manager, 999, good.type};
    kinds[2] = gone;
    kinds[3] = (tn_handle){good.manager, good.index, tt_other_type()};
    for (size_t i = 0; i < 4; i++) {
        tn_handle list[2] = {good, kinds[i]};

        assert_handle_error(tn_manager_ensure(m, kinds[i], N, NULL, NULL), causes[i]);
        assert_handle(tn_last_error()->handle, kinds[i]);
        assert_handle_error(tn_manager_copy(m, kinds[i], N, NULL, NULL), causes[i]);
        assert_handle_error(tn_manager_move(m, kinds[i], N, NOWHERE, NULL, NULL), causes[i]);
        assert_handle_error(tn_manager_drop(m, kinds[i], P, NULL), causes[i]);
        assert_handle_error(tn_manager_discard(m, kinds[i], NULL), causes[i]);
        assert_handle_error(tn_manager_acquire(m, list, 2, P, NULL, &lease), causes[i]);
        assert_handle(tn_last_error()->handle, kinds[i]);
        assert_handle_error(tn_manager_hold(m, list, 2, P, &held), causes[i]);
        assert_int_equal(mat(m, good, P).use_count, 0);
        assert_int_equal(mat(m, good, P).hold_count, 0);
    }
    assert_locations(m, P);
    assert_int_equal(trace_count(m), 1);
}

static void action_arguments(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle h = adopt_rep(f, m, P);
    char *before = spec_describe(m, 0);

    assert_status(tn_manager_ensure(m, h, NOWHERE, NULL, NULL), TN_ERR_KIND);
    assert_status(tn_manager_ensure(m, h, bad_kind, NULL, NULL), TN_ERR_KIND);
    assert_status(tn_manager_copy(m, h, bad_kind, NULL, NULL), TN_ERR_KIND);
    assert_status(tn_manager_ensure(m, h, tn_location_cuda(128), NULL, NULL), TN_ERR_VALUE);
    assert_status(tn_manager_move(m, h, NOWHERE, NOWHERE, NULL, NULL), TN_ERR_KIND);
    assert_status(tn_manager_move(m, h, bad_kind, NOWHERE, NULL, NULL), TN_ERR_KIND);
    assert_status(tn_manager_move(m, h, N, bad_kind, NULL, NULL), TN_ERR_KIND);
    assert_status(tn_manager_move(m, h, N, C2, NULL, NULL), TN_ERR_VALUE);
    assert_status(tn_manager_drop(m, h, NOWHERE, NULL), TN_ERR_KIND);
    assert_status(tn_manager_drop(m, h, bad_kind, NULL), TN_ERR_KIND);
    assert_unchanged(m, before, 0);
    /* What is no location is refused before a closed manager is noticed (M251). */
    assert_ok(tn_manager_close(m, 0));
    assert_status(tn_manager_ensure(m, h, bad_kind, NULL, NULL), TN_ERR_KIND);
    assert_status(tn_manager_move(m, h, N, bad_kind, NULL, NULL), TN_ERR_KIND);
    assert_status(tn_manager_drop(m, h, bad_kind, NULL), TN_ERR_KIND);
    assert_status(tn_manager_ensure(m, h, N, NULL, NULL), TN_ERR_CLOSED);
    assert_status(tn_manager_copy(m, h, N, NULL, NULL), TN_ERR_CLOSED);
    assert_status(tn_manager_move(m, h, N, NOWHERE, NULL, NULL), TN_ERR_CLOSED);
    assert_status(tn_manager_drop(m, h, P, NULL), TN_ERR_CLOSED);
    assert_status(tn_manager_discard(m, h, NULL), TN_ERR_CLOSED);
}

static void report_sizes(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle h = adopt_rep(f, m, P);
    tn_report wrong = TN_REPORT_INIT;

    CHECK_OUT(tn_report, tn_manager_ensure(m, h, N, NULL, it));
    CHECK_OUT(tn_report, tn_manager_copy(m, h, N, NULL, it));
    CHECK_OUT(tn_report, tn_manager_move(m, h, N, NOWHERE, NULL, it));
    CHECK_OUT(tn_report, tn_manager_drop(m, h, P, it));
    /* Nothing was done for a report that cannot be written. */
    wrong.size = 1;
    assert_status(tn_manager_ensure(m, h, C0, NULL, &wrong), TN_ERR_KIND);
    assert_status(tn_manager_discard(m, h, &wrong), TN_ERR_KIND);
    assert_replicas(m, h, N);
    CHECK_OUT(tn_report, ({
                  tn_handle one_ = adopt_rep(f, m, P);
                  tn_status status_ = tn_manager_discard(m, one_, it);
                  if (status_ != TN_OK)
                      discard(m, one_);
                  status_;
              }));
}

static void transfer_streams(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle h = adopt_rep(f, m, P);
    tn_stream s1 = spec_stream(f, 1);
    tn_stream capturing = NULL;
    tn_stream other_context = NULL;
    char *before = spec_describe(m, 0);

    assert_ok(tn_sim_stream_create(f->sim, 0, TN_SIM_STREAM_CAPTURING, &capturing));
    assert_status(tn_manager_ensure(m, h, C0, capturing, NULL), TN_ERR_VALUE);
    assert_status(tn_manager_move(m, h, C0, NOWHERE, capturing, NULL), TN_ERR_VALUE);
    assert_status(tn_manager_ensure(m, h, C0, TN_STREAM_PER_THREAD, NULL), TN_ERR_VALUE);
    assert_status(tn_manager_move(m, h, C0, NOWHERE, TN_STREAM_PER_THREAD, NULL), TN_ERR_VALUE);
    assert_status(tn_manager_ensure(m, h, C0, s1, NULL), TN_ERR_VALUE);
    assert_status(tn_manager_ensure(m, h, C0, no_stream, NULL), TN_ERR_KIND);
    assert_status(tn_manager_ensure(m, h, N, s1, NULL), TN_ERR_VALUE);
    assert_status(tn_manager_ensure(m, h, N, TN_STREAM_PER_THREAD, NULL), TN_ERR_VALUE);
    assert_unchanged(m, before, 0);
    assert_ok(tn_sim_stream_destroy(f->sim, capturing));
    /* The default stream, and one of a second context, are streams like others. */
    assert_ok(tn_manager_ensure(m, h, C0, TN_STREAM_LEGACY, NULL));
    assert_ok(tn_sim_stream_create(f->sim, 1, TN_SIM_STREAM_SECOND_CONTEXT, &other_context));
    assert_ok(tn_manager_ensure(m, h, C1, other_context, NULL));
    assert_ok(tn_sim_stream_destroy(f->sim, other_context));
}

/* A manager without a driver: pageable host memory only. */
static void no_driver(void **state) {
    struct spec *f = *state;
    tn_driver *driver = f->driver;
    tn_manager *m;
    tn_handle h;
    tn_handle other = {0, 0, NULL};
    tn_lease lease = {NULL, 0};
    tn_hold held = {NULL, 0};
    tn_payload pinned;
    tn_stream s = spec_stream(f, 0);

    f->driver = NULL;
    m = MANAGER(f);
    h = adopt_rep(f, m, P);
    assert_status(tn_manager_ensure(m, h, C0, NULL, NULL), TN_ERR_VALUE);
    assert_status(tn_manager_ensure(m, h, C0, s, NULL), TN_ERR_VALUE);
    assert_status(tn_manager_move(m, h, C0, NOWHERE, NULL, NULL), TN_ERR_VALUE);
    assert_status(tn_manager_drop(m, h, C0, NULL), TN_ERR_VALUE);
    assert_status(tn_manager_acquire(m, &h, 1, C0, s, &lease), TN_ERR_VALUE);
    assert_status(tn_manager_hold(m, &h, 1, C0, &held), TN_ERR_VALUE);
    assert_status(tn_manager_ensure(m, h, N, NULL, NULL), TN_ERR_PAYLOAD);
    f->driver = driver;
    pinned = spec_v(f, C0);
    assert_status(tn_manager_adopt(m, pinned, C0, TN_EXCLUSIVE, &other), TN_ERR_VALUE);
    assert_status(tn_manager_adopt(m, pinned, NOWHERE, TN_EXCLUSIVE, &other), TN_ERR_VALUE);
    tt_free(pinned);
    assert_locations(m, P);
    lease = acquire(m, h, P, NULL);
    release(&lease);
    discard(m, h);
}

static const struct CMUnitTest tests[] = {
    SPEC_SERIAL(create),
    SPEC_BOTH(manager_is_null),
    SPEC_BOTH(close_and_reads),
    SPEC_SERIAL(arrays_of_older_callers),
    SPEC_BOTH(adopt),
    SPEC_BOTH(adopt_reserved),
    SPEC_BOTH(register_source),
    SPEC_BOTH(handles),
    SPEC_BOTH(action_arguments),
    SPEC_BOTH(report_sizes),
    SPEC_BOTH(transfer_streams),
    SPEC_BOTH(no_driver),
};

TN_TEST_MAIN("spec.bad_input_manager", tests)
