/* SPDX-License-Identifier: MIT */
/*
 * The property test of the manager: one random sequence of calls goes into the library and into the
 * reference model, and after every call everything observable must agree.
 *
 * A call is a record of small integers. They are resolved when the call runs, modulo what exists
 * then ("value 7 of the three live ones"), so any part of a sequence is a valid sequence: that is
 * what shrinking needs.
 *
 *   program  what a sequence is: drawing, writing, reading (manager_program_util.c)
 *   run      the state while it runs: machine, managers, what exists (manager_run_util.c)
 *   choose   from integers to arguments (manager_choose_util.c)
 *   payload  payloads and sources, twice: real and for the model (manager_payload_util.c)
 *   call     run one call on both sides (manager_call_util.c, manager_lifetime_util.c)
 *   plan     the same for plans, explanations, sequences (manager_plan_draw_util.c,
 *            manager_plan_util.c) and scopes (manager_scope_util.c)
 *   compare  what must agree (manager_compare_util.c)
 *
 * Sequences run in a child process, so that crashes and hangs are failures like others and can be
 * shrunk.
 */
#ifndef TN_MANAGER_PROPERTY_H
#define TN_MANAGER_PROPERTY_H

#include <stdint.h>

#include "model.h"
#include "payload.h"

/* ---- Program --------------------------------------------------------------------------------- */

#define OPS(X)                                                                                     \
    X(ADOPT, 10)                                                                                   \
    X(ADOPT_RESERVED, 4)                                                                           \
    X(REGISTER, 7)                                                                                 \
    X(ENSURE, 14)                                                                                  \
    X(COPY, 3)                                                                                     \
    X(MOVE, 10)                                                                                    \
    X(DROP, 7)                                                                                     \
    X(DISCARD, 3)                                                                                  \
    X(ACQUIRE, 9)                                                                                  \
    X(LOOKUP, 4)                                                                                   \
    X(LEASE_READ, 2)                                                                               \
    X(ADD_STREAM, 4)                                                                               \
    X(RELEASE, 8)                                                                                  \
    X(HOLD, 4)                                                                                     \
    X(HOLD_RELEASE, 4)                                                                             \
    X(HOLD_READ, 1)                                                                                \
    X(RESERVE, 5)                                                                                  \
    X(RESERVATION_RELEASE, 4)                                                                      \
    X(RESERVATION_READ, 1)                                                                         \
    X(VERSION, 3)                                                                                  \
    X(SNAPSHOT, 2)                                                                                 \
    X(SNAPSHOT_CHECK, 2)                                                                           \
    X(LOCATIONS, 1)                                                                                \
    X(TRACE, 1)                                                                                    \
    X(CLEAR_TRACE, 1)                                                                              \
    X(STEP, 2)                                                                                     \
    X(CLOSE, 1)                                                                                    \
    X(CREATE, 1) X(USE, 5) X(ADVANCE, 5) X(PLAN, 6) X(EXPLAIN, 6) X(EXECUTE, 9) X(SCOPE, 6)        \
        X(ENTER, 7) X(EXIT, 6) X(SCOPE_DESTROY, 2) X(SCOPE_READ, 1)

enum op {
#define OP_ENUM(name, weight) OP_##name,
    OPS(OP_ENUM)
#undef OP_ENUM
        OP_COUNT
};

/* The members of a call that are drawn. All zero is the tamest call of its kind. */
#define CALL_ARGS 6
typedef struct call {
    uint8_t op;
    uint8_t which;    /* manager: 0..7, the last one is the second manager */
    uint8_t wrong[2]; /* 0: nothing is wrong with the arguments; else modulo what can be */
    uint8_t fault;    /* 0: none; else modulo the faults */
    uint8_t quiet;    /* not 0: take no snapshot afterwards, it would reap */
    uint16_t arg[CALL_ARGS];
} call;

#define PROGRAM_CALLS 60
#define PROGRAM_SETUP 12
typedef struct program {
    uint16_t setup[PROGRAM_SETUP]; /* budgets, modes, capacities of the managers */
    uint32_t count;
    call calls[PROGRAM_CALLS];
} program;

uint64_t property_mix(uint64_t x);
bool program_large(const program *p); /* one with many values */
void program_draw(program *p, uint64_t seed);
void program_write(const program *p, char *text, size_t room); /* for TN_PROPERTY_CALLS */
bool program_read(program *p, const char *text);
const char *op_name(uint32_t op);

/* ---- Run ------------------------------------------------------------------------------------- */

#define RUN_MANAGERS 2
#define RUN_STREAMS 7
#define RUN_BATCHES 8
#define RUN_PLANS 4
#define RUN_VALUES 48 /* values of one manager, discarded ones included */
#define STATUSES 32
#define FAILURE_TEXT 2048

enum fault {
    FAULT_NONE,
    FAULT_DEVICE_ALLOC,
    FAULT_DEVICE_ALLOC_2,
    FAULT_COPY,
    FAULT_COPY_LATER,
    FAULT_COPY_CLEANUP,        /* and the stream cannot be synchronised */
    FAULT_COPY_CLEANUP_DEVICE, /* nor the device */
    FAULT_RECORD,
    FAULT_RECORD_2,
    FAULT_RECORD_SYNCHRONIZE,   /* and the streams cannot be synchronised */
    FAULT_RECORD_SYNCHRONIZE_1, /* or the first of them */
    FAULT_QUERY,
    FAULT_EVENT_SYNCHRONIZE,
    FAULT_EVENT_CREATE,
    FAULT_STREAM_CREATE,
    FAULT_DEVICE_SYNCHRONIZE,
    FAULT_PINNED_ALLOC,
    FAULT_COPY_CALLBACK,
    FAULT_GROW_COPY,
    FAULT_MEASURE,
    FAULT_READINGS,
    FAULT_NEST_COPY, /* no failure: calls from inside the callback */
    FAULT_NEST_MEASURE,
    FAULT_NEST_DESTROY,
    FAULT_HOST_ALLOC, /* the n-th block of the library's own memory */
    FAULT_COUNT
};
const char *fault_name(uint32_t fault);
uint32_t choose_fault(const call *c); /* of a call that has one */

/* Shared with the parent process. */
typedef struct tally {
    uint64_t hits[OP_COUNT][STATUSES];
    uint64_t faults[FAULT_COUNT][2]; /* armed, and of these: hit */
    /* actions that plans consist of: explained, by reason; then run, and failed while running */
    uint64_t explained[TN_ACTION_DISCARD + 1][TN_REASON_STORAGE_SHARED + 1];
    uint64_t problems[TN_REASON_STORAGE_SHARED + 1]; /* of explained plans */
    uint64_t steps[TN_PHASE_EXIT + 1][2];
    uint64_t checks, calls, nested, loads, reaped;
} tally;

struct run;

typedef struct source {
    struct run *run;
    uint32_t manager;
    uint64_t script; /* what it does, call by call */
    uint64_t seed;
    uint64_t calls, model_calls;
    uint64_t forgotten;
    const void *last; /* payload made by the last real call */
} source;

typedef struct side {
    tn_manager *library;
    tm_manager model;
    tn_lease leases[TM_LIFETIMES];
    tn_hold holds[TM_LIFETIMES];
    tn_reservation reservations[TM_LIFETIMES];
    source sources[RUN_VALUES];
    size_t source_count;
    tn_plan *plans[RUN_PLANS]; /* the newest is the last one made; NULL: none yet */
    tm_plan plan_models[RUN_PLANS];
    size_t plans_made;
    tn_scope *scopes[TM_SCOPES];
    uint64_t diagnostics[8];
    tn_snapshot *kept; /* an older snapshot, and what it must say */
    tm_view kept_view;
} side;

typedef struct run {
    const program *program;
    tally *tally;
    bool verbose, mid_line;
    char *failure; /* FAILURE_TEXT bytes; empty: none */
    uint32_t step;
    const call *now;

    tn_sim *sim;
    tn_driver *driver;
    tn_stream streams[RUN_STREAMS]; /* 0..3 of device 0, 4..5 of device 1, 6 capturing */
    tm_world world;
    side sides[RUN_MANAGERS];
    tt_backing *batches[RUN_BATCHES]; /* two at each location, 64 bytes: two rows */
    size_t values_max;
    uint64_t ticks;
    int64_t payloads_before; /* alive before the run */
    uint64_t pinned_frees;

    /* Of the current call. */
    side *active;
    tn_status other_status; /* what a source heard from the other manager */
    uint32_t fault;
    bool armed, expect_no_readings, out_of_memory;
    const tn_scope *closing; /* in use: not to be destroyed from inside */
    tn_sim_memory device_before[2];
} run;

/* Run a whole program. False: it failed, run->failure says how. */
bool program_run(const program *p, tally *t, bool verbose, char *failure);

bool failed(const run *r);
/* Record a failure (the first one stays); returns false. */
bool differ(run *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A line of the readable sequence, if anyone wants it. */
void say(run *r, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* ---- Choose ---------------------------------------------------------------------------------- */

#define LOCATIONS 4
extern const tn_location locations[LOCATIONS]; /* P, N, C0, C1 */

tn_location choose_location(uint32_t x);
tn_handle choose_value(run *r, side *s, uint32_t x);
/* Mostly somewhere the value is. */
tn_location choose_place(side *s, tn_handle handle, uint32_t x);
tn_stream choose_stream(run *r, tn_location at, uint32_t x); /* a good one, NULL on the host */
bool wrong(run *r, uint32_t what); /* whether the current call has this mistake */
uint32_t wrong_count(uint32_t op);
tn_handle wrong_handle(run *r, side *s, tn_handle handle);
tn_location wrong_location(run *r, tn_location at);
tn_stream wrong_stream(run *r, tn_location at, tn_stream stream);
const char *handle_text(const run *r, tn_handle handle);
const char *location_text(tn_location at);
const char *stream_text(const run *r, tn_stream stream);

/* Mistakes of arguments. Those from WRONG_ALONE on stand alone: no rule orders them. */
enum wrong {
    WRONG_NONE,
    WRONG_ZERO_HANDLE,
    WRONG_FOREIGN,
    WRONG_UNKNOWN,
    WRONG_TYPE,
    WRONG_LOCATION_NONE,
    WRONG_LOCATION_KIND,
    WRONG_LOCATION_RANGE,
    WRONG_LOCATION_ABSENT,
    WRONG_STREAM_GARBAGE,
    WRONG_STREAM_DEVICE,
    WRONG_STREAM_THREAD,
    WRONG_STREAM_CAPTURING,
    WRONG_STREAM_PRESENCE, /* one on the host, none for a CUDA lease */
    WRONG_HOST_INDEX,      /* no mistake: M12 */
    WRONG_VALUE,           /* what the operation has: mode, count, bytes, flags ... */
    WRONG_VALUE_2,
    WRONG_ALONE,
    WRONG_OUT = WRONG_ALONE, /* output NULL, or too small */
    WRONG_MANAGER,           /* NULL */
    WRONG_COUNT
};

/* ---- Payloads and sources -------------------------------------------------------------------- */

/* A payload to adopt; *model describes it. `data` NULL: there is none of that shape now. */
tn_payload make_payload(run *r, side *s, uint32_t x, tm_payload *model);
/* Forget one that was not adopted; `shared` payloads belong to a manager. */
void unmake_payload(run *r, side *s, tn_payload payload);
tn_source make_source(run *r, side *s, uint32_t script, source **out);
tm_load model_load;

/* Everything that must be refused from inside a callback of this manager; `guard`: inside a
 * source's. */
void nested_calls(run *r, side *s, bool guard);

/* ---- Faults ---------------------------------------------------------------------------------- */

/*
 * Around a call of the library:
 *
 *     do {
 *         arm_faults(r, c);
 *         status = tn_...();
 *     } while (again(r, s, status));
 *     ... the model, comparisons ...
 *
 * again() disarms, and tells the model what it cannot know. If the call failed because we let the library run out of
 * memory, it checks that nothing happened, and the same call must now do what it should (F1).
 */
void arm_faults(run *r, const call *c);
bool again(run *r, side *s, tn_status status);
/* After the model: it met the faults as often as the library. */
void settle_faults(run *r);
/* A failed plan: what of it the model cannot know. */
void tell_stop(run *r, side *s, tn_status status);
/* Sources that were called in vain: what the model has not done for that. */
void follow_vain_loads(run *r, side *s);
bool compare_snapshot(run *r, side *s);
bool read_devices(run *r); /* the figures before an action */

/* ---- Calls ----------------------------------------------------------------------------------- */

bool run_action(run *r, side *s, const call *c);
bool run_value(run *r, side *s, const call *c); /* adopt, register */
bool run_lifetime(run *r, side *s, const call *c);
bool run_observation(run *r, side *s, const call *c);
bool run_machine(run *r, side *s, const call *c); /* work on streams, time */
bool run_planned(run *r, side *s, const call *c); /* plans, explanations, sequences */
bool run_scope(run *r, side *s, const call *c);
/* Plans and sequences, from the numbers of a call; mistakes included. */
void draw_plan(run *r, side *s, const call *c, tm_plan *out);
void draw_sequence(run *r, side *s, const call *c, tm_plan *out);
bool idle_for(run *r, side *s, const tm_plan *plan);
void say_list(run *r, const char *what, const tm_list *list);
void say_options(run *r, const tm_options *o);
void say_plan(run *r, const tm_plan *plan);
/* Version and streams, from one number; mistakes included. */
void draw_options(run *r, side *s, uint32_t x, tm_options *out);
/* The newest plan, mostly; RUN_PLANS: there is none. */
size_t choose_plan(const side *s, uint32_t x);
/* The same, or one that is made of this call. */
size_t need_plan(run *r, side *s, const call *c);
/* Whether transitions run inside this call. */
bool runs_actions(uint32_t op);
/* The newest reports of the model's trace get the times and readings that were reported. */
void complete_traces(side *s, const tn_report *reports, size_t count);

/* ---- Compare --------------------------------------------------------------------------------- */

/* Both statuses, and the error's fields if they are failures. */
bool compare_result(run *r, side *s, tn_status library, tn_status model); /* counted too */
bool compare_statuses(run *r, side *s, tn_status library, tn_status model);
/* A stateless refusal that the model does not know: NULL arguments. */
bool compare_refusal(run *r, side *s, tn_status library, tn_status expected);
bool compare_report(run *r, const tn_report *library, const tn_report *model, bool times);
bool compare_error(run *r, const tn_error *library, const tn_error *model, uint32_t open);
/* What is newest in it, after `before` reports, is in the trace too. */
bool compare_plan_report(run *r, side *s, const tn_plan_report *library,
                         const tm_plan_report *model, const char *name, size_t before);
bool compare_trace(run *r, side *s);
bool compare_view(run *r, tn_snapshot *snapshot, const tm_view *view, bool readings);
bool compare_world(run *r);
bool compare_lifetimes(run *r, side *s);

#endif
