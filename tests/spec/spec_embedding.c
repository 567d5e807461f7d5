/* SPDX-License-Identifier: MIT */
/*
 * The library inside a program that is not tidy: it exits with everything open, may not lock memory,
 * forks in the middle of things, and lets threads go while their leases are open.
 */
#include "spec_common.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base_internal.h"

/* ---- Children -------------------------------------------------------------------------------- */

/* Wait for a child of this test; its exit status. */
static int collect(pid_t pid) {
    int status = -1;

    assert_true(pid >= 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static void needs_fork(void) {
#if TN__TSAN
    TN_SKIP("a forked child of a thread-sanitized program must not take locks");
#endif
}

static pid_t fork_quietly(void) {
    needs_fork();
    (void)fflush(NULL);
    return fork();
}

/* ---- A value with everything open ------------------------------------------------------------- */

struct open_things {
    tn_manager *m;
    tn_handle v;
    tn_lease lease, pending;
    tn_hold hold;
    tn_reservation reservation;
    tn_controller *controller;
    tn_use *use;
    tn_plan *plan;
    tn_scope *scope;
};

static tn_use *make_use(struct open_things *o) {
    tn_requirement need = {o->v, P};
    tn_request_spec spec = TN_REQUEST_SPEC_INIT;
    tn_request *request = NULL;
    tn_use *use = NULL;

    spec.name = "use";
    spec.requirements = &need;
    spec.requirement_count = 1;
    assert_ok(tn_request_create(&spec, &request));
    assert_ok(tn_use_create(o->controller, request, NULL, &use));
    tn_request_destroy(request);
    return use;
}

static void open_all(struct open_things *o, struct spec *f, uint32_t reaper) {
    tn_config config = spec_config(f);
    tn_reservation_spec workspace = {P, 8, "workspace"};
    tn_plan_spec spec = TN_PLAN_SPEC_INIT;
    tn_stream stream = spec_stream(f, 0);

    config.reaper = reaper;
    o->m = spec_manager_with(f, &config);
    o->v = adopt_rep(f, o->m, P);
    ensure(o->m, o->v, C0);
    o->lease = acquire(o->m, o->v, P, NULL);
    o->pending = acquire(o->m, o->v, C0, stream);
    spec_busy(f, stream);
    release(&o->pending);
    o->hold = hold(o->m, o->v, P);
    o->reservation = reserve(o->m, P, 8, "open");
    assert_ok(tn_controller_create(o->m, NULL, &o->controller));
    o->use = make_use(o);
    assert_ok(tn_use_enter(o->use));
    spec.name = "open";
    spec.reservations = &workspace;
    spec.reservation_count = 1;
    assert_ok(tn_plan_create(&spec, &o->plan));
    assert_ok(tn_scope_create(o->m, o->plan, NULL, &o->scope));
    assert_ok(tn_scope_enter(o->scope));
}

static void end_all(struct open_things *o, struct spec *f) {
    assert_ok(tn_scope_close(o->scope));
    assert_ok(tn_scope_destroy(o->scope));
    tn_plan_destroy(o->plan);
    assert_ok(tn_use_exit(o->use));
    tn_use_destroy(o->use);
    tn_controller_destroy(o->controller);
    release_reservation(&o->reservation);
    release_hold(&o->hold);
    release(&o->lease);
    spec_finish(f);
    assert_ok(tn_manager_close(o->m, 0));
    spec_destroy(f, o->m);
}

/* ---- Exit --------------------------------------------------------------------------------------- */

static void caught(void *context, const void *data) {
    (void)context;
    (void)data;
    _exit(9); /* something was freed */
}

static void exit_with_all_open(struct spec *f) {
    struct open_things manual, threaded;

    open_all(&manual, f, TN_REAPER_MANUAL);
    open_all(&threaded, f, TN_REAPER_THREAD);
    tt_on_destroy(caught, NULL);
    tt_on_copy(caught, NULL);
    exit(7); /* as if main() returned */
}

static void embedding_exit_runs_nothing_of_ours(void **state) {
    pid_t pid = fork_quietly();

    if (pid == 0)
        exit_with_all_open(*state);
#ifdef __SANITIZE_ADDRESS__ /* what is open counts as leaked there */
    assert_int_not_equal(collect(pid), 9);
#else
    assert_int_equal(collect(pid), 7);
#endif
}

/* ---- Locked memory ------------------------------------------------------------------------------ */

/* No call of the library locks pages: pinned memory is the driver's. */
static int pin_without_locked_memory(struct spec *f) {
    struct rlimit none = {0, 0};
    tn_manager *m = MANAGER(f);
    tn_handle v = adopt_rep(f, m, P);
    tn_report report = TN_REPORT_INIT;

    if (setrlimit(RLIMIT_MEMLOCK, &none) != 0)
        return 2;
    if (tn_manager_ensure(m, v, N, NULL, &report) != TN_OK ||
        tn_manager_ensure(m, v, C0, NULL, &report) != TN_OK)
        return 3;
    if (tn_manager_drop(m, v, N, NULL) != TN_OK || tn_manager_close(m, 0) != TN_OK)
        return 4;
    return tn_manager_destroy(m) == TN_OK ? 0 : 5;
}

static void embedding_no_locked_memory_is_needed(void **state) {
    pid_t pid = fork_quietly();

    if (pid == 0)
        _exit(pin_without_locked_memory(*state));
    assert_int_equal(collect(pid), 0);
}

/* ---- Forks -------------------------------------------------------------------------------------- */

/* Which call of a child does not say that it is forked; 0: all do. */
static int first_wrong(struct open_things *o) {
    tn_lease lease;
    uint64_t v = 0;
    int call = 0;

#define FORKED(expression)                                                                         \
    do {                                                                                           \
        call++;                                                                                    \
        tn_status got = (expression);                                                              \
        if (got != TN_ERR_FORKED) {                                                                \
            print_error("in the child, call %d: %s\n", call, tn_status_name(got));                 \
            return call;                                                                           \
        }                                                                                          \
    } while (0)
    FORKED(tn_manager_state_version(o->m, &v));
    FORKED(tn_manager_acquire(o->m, &o->v, 1, P, NULL, &lease));
    FORKED(tn_lease_release(&o->lease, 0));
    FORKED(tn_hold_release(&o->hold));
    FORKED(tn_reservation_release(&o->reservation));
    FORKED(tn_manager_ensure(o->m, o->v, N, NULL, NULL));
    FORKED(tn_scope_close(o->scope));
    FORKED(tn_use_exit(o->use));
    FORKED(tn_controller_set_metadata(o->controller, o->v, 1, NULL));
#undef FORKED
    if (tn_scope_destroy(o->scope) != TN_OK) /* memory only */
        return 50;
    tn_use_destroy(o->use);
    return 0;
}

static void embedding_fork_with_all_open(void **state) {
    spec_own_table(*state); /* a child of a process that uses CUDA may not call it */
    for (uint32_t reaper = TN_REAPER_THREAD; reaper <= TN_REAPER_MANUAL; reaper++) {
        struct open_things o;

        open_all(&o, *state, reaper);
        pid_t pid = fork_quietly();
        if (pid == 0)
            _exit(first_wrong(&o));
        assert_int_equal(collect(pid), 0);
        end_all(&o, *state);
    }
}

static int own_manager(struct spec *f) {
    tn_config config = spec_config(f);
    tn_manager *m = NULL;
    config.reaper = TN_REAPER_THREAD;
    tn_status status = tn_manager_create(&config, &m);
    if (status != TN_OK)
        return status == TN_ERR_FORKED && !m ? 1 : 2;
    tn_handle v = adopt_rep(f, m, P);
    tn_lease lease;
    if (tn_manager_acquire(m, &v, 1, P, NULL, &lease) != TN_OK ||
        tn_lease_release(&lease, 0) != TN_OK || tn_manager_drop(m, v, P, NULL) != TN_ERR_OWNERSHIP)
        return 3;
    return tn_manager_close(m, 0) == TN_OK && tn_manager_destroy(m) == TN_OK ? 0 : 4;
}

static int own_manager_in_a_child(struct spec *f) {
    pid_t pid = fork_quietly();
    if (pid == 0) { /* a fault or a hang ends the child, not in the test's own handler */
        (void)signal(SIGSEGV, SIG_DFL);
        (void)signal(SIGABRT, SIG_DFL);
        (void)alarm(60);
        _exit(own_manager(f));
    }
    return collect(pid);
}

struct bystander {
    tn_manager *m;
    pthread_barrier_t there, go;
};

static void *stand_by(void *arg) {
    struct bystander *b = arg;
    uint64_t v;
    bool good = tn_manager_state_version(b->m, &v) == TN_OK;
    pthread_barrier_wait(&b->there);
    pthread_barrier_wait(&b->go);
    return good ? b : NULL;
}

/* A child's grace periods would wait for the parent's other threads. */
static void embedding_fork_beside_a_thread_allows_no_manager(void **state) {
    struct bystander b = {.m = MANAGER(*state)};
    pthread_t thread;
    void *good;

    needs_fork();
    assert_int_equal(pthread_barrier_init(&b.there, NULL, 2), 0);
    assert_int_equal(pthread_barrier_init(&b.go, NULL, 2), 0);
    assert_int_equal(pthread_create(&thread, NULL, stand_by, &b), 0);
    pthread_barrier_wait(&b.there);
    int code = 1;
    for (int i = 0; i < 20 && code == 1; i++)
        code = own_manager_in_a_child(*state);
    pthread_barrier_wait(&b.go);
    assert_int_equal(pthread_join(thread, &good), 0);
    assert_ptr_equal(good, &b);
    assert_int_equal(code, 1);
    pthread_barrier_destroy(&b.there);
    pthread_barrier_destroy(&b.go);
}

static void embedding_fork_of_a_lone_thread_allows_its_own_manager(void **state) {
    struct open_things o;

    spec_own_table(*state);
    open_all(&o, *state, TN_REAPER_THREAD);
    end_all(&o, *state);
    assert_int_equal(own_manager(*state), 0);
    for (int i = 0; i < 20; i++)
        assert_int_equal(own_manager_in_a_child(*state), 0);
    assert_int_equal(own_manager(*state), 0);
}

struct loading {
    struct open_things *o;
    int code;
};

/* Inside a source callback: in TN_MODE_SERIAL with the guard up. */
static tn_status fork_inside(void *context, const tn_load_request *request) {
    struct loading *x = context;
    int status = -1;
    pid_t pid;

    (void)request;
    (void)fflush(NULL);
    pid = fork();
    if (pid == 0)
        _exit(first_wrong(x->o));
    if (pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status))
        x->code = WEXITSTATUS(status);
    return TN_OK;
}

static void embedding_fork_inside_a_callback(void **state) {
    struct open_things o;
    struct loading x = {&o, -1};
    tt_source *source = spec_source(*state);
    tn_handle h;

    spec_own_table(*state);
    needs_fork();
    open_all(&o, *state, TN_REAPER_MANUAL);
    source->hook = fork_inside;
    source->hook_context = &x;
    h = register_src(o.m, source);
    ensure(o.m, h, P);
    assert_int_equal(x.code, 0);
    source->hook = NULL;
    end_all(&o, *state);
}

/* ---- Threads that exit --------------------------------------------------------------------------- */

#define BORROWERS 12
#define EACH 5

struct borrower {
    pthread_t thread;
    tn_manager *m;
    tn_handle v;
    tn_stream stream;
    tn_lease leases[EACH];
    tn_status status;
};

static void *borrow(void *arg) {
    struct borrower *b = arg;

    for (int i = 0; i < EACH && b->status == TN_OK; i++)
        b->status = tn_manager_acquire(b->m, &b->v, 1, i % 2 ? C0 : P, i % 2 ? b->stream : NULL,
                                       &b->leases[i]);
    return NULL;
}

/* Threads exit with open leases, in an order of chance, while others start and take over what they
 * left; the leases end later, on another thread, last thread first. */
static void embedding_threads_exit_with_leases(void **state) {
    struct spec *f = *state;
    tn_manager *m = MANAGER(f);
    tn_handle v = adopt_rep(f, m, P);
    struct borrower borrowers[BORROWERS];
    uint64_t before;

    ensure(m, v, C0);
    before = version(m);
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < BORROWERS; i++) {
            borrowers[i] =
                (struct borrower){.m = m, .v = v, .stream = spec_stream(f, 0), .status = TN_OK};
            assert_int_equal(pthread_create(&borrowers[i].thread, NULL, borrow, &borrowers[i]), 0);
            if (i % 3 == 2) /* this one is gone before the next begins */
                assert_int_equal(pthread_join(borrowers[i].thread, NULL), 0);
        }
        for (int i = BORROWERS; i-- > 0;)
            if (i % 3 != 2)
                assert_int_equal(pthread_join(borrowers[i].thread, NULL), 0);
        assert_int_equal(info(m).lease_count, BORROWERS * EACH);
        assert_in_use(tn_manager_drop(m, v, P, NULL), BORROWERS * 3, 0, 0);
        for (int i = BORROWERS; i-- > 0;) {
            assert_ok(borrowers[i].status);
            for (int k = 0; k < EACH; k++)
                release(&borrowers[i].leases[k]);
        }
        spec_finish(f);
        assert_int_equal(version(m), before + (uint64_t)(round + 1) * BORROWERS * (3 * 2 + 2 * 3));
        if (f->stream_count + BORROWERS > SPEC_STREAMS_MAX)
            break;
    }
    drop(m, v, P);
    assert_ok(tn_manager_close(m, 0));
}

static const struct CMUnitTest tests[] = {
    SPEC_BOTH(embedding_exit_runs_nothing_of_ours),
    SPEC_BOTH(embedding_no_locked_memory_is_needed),
    SPEC_BOTH(embedding_fork_with_all_open),
    SPEC_BOTH(embedding_fork_beside_a_thread_allows_no_manager),
    SPEC_BOTH(embedding_fork_of_a_lone_thread_allows_its_own_manager),
    SPEC_BOTH(embedding_fork_inside_a_callback),
    SPEC_BOTH(embedding_threads_exit_with_leases),
};

TN_TEST_MAIN("spec.embedding", tests)
