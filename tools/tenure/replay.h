/* SPDX-License-Identifier: MIT */
/*
 * The plain replay: the same program, computed by one thread in ordinary memory, without any
 * residency limit and without the library. Its digests are what a served request must reach.
 *
 * Keys and plaintexts come from the generator, not from files, and enter as their sums (E1), so
 * they are read once however many requests are replayed.
 *
 * Threads: one at a time.
 */
#ifndef TENURE_REPLAY_H
#define TENURE_REPLAY_H

#include "program.h"

struct replay;

/** @param program  borrowed; must outlive the replay. Tenants are numbered 1 .. tenants. */
struct replay *replay_create(const struct program *program, uint64_t seed, uint64_t tenants);
void replay_destroy(struct replay *replay);

/** The digest of one request. */
uint64_t replay_request(struct replay *replay, uint64_t tenant, uint64_t request);

#endif
