/* SPDX-License-Identifier: MIT */
#include "pool.h"

#include "base.h"
#include "progress.h"
#include "request.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WATCH_NS = 50 * 1000 * 1000 }; /* how soon an interrupt is noticed */

static uint64_t now_ns(const struct pool *pool) { return machine_now_ns(&pool->server->machine); }

/* With the lock. Whether requests are still admitted. */
static bool is_open(const struct pool *pool) {
    return !pool->ended && !server_is_stopped() && pool->next < pool->server->options.requests;
}

/* With the lock: waits for a change, at most so long. */
static void wait_at_most(struct pool *pool, uint64_t ns) {
    struct timespec until;

    clock_gettime(CLOCK_MONOTONIC, &until);
    ns += (uint64_t)until.tv_nsec;
    until.tv_sec += (time_t)(ns / 1000000000);
    until.tv_nsec = (long)(ns % 1000000000);
    pthread_cond_timedwait(&pool->changed, &pool->mutex, &until);
}

/* ---- One worker ---- */

/* Worker i begins i times the stagger late, so that workers do not run side by side for ever. */
static void wait_for_start(struct worker *worker) {
    struct pool *pool = worker->pool;
    uint64_t late_ns = 0;
    uint64_t spent_ns = 0;

    if (__builtin_mul_overflow(worker->index, pool->server->options.stagger_ns, &late_ns)) {
        late_ns = UINT64_MAX;
    }
    pthread_mutex_lock(&pool->mutex);
    while (is_open(pool) && (spent_ns = now_ns(pool) - pool->began_ns) < late_ns) {
        wait_at_most(pool, late_ns - spent_ns < WATCH_NS ? late_ns - spent_ns : WATCH_NS);
    }
    pthread_mutex_unlock(&pool->mutex);
}

/* A request that a worker has been given. */
struct ticket {
    uint64_t number;
    size_t program;
    uint64_t bytes;   /* needed at once */
    uint64_t came_ns; /* when the worker was free for it */
};

/* With the lock. */
static void describe_next(const struct pool *pool, struct ticket *ticket) {
    const struct server *server = pool->server;

    ticket->number = pool->next;
    ticket->program = (size_t)(pool->next / server->options.tenants % server->program_count);
    ticket->bytes = server->programs[ticket->program]->need_bytes;
}

/* With the lock. */
static bool fits(const struct pool *pool, uint64_t bytes) {
    uint64_t budget = pool->server->budget_bytes[TIER_DEVICE];

    return pool->running == 0 || (bytes <= budget && pool->running_bytes <= budget - bytes);
}

/* False: there are no more requests. */
static bool enter(struct worker *worker, struct ticket *ticket) {
    struct pool *pool = worker->pool;
    bool queued = false;
    bool enters = false;

    ticket->came_ns = now_ns(pool);
    pthread_mutex_lock(&pool->mutex);
    while ((enters = is_open(pool))) {
        describe_next(pool, ticket);
        if (fits(pool, ticket->bytes)) {
            break;
        }
        queued = true;
        wait_at_most(pool, WATCH_NS);
    }
    if (enters) {
        pool->next++;
        pool->running++;
        pool->running_bytes += ticket->bytes;
        if (pool->running > pool->most_running) {
            pool->most_running = pool->running;
        }
    }
    pthread_mutex_unlock(&pool->mutex);
    if (enters && queued) {
        worker->tally.queued++;
        worker->tally.queued_ns += now_ns(pool) - ticket->came_ns;
    }
    return enters;
}

static void leave(struct pool *pool, const struct ticket *ticket, bool done) {
    pthread_mutex_lock(&pool->mutex);
    pool->running--;
    pool->running_bytes -= ticket->bytes;
    pool->done += done;
    pthread_cond_broadcast(&pool->changed);
    pthread_mutex_unlock(&pool->mutex);
}

static bool serve(struct worker *worker, const struct ticket *ticket) {
    struct server *server = worker->server;
    uint64_t tenant = 1 + ticket->number % server->options.tenants;
    uint64_t key_loads = worker->tally.key_loads;
    uint64_t digest = 0;

    switch (request_serve(worker, ticket->program, tenant, ticket->number, &digest)) {
    case REQUEST_DONE:
        tally_add_done(&worker->tally,
                       (struct done){.ns = now_ns(worker->pool) - ticket->came_ns,
                                     .key_loads = worker->tally.key_loads - key_loads});
        verifier_submit(server->verifier, ticket->program, tenant, ticket->number, digest);
        return true;
    case REQUEST_FAILED:
        worker->tally.failed++;
        return false;
    default:
        return false; /* stopped */
    }
}

static void *work(void *context) {
    struct worker *worker = context;
    struct pool *pool = worker->pool;
    struct ticket ticket = {0};

    wait_for_start(worker);
    while (enter(worker, &ticket)) {
        bool done = false;

        placement_enter(&worker->server->placement);
        done = serve(worker, &ticket);
        placement_leave(&worker->server->placement);
        leave(pool, &ticket, done);
    }
    worker->tally.elapsed_ns = now_ns(pool) - pool->began_ns;
    pthread_mutex_lock(&pool->mutex);
    pool->at_work--;
    pthread_cond_broadcast(&pool->changed);
    pthread_mutex_unlock(&pool->mutex);
    return NULL;
}

/* ---- All of them ---- */

static bool init_pool(struct pool *pool, struct server *server) {
    pthread_condattr_t attributes;
    int error = pthread_condattr_init(&attributes);

    *pool = (struct pool){.server = server};
    if (error == 0) {
        pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
        error = pthread_cond_init(&pool->changed, &attributes);
        pthread_condattr_destroy(&attributes);
    }
    if (error == 0) {
        error = pthread_mutex_init(&pool->mutex, NULL);
    }
    if (error != 0) {
        complain("serve: no lock: %s", strerror(error));
    }
    return error == 0;
}

static void fini_pool(struct pool *pool) {
    pthread_cond_destroy(&pool->changed);
    pthread_mutex_destroy(&pool->mutex);
}

static bool make_worker(struct pool *pool, uint64_t index) {
    struct server *server = pool->server;
    const struct machine *machine = &server->machine;
    struct worker *worker = &server->workers[index];
    tn_status status =
        machine->ops->stream_create(machine->self, machine->at.index, &worker->stream);

    if (status != TN_OK) {
        complain("serve: no stream: %s", tn_status_text(status));
        worker->stream = NULL;
        return false;
    }
    if (server->device != NULL) {
        worker->device = device_worker_create(server->device, worker->stream);
        if (worker->device == NULL) {
            return false;
        }
    }
    worker->server = server;
    worker->pool = pool;
    worker->index = index;
    worker->placer = (struct placer){.placement = &server->placement,
                                     .control = server->has_control ? &server->control : NULL,
                                     .tally = &worker->tally,
                                     .stream = worker->stream};
    return true;
}

static bool end_worker(struct server *server, struct worker *worker) {
    const struct machine *machine = &server->machine;
    tn_status status = TN_OK;

    tally_add(&server->tally, &worker->tally);
    device_worker_destroy(worker->device);
    worker->device = NULL;
    if (worker->stream != NULL) {
        status = machine->ops->stream_destroy(machine->self, worker->stream);
    }
    if (status != TN_OK) {
        complain("serve: a stream cannot be destroyed: %s", tn_status_text(status));
    }
    return status == TN_OK;
}

/* Signals are for the main thread. Returns how many threads there are. */
static uint64_t start_threads(struct pool *pool) {
    struct server *server = pool->server;
    uint64_t started = 0;
    sigset_t all;
    sigset_t before;
    int error = 0;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pool->at_work = server->options.workers;
    while (started < server->options.workers && error == 0) {
        struct worker *worker = &server->workers[started];

        error = pthread_create(&worker->thread, NULL, work, worker);
        started += error == 0;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error != 0) {
        complain("serve: no thread for a worker: %s", strerror(error));
    }
    return started;
}

/* Shows how far it is until all have ended. */
static void watch(struct pool *pool) {
    struct progress progress = {0};

    pthread_mutex_lock(&pool->mutex);
    while (pool->at_work > 0) {
        uint64_t done = pool->done;

        pthread_mutex_unlock(&pool->mutex);
        progress_show(&progress, pool->server, done);
        pthread_mutex_lock(&pool->mutex);
        if (pool->at_work > 0) {
            wait_at_most(pool, WATCH_NS);
        }
        if (server_is_stopped()) {
            pthread_cond_broadcast(&pool->changed);
        }
    }
    pthread_mutex_unlock(&pool->mutex);
    progress_end(&progress);
}

static bool run_threads(struct pool *pool) {
    uint64_t wanted = pool->server->options.workers;
    uint64_t started = 0;

    pool->began_ns = now_ns(pool);
    started = start_threads(pool);
    if (started < wanted) {
        pthread_mutex_lock(&pool->mutex);
        pool->ended = true;
        pool->at_work -= wanted - started;
        pthread_cond_broadcast(&pool->changed);
        pthread_mutex_unlock(&pool->mutex);
    }
    watch(pool);
    for (uint64_t i = 0; i < started; i++) {
        pthread_join(pool->server->workers[i].thread, NULL);
    }
    return started == wanted;
}

bool server_run(struct server *server) {
    uint64_t count = server->options.workers;
    struct pool pool;
    bool good = true;

    server->workers = memory_new((size_t)count, sizeof *server->workers);
    if (!init_pool(&pool, server)) {
        return false;
    }
    for (uint64_t i = 0; i < count && good; i++) {
        good = make_worker(&pool, i);
    }
    good = good && run_threads(&pool);
    for (uint64_t i = 0; i < count; i++) {
        good = end_worker(server, &server->workers[i]) && good;
    }
    server->most_running = pool.most_running;
    fini_pool(&pool);
    return good;
}
