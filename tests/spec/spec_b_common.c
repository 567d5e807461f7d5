/* SPDX-License-Identifier: MIT */
#include "spec_b_common.h"

#include <stdio.h>
#include <time.h>

#define LOCATIONS_MAX 16

tn_stream spec_b_not_a_stream(void) {
    static _Alignas(64) unsigned char none[64];

    return (tn_stream)(void *)none;
}

tn_status spec_b_adopt(tn_manager *m, tn_handle *out) {
    tn_payload v = tt_v(NULL, P);
    tn_status status = tn_manager_adopt(m, v, P, TN_REPLICABLE, out);

    if (status != TN_OK)
        tt_free(v);
    return status;
}

tn_status spec_b_snapshot(tn_manager *m) {
    tn_snapshot *s = NULL;
    tn_status status = tn_snapshot_take(m, &s);

    if (status == TN_OK)
        tn_snapshot_drop(s);
    return status;
}

/* ---- Second threads ------------------------------------------------------------------------- */

static void *thread_main(void *arg) {
    struct spec_b_thread *t = arg;

    t->text = t->body(t->arg);
    atomic_store(&t->done, true);
    return NULL;
}

void spec_b_start(struct spec_b_thread *t, const char *(*body)(void *arg), void *arg) {
    t->body = body;
    t->arg = arg;
    t->text = NULL;
    atomic_store(&t->done, false);
    if (pthread_create(&t->thread, NULL, thread_main, t) != 0) {
        fprintf(stderr, "cannot create a thread\n");
        abort();
    }
}

const char *spec_b_join(struct spec_b_thread *t) {
    pthread_join(t->thread, NULL);
    return t->text;
}

static uint64_t now_ms(void) {
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000u + (uint64_t)now.tv_nsec / 1000000u;
}

static void nap(long ns) {
    struct timespec time = {ns / 1000000000, ns % 1000000000};

    nanosleep(&time, NULL);
}

bool spec_b_wait(atomic_bool *flag, unsigned ms) {
    uint64_t end = now_ms() + ms;

    while (!atomic_load(flag) && now_ms() < end)
        nap(200000);
    return atomic_load(flag);
}

void spec_b_sleep(unsigned ms) { nap((long)ms * 1000000); }

/* ---- Three ways ----------------------------------------------------------------------------- */

static bool with_reaper;

int spec_b_setup_serial(void **state) {
    with_reaper = false;
    return spec_setup_serial(state);
}

int spec_b_setup_concurrent(void **state) {
    with_reaper = false;
    return spec_setup_concurrent(state);
}

int spec_b_setup_reaper(void **state) {
    with_reaper = true;
    return spec_setup_concurrent(state);
}

tn_manager *spec_b_manager(struct spec *f, const tn_budget *budgets, size_t count) {
    tn_config config = spec_config(f);

    config.budgets = budgets;
    config.budget_count = count;
    config.reaper = with_reaper ? TN_REAPER_THREAD : TN_REAPER_MANUAL;
    config.trace_capacity = TN_TRACE_UNLIMITED;
    return spec_manager_with(f, &config);
}

/* ---- Truths of every snapshot --------------------------------------------------------------- */

/* Sums over the values of a snapshot, one per tracked location. */
struct tally {
    tn_location_info rows[LOCATIONS_MAX];
    size_t count;
    uint64_t charged[LOCATIONS_MAX];
    uint64_t values[LOCATIONS_MAX];
    uint64_t uses[LOCATIONS_MAX];
    uint64_t holds[LOCATIONS_MAX];
    uint64_t pending[LOCATIONS_MAX];
    uint64_t reserved[LOCATIONS_MAX];
    uint64_t reservations[LOCATIONS_MAX];
};

static size_t row_of(const struct tally *t, tn_location at) {
    size_t i = 0;

    while (i < t->count && !tn_location_equal(t->rows[i].at, at))
        i++;
    return i;
}

static const char *check_materializations(const tn_snapshot *s, const tn_value_info *v,
                                          struct tally *t) {
    tn_materialization_info rows[LOCATIONS_MAX] = {{.size = sizeof(rows[0])}};
    size_t count = LOCATIONS_MAX;

    TN_WORKER_STATUS(tn_snapshot_materializations(s, v->handle, rows, &count), TN_OK);
    TN_WORKER_CHECK(count == v->materialization_count);
    TN_WORKER_CHECK(count <= LOCATIONS_MAX);
    for (size_t i = 0; i < count; i++) {
        const tn_materialization_info *r = &rows[i];
        size_t row = row_of(t, r->at);

        for (size_t j = 0; j < i; j++)
            TN_WORKER_CHECK(!tn_location_equal(rows[j].at, r->at));
        TN_WORKER_CHECK(row < t->count); /* materialized where nothing is tracked */
        TN_WORKER_CHECK(r->logical_bytes == v->spec.logical_bytes);
        TN_WORKER_CHECK(r->charged_bytes == v->spec.storage_bytes);
        TN_WORKER_CHECK(r->charged_bytes >= r->logical_bytes);
        TN_WORKER_CHECK(r->charged_bytes >= r->storage_bytes);
        t->charged[row] += r->charged_bytes;
        t->values[row]++;
        t->uses[row] += r->use_count;
        t->holds[row] += r->hold_count;
        t->pending[row] += r->pending_count;
    }
    return NULL;
}

static const char *check_values(const tn_snapshot *s, const tn_snapshot_info *head,
                                struct tally *t) {
    uint64_t cursor = 0;
    uint64_t last = 0;
    uint64_t count = 0;

    for (;; count++) {
        tn_value_info v = {.size = sizeof v};
        const char *text;
        bool more = false;

        TN_WORKER_STATUS(tn_snapshot_next(s, &cursor, &v, &more), TN_OK);
        if (!more)
            break;
        TN_WORKER_CHECK(v.handle.manager == head->manager);
        TN_WORKER_CHECK(v.handle.index > last); /* registration order, each once */
        last = v.handle.index;
        TN_WORKER_CHECK(v.spec.storage_bytes >= v.spec.logical_bytes);
        TN_WORKER_CHECK(v.has_source == (v.source_at.kind != TN_LOCATION_NONE));
        if (v.discarded) {
            TN_WORKER_CHECK(!v.has_source && v.materialization_count == 0);
        } else { /* M38 */
            TN_WORKER_CHECK((v.spec.recoverability == TN_RECONSTRUCTIBLE) == (v.has_source != 0));
            TN_WORKER_CHECK(v.has_source || v.materialization_count > 0);
        }
        if (v.spec.replica_mode == TN_EXCLUSIVE)
            TN_WORKER_CHECK(v.materialization_count <= 1);
        text = check_materializations(s, &v, t);
        if (text != NULL)
            return text;
    }
    TN_WORKER_CHECK(count == head->value_count);
    return NULL;
}

static const char *add_reservations(const tn_reservation_info *rows, size_t count,
                                    struct tally *t) {
    for (size_t i = 0; i < count; i++) {
        size_t row = row_of(t, rows[i].at);

        TN_WORKER_CHECK(row < t->count);
        TN_WORKER_CHECK(rows[i].label[0] != '\0');
        t->reserved[row] += rows[i].bytes;
        t->reservations[row]++;
    }
    return NULL;
}

static const char *check_reservations(const tn_snapshot *s, const tn_snapshot_info *head,
                                      struct tally *t) {
    size_t count = head->reservation_count;
    tn_reservation_info *rows = calloc(count + 1, sizeof *rows);
    tn_status status;
    const char *text;

    if (rows == NULL)
        return "out of memory for the reservations";
    rows[0].size = sizeof *rows;
    status = tn_snapshot_reservations(s, rows, &count);
    text = status != TN_OK || count != head->reservation_count
               ? "tn_snapshot_reservations() disagrees with the head of its snapshot"
               : add_reservations(rows, count, t);
    free(rows);
    return text;
}

static const char *check_location(const struct tally *t, size_t i) {
    const tn_location_info *r = &t->rows[i];

    TN_WORKER_CHECK(r->peak_used_bytes >= r->used_bytes);
    TN_WORKER_CHECK(r->peak_charged_bytes >= r->peak_used_bytes);
    TN_WORKER_CHECK(r->peak_charged_bytes >= r->used_bytes + r->reserved_bytes);
    if (r->has_budget) {
        TN_WORKER_CHECK(r->used_bytes + r->reserved_bytes <= r->budget_bytes);
        TN_WORKER_CHECK(r->peak_charged_bytes <= r->budget_bytes);
        TN_WORKER_CHECK(r->remaining_bytes == r->budget_bytes - r->used_bytes - r->reserved_bytes);
    }
    for (size_t j = 0; j < i; j++)
        TN_WORKER_CHECK(!tn_location_equal(t->rows[j].at, r->at));
    TN_WORKER_CHECK(r->used_bytes == t->charged[i]);
    TN_WORKER_CHECK(r->value_count == t->values[i]);
    TN_WORKER_CHECK(r->use_count == t->uses[i]);
    TN_WORKER_CHECK(r->hold_count == t->holds[i]);
    TN_WORKER_CHECK(r->pending_count == t->pending[i]);
    TN_WORKER_CHECK(r->reserved_bytes == t->reserved[i]);
    TN_WORKER_CHECK(r->reservation_count == t->reservations[i]);
    return NULL;
}

const char *spec_b_check_snapshot(const tn_snapshot *s) {
    tn_snapshot_info head = {.size = sizeof head};
    struct tally t;
    const char *text;

    memset(&t, 0, sizeof t);
    TN_WORKER_STATUS(tn_snapshot_read(s, &head), TN_OK);
    TN_WORKER_CHECK(head.manager != 0);
    TN_WORKER_CHECK(head.captured_at_ns > 0);
    t.rows[0].size = sizeof t.rows[0];
    t.count = LOCATIONS_MAX;
    TN_WORKER_STATUS(tn_snapshot_locations(s, t.rows, &t.count), TN_OK);
    TN_WORKER_CHECK(t.count == head.location_count);
    TN_WORKER_CHECK(t.count <= LOCATIONS_MAX);
    text = check_values(s, &head, &t);
    if (text == NULL)
        text = check_reservations(s, &head, &t);
    for (size_t i = 0; text == NULL && head.exact && i < t.count; i++)
        text = check_location(&t, i);
    return text;
}

static const char *check_report(const tn_report *r) {
    TN_WORKER_CHECK(r->completed_at_ns >= r->started_at_ns);
    TN_WORKER_CHECK(r->storage_bytes >= r->logical_bytes);
    TN_WORKER_CHECK(r->action.kind >= TN_ACTION_ENSURE && r->action.kind <= TN_ACTION_DISCARD);
    TN_WORKER_CHECK((r->reason != TN_REASON_NONE) == (r->no_op != 0));
    TN_WORKER_CHECK(r->allocator.kind == TN_LOCATION_NONE || r->allocator.kind == TN_LOCATION_CUDA);
    return NULL;
}

static const char *check_trace(tn_manager *m) {
    size_t room = 0;
    size_t count;
    tn_report *rows;
    tn_status status;
    const char *text = NULL;

    TN_WORKER_STATUS(tn_manager_trace(m, NULL, &room), TN_OK);
    rows = calloc(room + 1, sizeof *rows);
    if (rows == NULL)
        return "out of memory for the trace";
    rows[0].size = sizeof *rows;
    count = room;
    status = tn_manager_trace(m, rows, &count);
    if (status != TN_OK)
        text = "tn_manager_trace() failed";
    for (size_t i = 0; text == NULL && i < count && i < room; i++)
        text = check_report(&rows[i]);
    free(rows);
    return text;
}

const char *spec_b_check(tn_manager *m) {
    tn_snapshot *s = NULL;
    const char *text;

    TN_WORKER_STATUS(tn_snapshot_take(m, &s), TN_OK);
    text = spec_b_check_snapshot(s);
    tn_snapshot_drop(s);
    return text != NULL ? text : check_trace(m);
}
