/* SPDX-License-Identifier: MIT */
#include "control_util.h"

void control_begin(struct control *c, struct spec *f, tn_manager *m, const tn_tier *tiers,
                   size_t count) {
    tn_controller_config config = TN_CONTROLLER_CONFIG_INIT;

    *c = (struct control){.f = f, .m = m, .stream = spec_stream(f, 0)};
    assert_ok(tn_policy_tiered_lru(tiers, count, &c->policy));
    config.policy = c->policy;
    config.binding = TN_BIND_VERSION;
    assert_ok(tn_controller_create(m, &config, &c->controller));
}

void control_end(struct control *c) {
    tn_controller_destroy(c->controller);
    tn_policy_destroy(c->policy);
}

tn_request *control_request(const tn_requirement *needs, size_t count) {
    tn_request_spec spec = TN_REQUEST_SPEC_INIT;
    tn_request *request = NULL;

    spec.name = "field";
    spec.requirements = needs;
    spec.requirement_count = count;
    assert_ok(tn_request_create(&spec, &request));
    return request;
}

static void count_victims(struct control *c, const tn_use *use) {
    tn_eviction evictions[64] = {TN_EVICTION_INIT};
    const tn_decision *decision = NULL;
    size_t count = 64;

    assert_ok(tn_use_decision(use, &decision));
    assert_ok(tn_decision_evictions(decision, evictions, &count));
    assert_true(count <= 64);
    for (size_t i = 0; i < count; i++) {
        c->drops += evictions[i].action.kind == TN_ACTION_DROP;
        c->moves += evictions[i].action.kind == TN_ACTION_MOVE;
    }
}

void control_use(struct control *c, tn_handle h, tn_location at) {
    tn_requirement need = {h, at};
    tn_transfer_stream consumer = {at, c->stream};
    tn_use_options options = TN_USE_OPTIONS_INIT;
    tn_request *request = control_request(&need, 1);
    tn_use *use = NULL;

    options.consumers = &consumer;
    options.consumer_count = 1;
    assert_ok(tn_use_create(c->controller, request, &options, &use));
    tn_request_destroy(request);
    assert_ok(tn_use_enter(use));
    count_victims(c, use);
    assert_ok(tn_use_exit(use));
    tn_use_destroy(use);
    spec_finish(c->f);
    field_step(c->m);
}
