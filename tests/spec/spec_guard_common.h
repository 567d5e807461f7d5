/* SPDX-License-Identifier: MIT */
/*
 * What the tests of the callback guard share: a manager with an open lifetime of every kind, and
 * one beside it. The callbacks run inside the library, so they must not assert: they record a text.
 */
#ifndef SPEC_GUARD_COMMON_H
#define SPEC_GUARD_COMMON_H

#include "spec_b_common.h"

struct guard {
    struct spec *f;
    tn_manager *m;
    tn_manager *other;
    tn_handle v;       /* resident at P, C0; leased and held at P, leased at C0 */
    tn_handle spare;   /* resident at P and N, free */
    tn_handle loading; /* what the callback under test loads */
    tn_handle beyond;  /* unloaded value of the other manager */
    tn_lease host;
    tn_lease device;
    tn_hold held;
    tn_reservation reservation;
    tn_stream stream;
    tt_source *extra;     /* never registered: to be refused */
    const char *text;     /* what a callback found wrong */
    atomic_bool entered;  /* the callback runs */
    atomic_bool go;       /* the callback may return */
    atomic_bool answered; /* a second thread has its answer */
    uint64_t version;     /* before the ensure under test */
    struct spec_b_thread thread;
};

/** Fill it; `callback` is the hook of the source of `loading`, or NULL. */
void guard_prepare(struct guard *g, struct spec *f,
                   tn_status (*callback)(void *context, const tn_load_request *request));
/** All lifetimes are still open; they can be ended, and nothing is left of them. */
void guard_finish(struct guard *g);
/** A refused release leaves its lifetime active (M192). */
const char *guard_lifetimes_are_open(struct guard *g);
/** A callback that sets `entered` and returns when `go` is set. */
tn_status guard_wait_until_told(void *context, const tn_load_request *request);

#endif
