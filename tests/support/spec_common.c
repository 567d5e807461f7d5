/* SPDX-License-Identifier: MIT */
/* The shared fixture of the specification's cases; see spec_common.h. */
#include "spec_common.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- Fixture --------------------------------------------------------------------------------- */

static void diagnostic(void *context, const tn_diagnostic *d) {
    struct spec *f = context;

    if (d->kind < SPEC_DIAGNOSTIC_KINDS)
        atomic_fetch_add(&f->warnings[d->kind], 1);
    else
        atomic_fetch_add(&f->warnings[0], 1);
    snprintf(f->last_warning, sizeof(f->last_warning), "%s", d->message != NULL ? d->message : "");
    f->last_warning_at = d->at;
    f->last_warning_manager = d->manager;
}

static bool over_shim(void) {
    const char *which = getenv("TN_TEST_DRIVER");

    return which != NULL && strcmp(which, "shim") == 0;
}

/* The driver of the machine: its own, or with TN_TEST_DRIVER=shim the CUDA backend over it. */
static void driver_open(struct spec *f) {
    uint32_t devices = 0;

    f->driver = tn_sim_driver(f->sim);
    if (!over_shim())
        return;
    if (cuda_shim_path(SHIM_FULL) == NULL)
        fail_msg("this build has no CUDA backend");
    assert_ok(tn_driver_table(f->driver)->device_count(tn_driver_self(f->driver), &devices));
    if (devices == 0) /* then there is no CUDA driver */
        return;
    f->shim = cuda_shim_load(SHIM_FULL, f->driver);
    f->driver = cuda_shim_open(SHIM_FULL);
}

static void driver_close(struct spec *f) {
    if (f->shim != NULL)
        tn_driver_destroy(f->driver);
}

static int setup(void **state, uint32_t mode) {
    struct spec *f = calloc(1, sizeof(*f));

    if (f == NULL)
        return -1;
    f->mode = mode;
    f->live = tt_count().live;
    tt_reset();
    *state = f;
    /* Under the CUDA backend a pool that keeps nothing: it tries again while something is idle. */
    if (tn_sim_create(over_shim() ? "dev:2 pool=0" : "dev:2", &f->sim) != TN_OK) {
        free(f);
        return -1;
    }
    driver_open(f);
    return 0;
}

int spec_setup_serial(void **state) { return setup(state, TN_MODE_SERIAL); }
int spec_setup_concurrent(void **state) { return setup(state, TN_MODE_CONCURRENT); }

/* What is left of one location's memory; only for locations that the machine counts. */
static uint64_t live(struct spec *f, tn_location at) {
    tn_sim_memory memory = {.size = sizeof(memory)};

    return tn_sim_read_memory(f->sim, at, &memory) == TN_OK ? memory.live_bytes : 0;
}

static int leaks(struct spec *f) {
    int bad = 0;
    uint64_t n;

    if ((n = tt_count().live - f->live) != 0 && ++bad)
        print_error("%" PRIu64 " payloads left over\n", n);
    if ((n = tn_sim_violations(f->sim)) != 0 && ++bad)
        print_error("machine: %" PRIu64 " violations: %s\n", n, tn_sim_violation_text(f->sim));
    if ((n = live(f, N)) != 0 && ++bad)
        print_error("machine: %" PRIu64 " pinned bytes left over\n", n);
    if ((n = live(f, C0)) != 0 && ++bad)
        print_error("machine: %" PRIu64 " bytes left over on device 0\n", n);
    if ((n = live(f, C1)) != 0 && ++bad)
        print_error("machine: %" PRIu64 " bytes left over on device 1\n", n);
    if ((n = tn_sim_live_events(f->sim)) != 0 && ++bad)
        print_error("machine: %" PRIu64 " events left over\n", n);
    if ((n = tn_sim_live_streams(f->sim)) != 0 && ++bad)
        print_error("machine: %" PRIu64 " streams left over\n", n);
    if (f->shim != NULL && atomic_load(&f->shim->complaints) != 0 && ++bad)
        print_error("test driver: %s\n", f->shim->complaint);
    return bad;
}

int spec_teardown(void **state) {
    struct spec *f = *state;
    int bad = 0;

    tn_sim_fault_clear(f->sim);
    tt_reset();
    for (size_t i = 0; i < f->manager_count; i++) {
        tn_status status = tn_manager_destroy(f->managers[i]);

        if (status != TN_OK && ++bad)
            print_error("tn_manager_destroy: %s\n", tn_status_name(status));
    }
    for (size_t i = 0; i < f->stream_count; i++)
        if (tn_sim_stream_destroy(f->sim, f->streams[i]) != TN_OK && !f->lenient && ++bad)
            print_error("a stream of the test cannot be destroyed\n");
    (void)tn_driver_trim_pinned(f->driver, NULL); /* what is idle is no leak; what stays shows */
    driver_close(f);
    if (!f->lenient)
        bad += leaks(f);
    tn_sim_destroy(f->sim);
    free(f);
    return bad == 0 ? 0 : -1;
}

void spec_machine(struct spec *f, const char *machine) {
    tn_sim *sim = NULL;

    assert_int_equal(f->manager_count, 0);
    assert_int_equal(f->stream_count, 0);
    assert_ok(tn_sim_create(machine, &sim));
    driver_close(f);
    tn_sim_destroy(f->sim);
    f->sim = sim;
    f->shim = NULL;
    driver_open(f);
}

void spec_own_table(const struct spec *f) {
    if (f->shim != NULL)
        TN_SKIP("it counts calls of the simulator's own table");
}

tn_config spec_config(struct spec *f) {
    tn_config config = TN_CONFIG_INIT;

    config.driver = f->driver;
    config.mode = f->mode;
    config.reaper = TN_REAPER_MANUAL;
    config.keep_discarded = TN_KEEP_ALL;
    config.diagnostic = diagnostic;
    config.diagnostic_context = f;
    return config;
}

tn_manager *spec_manager_with(struct spec *f, const tn_config *config) {
    tn_manager *m = NULL;

    assert_true(f->manager_count < SPEC_MANAGERS_MAX);
    assert_ok(tn_manager_create(config, &m));
    assert_non_null(m);
    f->managers[f->manager_count++] = m;
    return m;
}

tn_manager *spec_manager(struct spec *f, const tn_budget *budgets, size_t count) {
    tn_config config = spec_config(f);

    config.budgets = count != 0 ? budgets : NULL;
    config.budget_count = count;
    return spec_manager_with(f, &config);
}

void spec_destroy(struct spec *f, tn_manager *m) {
    size_t i = 0;

    while (i < f->manager_count && f->managers[i] != m)
        i++;
    assert_true(i < f->manager_count);
    assert_ok(tn_manager_destroy(m));
    f->managers[i] = f->managers[--f->manager_count];
}

tn_stream spec_stream(struct spec *f, uint32_t device) {
    tn_stream stream = NULL;

    assert_true(f->stream_count < SPEC_STREAMS_MAX);
    assert_ok(tn_sim_stream_create(f->sim, device, 0, &stream));
    assert_non_null(stream);
    f->streams[f->stream_count++] = stream;
    return stream;
}

void spec_busy(struct spec *f, tn_stream stream) {
    assert_ok(tn_sim_queue_delay(f->sim, stream, 1000000));
    assert_false(tn_sim_stream_idle(f->sim, stream));
}

void spec_finish(struct spec *f) { assert_ok(tn_sim_run(f->sim)); }

bool spec_idle(struct spec *f, tn_stream stream) { return tn_sim_stream_idle(f->sim, stream); }

void spec_fault(struct spec *f, uint32_t entry, uint64_t nth, uint64_t count, tn_status status,
                int64_t native_code) {
    tn_sim_fault fault = TN_SIM_FAULT_INIT;

    fault.entry = entry;
    fault.nth = nth;
    fault.count = count;
    fault.status = status;
    fault.native_code = native_code;
    assert_ok(tn_sim_fault_arm(f->sim, &fault));
}

uint64_t spec_repair(struct spec *f) { return tn_sim_fault_clear(f->sim); }

unsigned spec_warnings(struct spec *f, uint32_t kind) {
    assert_true(kind < SPEC_DIAGNOSTIC_KINDS);
    return atomic_load(&f->warnings[kind]);
}

unsigned spec_warnings_all(struct spec *f) {
    unsigned sum = 0;

    for (size_t i = 0; i < SPEC_DIAGNOSTIC_KINDS; i++)
        sum += atomic_load(&f->warnings[i]);
    return sum;
}

/* ---- Values ---------------------------------------------------------------------------------- */

tn_payload spec_v(struct spec *f, tn_location at) {
    tn_payload payload = tt_v(f->driver, at);

    tt_fill(payload, 1);
    return payload;
}

tn_handle spec_adopt(tn_manager *m, tn_payload payload, tn_location at, uint32_t replica_mode) {
    tn_handle h = {0, 0, NULL};

    assert_ok(tn_manager_adopt(m, payload, at, replica_mode, &h));
    return h;
}

tn_handle adopt_rep(struct spec *f, tn_manager *m, tn_location at) {
    return spec_adopt(m, spec_v(f, at), at, TN_REPLICABLE);
}

tn_handle adopt_exc(struct spec *f, tn_manager *m, tn_location at) {
    return spec_adopt(m, spec_v(f, at), at, TN_EXCLUSIVE);
}

tt_source *spec_source(struct spec *f) {
    assert_true(f->source_count < SPEC_SOURCES_MAX);
    f->sources[f->source_count].seed = 1;
    return &f->sources[f->source_count++];
}

tn_handle spec_register_spec(tn_manager *m, tt_source *s, tn_location at,
                             const tn_value_spec *spec) {
    tn_source source = tt_source_of(s);
    tn_handle h = {0, 0, NULL};

    assert_ok(tn_manager_register_source(m, spec, &source, at, &h));
    return h;
}

tn_handle spec_register(tn_manager *m, tt_source *s, tn_location at, uint32_t replica_mode) {
    tn_value_spec spec = tt_spec(32, 32);

    spec.replica_mode = replica_mode;
    return spec_register_spec(m, s, at, &spec);
}

tn_handle register_src(tn_manager *m, tt_source *s) {
    return spec_register(m, s, P, TN_REPLICABLE);
}

/* ---- Questions to a manager ------------------------------------------------------------------ */

uint64_t version(tn_manager *m) {
    uint64_t v = 0;

    assert_ok(tn_manager_state_version(m, &v));
    return v;
}

/* A fresh snapshot, which the caller drops. */
static tn_snapshot *snapshot(tn_manager *m) {
    tn_snapshot *s = NULL;

    assert_ok(tn_snapshot_take(m, &s));
    assert_non_null(s);
    return s;
}

/* All rows of the locations; freed by the caller. */
static tn_location_info *snapshot_locations(tn_snapshot *s, size_t *count) {
    tn_location_info *rows;

    *count = 0;
    assert_ok(tn_snapshot_locations(s, NULL, count));
    rows = calloc(*count + 1, sizeof(*rows));
    assert_non_null(rows);
    rows[0].size = sizeof(*rows);
    assert_ok(tn_snapshot_locations(s, rows, count));
    return rows;
}

static tn_materialization_info *snapshot_mats(tn_snapshot *s, tn_handle h, size_t *count) {
    tn_materialization_info *rows;

    *count = 0;
    assert_ok(tn_snapshot_materializations(s, h, NULL, count));
    rows = calloc(*count + 1, sizeof(*rows));
    assert_non_null(rows);
    rows[0].size = sizeof(*rows);
    assert_ok(tn_snapshot_materializations(s, h, rows, count));
    return rows;
}

tn_location_info loc(tn_manager *m, tn_location at) {
    tn_snapshot *s = snapshot(m);
    size_t count;
    tn_location_info *rows = snapshot_locations(s, &count);
    tn_location_info found = {0};

    for (size_t i = 0; i < count; i++)
        if (tn_location_equal(rows[i].at, at))
            found = rows[i];
    free(rows);
    tn_snapshot_drop(s);
    if (found.at.kind == TN_LOCATION_NONE) {
        char name[TN_LOCATION_NAME_MAX] = "?";

        if (tn_location_name(at, name, sizeof(name)) != TN_OK)
            name[0] = '?';
        print_error("%s is not tracked\n", name);
        fail();
    }
    return found;
}

uint64_t used(tn_manager *m, tn_location at) { return loc(m, at).used_bytes; }
uint64_t reserved(tn_manager *m, tn_location at) { return loc(m, at).reserved_bytes; }

uint64_t remaining(tn_manager *m, tn_location at) {
    tn_location_info row = loc(m, at);

    assert_int_equal(row.has_budget, 1);
    return row.remaining_bytes;
}

struct spec_peaks peaks(tn_manager *m, tn_location at) {
    tn_location_info row = loc(m, at);

    return (struct spec_peaks){row.peak_used_bytes, row.peak_charged_bytes};
}

tn_snapshot_info info(tn_manager *m) {
    tn_snapshot *s = snapshot(m);
    tn_snapshot_info head = {.size = sizeof(head)};

    assert_ok(tn_snapshot_read(s, &head));
    tn_snapshot_drop(s);
    return head;
}

tn_value_info value(tn_manager *m, tn_handle h) {
    tn_snapshot *s = snapshot(m);
    tn_value_info row = {.size = sizeof(row)};

    assert_ok(tn_snapshot_value(s, h, &row));
    tn_snapshot_drop(s);
    return row;
}

static bool find_mat(tn_manager *m, tn_handle h, tn_location at, tn_materialization_info *out) {
    tn_snapshot *s = snapshot(m);
    size_t count;
    tn_materialization_info *rows = snapshot_mats(s, h, &count);
    bool found = false;

    for (size_t i = 0; i < count; i++)
        if (tn_location_equal(rows[i].at, at)) {
            assert_false(found); /* locations are unique per value (M227) */
            found = true;
            *out = rows[i];
        }
    free(rows);
    tn_snapshot_drop(s);
    return found;
}

tn_materialization_info mat(tn_manager *m, tn_handle h, tn_location at) {
    tn_materialization_info row = {0};

    assert_true(find_mat(m, h, at, &row));
    return row;
}

bool resident(tn_manager *m, tn_handle h, tn_location at) {
    tn_materialization_info row = {0};

    return find_mat(m, h, at, &row);
}

size_t replicas(tn_manager *m, tn_handle h) { return value(m, h).materialization_count; }

/* Compare two lists of locations; print both when they differ. */
static void same_locations(const char *what, const tn_location *got, size_t got_count,
                           const tn_location *want, size_t want_count, const char *file, int line) {
    bool same = got_count == want_count;
    char name[TN_LOCATION_NAME_MAX];

    for (size_t i = 0; same && i < got_count; i++)
        same = tn_location_equal(got[i], want[i]);
    if (same)
        return;
    print_error("%s are (", what);
    for (size_t i = 0; i < got_count; i++)
        print_error("%s%s", i != 0 ? ", " : "",
                    tn_location_name(got[i], name, sizeof(name)) == TN_OK ? name : "?");
    print_error("), expected (");
    for (size_t i = 0; i < want_count; i++)
        print_error("%s%s", i != 0 ? ", " : "",
                    tn_location_name(want[i], name, sizeof(name)) == TN_OK ? name : "?");
    print_error(")\n");
    _fail(file, line);
}

void spec_assert_replicas(tn_manager *m, tn_handle h, const tn_location *at, size_t count,
                          const char *file, int line) {
    tn_snapshot *s = snapshot(m);
    size_t got_count;
    tn_materialization_info *rows = snapshot_mats(s, h, &got_count);
    tn_location got[16];

    assert_true(got_count <= 16);
    for (size_t i = 0; i < got_count; i++)
        got[i] = rows[i].at;
    free(rows);
    tn_snapshot_drop(s);
    assert_int_equal(replicas(m, h), got_count);
    same_locations("materializations", got, got_count, at, count, file, line);
}

void spec_assert_locations(tn_manager *m, const tn_location *at, size_t count, const char *file,
                           int line) {
    tn_location got[2 + TN_CUDA_INDEX_MAX + 1];
    size_t got_count = sizeof(got) / sizeof(got[0]);

    assert_ok(tn_manager_locations(m, got, &got_count));
    assert_true(got_count <= sizeof(got) / sizeof(got[0]));
    same_locations("tracked locations", got, got_count, at, count, file, line);
}

size_t trace_count(tn_manager *m) {
    size_t count = 0;

    assert_ok(tn_manager_trace(m, NULL, &count));
    return count;
}

tn_report trace_at(tn_manager *m, size_t i) {
    size_t count = trace_count(m);
    tn_report *rows = calloc(count + 1, sizeof(*rows));
    tn_report row;

    assert_non_null(rows);
    assert_true(i < count);
    rows[0].size = sizeof(*rows);
    assert_ok(tn_manager_trace(m, rows, &count));
    assert_true(i < count);
    row = rows[i];
    free(rows);
    return row;
}

/* ---- Description -------------------------------------------------------------------------- */

static const char *at_text(tn_location at) {
    static _Thread_local char names[4][TN_LOCATION_NAME_MAX];
    static _Thread_local unsigned next;
    char *name = names[next++ % 4];

    return tn_location_name(at, name, TN_LOCATION_NAME_MAX) == TN_OK ? name : "?";
}

static void describe_locations(FILE *o, tn_snapshot *s, unsigned flags) {
    size_t count;
    tn_location_info *rows = snapshot_locations(s, &count);

    for (size_t i = 0; i < count; i++) {
        const tn_location_info *r = &rows[i];

        fprintf(o, "location %s", at_text(r->at));
        if (r->has_budget != 0)
            fprintf(o, " budget %" PRIu64 " remaining %" PRIu64, r->budget_bytes,
                    r->remaining_bytes);
        fprintf(o, " used %" PRIu64 " reserved %" PRIu64, r->used_bytes, r->reserved_bytes);
        if ((flags & SPEC_NO_PEAKS) == 0)
            fprintf(o, " peaks %" PRIu64 "/%" PRIu64, r->peak_used_bytes, r->peak_charged_bytes);
        fprintf(o, " values %" PRIu64 " reservations %" PRIu64, r->value_count,
                r->reservation_count);
        fprintf(o, " uses %" PRIu64 " holds %" PRIu64 " pending %" PRIu64 "\n", r->use_count,
                r->hold_count, r->pending_count);
    }
    free(rows);
}

static void describe_value(FILE *o, tn_snapshot *s, const tn_value_info *v) {
    size_t count;
    tn_materialization_info *rows = snapshot_mats(s, v->handle, &count);

    fprintf(o, "value %" PRIu64 " %s %" PRIu64 "/%" PRIu64 " mode %" PRIu32 " recover %" PRIu32,
            v->handle.index, v->spec.type != NULL ? v->spec.type->name : "-", v->spec.logical_bytes,
            v->spec.storage_bytes, v->spec.replica_mode, v->spec.recoverability);
    fprintf(o, " source %" PRIu32 " at %s discarded %" PRIu32 "\n", v->has_source,
            at_text(v->source_at), v->discarded);
    for (size_t i = 0; i < count; i++)
        fprintf(o,
                "  at %s %" PRIu64 "/%" PRIu64 "/%" PRIu64 " uses %" PRIu64 " holds %" PRIu64
                " pending %" PRIu64 "\n",
                at_text(rows[i].at), rows[i].logical_bytes, rows[i].storage_bytes,
                rows[i].charged_bytes, rows[i].use_count, rows[i].hold_count,
                rows[i].pending_count);
    free(rows);
}

static void describe_reservations(FILE *o, tn_snapshot *s) {
    size_t count = 0;
    tn_reservation_info *rows;

    assert_ok(tn_snapshot_reservations(s, NULL, &count));
    rows = calloc(count + 1, sizeof(*rows));
    assert_non_null(rows);
    rows[0].size = sizeof(*rows);
    assert_ok(tn_snapshot_reservations(s, rows, &count));
    for (size_t i = 0; i < count; i++)
        fprintf(o, "reservation %s %" PRIu64 " '%s'\n", at_text(rows[i].at), rows[i].bytes,
                rows[i].label);
    free(rows);
}

char *spec_describe(tn_manager *m, unsigned flags) {
    tn_snapshot *s = snapshot(m);
    tn_snapshot_info head = {.size = sizeof(head)};
    tn_value_info v = {.size = sizeof(v)};
    uint64_t cursor = 0;
    bool more = false;
    char *text = NULL;
    size_t size = 0;
    FILE *o = open_memstream(&text, &size);

    assert_non_null(o);
    assert_ok(tn_snapshot_read(s, &head));
    fprintf(o, "manager %" PRIu64, head.manager);
    if ((flags & SPEC_NO_VERSION) == 0)
        fprintf(o, " version %" PRIu64, head.state_version);
    fprintf(o, " leases %" PRIu64 " pending %" PRIu64 " holds %" PRIu64 "\n", head.lease_count,
            head.pending_lease_count, head.hold_count);
    describe_locations(o, s, flags);
    for (;;) {
        assert_ok(tn_snapshot_next(s, &cursor, &v, &more));
        if (!more)
            break;
        describe_value(o, s, &v);
    }
    describe_reservations(o, s);
    tn_snapshot_drop(s);
    assert_int_equal(fclose(o), 0);
    return text;
}

/* ---- Assertions --------------------------------------------------------------------------- */

void spec_assert_at(tn_location got, tn_location want, const char *text, const char *file,
                    int line) {
    if (tn_location_equal(got, want))
        return;
    print_error("%s is %s, expected %s\n", text, at_text(got), at_text(want));
    _fail(file, line);
}
