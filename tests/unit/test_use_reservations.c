/* SPDX-License-Identifier: MIT */
/*
 * src/controller/use.c: the reservations of an entered use, after a hit and after a miss, and what
 * is adopted into one of them.
 */
#include "spec_common.h"

struct scene {
    tn_manager *m;
    tn_controller *controller;
    tn_request *request;
    tn_use *use;
    tn_handle value;
};

/* Needs `at` of an adopted value, and 40 and 8 bytes there. */
static struct scene begin(struct spec *f, tn_location at) {
    struct scene s = {.m = MANAGER(f, {N, 112})};
    const tn_reservation_spec wanted[] = {{N, 40, "results"}, {N, 8, "more"}};
    tn_request_spec spec = TN_REQUEST_SPEC_INIT;

    s.value = adopt_rep(f, s.m, P);
    tn_requirement needed = {s.value, at};
    spec.name = "operation";
    spec.requirements = &needed;
    spec.requirement_count = 1;
    spec.reservations = wanted;
    spec.reservation_count = 2;
    assert_ok(tn_controller_create(s.m, NULL, &s.controller));
    assert_ok(tn_request_create(&spec, &s.request));
    assert_ok(tn_use_create(s.controller, s.request, NULL, &s.use));
    return s;
}

static void end(struct scene *s) {
    tn_use_destroy(s->use);
    tn_request_destroy(s->request);
    tn_controller_destroy(s->controller);
}

static size_t count_of(const tn_use *use) {
    size_t count = 0;
    assert_ok(tn_use_reservations(use, NULL, &count));
    return count;
}

/* The result takes the place of its bytes; the exit gives back the rest. */
static void adopt_into_first(struct spec *f, struct scene *s) {
    tn_reservation r[3];
    tn_reservation_info row = {.size = sizeof row};
    tn_handle result;
    size_t count = 3;

    assert_int_equal(count_of(s->use), 0); /* not entered */
    assert_ok(tn_use_enter(s->use));
    assert_ok(tn_use_reservations(s->use, r, &count));
    assert_int_equal(count, 2);
    assert_ok(tn_reservation_read(&r[0], &row));
    assert_int_equal(row.bytes, 40);
    assert_ok(tn_reservation_read(&r[1], &row));
    assert_int_equal(row.bytes, 8);
    uint64_t before = used(s->m, N);
    assert_int_equal(reserved(s->m, N), 48);
    assert_ok(tn_manager_adopt_reserved(s->m, spec_v(f, N), N, TN_EXCLUSIVE, &r[0], &result));
    assert_int_equal(used(s->m, N), before + 32);
    assert_int_equal(reserved(s->m, N), 16);
    assert_ok(tn_use_exit(s->use));
    assert_int_equal(reserved(s->m, N), 0);
    assert_int_equal(used(s->m, N), before + 32);
    assert_int_equal(count_of(s->use), 0); /* exited */
    discard(s->m, result);
}

static void a_miss_has_those_of_its_plan(void **state) {
    struct scene s = begin(*state, N);
    adopt_into_first(*state, &s);
    end(&s);
}

static void a_hit_has_its_own(void **state) {
    struct scene s = begin(*state, N);
    tn_use_info info = TN_USE_INFO_INIT;
    ensure(s.m, s.value, N);
    adopt_into_first(*state, &s);
    assert_ok(tn_use_read(s.use, &info));
    assert_int_equal(info.hit, ((struct spec *)*state)->mode == TN_MODE_CONCURRENT);
    end(&s);
}

/* There is room for the first of the two only. */
static void a_refused_hit_gives_back_what_it_has_charged(void **state) {
    struct scene s = begin(*state, P);
    for (int i = 0; i < 2; i++) { /* the next one is tried at once */
        assert_ok(tn_use_enter(s.use));
        assert_ok(tn_use_exit(s.use));
        assert_ok(tn_use_reset(s.use));
    }
    tn_reservation most = reserve(s.m, N, 112 - 44, "most");
    assert_true(tn_use_enter(s.use) != TN_OK);
    assert_int_equal(reserved(s.m, N), 112 - 44);
    tn_reservation rest = reserve(s.m, N, 44, "rest"); /* the ledger has it, too */
    release_reservation(&rest);
    release_reservation(&most);
    end(&s);
}

static void the_total_is_told_where_there_is_no_room(void **state) {
    struct scene s = begin(*state, P);
    tn_reservation one;
    tn_reservation_info row = {.size = sizeof row};
    size_t count = 1;

    assert_ok(tn_use_enter(s.use));
    assert_int_equal(count_of(s.use), 2);
    assert_ok(tn_use_reservations(s.use, &one, &count));
    assert_int_equal(count, 2);
    assert_ok(tn_reservation_read(&one, &row));
    assert_int_equal(row.bytes, 40);
    release_reservation(&one); /* by hand: simply gone */
    assert_int_equal(reserved(s.m, N), 8);
    assert_ok(tn_use_exit(s.use));
    assert_int_equal(reserved(s.m, N), 0);
    end(&s);
}

static void bad_arguments(void **state) {
    struct scene s = begin(*state, P);
    tn_reservation one;
    size_t count = 1;

    assert_status(tn_use_reservations(NULL, &one, &count), TN_ERR_KIND);
    assert_status(tn_use_reservations(s.use, &one, NULL), TN_ERR_KIND);
    assert_status(tn_use_reservations(s.use, NULL, &count), TN_ERR_KIND);
    assert_int_equal(count, 1);
    end(&s);
}

static const struct CMUnitTest tests[] = {
    SPEC_BOTH(a_miss_has_those_of_its_plan),
    SPEC_BOTH(a_hit_has_its_own),
    SPEC_BOTH(a_refused_hit_gives_back_what_it_has_charged),
    SPEC_BOTH(the_total_is_told_where_there_is_no_room),
    SPEC_BOTH(bad_arguments),
};
TN_TEST_MAIN("unit.use_reservations", tests)
