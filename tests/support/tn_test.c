/* SPDX-License-Identifier: MIT */
/*
 * The test harness around one CMocka group.
 *
 * Each test runs between two wrappers (its setup and teardown), which know the test by counting:
 * CMocka runs the tests that pass its filter in array order. A body that returns has passed; one
 * that jumped out has failed, unless it said "skip" first. From this come the rerun lines and the
 * result file. We do not use CMocka's own XML output: it replaces the readable lines, keeps all
 * of it until the group ends, and does not overwrite an old file.
 */
#include "tn_test.h"

#include <errno.h>
#include <fnmatch.h>
#include <ftw.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define DEFAULT_SEED UINT64_C(0x54454e555245) /* "TENURE" */

enum outcome { NOT_RUN, STARTED, PASSED, SKIPPED, FAILED };

static struct harness {
    const char *program;
    const char *name;
    const struct CMUnitTest *tests; /* the caller's */
    size_t count;
    const char *filter; /* NULL: all */
    size_t next;        /* index after the current one */
    size_t current;
    enum outcome *outcomes;
    double *seconds;
    const char **reasons; /* of skips */
    struct timespec start;
    int stop;             /* TN_STOP: no further test after one that failed */
    atomic_int under_way; /* see tn_test_under_way() */
} h;

static uint64_t seed;
static pthread_once_t seed_once = PTHREAD_ONCE_INIT;

static void seed_read(void) {
    const char *text = getenv("TN_SEED");

    seed = DEFAULT_SEED;
    if (text != NULL && strcmp(text, "random") == 0) {
        struct timespec now;

        clock_gettime(CLOCK_REALTIME, &now);
        seed = ((uint64_t)now.tv_sec << 30) ^ (uint64_t)now.tv_nsec ^ ((uint64_t)getpid() << 48);
    } else {
        seed = tn_test_env_u64("TN_SEED", DEFAULT_SEED);
    }
}

uint64_t tn_test_seed(void) {
    pthread_once(&seed_once, seed_read);
    return seed;
}

uint64_t tn_test_env_u64(const char *name, uint64_t fallback) {
    const char *text = getenv(name);
    char *end = NULL;
    uint64_t value;

    if (text == NULL || *text < '0' || *text > '9')
        return fallback;
    errno = 0;
    value = strtoull(text, &end, 0);
    return errno != 0 || *end != '\0' ? fallback : value;
}

uint64_t tn_test_cpu_ns(void) {
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * UINT64_C(1000000000) + (uint64_t)t.tv_nsec;
}

char *tn_test_text(const char *format, ...) {
    va_list args;
    char *text = NULL;
    int length;

    va_start(args, format);
    length = vasprintf(&text, format, args);
    va_end(args);
    return length < 0 ? strdup("out of memory for a failure text") : text;
}

/* Temporary folders. */

struct tmpdir {
    struct tmpdir *next;
    pid_t owner; /* a forked child must not remove its parent's folder */
    char path[];
};

static struct tmpdir *tmpdirs;

static int remove_entry(const char *path, const struct stat *st, int type, struct FTW *ftw) {
    (void)st;
    (void)type;
    (void)ftw;
    (void)remove(path);
    return 0;
}

static void tmpdirs_remove(void) {
    while (tmpdirs != NULL) {
        struct tmpdir *d = tmpdirs;

        tmpdirs = d->next;
        if (d->owner == getpid())
            (void)nftw(d->path, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
        free(d);
    }
}

const char *tn_test_tmpdir(void) {
    const char *base = getenv("TMPDIR");
    char path[4096];
    struct tmpdir *d;
    size_t size;

    snprintf(path, sizeof(path), "%s/tenure-test-XXXXXX", base && *base ? base : "/tmp");
    if (mkdtemp(path) == NULL) {
        print_error("cannot make a folder %s: %s\n", path, strerror(errno));
        fail();
    }
    size = strlen(path) + 1;
    d = malloc(sizeof(*d) + size);
    if (d == NULL)
        fail();
    memcpy(d->path, path, size);
    d->owner = getpid();
    if (tmpdirs == NULL)
        atexit(tmpdirs_remove);
    d->next = tmpdirs;
    tmpdirs = d;
    return d->path;
}

/* Workers. */

static _Atomic(const char *) first_failure;

struct worker {
    pthread_t thread;
    pthread_barrier_t *start;
    tn_test_worker_fn *fn;
    void *arg;
    int index;
};

static void *worker_main(void *arg) {
    struct worker *w = arg;
    const char *none = NULL;
    const char *text;

    pthread_barrier_wait(w->start);
    text = w->fn(w->index, w->arg);
    if (text != NULL)
        atomic_compare_exchange_strong(&first_failure, &none, text);
    return NULL;
}

int tn_test_workers_failed(void) { return atomic_load(&first_failure) != NULL; }

const char *tn_test_workers_run(int n, tn_test_worker_fn *fn, void *arg) {
    struct worker *workers = calloc((size_t)n, sizeof(*workers));
    pthread_barrier_t start;
    int i;

    if (workers == NULL)
        return "out of memory for the workers";
    atomic_store(&first_failure, NULL);
    pthread_barrier_init(&start, NULL, (unsigned)n);
    for (i = 0; i < n; i++) {
        workers[i] = (struct worker){.start = &start, .fn = fn, .arg = arg, .index = i};
        if (pthread_create(&workers[i].thread, NULL, worker_main, &workers[i]) != 0) {
            /* The ones made wait at the barrier for ever; a test machine without threads is over.
             */
            fprintf(stderr, "cannot create worker thread %d of %d\n", i, n);
            abort();
        }
    }
    for (i = 0; i < n; i++)
        pthread_join(workers[i].thread, NULL);
    pthread_barrier_destroy(&start);
    free(workers);
    return atomic_load(&first_failure);
}

/* Assertions. */

void tn_test_assert_status_(tn_status got, tn_status want, const char *text, const char *file,
                            int line) {
    if (got == want)
        return;
    print_error("%s\n    returned %s (%d)\n    expected %s (%d)\n", text, tn_status_name(got),
                (int)got, tn_status_name(want), (int)want);
    _fail(file, line);
}

void tn_test_assert_null_text_(const char *text, const char *file, int line) {
    if (text == NULL)
        return;
    print_error("%s\n", text);
    _fail(file, line);
}

void tn_test_skip_(const char *reason, const char *file, int line) {
    fprintf(stderr, "SKIP %s: %s (%s:%d)\n", h.tests[h.current].name, reason, file, line);
    h.outcomes[h.current] = SKIPPED;
    h.reasons[h.current] = reason;
    _skip(file, line);
}

/* Results. */

static size_t outcome_count(enum outcome o) {
    size_t i;
    size_t n = 0;

    for (i = 0; i < h.count; i++)
        n += h.outcomes[i] == o;
    return n;
}

static void xml_text(FILE *f, const char *s) {
    for (; *s != '\0'; s++) {
        switch (*s) {
        case '&':
            fputs("&amp;", f);
            break;
        case '<':
            fputs("&lt;", f);
            break;
        case '"':
            fputs("&quot;", f);
            break;
        default:
            fputc((unsigned char)*s < 0x20 ? ' ' : *s, f);
        }
    }
}

/* Under a temporary name first, so that a reader never sees half a file. */
static int results_write(const char *folder) {
    char path[4096];
    char part[4112];
    size_t i;
    FILE *f;

    snprintf(path, sizeof(path), "%s/%s.xml", folder, h.name);
    snprintf(part, sizeof(part), "%s.part", path);
    f = fopen(part, "w");
    if (f == NULL) {
        fprintf(stderr, "cannot write results to %s: %s\n", part, strerror(errno));
        return -1;
    }
    fprintf(f, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"");
    xml_text(f, h.name);
    fprintf(f, "\" tests=\"%zu\" failures=\"%zu\" skipped=\"%zu\">\n",
            h.count - outcome_count(NOT_RUN), outcome_count(FAILED), outcome_count(SKIPPED));
    fprintf(f, "  <properties><property name=\"seed\" value=\"%" PRIu64 "\"/></properties>\n",
            tn_test_seed());
    for (i = 0; i < h.count; i++) {
        if (h.outcomes[i] == NOT_RUN)
            continue;
        fprintf(f, "  <testcase classname=\"");
        xml_text(f, h.name);
        fprintf(f, "\" name=\"");
        xml_text(f, h.tests[i].name);
        fprintf(f, "\" time=\"%.6f\">", h.seconds[i]);
        if (h.outcomes[i] == FAILED)
            fprintf(f, "<failure/>");
        if (h.outcomes[i] == SKIPPED) {
            fprintf(f, "<skipped message=\"");
            xml_text(f, h.reasons[i]);
            fprintf(f, "\"/>");
        }
        fprintf(f, "</testcase>\n");
    }
    fprintf(f, "</testsuite>\n");
    if (fclose(f) != 0 || rename(part, path) != 0) {
        fprintf(stderr, "cannot write results to %s: %s\n", path, strerror(errno));
        return -1;
    }
    return 0;
}

static void reruns_print(void) {
    size_t i;

    fflush(stdout);
    for (i = 0; i < h.count; i++)
        if (h.outcomes[i] == FAILED)
            fprintf(stderr,
                    "FAILED %s. To run it again:\n    TN_SEED=%" PRIu64 " TN_TEST='%s' %s\n",
                    h.tests[i].name, tn_test_seed(), h.tests[i].name, h.program);
}

static void time_stop(void) {
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    h.seconds[h.current] =
        (double)(now.tv_sec - h.start.tv_sec) + (double)(now.tv_nsec - h.start.tv_nsec) / 1e9;
}

/* The wrappers of each test. */

void tn_test_under_way(int change) { atomic_fetch_add(&h.under_way, change); }

/* The body jumped out, and left its frame to what is still under way, or a lock that it held: neither
 * the teardown nor another test may run. CMocka keeps the text of the failed assertion until the test
 * is over; only on its way to abort() does it print it at once. */
static void end_stranded(void) {
    const char *folder = getenv("TN_RESULTS_DIR");

    h.outcomes[h.current] = FAILED;
    time_stop();
    print_error("%s failed, and its teardown might wait for ever: the program ends here\n",
                h.tests[h.current].name);
    reruns_print();
    if (folder != NULL && folder[0] != '\0')
        (void)results_write(folder);
    setenv("CMOCKA_TEST_ABORT", "1", 1);
    fail();
    abort();
}

/* Not run, because of TN_STOP. */
static int stopped(void) { return h.stop && outcome_count(FAILED) != 0; }

static int selected(size_t i) {
    return h.filter == NULL || fnmatch(h.filter, h.tests[i].name, 0) == 0;
}

static int wrap_setup(void **state) {
    const struct CMUnitTest *test;
    int rc = 0;

    while (h.next < h.count && !selected(h.next))
        h.next++;
    h.current = h.next++;
    test = &h.tests[h.current];
    clock_gettime(CLOCK_MONOTONIC, &h.start);
    if (stopped())
        return 0;
    h.outcomes[h.current] = STARTED;
    if (test->setup_func != NULL)
        rc = test->setup_func(state);
    return rc;
}

static void wrap_test(void **state) {
    if (stopped())
        _skip(__FILE__, __LINE__);
    h.tests[h.current].test_func(state);
    h.outcomes[h.current] = PASSED;
}

static int wrap_teardown(void **state) {
    const struct CMUnitTest *test = &h.tests[h.current];
    enum outcome before = h.outcomes[h.current];
    int rc = 0;

    if (before == NOT_RUN)
        return 0;
    if (before == STARTED && (h.stop || atomic_load(&h.under_way) != 0))
        end_stranded();
    h.outcomes[h.current] = FAILED; /* in case the teardown itself jumps out */
    if (test->teardown_func != NULL)
        rc = test->teardown_func(state);
    if (rc == 0 && before != STARTED)
        h.outcomes[h.current] = before;
    time_stop();
    return rc;
}

static int harness_init(const char *program, const char *name, const struct CMUnitTest *tests,
                        size_t count) {
    size_t i;

    h = (struct harness){.program = program, .name = name, .tests = tests, .count = count};
    h.stop = tn_test_env_u64("TN_STOP", 0) != 0;
    h.filter = getenv("TN_TEST");
    if (h.filter != NULL && h.filter[0] == '\0')
        h.filter = NULL;
    h.outcomes = calloc(count + 1, sizeof(*h.outcomes));
    h.seconds = calloc(count + 1, sizeof(*h.seconds));
    h.reasons = calloc(count + 1, sizeof(*h.reasons));
    if (h.outcomes == NULL || h.seconds == NULL || h.reasons == NULL)
        return -1;
    for (i = 0; i < count; i++)
        if (selected(i))
            return 0;
    fprintf(stderr, "%s: no test matches TN_TEST='%s'\n", name, h.filter ? h.filter : "");
    return -1;
}

int tn_test_main_(int argc, char **argv, const char *name, const struct CMUnitTest *tests,
                  size_t count, CMFixtureFunction group_setup, CMFixtureFunction group_teardown) {
    const char *folder = getenv("TN_RESULTS_DIR");
    struct CMUnitTest *wrapped;
    int failed;
    size_t i;

    if (harness_init(argc > 0 ? argv[0] : name, name, tests, count) != 0)
        return 2;
    wrapped = calloc(count, sizeof(*wrapped));
    if (wrapped == NULL)
        return 2;
    for (i = 0; i < count; i++)
        wrapped[i] = (struct CMUnitTest){tests[i].name, wrap_test, wrap_setup, wrap_teardown,
                                         tests[i].initial_state};
    if (h.filter != NULL)
        cmocka_set_test_filter(h.filter);
    failed = _cmocka_run_group_tests(name, wrapped, count, group_setup, group_teardown);
    for (i = 0; i < count; i++)
        if (h.outcomes[i] == STARTED)
            h.outcomes[i] = FAILED; /* its setup failed */
    if (failed != 0 || outcome_count(FAILED) != 0) {
        failed = 1;
        reruns_print();
    } else if (outcome_count(PASSED) == 0) {
        failed = outcome_count(SKIPPED) != 0 ? TN_TEST_SKIP_EXIT : 1; /* 1: group setup failed */
    }
    if (folder != NULL && folder[0] != '\0' && results_write(folder) != 0)
        failed = failed == 0 ? 1 : failed;
    free(wrapped);
    free(h.outcomes);
    free(h.seconds);
    free(h.reasons);
    return failed;
}
