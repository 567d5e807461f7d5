/* SPDX-License-Identifier: MIT */
/*
 * Payloads and sources of tests: a family of value types over real memory.
 *
 * A payload is a list of fields. Each field is a view (count elements of `elem` bytes, `stride`
 * elements apart, from `offset`) over a backing allocation; backings are counted, so fields of one
 * payload or of several may share one ("two rows of a batch"). Contents can be filled with a
 * pattern and checked; memory of simulated devices is read by the host.
 *
 *     tn_payload v = tt_v(NULL, tn_location_pageable());             32 bytes, one field of four
 * elements tn_payload w = tt_bytes(driver, tn_location_cuda(0), 4096); tt_field view = TT_VIEW(4,
 * 8, 2, 64);                          4 of 8 elements at stride 2 tn_payload x = tt_make(tt_type(),
 * driver, tn_location_pageable(), &view, 1);
 *
 * A payload that no manager adopted is freed with tt_free(). Unless it returns a status, everything
 * here aborts the program when it runs out of memory or is misused (a payload destroyed twice).
 *
 * Threads: the counters and the injected failures are global and atomic; payloads are as safe as
 * their use.
 */
#ifndef TN_TEST_PAYLOAD_H
#define TN_TEST_PAYLOAD_H

#include <stdatomic.h>

#include <tenure/tenure.h>

/* ---- Types ------------------------------------------------------------------------------------
 */

/** The base type, a type refining it, and an unrelated one; all with the same callbacks. */
const tn_value_type *tt_type(void);
const tn_value_type *tt_subtype(void);
const tn_value_type *tt_other_type(void);

/* ---- Payloads ---------------------------------------------------------------------------------
 */

/** Memory that fields may share. Counted: the maker owns one reference. */
typedef struct tt_backing tt_backing;

/** Allocate `bytes` (0 is allowed) of zeros at a location; `driver` may be NULL for pageable
 * memory. */
tt_backing *tt_backing_make(tn_driver *driver, tn_location at, uint64_t bytes);
/** Give the maker's reference back; fields keep their own. */
void tt_backing_free(tt_backing *backing);
void *tt_backing_base(const tt_backing *backing);

/** One field to be made. Zero members: the defaults named. */
typedef struct tt_field {
    uint64_t count;         /* elements */
    uint64_t elem;          /* bytes of one; 0: 8 */
    uint64_t stride;        /* distance in elements; 0: 1 */
    uint64_t offset;        /* bytes from the start of the backing */
    uint64_t backing_bytes; /* of a fresh backing; 0: what the view needs */
    tt_backing *backing;    /* borrowed, shared; NULL: a fresh one */
    uint32_t share;         /* i + 1: the backing of field i of this payload; 0: none */
    uint32_t reserved0;
    tn_location at;         /* of a fresh backing; kind none: the payload's */
    uint64_t claimed_bytes; /* what measure says of the backing's size (M27); 0: the truth */
} tt_field;

#define TT_DENSE(count_, elem_) ((tt_field){.count = (count_), .elem = (elem_)})
#define TT_VIEW(count_, elem_, stride_, backing_bytes_)                                            \
    ((tt_field){.count = (count_),                                                                 \
                .elem = (elem_),                                                                   \
                .stride = (stride_),                                                               \
                .backing_bytes = (backing_bytes_)})
#define TT_SHARE(count_, elem_, field_index_)                                                      \
    ((tt_field){.count = (count_), .elem = (elem_), .share = (field_index_) + 1u})

/** A payload of `field_count` fields (0 is allowed: unusable). Contents are zero. */
tn_payload tt_make(const tn_value_type *type, tn_driver *driver, tn_location at,
                   const tt_field *fields, size_t field_count);
/** The same; what the driver refuses comes back instead of ending the program. */
TN_NODISCARD tn_status tt_try_make(const tn_value_type *type, tn_driver *driver, tn_location at,
                                   const tt_field *fields, size_t field_count, tn_payload *out);
/** One dense field of `bytes` (elements of 8 bytes, or of 1 if `bytes` is no multiple of 8). */
tn_payload tt_bytes(tn_driver *driver, tn_location at, uint64_t bytes);
/** The `v` of the specification's cases: four 8-byte elements in one field, 32 bytes. */
tn_payload tt_v(tn_driver *driver, tn_location at);
/** Row `row` of a shared backing: one dense field of `bytes` from row * bytes. */
tn_payload tt_row(tt_backing *batch, uint64_t row, uint64_t bytes);
/** Destroy a payload that no manager owns; data NULL is ignored. */
void tt_free(tn_payload payload);

/** Number that belongs to the payload and is copied with it (metadata, M24). 0 at first. */
void tt_set_tag(tn_payload payload, uint64_t tag);
uint64_t tt_tag(const void *data);
/** Fields and their backings, for identity checks. */
size_t tt_field_count(const void *data);
const void *tt_field_base(const void *data, size_t field);
uint64_t tt_field_bytes(const void *data, size_t field); /* of the backing */
/** Everything about a field; `backing` is borrowed, `share` is 0. */
tt_field tt_field_of(const void *data, size_t field);

/** Write the pattern of `seed` into all elements of all fields. */
void tt_fill(tn_payload payload, uint64_t seed);
/** Whether the elements hold the pattern of `seed`, whatever their layout. `data` as a lease
 * returns it. */
bool tt_check(const void *data, uint64_t seed);

/* ---- Counters and failures --------------------------------------------------------------------
 */

typedef struct tt_counts {
    uint64_t live;      /* payloads made or copied and not destroyed */
    uint64_t backings;  /* live backing allocations */
    uint64_t destroyed; /* since the program began, as all below */
    uint64_t copies;    /* calls of `copy` */
    uint64_t measures;  /* calls of `measure` */
} tt_counts;

tt_counts tt_count(void);

/** The n-th call of `copy` or `measure` from now fails once with `status`; nth 0 disarms. */
void tt_fail_copy(uint64_t nth, tn_status status);
void tt_fail_measure(uint64_t nth, tn_status status);
/** The n-th `copy` from now gives a payload that is wrong: one field with one element more. 0
 * disarms. */
void tt_grow_copy(uint64_t nth);

/** Called inside every `copy`, before anything is copied (M197). NULL: none. */
void tt_on_copy(void (*hook)(void *context, const void *data), void *context);
/** Called inside every `measure` and `destroy`, the same way. */
void tt_on_measure(void (*hook)(void *context, const void *data), void *context);
void tt_on_destroy(void (*hook)(void *context, const void *data), void *context);

/** Disarm all failures and hooks. Call it between tests. */
void tt_reset(void);

/* ---- Sources ----------------------------------------------------------------------------------
 */

/**
 * Context of a callback source. All-zero: a fresh payload that fits the request, filled with the
 * pattern of `seed`. A driver that refuses the memory makes the call fail with the driver's status.
 * The members of the first group may be changed between calls.
 */
typedef struct tt_source {
    uint64_t seed;             /* pattern */
    const tn_value_type *type; /* NULL: the spec's */
    tn_location at;            /* kind none: the request's */
    const tt_field *fields;    /* borrowed; NULL: one dense field of the spec's logical bytes */
    size_t field_count;
    bool no_fields;  /* return a payload without fields */
    bool no_payload; /* return TN_OK and {NULL, NULL} */
    tn_payload give; /* data not NULL: return this very payload, once */

    uint64_t fail_from;  /* the calls fail_from .. fail_from + fail_count - 1 fail; 1 is the first;
                            0: none */
    uint64_t fail_count; /* 0: 1 */
    tn_status fail_status; /* 0: TN_ERR_SOURCE */
    int64_t fail_code;
    const char *fail_message; /* borrowed, NULL: none */

    /* Runs inside the callback, before the payload is made; not TN_OK makes the call fail with it.
     */
    tn_status (*hook)(void *context, const tn_load_request *request);
    void *hook_context;

    _Atomic uint64_t calls;
    _Atomic uint64_t forgotten;
    tn_load_request last; /* what the last call was asked for */
} tt_source;

/** The source to register; `context` must live until it is forgotten. */
tn_source tt_source_of(tt_source *context);

/** A spec of type tt_type(): replicable, reconstructible. */
tn_value_spec tt_spec(uint64_t logical_bytes, uint64_t storage_bytes);

#endif
