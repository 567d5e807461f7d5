/* SPDX-License-Identifier: MIT */
/* F-I03: the allocator's threads and fork. Without jemalloc, and in a process that has preloaded
 * it. */
#include <dirent.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "process_util.h"

#include "field_common.h"

enum { WORKERS = 6, FORKS = 50, VALUE_BYTES = 65536 };

/* The case's two seconds are those of a machine at rest. What it looks for, a child that waits for
 * a lock that nobody will release, never ends. */
#define ALL_FORKS_MAX_NS (60000 * MS)

typedef int mallctl_fn(const char *name, void *old, size_t *old_bytes, void *new, size_t new_bytes);

static mallctl_fn *jemalloc(void) {
    mallctl_fn *mallctl;
    *(void **)&mallctl = dlsym(RTLD_DEFAULT, "mallctl");
    if (getenv("TN_FIELD_EXPECT_JEMALLOC"))
        assert_non_null(mallctl);
    return mallctl;
}

/* jemalloc's own threads: whether it has some. False without jemalloc. */
static bool background_threads(void) {
    bool on = false;
    size_t bytes = sizeof on;
    mallctl_fn *mallctl = jemalloc();
    if (mallctl)
        assert_int_equal(mallctl("background_thread", &on, &bytes, NULL, 0), 0);
    return on;
}

static int process_threads(void) {
    int count = 0;
    DIR *folder = opendir("/proc/self/task");
    assert_non_null(folder);
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;)
        count += entry->d_name[0] != '.';
    closedir(folder);
    return count;
}

/* A thread that was joined may stay in /proc for a moment. */
static void reach_threads(int wanted) {
    uint64_t until = tn__mono_ns() + UINT64_C(5000000000);
    while (process_threads() != wanted && tn__mono_ns() < until)
        sched_yield();
    assert_int_equal(process_threads(), wanted);
}

static const char *do_nothing(int index, void *arg) {
    (void)index;
    (void)arg;
    return NULL;
}

/* The threads of the process before the test; a sanitizer adds one of its own to the first. */
static int threads_at_rest(void) {
    int least;
    assert_null_text(tn_test_workers_run(1, do_nothing, NULL));
    least = process_threads();
    for (int i = 0; i < 1000; i++) {
        int now = process_threads();
        least = now < least ? now : least;
        sched_yield();
    }
    return least;
}

static tn_manager *manager_with_reaper(struct spec *f) {
    tn_config config = spec_config(f);
    config.reaper = TN_REAPER_THREAD;
    return spec_manager_with(f, &config);
}

static void f_i03_manager_adds_one_thread(void **state) {
    struct spec *f = *state;
    bool before = background_threads();
    int threads = threads_at_rest();
    tn_manager *m = manager_with_reaper(f);
    reach_threads(threads + 1);
    assert_true(background_threads() == before);
    tn_handle h = adopt_rep(f, m, P);
    for (int i = 0; i < 1000; i++) {
        (void)ensure(m, h, N);
        (void)drop(m, h, N);
    }
    reach_threads(threads + 1);
    assert_true(background_threads() == before);
    spec_destroy(f, m);
    reach_threads(threads);
}

struct busy {
    tn_manager *manager;
    tn_handle handles[WORKERS];
    atomic_bool stop;
    atomic_uint pairs;
    const char *failure;
};

static const char *ensure_and_drop(int index, void *arg) {
    struct busy *b = arg;
    while (!atomic_load(&b->stop) && !tn_test_workers_failed()) {
        TN_WORKER_STATUS(tn_manager_ensure(b->manager, b->handles[index], P, NULL, NULL), TN_OK);
        TN_WORKER_STATUS(tn_manager_ensure(b->manager, b->handles[index], N, NULL, NULL), TN_OK);
        TN_WORKER_STATUS(tn_manager_drop(b->manager, b->handles[index], N, NULL), TN_OK);
        TN_WORKER_STATUS(tn_manager_drop(b->manager, b->handles[index], P, NULL), TN_OK);
        atomic_fetch_add(&b->pairs, 2);
    }
    return NULL;
}

static void *run_workers(void *arg) {
    struct busy *b = arg;
    b->failure = tn_test_workers_run(WORKERS, ensure_and_drop, b);
    return NULL;
}

static void f_i03_children_of_a_busy_process_end(void **state) {
    struct spec *f = *state;
    struct busy b = {.manager = manager_with_reaper(f)};
    tn_value_spec spec = tt_spec(VALUE_BYTES, VALUE_BYTES);
    pthread_t runner;

    for (int i = 0; i < WORKERS; i++)
        b.handles[i] = spec_register_spec(b.manager, spec_source(f), P, &spec);
    assert_int_equal(pthread_create(&runner, NULL, run_workers, &b), 0);
    while (atomic_load(&b.pairs) < WORKERS)
        sched_yield();
    uint64_t began = tn__mono_ns();
    int ended = 0;
    for (int i = 0; i < FORKS; i++) {
        int how = -1;
        pid_t child = fork();
        if (child == 0)
            _exit(0);
        ended += child > 0 && waitpid(child, &how, 0) == child && how == 0;
    }
    uint64_t took = tn__mono_ns() - began;
    atomic_store(&b.stop, true);
    assert_int_equal(pthread_join(runner, NULL), 0);
    assert_null_text(b.failure);
    assert_int_equal(ended, FORKS);
    print_message("    fifty children in %llu ms\n", (unsigned long long)(took / MS));
    assert_true(took <= ALL_FORKS_MAX_NS);
}

/* This program once more, with jemalloc as the process's malloc. */
static void f_i03_the_same_with_jemalloc(void **state) {
    const char *jemalloc_path = process_path("TN_FIELD_JEMALLOC");
    char self[4096];
    (void)state;
    if (getenv("TN_FIELD_EXPECT_JEMALLOC"))
        TN_SKIP("this is the process with jemalloc");
    if (!jemalloc_path)
        TN_SKIP("no shared jemalloc to preload, or a build that brings its own malloc");
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    assert_true(length > 0);
    self[length] = 0;
    char *variables = tn_test_text("TN_FIELD_EXPECT_JEMALLOC=1 LD_PRELOAD=%s", jemalloc_path);
    process_run(variables, self);
    free(variables);
}

static const struct CMUnitTest tests[] = {
    SPEC_CONCURRENT(f_i03_manager_adds_one_thread),
    SPEC_CONCURRENT(f_i03_children_of_a_busy_process_end),
    cmocka_unit_test(f_i03_the_same_with_jemalloc),
};

TN_TEST_MAIN("field.i03", tests)
