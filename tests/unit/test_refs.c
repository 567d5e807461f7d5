/* SPDX-License-Identifier: MIT */
/*
 * Shared objects are freed by their last holder, after every other one's last look ([plan-refs],
 * [policy-refs], [request-refs], [store-ref]). Nothing but the count orders the two: TSan watches.
 */
#include <string.h>

#include "placement_fixture.h"

#include "controller/controller_priv.h"
#include "plan/plan_internal.h"

#define HOLDERS 3
#define ROUNDS 20

struct shared {
    const void *object;
    const char *(*look)(const void *object); /* NULL: as it must be */
    void (*let_go)(const void *object);
};

static const char *look_and_let_go(int index, void *arg) {
    struct shared *s = arg;
    (void)index;
    const char *fault = s->look(s->object);
    s->let_go(s->object);
    return fault;
}

static void let_all_go(struct shared s) {
    assert_null_text(tn_test_workers_run(HOLDERS, look_and_let_go, &s));
}

static void plan_keep(const void *plan) {
    for (int i = 1; i < HOLDERS; i++)
        tn__plan_keep(plan);
}

static const char *plan_look(const void *plan) {
    return strcmp(tn_plan_name(plan), "shared") == 0 ? NULL : "the plan has another name";
}

static void plan_let_go(const void *plan) { tn__plan_let_go(plan); }

static void plan_is_freed_after_every_holders_last_look(void **state) {
    tn_plan_spec spec = TN_PLAN_SPEC_INIT;
    uint64_t blocks = tn__alloc_live();
    (void)state;
    spec.name = "shared";
    for (int i = 0; i < ROUNDS; i++) {
        tn_plan *plan;
        assert_ok(tn_plan_create(&spec, &plan));
        plan_keep(plan);
        let_all_go((struct shared){plan, plan_look, plan_let_go});
    }
    assert_int_equal(tn__alloc_live(), blocks);
}

static const char *request_look(const void *request) {
    const tn_requirement *needs;
    size_t count;
    return tn_request_requirements(request, &needs, &count) == TN_OK && count == 1 &&
                   needs[0].handle.index == 7
               ? NULL
               : "the request has other requirements";
}

static void request_let_go(const void *request) { tn__request_let_go(request); }

static void request_is_freed_after_every_holders_last_look(void **state) {
    tn_request_spec spec = TN_REQUEST_SPEC_INIT;
    const tn_requirement need = {{1, 7, tn_buffer_type()}, tn_location_pinned()};
    uint64_t blocks = tn__alloc_live();
    (void)state;
    spec.name = "shared";
    spec.requirements = &need;
    spec.requirement_count = 1;
    for (int i = 0; i < ROUNDS; i++) {
        tn_request *request;
        assert_ok(tn_request_create(&spec, &request));
        for (int n = 1; n < HOLDERS; n++)
            tn__request_keep(request);
        let_all_go((struct shared){request, request_look, request_let_go});
    }
    assert_int_equal(tn__alloc_live(), blocks);
}

static const char *policy_look(const void *policy) {
    return tn_policy_name(policy)[0] == 'd' ? NULL : "the policy has another name";
}

static void policy_let_go(const void *policy) { tn__policy_let_go(policy); }

static void policy_is_forgotten_after_every_holders_last_look(void **state) {
    uint64_t blocks = tn__alloc_live();
    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        tn_policy *policy;
        assert_ok(tn_policy_tiered_lru(NULL, 0, &policy));
        for (int n = 1; n < HOLDERS; n++)
            tn__policy_keep(policy);
        let_all_go((struct shared){policy, policy_look, policy_let_go});
    }
    assert_int_equal(tn__alloc_live(), blocks);
}

static const char *store_look(const void *store) {
    return ((const tn__store *)store)->manager != 0 ? NULL : "the store has no manager";
}

static void store_let_go(const void *store) { tn__store_release((tn__store *)store); }

static void store_is_freed_after_every_holders_last_look(void **state) {
    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        tn__store *store = make_store(0);
        tn__add_rlx(&store->refs, HOLDERS - 1);
        let_all_go((struct shared){store, store_look, store_let_go});
    }
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(plan_is_freed_after_every_holders_last_look),
    cmocka_unit_test(request_is_freed_after_every_holders_last_look),
    cmocka_unit_test(policy_is_forgotten_after_every_holders_last_look),
    cmocka_unit_test(store_is_freed_after_every_holders_last_look),
};

TN_TEST_MAIN("unit.refs", tests)
