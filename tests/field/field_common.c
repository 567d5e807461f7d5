/* SPDX-License-Identifier: MIT */
#include "field_common.h"

#include <dirent.h>
#include <stdio.h>
#include <time.h>

#include "base/base_internal.h"
#include "sim_files.h"

int field_teardown(void **state) {
    struct spec *f = *state;
    int rc = 0;

    /* threads of a test that has failed end, too */
    if (tn_sim_set_waits(f->sim, TN_SIM_WAITS_ADVANCE) != TN_OK)
        rc = -1;
    if (spec_teardown(state) != 0)
        rc = -1;
    sim_files_use(NULL);
    return rc;
}

/* ---- How much, and how fast --------------------------------------------------------------- */

bool field_soak(void) { return tn_test_env_u64("TN_FIELD_SOAK", 0) != 0; }

uint64_t field_number(uint64_t usual, uint64_t soak) { return field_soak() ? soak : usual; }

void field_time(const char *what, uint64_t ns, uint64_t limit_ns) {
    print_message("    %s: %llu us, at most %llu\n", what, (unsigned long long)ns / 1000,
                  (unsigned long long)limit_ns / 1000);
    if (FIELD_RELEASE)
        assert_true(ns < limit_ns);
}

/* ---- Values ------------------------------------------------------------------------------ */

tn_handle field_adopt(struct spec *f, tn_manager *m, tn_location at, uint32_t replica_mode,
                      uint64_t bytes, uint64_t seed) {
    tn_payload payload = tt_bytes(f->driver, at, bytes);

    tt_fill(payload, seed);
    return spec_adopt(m, payload, at, replica_mode);
}

tn_handle field_rep(struct spec *f, tn_manager *m, uint64_t bytes, uint64_t seed) {
    return field_adopt(f, m, P, TN_REPLICABLE, bytes, seed);
}

tn_handle field_rep_at(struct spec *f, tn_manager *m, tn_location at, uint64_t bytes,
                       uint64_t seed) {
    tn_handle h = field_rep(f, m, bytes, seed);

    ensure(m, h, at);
    return h;
}

tn_handle field_src(tn_manager *m, tt_source *s, uint64_t bytes) {
    tn_value_spec spec = tt_spec(bytes, bytes);

    return spec_register_spec(m, s, P, &spec);
}

/* Lend a replica to `function`; on CUDA with a stream of its own, which has no work. */
static const void *lend(struct spec *f, tn_manager *m, tn_handle h, tn_location at,
                        tn_lease *out_lease, tn_stream *out_stream) {
    const void *data = NULL;

    *out_stream = NULL;
    if (at.kind == TN_LOCATION_CUDA)
        assert_ok(tn_sim_stream_create(f->sim, at.index, 0, out_stream));
    *out_lease = acquire(m, h, at, *out_stream);
    assert_ok(tn_lease_lookup(out_lease, h, &data));
    return data;
}

static void take_back(struct spec *f, tn_manager *m, const tn_lease *lease, tn_stream stream) {
    release(lease);
    if (stream != NULL)
        assert_ok(tn_sim_stream_destroy(f->sim, stream));
    field_step(m);
}

char *field_block(struct spec *f, tn_manager *m, tn_handle h, tn_location at) {
    tn_lease lease;
    tn_stream stream;
    const void *data = lend(f, m, h, at, &lease, &stream);
    char *block = (char *)tt_field_base(data, 0);

    take_back(f, m, &lease, stream);
    return block;
}

bool field_exact(struct spec *f, tn_manager *m, tn_handle h, tn_location at, uint64_t seed) {
    tn_lease lease;
    tn_stream stream;
    bool exact = tt_check(lend(f, m, h, at, &lease, &stream), seed);

    take_back(f, m, &lease, stream);
    return exact;
}

/* ---- Time and figures -------------------------------------------------------------------- */

uint64_t field_ms(struct spec *f) {
    uint64_t now = tn_sim_now_ns(f->sim);

    assert_int_equal(now % MS, 0);
    return now / MS;
}

void field_until(struct spec *f, uint64_t ms) {
    uint64_t now = tn_sim_now_ns(f->sim);

    assert_true(now <= ms * MS);
    assert_ok(tn_sim_advance(f->sim, ms * MS - now));
}

void field_read(struct spec *f, tn_stream stream, const void *block, uint64_t bytes, uint64_t ms) {
    assert_ok(tn_sim_queue_read(f->sim, stream, block, bytes, ms * MS));
}

uint64_t field_calls(struct spec *f, uint32_t entry) { return tn_sim_calls(f->sim, entry); }

tn_sim_memory field_memory(struct spec *f, tn_location at) {
    tn_sim_memory memory = {.size = sizeof(memory)};

    assert_ok(tn_sim_read_memory(f->sim, at, &memory));
    return memory;
}

tn_stream field_stream(struct spec *f, uint32_t device, uint32_t flags) {
    tn_stream stream = NULL;

    assert_true(f->stream_count < SPEC_STREAMS_MAX);
    assert_ok(tn_sim_stream_create(f->sim, device, flags, &stream));
    f->streams[f->stream_count++] = stream;
    return stream;
}

void field_stream_destroy(struct spec *f, tn_stream stream) {
    size_t i = 0;

    while (i < f->stream_count && f->streams[i] != stream)
        i++;
    assert_true(i < f->stream_count);
    assert_ok(tn_sim_stream_destroy(f->sim, stream));
    f->streams[i] = f->streams[--f->stream_count];
}

void field_stall(struct spec *f, uint32_t entry, uint64_t count, uint64_t stall_ns) {
    tn_sim_fault fault = TN_SIM_FAULT_INIT;

    fault.entry = entry;
    fault.count = count;
    fault.stall_ns = stall_ns;
    assert_ok(tn_sim_fault_arm(f->sim, &fault));
}

tn_lease field_acquire2(tn_manager *m, tn_handle h, tn_location at, tn_stream a, tn_stream b) {
    tn_lease lease = acquire(m, h, at, a);

    assert_ok(tn_lease_add_stream(&lease, b));
    return lease;
}

void field_step(tn_manager *m) {
    uint64_t freed;

    assert_ok(tn_manager_step(m, &freed));
}

/* ---- Threads ----------------------------------------------------------------------------- */

static void *thread_main(void *arg) {
    struct field_thread *t = arg;

    t->text = t->body(t->arg);
    atomic_store(&t->done, true);
    return NULL;
}

void field_start(struct field_thread *t, const char *(*body)(void *arg), void *arg) {
    t->body = body;
    t->arg = arg;
    t->text = NULL;
    atomic_store(&t->done, false);
    assert_int_equal(pthread_create(&t->thread, NULL, thread_main, t), 0);
}

void field_join(struct field_thread *t) {
    pthread_join(t->thread, NULL);
    assert_null_text(t->text);
}

int field_threads_now(void) {
    DIR *tasks = opendir("/proc/self/task");
    int count = 0;

    if (tasks == NULL)
        return -1;
    for (struct dirent *e; (e = readdir(tasks)) != NULL;)
        count += e->d_name[0] != '.';
    closedir(tasks);
    return count;
}

static const char *do_nothing(void *arg) {
    (void)arg;
    return NULL;
}

int field_threads_at_rest(void) {
    struct field_thread first;
    int count;

    field_start(&first, do_nothing, NULL);
    field_join(&first);
    do {
        count = field_threads_now();
        field_nap(20);
    } while (field_threads_now() != count);
    return count;
}

void field_assert_threads(int expected) {
    for (int i = 0; i < 1000 && field_threads_now() != expected; i++)
        field_nap(1);
    assert_int_equal(field_threads_now(), expected);
}

void field_nap(unsigned ms) {
    struct timespec time = {ms / 1000, (long)(ms % 1000) * 1000000};

    nanosleep(&time, NULL);
}

static const char *act(void *arg) {
    struct field_action *a = arg;
    tn_report report = TN_REPORT_INIT;
    tn_status status = TN_ERR_INTERNAL;

    if (a->kind == TN_ACTION_ENSURE)
        status = tn_manager_ensure(a->m, a->h, a->at, a->stream, &report);
    else if (a->kind == TN_ACTION_MOVE)
        status = tn_manager_move(a->m, a->h, a->at, a->from, a->stream, &report);
    else if (a->kind == TN_ACTION_DROP)
        status = tn_manager_drop(a->m, a->h, a->at, &report);
    a->ended_ns = tn_sim_now_ns(a->f->sim);
    TN_WORKER_STATUS(status, TN_OK);
    TN_WORKER_CHECK(report.no_op == 0);
    return NULL;
}

void field_act(struct field_action *a, struct spec *f, tn_manager *m) {
    a->f = f;
    a->m = m;
    field_start(&a->thread, act, a);
}

/* ---- Stopped threads --------------------------------------------------------------------- */

#if TN_CHECKS
static struct {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    unsigned points;
    unsigned stops; /* so far */
    unsigned gone;  /* stops that it may leave */
} stop = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static _Thread_local bool stoppable;

static void at_point(enum tn__point point, void *object) {
    unsigned mine;

    (void)object;
    if (!stoppable || (stop.points & 1u << point) == 0)
        return;
    pthread_mutex_lock(&stop.mutex);
    mine = ++stop.stops;
    pthread_cond_broadcast(&stop.changed);
    while (stop.gone < mine)
        pthread_cond_wait(&stop.changed, &stop.mutex);
    pthread_mutex_unlock(&stop.mutex);
}

bool field_can_stop(void) { return true; }

void field_stop_begin(unsigned points) {
    stop.points = points;
    stop.stops = 0;
    stop.gone = 0;
    atomic_store(&tn__point_hook, at_point);
}

void field_stop_here(void) { stoppable = true; }

void field_stop_wait(unsigned n) {
    pthread_mutex_lock(&stop.mutex);
    while (stop.stops < n)
        pthread_cond_wait(&stop.changed, &stop.mutex);
    pthread_mutex_unlock(&stop.mutex);
}

void field_stop_go(void) {
    pthread_mutex_lock(&stop.mutex);
    stop.gone++;
    pthread_cond_broadcast(&stop.changed);
    pthread_mutex_unlock(&stop.mutex);
}

void field_stop_end(void) { atomic_store(&tn__point_hook, NULL); }
#else
bool field_can_stop(void) { return false; }
void field_stop_begin(unsigned points) { (void)points; }
void field_stop_here(void) {}
void field_stop_wait(unsigned n) { (void)n; }
void field_stop_go(void) {}
void field_stop_end(void) {}
#endif

/* ---- The end of every case --------------------------------------------------------------- */

#define LOCATIONS_MAX 16

struct sums {
    tn_location_info rows[LOCATIONS_MAX];
    size_t count;
    uint64_t charged[LOCATIONS_MAX];
    uint64_t mats[LOCATIONS_MAX];
};

static void add_value(const tn_snapshot *s, const tn_value_info *v, struct sums *sums) {
    tn_materialization_info rows[LOCATIONS_MAX] = {{.size = sizeof(rows[0])}};
    size_t count = LOCATIONS_MAX;

    if (v->discarded)
        return;
    assert_ok(tn_snapshot_materializations(s, v->handle, rows, &count));
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < sums->count; j++)
            if (tn_location_equal(sums->rows[j].at, rows[i].at)) {
                sums->charged[j] += rows[i].charged_bytes;
                sums->mats[j]++;
            }
}

static void check_location(const tn_snapshot *s, const tn_location_info *row, uint64_t charged) {
    tn_reservation_info *rows = NULL;
    uint64_t reserved_here = 0;
    size_t count = 0;

    assert_ok(tn_snapshot_reservations(s, NULL, &count));
    rows = calloc(count + 1, sizeof(*rows));
    assert_non_null(rows);
    rows[0].size = sizeof(*rows);
    assert_ok(tn_snapshot_reservations(s, rows, &count));
    for (size_t i = 0; i < count; i++)
        if (tn_location_equal(rows[i].at, row->at))
            reserved_here += rows[i].bytes;
    free(rows);
    assert_int_equal(row->used_bytes, charged);
    assert_int_equal(row->reserved_bytes, reserved_here);
    assert_int_equal(row->use_count, 0);
    assert_int_equal(row->hold_count, 0);
    assert_int_equal(row->pending_count, 0);
}

/* What the machine says of the only manager's memory. */
static void check_machine(struct spec *f, const struct sums *sums) {
    tn_pinned_figures pinned = TN_PINNED_FIGURES_INIT;

    assert_ok(tn_driver_read_pinned(f->driver, &pinned));
    for (size_t i = 0; i < sums->count; i++) {
        if (sums->rows[i].at.kind == TN_LOCATION_CUDA)
            assert_int_equal(field_memory(f, sums->rows[i].at).live_blocks, sums->mats[i]);
        if (sums->rows[i].at.kind == TN_LOCATION_PINNED)
            assert_int_equal(pinned.live_bytes, sums->charged[i]);
    }
    assert_int_equal(field_memory(f, N).live_bytes,
                     pinned.live_bytes + pinned.idle_bytes + pinned.ring_bytes);
}

void field_conserved(struct spec *f, tn_manager *m) {
    struct sums sums = {.rows = {{.size = sizeof(tn_location_info)}}, .count = LOCATIONS_MAX};
    tn_value_info v = {.size = sizeof(v)};
    tn_snapshot *s = NULL;
    uint64_t cursor = 0;
    bool more = true;

    /* a reaper thread may be a moment behind */
    for (int i = 0; i < 2000 && info(m).pending_lease_count > 0; i++)
        field_nap(1);
    assert_ok(tn_snapshot_take(m, &s));
    assert_ok(tn_snapshot_locations(s, sums.rows, &sums.count));
    assert_true(sums.count <= LOCATIONS_MAX);
    for (;;) {
        assert_ok(tn_snapshot_next(s, &cursor, &v, &more));
        if (!more)
            break;
        add_value(s, &v, &sums);
    }
    for (size_t i = 0; i < sums.count; i++)
        check_location(s, &sums.rows[i], sums.charged[i]);
    tn_snapshot_drop(s);
    if (f->manager_count == 1)
        check_machine(f, &sums);
    assert_string_equal(tn_sim_violation_text(f->sim), "");
}
