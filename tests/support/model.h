/* SPDX-License-Identifier: MIT */
/*
 * The reference model: what a manager must do, in arrays and counters. One thread, no library code.
 *
 * A world is the machine: virtual time, streams with the time until which they are busy, the faults
 * armed for the next call, and how many payloads are alive. A manager of the model is driven by the
 * same calls as a manager of the library; each returns the status and leaves the expected error
 * (`error`, `error_free`) and report behind. Waiting moves the world's clock to the moment waited
 * for. Reaping is manual (M161..M165).
 *
 * What the model cannot know it is told: the bases of backing allocations (in tm_payload), what a
 * source will return (its load function), and, for driver entries whose number of calls is the
 * library's own affair, how often an armed fault was hit (tm_fault.observed).
 *
 * Rules are cited where they are followed. Limits (TM_...) are checked; exceeding one aborts.
 */
#ifndef TN_TEST_MODEL_H
#define TN_TEST_MODEL_H

#include <tenure/tenure.h>

#define TM_FIELDS 4
#define TM_VALUES 96
#define TM_LOCATIONS 8
#define TM_LIFETIMES 96
#define TM_HANDLES 8
#define TM_STREAMS 16
#define TM_LEASE_STREAMS 16
#define TM_FAULTS 4
#define TM_STEPS 4 /* actions of one list, reservations of one plan */
#define TM_SCOPES 12
#define TM_TRACE 400

static inline bool tm_same_at(tn_location a, tn_location b) {
    return a.kind == b.kind && (a.kind != TN_LOCATION_CUDA || a.index == b.index);
}

static inline bool tm_same_handle(tn_handle a, tn_handle b) {
    return a.manager == b.manager && a.index == b.index && a.type == b.type;
}

/* ---- Payloads -----------------------------------------------------------------------------------
 */

typedef struct tm_field {
    const void *base; /* identity of the backing allocation (M65) */
    uint64_t bytes;   /* of the whole backing */
    uint64_t logical; /* count times element size */
    uint64_t elem;    /* element size */
    uint32_t pieces;  /* copies that move it: 1, or the number of elements of a strided view */
    tn_location at;
} tm_field;

typedef struct tm_payload {
    const tn_value_type *type;
    const void *data; /* what a lookup must return; NULL: not known yet */
    uint64_t seed;    /* contents */
    size_t field_count;
    tm_field fields[TM_FIELDS];
} tm_payload;

typedef struct tm_measured {
    uint64_t logical, storage;
    tn_location at; /* kind none: pinned and pageable fields (M28) */
    bool neutral;   /* only empty fields, on the CPU: fits both host locations (G22) */
} tm_measured;

/* M25..M28; TN_ERR_PAYLOAD. */
tn_status tm_measure(const tm_payload *payload, tm_measured *out);

/* ---- The world ------------------------------------------------------------------------------- */

/* A fault armed for the next call. */
typedef struct tm_fault {
    uint32_t entry;  /* enum tn_sim_entry, or TM_FAULT_... */
    uint32_t status; /* what the entry returns */
    int64_t code;
    uint64_t nth;         /* first call that fails, from 1 */
    uint64_t count;       /* how many; 0: all from then on */
    bool observe;         /* do not count calls: it fails once if `observed` is not 0 */
    uint64_t observed;    /* how often the library hit it */
    bool resting;         /* not now: the library met it in another step of a plan */
    uint64_t calls, hits; /* of the model */
} tm_fault;

enum tm_fault_entry {
    TM_FAULT_COPY_CALLBACK = 100, /* the value type's `copy` fails */
    TM_FAULT_GROW_COPY,           /* the copy has one element more than its source */
    TM_FAULT_MEASURE              /* the value type's `measure` fails */
};

typedef struct tm_stream {
    tn_stream stream;
    uint32_t device;
    bool capturing;
    uint64_t busy_until;
} tm_stream;

typedef struct tm_world {
    uint64_t now;
    uint32_t devices;
    size_t stream_count;
    tm_stream streams[TM_STREAMS];
    size_t fault_count;
    tm_fault faults[TM_FAULTS];
    int64_t live;       /* payloads alive, those of the test included if it counts them in */
    uint64_t forgotten; /* sources forgotten */
    uint64_t loads;     /* calls of sources */
} tm_world;

void tm_world_init(tm_world *w, uint32_t devices);
void tm_world_stream(tm_world *w, tn_stream stream, uint32_t device, bool capturing);
tm_stream *tm_world_find(tm_world *w, tn_stream stream); /* NULL: not a stream */
void tm_world_queue(tm_world *w, tn_stream stream, uint64_t ns);
void tm_world_advance(tm_world *w, uint64_t ns);
/* Called where an entry of the driver is: whether it fails now. */
const tm_fault *tm_world_call(tm_world *w, uint32_t entry);

/* ---- Managers -------------------------------------------------------------------------------- */

typedef struct tm_manager tm_manager;

/*
 * What a source does (once per call). TN_OK: *out is a payload that is alive (counted by the
 * model). Otherwise *out_code is the native code.
 */
typedef tn_status tm_load(void *context, const tn_value_spec *spec, tn_location at, tm_payload *out,
                          int64_t *out_code);

typedef struct tm_materialization {
    tn_location at;
    uint64_t actual;
    uint64_t uses, holds, pendings;
    tm_payload payload;
} tm_materialization;

typedef struct tm_value {
    tn_handle handle;
    tn_value_spec spec;
    bool discarded, forgotten; /* forgotten: no longer visible (D12) */
    uint64_t discard_order;
    bool has_source;
    tn_location source_at;
    tm_load *load;
    void *context;
    size_t count;
    tm_materialization at[TM_LOCATIONS]; /* in installation order */
} tm_value;

typedef struct tm_place {
    tn_location at;
    bool has_budget;
    uint64_t budget, used, reserved, peak_used, peak_charged;
} tm_place;

enum tm_state {
    TM_ACTIVE = 1,
    TM_PENDING, /* leases only */
    TM_ENDED
};

typedef struct tm_lease {
    tm_manager *manager;
    uint32_t state; /* enum tm_state: of the protection */
    bool open; /* the object says active: also after a failed wait (M146) and a forced close (M150)
                */
    tn_location at;
    size_t handle_count;
    tn_handle handles[TM_HANDLES];
    size_t stream_count;
    tn_stream streams[TM_LEASE_STREAMS];
    uint64_t done_at; /* PENDING: when all events are complete */
} tm_lease;

typedef struct tm_hold {
    tm_manager *manager;
    uint32_t state;
    bool open;
    tn_location at;
    size_t handle_count;
    tn_handle handles[TM_HANDLES];
} tm_hold;

typedef struct tm_reservation {
    tm_manager *manager;
    uint32_t state;
    bool open;
    tn_location at;
    uint64_t bytes;
    char label[32];
    uint64_t order;
} tm_reservation;

/* ---- Plans ----------------------------------------------------------------------------------- */

typedef struct tm_list {
    size_t count;
    tn_action actions[TM_STEPS];
} tm_list;

typedef struct tm_plan {
    char name[32];
    tm_list reclaim, enter, exit; /* of a sequence: enter alone */
    size_t reservation_count;
    tn_reservation_spec reservations[TM_STEPS];
    char labels[TM_STEPS][16]; /* of the reservations */
} tm_plan;

typedef struct tm_options {
    uint64_t expected; /* TN_VERSION_ANY: none */
    size_t stream_count;
    tn_transfer_stream streams[TM_STEPS];
} tm_options;

#define TM_VERDICT_FREE UINT32_MAX

/* What a simulation finds (M176..M181). */
typedef struct tm_explained {
    bool feasible;
    uint32_t phase; /* of the first problem */
    uint64_t index;
    size_t action_count;
    tn_action_explanation actions[3 * TM_STEPS];
    bool source_free; /* of the last one: no rule says what it is (M178) */
    size_t peak_count;
    tn_predicted_peak peaks[TM_LOCATIONS];
    size_t listed_count;
    tn_location listed[TM_LOCATIONS]; /* a discard's protected replicas */
    uint32_t verdict; /* TM_VERDICT_FREE: who could give the bytes back is not modelled */
    uint64_t missing_bytes;
    tn_error problem; /* as the action alone would report it */
    uint32_t problem_free;
} tm_explained;

typedef struct tm_plan_report {
    bool complete;
    size_t count;
    size_t counts[TN_PHASE_EXIT + 1]; /* by phase */
    tn_report reports[3 * TM_STEPS];
} tm_plan_report;

enum tm_scope_state { TM_FRESH, TM_ENTERED, TM_CLOSED };

typedef struct tm_scope {
    tm_manager *manager;
    uint32_t state;
    bool destroyed;
    tm_plan plan;
    tm_options options;
    size_t reserved;               /* while entered */
    size_t reservations[TM_STEPS]; /* indices of the manager's */
    bool partial;
    tm_plan_report report;
    tn_error exit_error; /* status 0: none */
    uint32_t exit_free;
} tm_scope;

/* Where the library says that a plan failed. The model is told if it cannot know: the step for which
 * the library's own memory ran out (`status`), or that met an observed fault. */
typedef struct tm_stop {
    bool on;
    uint32_t phase;
    uint64_t index;
    uint32_t status; /* 0: the faults say */
    /* with a status: what the step has done in vain before it failed; or NULL */
    void (*vain)(void *context);
    void *context;
} tm_stop;

/* Parts of an error that no rule fixes. */
enum tm_error_free {
    TM_FREE_HANDLE = 1u,
    TM_FREE_AT = 2u,
    TM_FREE_REASON = 4u,
    TM_FREE_NUMBERS = 8u, /* expected and actual */
    TM_FREE_NATIVE = 16u,
    TM_FREE_MANAGER = 32u,
    TM_FREE_BUDGET = 64u,
    TM_FREE_ALL = 127u
};

struct tm_manager {
    tm_world *world;
    uint64_t id;
    bool closed, guard;
    uint64_t version;
    uint64_t next_index; /* what adopt and register issue; the test may set it before the call */
    uint64_t keep_discarded;
    uint64_t discards, reservations_made;

    size_t place_count, value_count, lease_count, hold_count, reservation_count;
    tm_place places[TM_LOCATIONS]; /* in tracking order */
    tm_value values[TM_VALUES];    /* in registration order */
    tm_lease leases[TM_LIFETIMES]; /* never reused */
    tm_hold holds[TM_LIFETIMES];
    tm_reservation reservations[TM_LIFETIMES];

    uint64_t trace_capacity; /* as in tn_config */
    size_t trace_count;
    tn_report trace[TM_TRACE];

    size_t scope_count;
    tm_scope scopes[TM_SCOPES]; /* the test reuses those that are destroyed */
    tm_stop stop;

    uint64_t diagnostics[8]; /* by enum tn_diagnostic_kind */
    uint64_t reaped;         /* by the last call */

    /* Of the last call. */
    tn_error error;
    uint32_t error_free;
    tn_report report;
};

typedef struct tm_config {
    const tn_budget *budgets;
    size_t budget_count;
    uint64_t trace_capacity; /* as in tn_config, 0: 4096 */
    uint64_t keep_discarded; /* same */
} tm_config;

void tm_create(tm_manager *m, tm_world *world, uint64_t id, const tm_config *config);

tn_status tm_adopt(tm_manager *m, const tm_payload *payload, tn_location at, uint32_t replica_mode,
                   tn_handle *out);
tn_status tm_adopt_reserved(tm_manager *m, const tm_payload *payload, tn_location at,
                            uint32_t replica_mode, tm_reservation *reservation, tn_handle *out);
tn_status tm_register(tm_manager *m, const tn_value_spec *spec, tm_load *load, void *context,
                      tn_location at, tn_handle *out);
tn_status tm_ensure(tm_manager *m, tn_handle handle, tn_location at, tn_stream stream);
tn_status tm_move(tm_manager *m, tn_handle handle, tn_location to, tn_location from,
                  tn_stream stream);
tn_status tm_drop(tm_manager *m, tn_handle handle, tn_location at);
tn_status tm_discard(tm_manager *m, tn_handle handle);

tn_status tm_acquire(tm_manager *m, const tn_handle *handles, size_t count, tn_location at,
                     tn_stream stream, tm_lease **out);
tn_status tm_lookup(tm_lease *lease, tn_handle handle, tm_materialization **out);
tn_status tm_add_stream(tm_lease *lease, tn_stream stream);
tn_status tm_release(tm_lease *lease, uint32_t flags);
tn_status tm_hold_take(tm_manager *m, const tn_handle *handles, size_t count, tn_location at,
                       tm_hold **out);
tn_status tm_hold_release(tm_hold *hold);
tn_status tm_reserve(tm_manager *m, tn_location at, uint64_t bytes, const char *label,
                     tm_reservation **out);
tn_status tm_reservation_release(tm_reservation *reservation);

/* M166, M167: the form of a plan; of a sequence. */
tn_status tm_plan_form(const tm_plan *plan);
tn_status tm_actions_form(const tm_list *list);
/* M168..M183. TN_OK, feasible or not. */
tn_status tm_explain(tm_manager *m, const tm_plan *plan, uint64_t expected, tm_explained *out);
/* M184..M188: the enter list of `plan`. The report is partial after TN_ERR_PLAN_EXEC. */
tn_status tm_execute(tm_manager *m, const tm_plan *plan, const tm_options *options,
                     tm_plan_report *out);
void tm_scope_create(tm_manager *m, const tm_plan *plan, const tm_options *options, tm_scope *out);
tn_status tm_scope_enter(tm_scope *scope);
tn_status tm_scope_close(tm_scope *scope);
tn_status tm_scope_destroy(tm_scope *scope);

tn_status tm_version(tm_manager *m, uint64_t *out);
tn_status tm_step(tm_manager *m);
tn_status tm_close(tm_manager *m, uint32_t flags);
void tm_destroy(tm_manager *m);      /* D15 */
tn_status tm_guarded(tm_manager *m); /* locations, trace, clear trace: what their check says */
void tm_clear_trace(tm_manager *m);

/* ---- What a snapshot must show --------------------------------------------------------------- */

typedef struct tm_view {
    tn_snapshot_info info;
    tn_value_info values[TM_VALUES];
    tn_materialization_info materializations[TM_VALUES][TM_LOCATIONS];
    tn_location_info locations[TM_LOCATIONS]; /* without allocator readings */
    tn_reservation_info reservations[TM_LIFETIMES];
} tm_view;

/* Reaps, as the library's does. */
tn_status tm_snapshot(tm_manager *m, tm_view *out);

/* ---- Reading the model ----------------------------------------------------------------------- */

tm_value *tm_find(tm_manager *m, tn_handle handle); /* NULL: no record of that triple */
tm_materialization *tm_resident(tm_value *v, tn_location at);
tm_place *tm_place_at(tm_manager *m, tn_location at);

#endif
