/* SPDX-License-Identifier: MIT */
/*
 * Compares the digests of served requests with the plain replay, on a thread of its own, so that
 * serving does not wait for it.
 *
 * Threads: created and ended by one thread; given requests by any.
 */
#ifndef TENURE_VERIFY_H
#define TENURE_VERIFY_H

#include "program.h"

#include <stdbool.h>

struct verifier;

struct verdict {
    uint64_t compared, equal;
    uint64_t first_wrong; /* the lowest number of a request that differs; only if some does */
};

/** @param programs  borrowed; must outlive the verifier. NULL after an error line. */
struct verifier *verifier_create(struct program *const *programs, size_t program_count,
                                 uint64_t seed, uint64_t tenants);
/** Hands over the digest of a request that is done. */
void verifier_submit(struct verifier *verifier, size_t program, uint64_t tenant, uint64_t number,
                     uint64_t digest);
/** Ends it; `drop_rest`: without the requests that wait. Consumes the verifier. */
struct verdict verifier_finish(struct verifier *verifier, bool drop_rest);

#endif
