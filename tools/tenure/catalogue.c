/* SPDX-License-Identifier: MIT */
#include "catalogue.h"

#include "base.h"
#include "machine.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* The items of one program, in the order of declaration, tenant by tenant. */
static void add_program(struct catalogue *catalogue, size_t *capacity,
                        const struct program *program, uint64_t tenants) {
    size_t values = program->work->value_count;

    for (uint64_t tenant = 0; tenant <= tenants; tenant++) {
        for (uint32_t value = 0; value < values; value++) {
            struct item *item = NULL;

            if (!program_is_source(program, value) ||
                (tenant == TENANT_SHARED) != program->work->values[value].shared) {
                continue;
            }
            catalogue->items =
                memory_reserve(catalogue->items, capacity, catalogue->item_count + 1, sizeof *item);
            item = &catalogue->items[catalogue->item_count++];
            *item = (struct item){.id = program->work->values[value].id,
                                  .kind = program->work->values[value].kind,
                                  .tenant = tenant,
                                  .bytes = program->value_bytes[value]};
        }
    }
}

/* In the same order as add_program(), when the items no longer move. */
static size_t fill_lookup(struct catalogue *catalogue, size_t next, size_t index,
                          const struct program *program, uint64_t tenants) {
    size_t values = program->work->value_count;
    struct item **lookup = memory_new((size_t)(tenants + 1) * values, sizeof *lookup);

    catalogue->lookup[index] = lookup;
    for (uint64_t tenant = 0; tenant <= tenants; tenant++) {
        for (uint32_t value = 0; value < values; value++) {
            if (program_is_source(program, value) &&
                (tenant == TENANT_SHARED) == program->work->values[value].shared) {
                lookup[tenant * values + value] = &catalogue->items[next++];
            }
        }
    }
    return next;
}

void catalogue_init(struct catalogue *catalogue, struct program *const *programs,
                    size_t program_count, uint64_t tenants) {
    size_t capacity = 0;
    size_t next = 0;

    *catalogue = (struct catalogue){.program_count = program_count};
    catalogue->lookup = memory_new(program_count, sizeof(struct item **));
    for (size_t i = 0; i < program_count; i++) {
        add_program(catalogue, &capacity, programs[i], tenants);
    }
    for (size_t i = 0; i < program_count; i++) {
        next = fill_lookup(catalogue, next, i, programs[i], tenants);
    }
}

void catalogue_fini(struct catalogue *catalogue) {
    for (size_t i = 0; i < catalogue->item_count; i++) {
        free(catalogue->items[i].path);
    }
    for (size_t i = 0; i < catalogue->program_count; i++) {
        free(catalogue->lookup[i]);
    }
    free(catalogue->lookup);
    free(catalogue->items);
    *catalogue = (struct catalogue){0};
}

bool catalogue_make_files(struct catalogue *catalogue, struct cache *cache, uint64_t seed,
                          bool (*stop)(void)) {
    bool shows = isatty(STDERR_FILENO);
    bool good = true;

    for (size_t i = 0; good && i < catalogue->item_count; i++) {
        struct item *item = &catalogue->items[i];
        struct cache_file file = {NULL, 0};
        struct content_name name = {.seed = seed, .tenant = item->tenant, .id = item->id};

        if (stop()) {
            return false;
        }
        good = cache_file_ready(cache, name, item->bytes, &file);
        item->path = file.path;
        item->checksum = item->file_checksum = file.checksum;
        if (shows && cache->made_count > 0) {
            fprintf(stderr, "\r\033[Kmaking files in %s: %zu of %zu", cache->directory, i + 1,
                    catalogue->item_count);
        }
    }
    if (shows && cache->made_count > 0) {
        fprintf(stderr, "\r\033[K");
    }
    return good;
}

static tn_status register_item(struct item *item, tn_manager *manager) {
    tn_value_spec spec = TN_VALUE_SPEC_INIT;
    tn_source source = TN_SOURCE_INIT;

    spec.type = tn_buffer_type();
    spec.logical_bytes = item->bytes;
    spec.storage_bytes = item->bytes;
    spec.replica_mode = TN_REPLICABLE;
    spec.recoverability = TN_RECONSTRUCTIBLE;
    source.kind = TN_SOURCE_FILE;
    source.flags = TN_SOURCE_CHECKSUM;
    source.path = item->path;
    source.offset = CACHE_HEADER_BYTES;
    source.checksum = item->file_checksum;
    return tn_manager_register_source(manager, &spec, &source, tn_location_pageable(),
                                      &item->handle);
}

bool catalogue_register(struct catalogue *catalogue, tn_manager *manager) {
    for (size_t i = 0; i < catalogue->item_count; i++) {
        struct item *item = &catalogue->items[i];
        tn_status status = register_item(item, manager);

        if (status != TN_OK) {
            char *text = status_text(status);

            complain("%s of tenant %" PRIu64 " cannot be registered: %s", item->id, item->tenant,
                     text);
            free(text);
            return false;
        }
    }
    return true;
}

struct item *catalogue_item(const struct catalogue *catalogue, size_t program, uint64_t tenant,
                            const struct program *of, uint32_t value) {
    return catalogue
        ->lookup[program][program_tenant(of, value, tenant) * of->work->value_count + value];
}
