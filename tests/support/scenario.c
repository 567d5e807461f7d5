/* SPDX-License-Identifier: MIT */
/* Scenarios come to life: managers, values, policies, steps; see scenario.h. */
#include "scenario_text.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- Values ---------------------------------------------------------------------------------- */

world_value *world_value_of(const world *w, const char *name) {
    for (size_t i = 0; i < w->count; i++)
        if (strcmp(w->values[i].name, name) == 0)
            return &w->values[i];
    text_bad("the name of a value", name);
}

tn_handle world_handle(const world *w, const char *name) { return world_value_of(w, name)->h; }

/* The pattern in the contents of a value. */
static uint64_t seed_of(const world *w, const world_value *v) {
    return (uint64_t)(v - w->values) + 1;
}

static void load_source(world *w, world_value *v, uint32_t mode, const char *at) {
    tn_value_spec spec = tt_spec(v->charge, v->charge);

    spec.replica_mode = mode;
    v->source = spec_source(w->f);
    v->source->seed = seed_of(w, v);
    v->h = spec_register_spec(w->m, v->source, world_at(at), &spec);
}

static void place(world *w, world_value *v, uint32_t mode, tn_location at) {
    tn_payload payload;

    if (v->h.index != 0) {
        ensure(w->m, v->h, at);
        return;
    }
    payload = tt_bytes(w->f->driver, at, v->charge);
    tt_fill(payload, seed_of(w, v));
    v->h = spec_adopt(w->m, payload, at, mode);
}

static world_value *grow(world *w) {
    w->values = realloc(w->values, (w->count + 1) * sizeof(*w->values));
    assert_non_null(w->values);
    memset(&w->values[w->count], 0, sizeof(*w->values));
    return &w->values[w->count++];
}

static void add_value(world *w, const char *text) {
    world_value *v = grow(w);
    char places[64] = "", source[8] = "", at[TEXT_MAX], mode;
    const char *list;
    int end = 0;

    if (sscanf(text, "%15[a-z0-9] %" SCNu64 " %c %n", v->name, &v->charge, &mode, &end) != 3 ||
        (mode != 'R' && mode != 'X'))
        text_bad("a value", text);
    text += end;
    if (sscanf(text, "@%63s %n", places, &end) == 1)
        text += end;
    if (sscanf(text, "src=%7s%n", source, &end) == 1)
        text += end;
    if (*text != '\0')
        text_bad("places of a value", text);
    if (source[0] != '\0')
        load_source(w, v, mode == 'X' ? TN_EXCLUSIVE : TN_REPLICABLE, source);
    for (list = places; text_part(&list, ',', at);)
        place(w, v, mode == 'X' ? TN_EXCLUSIVE : TN_REPLICABLE, world_at(at));
    assert_int_not_equal(v->h.index, 0);
}

void world_add(world *w, const char *values) {
    char text[TEXT_MAX];

    while (text_part(&values, ';', text))
        add_value(w, text);
}

/* ---- Managers, policies, controllers ---------------------------------------------------------- */

static tn_manager *make_manager(struct spec *f, const char *budgets) {
    tn_budget rows[8];
    char text[TEXT_MAX];
    size_t count = 0;

    for (; text_part(&budgets, ',', text); count++) {
        text_bytes b = text_bytes_of(text, '=');

        assert_true(count < sizeof(rows) / sizeof(rows[0]));
        rows[count] = (tn_budget){b.at, b.bytes};
    }
    return spec_manager(f, rows, count);
}

/* `D0 to P, H`; the list may be empty. */
static tn_tier tier_of(const char *text, tn_location to[8]) {
    tn_tier tier = {.to = to};
    char from[8], at[TEXT_MAX];
    int end = 0;

    if (sscanf(text, "%7[HPD0-9] to%n", from, &end) != 1 || end == 0)
        text_bad("a tier", text);
    tier.from = world_at(from);
    for (text += end; text_part(&text, ',', at); tier.to_count++) {
        assert_true(tier.to_count < 8);
        to[tier.to_count] = world_at(at);
    }
    return tier;
}

tn_policy *world_tiers(const char *tiers) {
    tn_tier rows[8];
    tn_location to[8][8];
    char text[TEXT_MAX];
    tn_policy *policy = NULL;
    size_t count = 0;

    for (; text_part(&tiers, ';', text); count++) {
        assert_true(count < 8);
        rows[count] = tier_of(text, to[count]);
    }
    assert_ok(tn_policy_tiered_lru(count != 0 ? rows : NULL, count, &policy));
    return policy;
}

tn_controller *world_controller(world *w, tn_policy *policy, uint64_t limit) {
    tn_controller_config config = TN_CONTROLLER_CONFIG_INIT;
    tn_controller *controller = NULL;

    config.policy = policy;
    if (limit != 0)
        config.search_limit = limit;
    assert_ok(tn_controller_create(w->m, &config, &controller));
    return controller;
}

static void make_controller(world *w) {
    tn_policy *policy = NULL;

    if (w->of.policy != NULL)
        assert_ok(tn_policy_create(w->of.policy, &policy));
    else if (w->of.tiers != NULL)
        policy = world_tiers(w->of.tiers);
    w->controller = world_controller(w, policy, w->of.limit);
    tn_policy_destroy(policy); /* the controller keeps it */
}

tn_stream world_stream(world *w, uint32_t device) {
    assert_true(device < WORLD_DEVICES);
    if (w->streams[device] == NULL)
        w->streams[device] = spec_stream(w->f, device);
    return w->streams[device];
}

world *world_begin(struct spec *f, const scenario *of) {
    world *w = calloc(1, sizeof(*w));

    assert_non_null(w);
    if (f->manager_count == 0)
        spec_machine(f, "dev:3");
    w->f = f;
    w->of = *of;
    w->m = make_manager(f, of->budgets);
    world_add(w, of->values);
    make_controller(w);
    world_do(w, of->before);
    return w;
}

void world_end(world *w) {
    for (size_t i = 0; i < w->lease_count; i++)
        release(&w->leases[i]);
    for (size_t i = 0; i < w->hold_count; i++)
        release_hold(&w->holds[i]);
    for (size_t i = 0; i < w->reservation_count; i++)
        release_reservation(&w->reservations[i]);
    spec_finish(w->f);
    tn_controller_destroy(w->controller);
    free(w->values);
    free(w);
}

/* ---- Requests and uses ------------------------------------------------------------------------ */

tn_request *world_request(const world *w, const char *need, const char *reserve) {
    size_t count = text_parts(need, ','), reserved_count = text_parts(reserve, ',');
    tn_requirement *rows = calloc(count + 1, sizeof(*rows));
    tn_reservation_spec *reservations = calloc(reserved_count + 1, sizeof(*reservations));
    char(*labels)[24] = calloc(reserved_count + 1, sizeof(*labels));
    tn_request_spec spec = TN_REQUEST_SPEC_INIT;
    tn_request *request = NULL;
    char text[TEXT_MAX];

    assert_true(rows != NULL && reservations != NULL && labels != NULL);
    for (size_t i = 0; text_part(&need, ',', text); i++) {
        text_endpoint e = text_endpoint_of(text);

        rows[i] = (tn_requirement){world_handle(w, e.name), e.at};
    }
    for (size_t i = 0; text_part(&reserve, ',', text); i++) {
        text_bytes b = text_bytes_of(text, ':');

        snprintf(labels[i], sizeof(labels[i]), "r%zu", i + 1);
        reservations[i] = (tn_reservation_spec){b.at, b.bytes, labels[i]};
    }
    spec.name = "request";
    spec.requirements = rows;
    spec.requirement_count = count;
    spec.reservations = reserved_count != 0 ? reservations : NULL;
    spec.reservation_count = reserved_count;
    assert_ok(tn_request_create(&spec, &request));
    free(labels);
    free(reservations);
    free(rows);
    return request;
}

tn_use *world_use(world *w, tn_controller *controller, const tn_request *request) {
    tn_transfer_stream streams[WORLD_DEVICES];
    tn_use_options options = TN_USE_OPTIONS_INIT;
    const tn_requirement *rows = NULL;
    bool seen[WORLD_DEVICES] = {false};
    tn_use *use = NULL;
    size_t count = 0;

    assert_ok(tn_request_requirements(request, &rows, &count));
    for (size_t i = 0; i < count; i++) {
        tn_location at = rows[i].at;

        if (at.kind != TN_LOCATION_CUDA || seen[at.index])
            continue;
        seen[at.index] = true;
        streams[options.consumer_count++] = (tn_transfer_stream){at, world_stream(w, at.index)};
    }
    options.consumers = options.consumer_count != 0 ? streams : NULL;
    assert_ok(tn_use_create(controller, request, &options, &use));
    return use;
}

void world_use_once(world *w, const char *need) {
    tn_request *request = world_request(w, need, NULL);
    tn_use *use = world_use(w, w->controller, request);
    char text[TEXT_MAX];

    assert_ok(tn_use_enter(use));
    while (text_part(&need, ',', text)) {
        text_endpoint e = text_endpoint_of(text);
        const world_value *v = world_value_of(w, e.name);
        const void *data = NULL;

        assert_ok(tn_use_value(use, v->h, e.at, &data));
        assert_true(tt_check(data, seed_of(w, v)));
    }
    assert_ok(tn_use_exit(use));
    tn_use_destroy(use);
    tn_request_destroy(request);
}

tn_status world_decide_for(world *w, tn_controller *controller, const char *need,
                           const char *reserve, tn_decision **out) {
    tn_request *request = world_request(w, need, reserve);
    tn_status status;

    *out = NULL;
    status = tn_controller_decide(controller, request, out);
    tn_request_destroy(request); /* the decision keeps it */
    assert_true((status == TN_OK) == (*out != NULL));
    return status;
}

tn_status world_decide(world *w, tn_decision **out) {
    return world_decide_for(w, w->controller, w->of.need, w->of.reserve, out);
}

/* ---- Steps ------------------------------------------------------------------------------------ */

static void enter_a_scope(world *w, const char *need) {
    tn_decision *d = NULL;
    tn_scope *scope = NULL;

    assert_ok(world_decide_for(w, w->controller, need, NULL, &d));
    assert_ok(tn_controller_scope(w->controller, d, NULL, 0, &scope));
    assert_ok(tn_scope_enter(scope));
    assert_ok(tn_scope_close(scope));
    assert_ok(tn_scope_destroy(scope));
    tn_decision_drop(d);
}

/* `a priority -1 key text`; either may be missing. */
static void set_metadata(world *w, const char *text) {
    char name[16], key[64] = "";
    int64_t priority = 0;
    int end = 0;

    if (sscanf(text, "%15[a-z0-9] %n", name, &end) != 1)
        text_bad("metadata", text);
    text += end;
    if (sscanf(text, "priority %" SCNd64 " %n", &priority, &end) == 1)
        text += end;
    if (sscanf(text, "key %63s%n", key, &end) == 1)
        text += end;
    if (*text != '\0')
        text_bad("metadata", text);
    assert_ok(tn_controller_set_metadata(w->controller, world_handle(w, name), priority,
                                         key[0] != '\0' ? key : NULL));
}

static tn_lease lease_of(world *w, text_endpoint e) {
    bool device = e.at.kind == TN_LOCATION_CUDA;

    return acquire(w->m, world_handle(w, e.name), e.at,
                   device ? world_stream(w, e.at.index) : NULL);
}

static void leave_pending(world *w, text_endpoint e) {
    tn_lease lease = lease_of(w, e);

    spec_busy(w->f, world_stream(w, e.at.index));
    release(&lease);
}

static void do_reserve(world *w, const char *text) {
    text_bytes b = text_bytes_of(text, ':');

    assert_true(w->reservation_count < 4);
    w->reservations[w->reservation_count++] = reserve(w->m, b.at, b.bytes, "before");
}

/* Steps on one endpoint. */
static void do_at(world *w, const char *verb, const char *what) {
    text_endpoint e = text_endpoint_of(what);
    tn_handle h = world_handle(w, e.name);

    if (strcmp(verb, "ensure") == 0) {
        ensure(w->m, h, e.at);
    } else if (strcmp(verb, "drop") == 0) {
        drop(w->m, h, e.at);
    } else if (strcmp(verb, "hold") == 0) {
        assert_true(w->hold_count < 4);
        w->holds[w->hold_count++] = hold(w->m, h, e.at);
    } else if (strcmp(verb, "lease") == 0) {
        assert_true(w->lease_count < 4);
        w->leases[w->lease_count++] = lease_of(w, e);
    } else if (strcmp(verb, "pending") == 0) {
        leave_pending(w, e);
    } else {
        text_bad("a step", verb);
    }
}

static void do_step(world *w, const char *text) {
    char verb[16];
    int end = 0;

    if (sscanf(text, "%15[a-z] %n", verb, &end) != 1 || end == 0)
        text_bad("a step", text);
    text += end;
    if (strcmp(verb, "use") == 0)
        world_use_once(w, text);
    else if (strcmp(verb, "scope") == 0)
        enter_a_scope(w, text);
    else if (strcmp(verb, "meta") == 0)
        set_metadata(w, text);
    else if (strcmp(verb, "discard") == 0)
        discard(w->m, world_handle(w, text));
    else if (strcmp(verb, "reserve") == 0)
        do_reserve(w, text);
    else
        do_at(w, verb, text);
}

void world_do(world *w, const char *steps) {
    char text[TEXT_MAX];

    while (text_part(&steps, ';', text))
        do_step(w, text);
}
