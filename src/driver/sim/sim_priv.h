/* SPDX-License-Identifier: MIT */
/*
 * The simulated machine, inside. One lock (rank SIM) guards everything of one machine, except what
 * is said to be immutable.
 *
 *  - S1: with a virtual clock one thread at a time moves time (`stepping`); it gives the lock up
 *    only for host functions and the on_copy hook, and nothing else then moves an operation.
 *  - S2: with stream threads an operation is touched by the thread of its stream only; the lock is
 *    given up while it sleeps and while it copies, and ranges that are being copied are marked
 *    `busy`, so that a free waits for the copy.
 *  - S3: a stream is in `active` exactly while it has an operation that is not complete; the head
 *    of its queue is the one that runs. Operation numbers grow along each queue.
 *  - S4: a range that was freed is dead for ever; another one at the same address is another
 *    object. Queued operations keep the object, so that they see its death when they execute.
 *  - S5: the simulator uses none of the library's own memory, so that failure points and leak
 *    counts are the library's alone.
 */
#ifndef TENURE_SIM_PRIV_H
#define TENURE_SIM_PRIV_H

#include <pthread.h>

#include <tenure/sim.h>

#include "base/lockrank.h"
#include "driver/sim/sim_map.h"

#define TN__SIM_NEVER UINT64_MAX
#define TN__SIM_NO_LIMIT UINT64_MAX
#define TN__SIM_ALIGN 256u

/* Native codes: CUresult by number. */
enum tn__sim_code {
    TN__SIM_CODE_VALUE = 1,
    TN__SIM_CODE_MEMORY = 2,
    TN__SIM_CODE_DEINITIALIZED = 4,
    TN__SIM_CODE_DEVICE = 101,
    TN__SIM_CODE_CONTEXT = 201,
    TN__SIM_CODE_HANDLE = 400,
    TN__SIM_CODE_CONTEXT_DESTROYED = 709,
    TN__SIM_CODE_NOT_PERMITTED = 800,
    TN__SIM_CODE_NOT_SUPPORTED = 801,
    TN__SIM_CODE_CAPTURE = 900,
    TN__SIM_CODE_UNKNOWN = 999
};

/* A machine string, parsed. */
typedef struct tn__sim_machine {
    uint32_t devices;
    bool threads;
    uint64_t memory_bytes;
    uint64_t pinned_bytes; /* TN__SIM_NO_LIMIT: none */
    uint64_t pool_bytes;   /* TN__SIM_NO_LIMIT: none */
    uint64_t host_rate;    /* bytes per second; 0: infinite */
    uint64_t peer_rate;
    uint64_t latency_ns;
    uint64_t pin_ns;
    uint64_t disk_rate; /* 0: infinite */
    uint64_t seek_ns;
    uint64_t seed; /* of the order among equals; counts if `seeded` */
    bool seeded;
    bool shared; /* host memory is device memory */
} tn__sim_machine;

/* Parse; NULL or empty: defaults. TN_ERR_VALUE with message and column (`actual`). */
TN_NODISCARD tn_status tn__sim_parse(const char *text, tn__sim_machine *out);

/* Objects. */

/* A block of device or pinned memory. Referenced by its arena while live and by each queued
 * operation on it. */
typedef struct tn__sim_range {
    tn__sim_node node;   /* in `live`, while it lives */
    uint64_t bytes;      /* as asked for; node.bytes is rounded up */
    uint64_t generation; /* unique in the machine */
    uint64_t freed_ns;   /* once dead */
    tn_location at;      /* pageable: a fake pinned block */
    tn__sim_node *hole;  /* what its address space becomes */
    uint32_t refs;
    uint32_t busy; /* copies in progress without the lock (S2) */
    bool dead;
    bool pinned; /* came from pinned_alloc */
} tn__sim_range;

/* Address space for the blocks of one device, or for pinned memory; mapped at the first allocation,
 * until the end. */
typedef struct tn__sim_arena {
    char *base;
    uint64_t bytes;
    tn__sim_node *holes;
    uint64_t limit_bytes;
    uint64_t pool_bytes;   /* release threshold */
    uint32_t capabilities; /* enum tn_sim_capability; of a device */
    uint32_t locked;       /* calls that hold the lock of the device's context */
    tn_sim_memory figures;
} tn__sim_arena;

/* One record of an event; complete or not. */
typedef struct tn__sim_mark {
    uint32_t refs;
    bool done;
    uint64_t done_ns;
    struct tn__sim_stream *stream; /* referenced: calls that name the event count there */
} tn__sim_mark;

typedef struct tn__sim_event {
    uint32_t device;
    uint64_t context;
    tn__sim_mark *mark; /* the last record; NULL: never recorded */
} tn__sim_event;

enum tn__sim_kind {
    TN__SIM_OP_DELAY,
    TN__SIM_OP_READ,
    TN__SIM_OP_WRITE,
    TN__SIM_OP_COPY,
    TN__SIM_OP_RECORD,
    TN__SIM_OP_WAIT,
    TN__SIM_OP_HOST
};

enum tn__sim_phase {
    TN__SIM_QUEUED,
    TN__SIM_STARTING, /* a copy that waits for its link */
    TN__SIM_RUNNING
};

/* One queued operation. */
typedef struct tn__sim_op {
    struct tn__sim_op *next;
    uint64_t number;
    enum tn__sim_kind kind;
    enum tn__sim_phase phase;
    bool broken; /* its violation is counted */
    bool voided; /* queued when the driver went away: it takes its time and does nothing */
    int byte;    /* WRITE */
    uint64_t queued_ns;
    uint64_t duration_ns;
    uint64_t start_ns;
    uint64_t end_ns;
    char *destination;  /* COPY, WRITE */
    const char *source; /* COPY, READ */
    uint64_t bytes;
    tn_location destination_at;
    tn_location source_at;
    tn__sim_range *destination_range; /* NULL: memory of the program */
    tn__sim_range *source_range;
    tn__sim_mark *mark;              /* RECORD, WAIT */
    void (*function)(void *context); /* HOST */
    void *context;
} tn__sim_op;

/* A stream. Referenced by its handle, by `active`, by its thread and by calls that wait for it. */
typedef struct tn__sim_stream {
    uint32_t refs;
    uint32_t device;
    uint32_t flags; /* enum tn_sim_stream_flags */
    bool of_driver; /* made through the table */
    bool closing;   /* destroyed; its thread ends when the queue is empty */
    bool has_thread;
    bool exited; /* its thread touches nothing any longer */
    uint64_t context;
    uint64_t id;       /* order of creation */
    uint64_t ready_ns; /* when the last operation was complete, or the next could start */
    tn__sim_op *head;
    tn__sim_op *tail;
    struct tn__sim_stream *active_prev; /* by id */
    struct tn__sim_stream *active_next;
    struct tn__sim_stream *zombie_next; /* threads to be joined */
    tn_sim *sim;                        /* for its thread */
    pthread_t thread;
    tn__cond work;                      /* its queue grew, or it shall end */
    uint64_t calls[TN_SIM_ENTRY_COUNT]; /* that named it */
} tn__sim_stream;

/* Handles: index of a slot, which knows whether it was ever issued. */
typedef struct tn__sim_slots {
    void **objects; /* NULL: dead */
    uint32_t *free_next;
    uint32_t count;
    uint32_t capacity;
    uint32_t free_head; /* last freed first; UINT32_MAX: none */
    uint64_t live;
} tn__sim_slots;

typedef struct tn__sim_armed {
    struct tn__sim_armed *next;
    tn_sim_fault fault;
    uint64_t seen; /* matching calls so far */
} tn__sim_armed;

/* What one thread has called. Never removed: a thread keeps the address. */
typedef struct tn__sim_thread {
    struct tn__sim_thread *next;
    uint64_t number; /* of the thread */
    uint64_t calls[TN_SIM_ENTRY_COUNT];
} tn__sim_thread;

typedef struct tn__sim_pair {
    uint64_t copies;
    uint64_t bytes;
    uint64_t busy_ns;
    uint64_t link_free_ns; /* when the link has nothing more to carry */
} tn__sim_pair;

struct tn_sim {
    /* Immutable. */
    tn__sim_machine machine;
    uint64_t serial; /* unique in the process, never 0 */
    uint64_t origin_ns;
    tn_driver *driver;

    tn__mutex lock;
    tn__cond
        changed; /* something completed, time moved, a mode changed: whoever waits looks again */

    /* Everything below is guarded by `lock`. */
    uint64_t now_ns; /* virtual */
    uint64_t op_number;
    uint64_t stream_id;
    uint64_t generation;
    bool stepping; /* S1 */
    bool dying;
    uint32_t waits;
    uint32_t state;
    uint32_t host_calls;
    void (*on_copy)(void *context, void *destination, uint64_t bytes);
    void *on_copy_context;

    tn__sim_slots streams;
    tn__sim_slots events;
    tn__sim_stream *active; /* S3 */
    tn__sim_stream *zombies;
    uint64_t live_streams;  /* of the driver */
    tn__sim_stream *legacy; /* TN_STREAM_LEGACY: of device 0; made when it is first named */

    tn__sim_node *live; /* ranges by address */
    tn__sim_arena pinned;
    tn__sim_arena *arenas; /* one per device */
    tn__sim_pair *pairs;   /* (devices + 2) squared: pageable, pinned, devices */

    tn__sim_armed *armed;
    uint64_t fault_hits;
    uint64_t fault_clears; /* ends endless stalls */
    uint64_t calls[TN_SIM_ENTRY_COUNT];
    tn__sim_thread *threads;
    uint64_t stalled;     /* calls in tn__sim_pass() */
    uint64_t stale_calls; /* named something destroyed */
    uint64_t random;      /* state of the draws among equals */
    uint64_t violations;
    char violation_text[256];

    struct tn__sim_file *files; /* by name */
    tn__sim_slots descriptors;
    uint64_t disk_free_ns; /* when the disk has nothing more to do */
    tn_sim_disk disk;
};

/* sim.c. */

/* Zeroed memory of the simulator (S5); NULL: none. */
TN_NODISCARD void *tn__sim_alloc(size_t count, size_t bytes);
void tn__sim_free(void *block);
/* Tests: the n-th allocation of the simulator from now fails once (0: none). */
void tn__sim_fault_alloc(uint64_t nth);
uint64_t tn__sim_now(tn_sim *sim);
/* TN_ERR_KIND for a machine that is NULL. */
TN__COLD tn_status tn__sim_null(void);
/* Count a violation; the first is kept in words. */
TN__COLD void tn__sim_violation(tn_sim *sim, const char *format, ...) TN__PRINTF(2, 3);

/* sim_enter.c. */

/* Begin a call of the table: lock, count, host function check, what is due, state, faults. The lock
 * is held on return, whatever is returned. `a`, `b`: devices concerned, or TN_SIM_ANY_DEVICE. */
TN_NODISCARD tn_status tn__sim_enter(tn_sim *sim, uint32_t entry, uint32_t a, uint32_t b);
/* End it: unlock, pass the status through. */
tn_status tn__sim_leave(tn_sim *sim, tn_status status);
/* The same with the lock held; the call counts at `stream`, too (NULL: none). */
TN_NODISCARD tn_status tn__sim_enter_locked(tn_sim *sim, uint32_t entry, uint32_t a, uint32_t b,
                                            tn__sim_stream *stream);
/* What the armed faults have for a call: true: `out` is it. Without its stall. */
bool tn__sim_strike(tn_sim *sim, uint32_t entry, uint32_t a, uint32_t b, uint32_t flags,
                    tn_sim_fault *out);
/* Remember the native code of a failure; returns `status`. */
tn_status tn__sim_code(tn_sim *sim, tn_status status, int64_t code);
int64_t tn__sim_last_code(tn_sim *sim);
/* Whether this thread is inside a host function or hook of the machine. */
bool tn__sim_inside(const tn_sim *sim);
/* Run a function of the program without the lock. */
void tn__sim_call_out(tn_sim *sim, void (*function)(void *argument), void *argument);

/* sim_count.c. */

/* Count a call; `stream` NULL: it names none. */
void tn__sim_count(tn_sim *sim, uint32_t entry, tn__sim_stream *stream);
void tn__sim_threads_fini(tn_sim *sim);

/* sim_context.c. */

/* Wait until nobody holds a lock of a context that a call of this entry needs. */
void tn__sim_context_wait(tn_sim *sim, uint32_t entry, uint32_t device);
/* tn__sim_pass() with the lock of a device's context; TN_SIM_ANY_DEVICE: of all. */
void tn__sim_context_pass(tn_sim *sim, uint32_t device, uint64_t ns);
/* The cost of pinned memory, under every context's lock. TN_ERR_CLOSED: gone meanwhile. */
TN_NODISCARD tn_status tn__sim_pin_cost(tn_sim *sim);
/* What may still be allocated at a location. */
uint64_t tn__sim_room_at(tn_sim *sim, tn_location at);
/* What a device has for its pool: its memory, less the host's share of it. */
uint64_t tn__sim_device_room(tn_sim *sim, uint32_t device);
/* What is pinned now displaces what pools hold in vain. */
void tn__sim_displace_pools(tn_sim *sim);
void tn__sim_pool_trim(tn_sim *sim, uint32_t device, uint64_t keep_bytes);
/* Some device can pin, or there is none to ask. */
bool tn__sim_can_pin(const tn_sim *sim);

/* sim_memory.c. */

void tn__sim_memory_init(tn_sim *sim);
void tn__sim_memory_fini(tn_sim *sim);
TN_NODISCARD tn_status tn__sim_block_alloc(tn_sim *sim, tn_location at, uint64_t bytes, void **out);
TN_NODISCARD tn_status tn__sim_block_free(tn_sim *sim, tn_location at, void *pointer,
                                          uint64_t bytes);
tn__sim_arena *tn__sim_arena_at(tn_sim *sim, tn_location at);
void tn__sim_range_drop(tn__sim_range *range);
/* The live range that holds an address, or NULL. Not referenced. */
tn__sim_range *tn__sim_range_find(tn_sim *sim, const void *pointer);
/* The range under [pointer, pointer + bytes) for an operation at `at`, referenced; NULL for memory
 * of the program. Failures are TN_ERR_DRIVER; freed memory is a violation, too. */
TN_NODISCARD tn_status tn__sim_range_take(tn_sim *sim, tn_location at, const void *pointer,
                                          uint64_t bytes, tn__sim_range **out);

/* sim_slots.c. */

void tn__sim_slots_fini(tn__sim_slots *slots);
/* False: no memory. */
bool tn__sim_slot_take(tn__sim_slots *slots, void *object, uint32_t *out_index);
void tn__sim_slot_drop(tn__sim_slots *slots, uint32_t index);
/* Handles of one machine and kind; another machine's are no handles. */
void *tn__sim_handle(const tn_sim *sim, bool event, uint32_t index);
/* The object; NULL: none. *out_dead: it was one once. */
void *tn__sim_object(tn_sim *sim, bool event, const void *handle, uint32_t *out_index,
                     bool *out_dead);

/* sim_streams.c. */

/* A stream without handle; one reference, the caller's. NULL: no memory or no thread (*out_status).
 */
tn__sim_stream *tn__sim_stream_new(tn_sim *sim, uint32_t device, uint32_t flags,
                                   tn_status *out_status);
void tn__sim_stream_drop(tn__sim_stream *stream);
/* A stream with a handle. */
TN_NODISCARD tn_status tn__sim_stream_open(tn_sim *sim, uint32_t device, uint32_t flags,
                                           bool of_driver, tn_stream *out);
TN_NODISCARD tn_status tn__sim_stream_close(tn_sim *sim, tn_stream stream, bool of_driver);
/* The stream of a handle; NULL: a call naming a dead one is a violation. `what` names the call. */
tn__sim_stream *tn__sim_stream_find(tn_sim *sim, tn_stream stream, const char *what);
/* The same without counting anything. */
tn__sim_stream *tn__sim_stream_peek(tn_sim *sim, tn_stream stream);
/* Its device, without counting anything; TN_SIM_ANY_DEVICE: none. */
uint32_t tn__sim_stream_device(tn_sim *sim, tn_stream stream);
uint64_t tn__sim_context(uint32_t device, bool second);
/* Append an operation, which is consumed; with a virtual clock what is due runs at once. */
void tn__sim_enqueue(tn_sim *sim, tn__sim_stream *stream, tn__sim_op *op);
tn__sim_op *tn__sim_op_new(enum tn__sim_kind kind);
void tn__sim_op_drop(tn__sim_op *op);
/* The head of a queue is complete at `when`: remove it, tell everybody. */
void tn__sim_complete(tn_sim *sim, tn__sim_stream *stream, uint64_t when);
/* Operations queued by now do nothing when their turn comes. */
void tn__sim_void_queued(tn_sim *sim);
/* Join threads of destroyed streams that have ended. The lock is held, and given up meanwhile.
 * `all`: wait for the rest, too. */
void tn__sim_join(tn_sim *sim, bool all);
void tn__sim_streams_fini(tn_sim *sim);

/* sim_events.c. */

TN_NODISCARD tn_status tn__sim_event_open(tn_sim *sim, uint32_t device, uint64_t context,
                                          tn_event *out);
TN_NODISCARD tn_status tn__sim_event_close(tn_sim *sim, tn_event event);
tn__sim_event *tn__sim_event_find(tn_sim *sim, tn_event event, const char *what);
/* Without counting anything; NULL: none. */
tn__sim_event *tn__sim_event_peek(tn_sim *sim, tn_event event);
TN_NODISCARD tn_status tn__sim_event_record(tn_sim *sim, tn_event event, tn_stream stream);
TN_NODISCARD tn_status tn__sim_event_wait(tn_sim *sim, tn_stream stream, tn_event event);
void tn__sim_mark_drop(tn__sim_mark *mark);
void tn__sim_events_fini(tn_sim *sim);

/* sim_copy.c. */

typedef struct tn__sim_copy {
    void *destination;
    tn_location destination_at;
    const void *source;
    tn_location source_at;
    uint64_t bytes;
} tn__sim_copy;

TN_NODISCARD tn_status tn__sim_copy_queue(tn_sim *sim, const tn__sim_copy *c, tn_stream stream);
/* Complete on return; `device` is an end of it. */
TN_NODISCARD tn_status tn__sim_copy_now(tn_sim *sim, const tn__sim_copy *c, uint32_t device);

/* sim_exec.c. */

/* How long a copy lasts. */
uint64_t tn__sim_copy_ns(const tn__sim_machine *machine, tn_location to, tn_location from,
                         uint64_t bytes);
tn__sim_pair *tn__sim_pair_of(tn_sim *sim, tn_location to, tn_location from);
/* An operation whose turn came at `when`: fix its start and end (a copy queues up for its link). */
void tn__sim_op_schedule(tn_sim *sim, tn__sim_op *op, uint64_t when);
/* It starts: check its ranges; a copy that takes time reads its first half. */
void tn__sim_op_begin(tn_sim *sim, tn__sim_stream *stream, tn__sim_op *op);
/* It ends: check again, do the rest, settle its figures. May give the lock up (S1, S2). */
void tn__sim_op_finish(tn_sim *sim, tn__sim_stream *stream, tn__sim_op *op, uint64_t when);

/* sim_clock.c: virtual time. */

/* Execute the next phase that is due at `limit` or before, moving the clock to it. False: there is
 * none. */
bool tn__sim_step(tn_sim *sim, uint64_t limit, bool host_functions);
/* Execute what is due now, up to host functions; nothing if another thread moves time, or with
 * stream threads. */
void tn__sim_run_due(tn_sim *sim);
/* Wait for what is queued so far, or for a record, as the mode says. TN_ERR_CLOSED if the driver
 * has gone meanwhile. `device` TN_SIM_ANY_DEVICE: all of them. */
TN_NODISCARD tn_status tn__sim_wait_stream(tn_sim *sim, tn__sim_stream *stream);
TN_NODISCARD tn_status tn__sim_wait_device(tn_sim *sim, uint32_t device);
TN_NODISCARD tn_status tn__sim_wait_mark(tn_sim *sim, tn__sim_mark *mark);
/* Let `ns` pass (a stall); UINT64_MAX: until the faults are cleared. */
void tn__sim_pass(tn_sim *sim, uint64_t ns);
/* Wait until then, whatever becomes of faults and driver. */
void tn__sim_pass_until(tn_sim *sim, uint64_t until);
/* Whether the driver is in a state in which every call fails ... */
bool tn__sim_is_gone(const tn_sim *sim);
/* ... and if so: sets the code. */
tn_status tn__sim_gone(tn_sim *sim);

/* sim_thread.c: real time. */

/* The body of a stream's thread. */
void tn__sim_stream_main(tn_sim *sim, tn__sim_stream *stream);
/* Execute the head of a queue on this thread, from its turn to its end. False: the machine is
 * dying, it did not run. */
bool tn__sim_execute(tn_sim *sim, tn__sim_stream *stream);

/* sim_disk.c. */

void tn__sim_disk_fini(tn_sim *sim);

/* sim_table.c. */

extern const tn_driver_ops tn__sim_ops;

#endif
