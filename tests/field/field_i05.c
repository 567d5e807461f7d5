/* SPDX-License-Identifier: MIT */
/*
 * F-I05: an allocation of metadata fails, or is somebody else's. One script, with each of its host
 * allocations failing in turn; and the same script over a heap that counts (heap/count.c).
 */
#include "field_common.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/base_internal.h"
#include "process_util.h"

struct script {
    struct spec *f;
    size_t step;  /* where one fails */
    uint64_t nth; /* which of that step; 0: none */
    bool fired;
    tn_manager *m;
    tn_handle h;
    tn_lease lease;
    tn_hold hold;
    tn_reservation reservation;
    tn_plan_report *report;
    tn_snapshot *snapshot;
    bool closed;
};

static tn_status create(struct script *s) {
    tn_config config = spec_config(s->f);
    const tn_budget budgets[] = {{P, 4096}, {N, 4096}};

    config.budgets = budgets;
    config.budget_count = 2;
    return tn_manager_create(&config, &s->m);
}

static tn_status register_one(struct script *s) {
    tn_value_spec spec = tt_spec(32, 32);
    tn_source source = tt_source_of(&s->f->sources[0]);

    return tn_manager_register_source(s->m, &spec, &source, P, &s->h);
}

static tn_status ensure_it(struct script *s) {
    return tn_manager_ensure(s->m, s->h, P, NULL, NULL);
}

static tn_status acquire_it(struct script *s) {
    return tn_manager_acquire(s->m, &s->h, 1, P, NULL, &s->lease);
}

static tn_status hold_it(struct script *s) { return tn_manager_hold(s->m, &s->h, 1, P, &s->hold); }

static tn_status reserve_some(struct script *s) {
    return tn_manager_reserve(s->m, P, 64, "script", &s->reservation);
}

static tn_status execute(struct script *s) {
    tn_action actions[] = {tn_action_ensure(s->h, N), tn_action_drop(s->h, N)};

    return tn_manager_execute_actions(s->m, "script", actions, 2, NULL, &s->report);
}

static tn_status take(struct script *s) { return tn_snapshot_take(s->m, &s->snapshot); }

static tn_status close_it(struct script *s) {
    tn_status status = tn_reservation_release(&s->reservation);

    if (status == TN_OK)
        status = tn_hold_release(&s->hold);
    if (status == TN_OK)
        status = tn_lease_release(&s->lease, 0);
    return status == TN_OK ? tn_manager_close(s->m, 0) : status;
}

static tn_status destroy(struct script *s) {
    tn_status status = tn_manager_destroy(s->m);

    if (status == TN_OK)
        s->m = NULL;
    return status;
}

/* What a call that failed for want of memory must have left as it was. */
static char *state_of(const struct script *s) {
    return s->m != NULL && !s->closed ? spec_describe(s->m, SPEC_NO_PEAKS) : NULL;
}

static bool out_of_memory(tn_status status) {
    return status == TN_ERR_HOST_MEMORY ||
           (status == TN_ERR_PLAN_EXEC && tn_last_error()->cause_status == TN_ERR_HOST_MEMORY);
}

typedef tn_status step_fn(struct script *s);
static step_fn *const steps[] = {create,       register_one, ensure_it, acquire_it, hold_it,
                                 reserve_some, execute,      take,      close_it,   destroy};
#define STEPS (sizeof steps / sizeof steps[0])

/* A sequence may have done its first action; everything else did nothing. */
static void expect_nothing_done(struct script *s, tn_status status, const char *before) {
    tn_plan_report_drop(s->report);
    s->report = NULL;
    if (status == TN_ERR_PLAN_EXEC) {
        if (resident(s->m, s->h, N))
            drop(s->m, s->h, N);
        return;
    }
    if (before != NULL && steps[s->step] != close_it)
        assert_unchanged(s->m, strdup(before), SPEC_NO_PEAKS);
}

static void run_step(struct script *s, size_t i) {
    char *before = state_of(s);
    tn_status status;

    tn__fault_alloc(i == s->step ? s->nth : 0);
    status = steps[i](s);
    s->fired = s->fired || tn__fault_alloc_fired();
    tn__fault_alloc(0);
    if (status != TN_OK) {
        assert_int_equal(i, s->step);
        assert_true(s->fired && out_of_memory(status));
        expect_nothing_done(s, status, before);
        assert_ok(steps[i](s));
    }
    s->closed = s->closed || steps[i] == close_it;
    free(before);
}

/* The whole script; whether an allocation failed. */
static bool run(struct spec *f, size_t step, uint64_t nth) {
    struct script s = {.f = f, .step = step, .nth = nth};

    for (size_t i = 0; i < STEPS; i++)
        run_step(&s, i);
    tn_plan_report_drop(s.report);
    tn_snapshot_drop(s.snapshot);
    assert_int_equal(tt_count().live, f->live);
    (void)tn_driver_trim_pinned(f->driver, NULL);
    return s.fired;
}

static void f_i05_each_allocation_fails_once(void **state) {
    struct spec *f = *state;
    uint64_t live, failures = 0;

    (void)spec_source(f);
    assert_false(run(f, 0, 0)); /* the blocks of records come to stay */
    live = tn__alloc_live();
    assert_false(run(f, 0, 0));
    assert_int_equal(tn__alloc_live(), live);
    for (size_t step = 0; step < STEPS; step++)
        for (uint64_t nth = 1; run(f, step, nth); nth++, failures++)
            assert_int_equal(tn__alloc_live(), live);
    print_message("    %llu allocations failed\n", (unsigned long long)failures);
    assert_true(failures > 30);
}

static void f_i05_blocks_are_nobody_elses(void **state) {
    const char *heap = process_path("TN_FIELD_COUNT");
    unsigned long blocks, left, foreign, all = 0, kept = 0;
    char *file, *variables, *program, line[128];
    FILE *told;

    (void)state;
    if (heap == NULL)
        TN_SKIP("a build that brings its own malloc");
    file = tn_test_text("%s/told", tn_test_tmpdir());
    variables = tn_test_text("TN_COUNT_FILE=%s LD_PRELOAD=%s TN_TEST='*fails_once*'", file, heap);
    program = tn_test_text("%s/field_i05", process_path("TN_FIELD_PROGRAMS"));
    process_run(variables, program);
    told = fopen(file, "r");
    assert_non_null(told);
    while (fgets(line, sizeof line, told)) {
        assert_int_equal(sscanf(line, "blocks %lu left %lu foreign %lu", &blocks, &left, &foreign),
                         3);
        assert_int_equal(foreign, 0);
        if (blocks > all) { /* the program itself, not the shell that started it */
            all = blocks;
            kept = left;
        }
    }
    assert_int_equal(fclose(told), 0);
    assert_true(all > 1000);
    assert_true(kept < 16); /* after thousands of managers: the memory of records */
    free(file);
    free(variables);
    free(program);
}

static const struct CMUnitTest tests[] = {
    FIELD_BOTH(f_i05_each_allocation_fails_once),
    cmocka_unit_test(f_i05_blocks_are_nobody_elses),
};

TN_TEST_MAIN("field.i05", tests)
