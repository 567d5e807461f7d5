/* SPDX-License-Identifier: MIT */
/*
 * The bytes of a value: xoshiro256** seeded by (seed, tenant, id). A longer value begins with the
 * bytes of a shorter one of the same name.
 *
 * Threads: one at a time per generator.
 */
#ifndef TENURE_CONTENT_H
#define TENURE_CONTENT_H

#include <stdint.h>

/* Tenant 0 is "shared": values that all tenants read. Tenants are numbered from 1. */
enum { TENANT_SHARED = 0 };

struct content_name {
    uint64_t seed, tenant;
    const char *id;
};

struct generator {
    uint64_t state[4];
};

struct generator generator_seeded(uint64_t seed);
/** Fills `bytes` bytes, a multiple of 8. */
void generator_fill(struct generator *generator, void *to, uint64_t bytes);

struct generator content_generator(struct content_name name);
/** One number for the name; tells names apart. */
uint64_t content_hash(struct content_name name);

#endif
