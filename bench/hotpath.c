/* SPDX-License-Identifier: MIT */
/*
 * The workload of tools/hotpath.py: N pairs of one lifetime operation and its end, out of line in
 * the shared library, single thread, no reaper thread, so that two runs differ in N and nothing
 * else. The first pairs run before the function whose instructions are counted, which brings
 * thread records, streams and event pools into being.
 *
 *     hotpath CASE N      (see the table at the end for the cases; also use_workers_1 to _4: that
 *                         many threads, each with N pairs of the same use)
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tenure/tenure.h>

#define VALUES 8
#define WARM_UP 1024
#define STEP_EVERY 64 /* CUDA leases: a turn of the reaper after so many, in the figures */

typedef struct work {
    tn_sim *sim;
    tn_manager *m;
    tn_handle handles[VALUES];
    tn_stream stream;
    tn_location at;
    size_t count; /* values of one operation */
    tn_controller *controller;
    tn_request *request;
    tn_use *use;
} work;

static void ok(tn_status status, const char *what) {
    if (status != TN_OK) {
        fprintf(stderr, "hotpath: %s: %s: %s\n", what, tn_status_name(status),
                tn_last_error()->message);
        exit(1);
    }
}

#define OK(call) ok((call), #call)

static void build(work *w, bool cuda, size_t count) {
    OK(tn_sim_create("dev:1 mem=64MiB", &w->sim));
    w->count = count;
    w->at = cuda ? tn_location_cuda(0) : tn_location_pageable();
    tn_budget budget = {w->at, 64 << 20};
    tn_config config = TN_CONFIG_INIT;
    config.driver = tn_sim_driver(w->sim);
    config.mode = TN_MODE_CONCURRENT;
    config.reaper = TN_REAPER_MANUAL;
    config.budgets = &budget;
    config.budget_count = 1;
    OK(tn_manager_create(&config, &w->m));
    if (cuda)
        OK(tn_sim_stream_create(w->sim, 0, 0, &w->stream));
    for (size_t i = 0; i < VALUES; i++) {
        uint64_t bytes = 4096;
        tn_buffer *buffer;
        OK(tn_buffer_create(config.driver, tn_location_pageable(), &bytes, 1, &buffer));
        memset(tn_buffer_segment(buffer, 0).data, (int)i, bytes);
        OK(tn_manager_adopt(w->m, tn_buffer_payload(buffer), tn_location_none(), TN_REPLICABLE,
                            &w->handles[i]));
        OK(tn_manager_ensure(w->m, w->handles[i], w->at, NULL, NULL));
    }
}

/* A use of the same values and one reservation, bound to placement, so that entering it is a hit. */
static void build_use(work *w) {
    tn_controller_config config = TN_CONTROLLER_CONFIG_INIT;
    tn_requirement requirements[VALUES];
    tn_reservation_spec reservation = {w->at, 4096, "bench"};
    config.binding = TN_BIND_PLACEMENT;
    OK(tn_controller_create(w->m, &config, &w->controller));
    for (size_t i = 0; i < w->count; i++)
        requirements[i] = (tn_requirement){w->handles[i], w->at};
    tn_request_spec spec = TN_REQUEST_SPEC_INIT;
    spec.name = "bench";
    spec.requirements = requirements;
    spec.requirement_count = w->count;
    spec.reservations = &reservation;
    spec.reservation_count = 1;
    OK(tn_request_create(&spec, &w->request));
    OK(tn_use_create(w->controller, w->request, NULL, &w->use));
}

static void drop_use(work *w) {
    tn_use_destroy(w->use);
    tn_controller_destroy(w->controller);
    tn_request_destroy(w->request);
}

static void drop(work *w) {
    if (w->use)
        drop_use(w);
    OK(tn_manager_close(w->m, 0));
    OK(tn_manager_destroy(w->m));
    if (w->stream)
        OK(tn_sim_stream_destroy(w->sim, w->stream));
    tn_sim_destroy(w->sim);
}

/* One function for each pair of calls: its name is what the profiler collects under. The statuses
 * are gathered, not tested one by one, so that the loop itself costs little and always the same. */
#define COUNTED __attribute__((noinline, noclone))

COUNTED static unsigned pairs_lease(const work *w, uint64_t n) {
    unsigned bad = 0;
    for (uint64_t i = 0; i < n; i++) {
        tn_lease lease;
        bad |= tn_manager_acquire(w->m, w->handles, w->count, w->at, w->stream, &lease);
        bad |= tn_lease_release(&lease, 0);
    }
    return bad;
}

COUNTED static unsigned pairs_lease_cuda(const work *w, uint64_t n) {
    unsigned bad = 0;
    for (uint64_t i = 0; i < n; i += STEP_EVERY) {
        bad |= pairs_lease(w, STEP_EVERY);
        bad |= tn_manager_step(w->m, NULL);
    }
    return bad;
}

COUNTED static unsigned pairs_hold(const work *w, uint64_t n) {
    unsigned bad = 0;
    for (uint64_t i = 0; i < n; i++) {
        tn_hold hold;
        bad |= tn_manager_hold(w->m, w->handles, w->count, w->at, &hold);
        bad |= tn_hold_release(&hold);
    }
    return bad;
}

COUNTED static unsigned pairs_reserve(const work *w, uint64_t n) {
    unsigned bad = 0;
    for (uint64_t i = 0; i < n; i++) {
        tn_reservation reservation;
        bad |= tn_manager_reserve(w->m, w->at, 4096, "bench", &reservation);
        bad |= tn_reservation_release(&reservation);
    }
    return bad;
}

COUNTED static unsigned pairs_use(const work *w, uint64_t n) {
    unsigned bad = 0;
    for (uint64_t i = 0; i < n; i++) {
        bad |= tn_use_enter(w->use);
        bad |= tn_use_exit(w->use);
        bad |= tn_use_reset(w->use);
    }
    return bad;
}

COUNTED static unsigned pairs_decide(const work *w, uint64_t n) {
    unsigned bad = 0;
    for (uint64_t i = 0; i < n; i++) {
        tn_decision *decision = NULL;
        bad |= tn_controller_decide(w->controller, w->request, &decision);
        tn_decision_drop(decision);
    }
    return bad;
}

COUNTED static unsigned pairs_version(const work *w, uint64_t n) {
    unsigned bad = 0;
    for (uint64_t i = 0; i < n; i++) {
        uint64_t version;
        bad |= tn_manager_state_version(w->m, &version);
    }
    return bad;
}

/* ---- Uses by several workers (tests/abi/abi_scaling.py) ---- */

#define WORKERS_MAX 4

typedef struct worker {
    work w; /* the same manager, controller, values and budget; a use of its own */
    uint64_t n;
    unsigned bad;
    pthread_t thread;
} worker;

static void *worker_main(void *arg) {
    worker *me = arg;
    me->bad = pairs_use(&me->w, WARM_UP);
    me->bad |= pairs_use(&me->w, me->n);
    return NULL;
}

/* Each of `count` workers makes n pairs. */
static unsigned uses_by_workers(const work *w, unsigned count, uint64_t n) {
    worker workers[WORKERS_MAX];
    unsigned bad = 0;
    for (unsigned i = 0; i < count; i++) {
        workers[i] = (worker){.w = *w, .n = n};
        OK(tn_use_create(w->controller, w->request, NULL, &workers[i].w.use));
        bad |= pthread_create(&workers[i].thread, NULL, worker_main, &workers[i]) != 0;
    }
    for (unsigned i = 0; i < count; i++) {
        bad |= pthread_join(workers[i].thread, NULL) != 0;
        bad |= workers[i].bad;
        tn_use_destroy(workers[i].w.use);
    }
    return bad;
}

static const struct {
    const char *name;
    unsigned (*pairs)(const work *w, uint64_t n);
    bool cuda;
    size_t count;
} CASES[] = {
    {"lease_host_1", pairs_lease, false, 1},     {"lease_host_4", pairs_lease, false, 4},
    {"lease_host_8", pairs_lease, false, 8},     {"use_host_4", pairs_use, false, 4},
    {"decide_host_4", pairs_decide, false, 4},   {"hold_host_1", pairs_hold, false, 1},
    {"hold_host_8", pairs_hold, false, 8},       {"reserve_host", pairs_reserve, false, 1},
    {"lease_cuda_1", pairs_lease_cuda, true, 1}, {"lease_cuda_8", pairs_lease_cuda, true, 8},
    {"hold_cuda_1", pairs_hold, true, 1},        {"reserve_cuda", pairs_reserve, true, 1},
    {"state_version", pairs_version, false, 1},
};

/* use_workers_COUNT */
static int run_workers(const char *name, uint64_t n) {
    static work w;
    unsigned count = (unsigned)strtoul(name + strlen("use_workers_"), NULL, 10);
    if (count < 1 || count > WORKERS_MAX)
        return 2;
    build(&w, false, 4);
    build_use(&w);
    unsigned bad = uses_by_workers(&w, count, n);
    drop(&w);
    if (bad)
        fprintf(stderr, "hotpath: %s: a call failed\n", name);
    return bad != 0;
}

int main(int argc, char **argv) {
    if (argc == 3 && strncmp(argv[1], "use_workers_", strlen("use_workers_")) == 0)
        return run_workers(argv[1], strtoull(argv[2], NULL, 10));
    for (size_t i = 0; argc == 3 && i < sizeof CASES / sizeof CASES[0]; i++) {
        if (strcmp(argv[1], CASES[i].name) != 0)
            continue;
        static work w;
        build(&w, CASES[i].cuda, CASES[i].count);
        if (CASES[i].pairs == pairs_use || CASES[i].pairs == pairs_decide)
            build_use(&w);
        unsigned bad = CASES[i].pairs(&w, WARM_UP);
        bad |= CASES[i].pairs(&w, strtoull(argv[2], NULL, 10));
        drop(&w);
        if (bad)
            fprintf(stderr, "hotpath: %s: a call failed\n", argv[1]);
        return bad != 0;
    }
    fprintf(stderr, "usage: hotpath CASE N\ncases:");
    for (size_t i = 0; i < sizeof CASES / sizeof CASES[0]; i++)
        fprintf(stderr, " %s", CASES[i].name);
    fputs("\n", stderr);
    return 2;
}
