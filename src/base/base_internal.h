/* SPDX-License-Identifier: MIT */
/*
 * base: no Tenure concepts here. What every other module may call: errors of a thread, host
 * memory with numbered failures, clock, assertions, test points, sizes of public structs. Locks
 * are in lockrank.h, RCU in rcu.h, the thread's own block in thread.h, atomics in atomic.h.
 *
 * Every function may be called from any thread. None takes a lock.
 */
#ifndef TENURE_BASE_INTERNAL_H
#define TENURE_BASE_INTERNAL_H

#include <stdarg.h>

#include <tenure/error.h>
#include <tenure/types.h>

#ifndef TN_CHECKS
#define TN_CHECKS 0
#endif

#if defined(__GNUC__)
#define TN__COLD __attribute__((cold, noinline))
#define TN__PRINTF(f, a) __attribute__((format(printf, f, a)))
#define tn__likely(x) __builtin_expect(!!(x), 1)
#define tn__unlikely(x) __builtin_expect(!!(x), 0)
#endif

#if defined(__SANITIZE_THREAD__)
#define TN__TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define TN__TSAN 1
#endif
#endif
#ifndef TN__TSAN
#define TN__TSAN 0
#endif

/* ---- Assertions: for our own invariants only -------------------------------------------- */

TN__COLD void tn__assert_failed(const char *what, const char *file, int line)
    __attribute__((noreturn));
#if TN_CHECKS
#define TN_ASSERT(x) ((x) ? (void)0 : tn__assert_failed(#x, __FILE__, __LINE__))
#else
#define TN_ASSERT(x) ((void)sizeof(!(x)))
#endif

/* ---- Errors ----------------------------------------------------------------------------- */

/* Start the thread's error afresh and return it, to be filled further; never NULL. */
TN__COLD tn_error *tn__error(tn_status status, const char *format, ...) TN__PRINTF(2, 3);
/* The same for callers that fill nothing further: returns `status`. */
TN__COLD tn_status tn__fail(tn_status status, const char *format, ...) TN__PRINTF(2, 3);
/* The thread's error as it is, e.g. to keep it over a clean-up that may fail. */
tn_error *tn__error_current(void);
/* Make an error the thread's own again (another thread's load failed, or a clean-up overwrote
 * it). Returns its status. */
tn_status tn__error_restore(const tn_error *error);

/* ---- Sizes of public structs ------------------------------------------------------------ */

/* Copy a versioned struct in: the first member of `from` is its size_t size. Missing members
 * become 0, unknown non-zero ones are TN_ERR_KIND, as are NULL and a size below `least`. `to` has
 * `ours` bytes; its size member becomes `ours`. */
TN_NODISCARD tn_status tn__struct_in(void *to, size_t ours, size_t least, const void *from,
                                     const char *name);
/* Check an output struct before work is done: NULL or size < least is TN_ERR_KIND. */
TN_NODISCARD tn_status tn__struct_check_out(const void *out, size_t least, const char *name);
/* Copy a versioned struct out: min(its size, ours) bytes, keeping its own size member; what is
 * beyond ours becomes 0. */
void tn__struct_out(void *out, const void *from, size_t ours);
/* An array of them, `count` elements of `ours` bytes: as many as fit into the caller's room, whose
 * first element has its size; the real total in *inout_count. TN_ERR_KIND. */
TN_NODISCARD tn_status tn__structs_out(void *out, size_t *inout_count, const void *from,
                                       size_t ours, size_t count, const char *name);

/* ---- Host memory ------------------------------------------------------------------------ */

/* Blocks of the library's own records. Each allocation is a numbered failure point. */
TN_NODISCARD void *tn__alloc(size_t bytes);  /* undefined contents; NULL: failed, no error set */
TN_NODISCARD void *tn__zalloc(size_t bytes); /* zeroed */
/* zeroed, aligned to a cache line; tn__free() too */
TN_NODISCARD void *tn__zalloc_line(size_t bytes);
void tn__free(void *block); /* NULL is ignored */
/* Payloads in pageable memory, aligned to 64; same failure points. From jemalloc where the process
 * has it, else from the C library. Freed with the bytes asked for. */
TN_NODISCARD void *tn__host_alloc(uint64_t bytes);
void tn__host_free(void *block, uint64_t bytes);
/* Room for one more element of an array made here: *room doubles. `array` is the address of the
 * pointer. False: no memory, nothing changed. */
TN_NODISCARD bool tn__grow(void *array, size_t *room, size_t count, size_t size);
/* TN_ERR_HOST_MEMORY with its message. */
TN__COLD tn_status tn__no_memory(void);

/* Test hooks. The n-th allocation from now fails once (0: none). Live blocks, payloads included. */
void tn__fault_alloc(uint64_t nth);
bool tn__fault_alloc_fired(void);
uint64_t tn__alloc_live(void);
/* For other allocators of base: whether this allocation is the one to fail; count a block that may
 * be NULL, which is returned; count its end. */
bool tn__fault_alloc_due(void);
void *tn__alloc_counted(void *block);
void tn__alloc_uncounted(void);

/* ---- Clock ------------------------------------------------------------------------------ */

uint64_t tn__unix_ns(void); /* wall clock */
uint64_t tn__mono_ns(void); /* monotonic, never 0 */
/* A cheap clock of no known unit, the same on all processors but for skew; never 0. */
static inline uint64_t tn__ticks(void) {
#if defined(TN_SCHEDULE) && TN_SCHEDULE
    return tn__mono_ns(); /* the schedule's own time */
#elif defined(__x86_64__)
    return __builtin_ia32_rdtsc() | 1;
#else
    return tn__mono_ns();
#endif
}

/* ---- Test points ------------------------------------------------------------------------ */

/* Places where a test may stop a thread; compiled out without TN_CHECKS. */
enum tn__point {
    TN__POINT_RECORD_EVENT = 1, /* before each event record of a release */
    TN__POINT_RECORDED,         /* after the last one, before PENDING */
    TN__POINT_TRYING,           /* state words point to the descriptor */
    TN__POINT_TAKEN,            /* decided, before GONE */
    TN__POINT_ADMIT,            /* inside admit, lock held */
    TN__POINT_PERFORM,          /* before perform, no lock */
    TN__POINT_COMMIT,           /* inside commit, lock held */
    TN__POINT_PIN_VERSION,      /* version loaded, reference not taken */
    TN__POINT_GRACE,            /* before a grace period */
    TN__POINT_PINS_STORED,      /* reader: pins stored, state words not loaded */
    TN__POINT_ACQUIRED,         /* reader: decided, before ACTIVE */
    TN__POINT_SEEN              /* scan: a record's fields read, its word not again */
};
#if TN_CHECKS
extern void (*_Atomic tn__point_hook)(enum tn__point point, void *object);
void tn__point_hit(enum tn__point point, void *object);
#define TN__AT(point, object) tn__point_hit((point), (object))
#else
#define TN__AT(point, object) ((void)(object))
#endif

/* ---- Waiting for another thread's finite step ------------------------------------------ */

/* Yields at first, then sleeps: a waiter of high priority must let the other thread run. */
typedef struct tn__pause {
    unsigned count;
} tn__pause;
void tn__pause_once(tn__pause *pause);

/* ---- Small things ----------------------------------------------------------------------- */

/* a + b, or UINT64_MAX if it overflows. */
static inline uint64_t tn__add_capped(uint64_t a, uint64_t b) {
    uint64_t sum = a + b;
    return sum < a ? UINT64_MAX : sum;
}

/* Empty or only ASCII white space. */
bool tn__blank(const char *text);

/* Check a label or name: NULL TN_ERR_KIND; blank or over 255 bytes TN_ERR_VALUE. */
TN_NODISCARD tn_status tn__check_text(const char *text, const char *what);

/* Format check of a location given to us: kind out of range (or none) TN_ERR_KIND, CUDA index
 * above 127 TN_ERR_VALUE. Host indices become 0 in *out. */
TN_NODISCARD tn_status tn__location_in(tn_location at, tn_location *out);
/* A location that was checked, with host indices 0. */
static inline tn_location tn__location_normal(tn_location at) {
    if (at.kind != TN_LOCATION_CUDA)
        at.index = 0;
    return at;
}
/* The name without a failure path; for messages. `buffer` has TN_LOCATION_NAME_MAX bytes. Returns
 * it. */
const char *tn__location_text(tn_location at, char *buffer);

static inline bool tn__location_same(tn_location a, tn_location b) {
    return a.kind == b.kind && (a.kind != TN_LOCATION_CUDA || a.index == b.index);
}

#endif
