/* SPDX-License-Identifier: MIT */
/*
 * All keys and plaintexts of all tenants and programs: their files, then their handles.
 *
 * Threads: set up and ended by one thread; catalogue_item() from any.
 */
#ifndef TENURE_CATALOGUE_H
#define TENURE_CATALOGUE_H

#include "cache.h"
#include "lru.h"
#include "program.h"

struct catalogue {
    struct item *items;
    size_t item_count;
    struct item ***lookup; /* per program: (tenant, value) -> item, or NULL */
    size_t program_count;
};

/** Lists the items of the programs for tenants 1 .. tenants. */
void catalogue_init(struct catalogue *catalogue, struct program *const *programs,
                    size_t program_count, uint64_t tenants);
void catalogue_fini(struct catalogue *catalogue);

/**
 * Makes every item's file.
 *
 * @param stop  called between files; true ends it early.
 * @return false after an error line, or when `stop` said so.
 */
bool catalogue_make_files(struct catalogue *catalogue, struct cache *cache, uint64_t seed,
                          bool (*stop)(void));

/** Registers every item. Returns false after an error line. */
bool catalogue_register(struct catalogue *catalogue, tn_manager *manager);

/** The item of a key or plaintext as that tenant sees it. */
struct item *catalogue_item(const struct catalogue *catalogue, size_t program, uint64_t tenant,
                            const struct program *of, uint32_t value);

#endif
