/* SPDX-License-Identifier: MIT */
#include "inject.h"

#include "base.h"

#include <stdlib.h>
#include <string.h>

enum {
    DELAY_NS = 300 * 1000 * 1000, /* in real time, long enough for the drop to come first */
    OCCASION = 3 /* the copy that is damaged: by then the values of an operation are loaded */
};

/* Runs after each copy of the simulated machine, wherever it goes: every copied byte is read later.
 */
static void damage_copy(void *context, void *destination, uint64_t bytes) {
    struct inject *inject = context;
    char *place = destination;

    if (bytes < 16 ||
        atomic_fetch_add_explicit(&inject->occasions, 1, memory_order_relaxed) + 1 != OCCASION) {
        return;
    }
    if (inject->kind == INJECT_FLIP) {
        place[bytes / 3] ^= 0x10;
    } else {
        uint64_t half = bytes / 2;

        /* What was there before, or may have been. */
        memset(place + half, 0, (size_t)(bytes - half));
    }
}

/* Two keys of the same size; their files change places. */
static bool exchange_files(struct catalogue *catalogue) {
    for (size_t i = 0; i + 1 < catalogue->item_count; i++) {
        struct item *a = &catalogue->items[i];
        struct item *b = a + 1;

        if (a->kind == KIND_KEY && b->kind == KIND_KEY && a->bytes == b->bytes &&
            a->checksum != b->checksum) {
            char *path = a->path;
            uint64_t checksum = a->file_checksum;

            a->path = b->path;
            a->file_checksum = b->file_checksum;
            b->path = path;
            b->file_checksum = checksum;
            return true;
        }
    }
    complain("serve: --inject swap: no two keys of the same size");
    return false;
}

bool inject_prepare(struct inject *inject, enum injection kind, const struct machine *machine,
                    struct catalogue *catalogue) {
    inject->kind = kind;
    inject->machine = machine;
    atomic_init(&inject->occasions, 0);
    if (kind == INJECT_FLIP || kind == INJECT_TORN_COPY) {
        tn_sim_on_copy(machine->sim, damage_copy, inject);
    }
    if (kind == INJECT_SWAP) {
        return exchange_files(catalogue);
    }
    return true;
}

void inject_disarm(struct inject *inject) {
    if (inject->machine != NULL && inject->machine->sim != NULL) {
        tn_sim_on_copy(inject->machine->sim, NULL, NULL);
    }
}

bool inject_early_free_now(struct inject *inject) {
    return inject->kind == INJECT_EARLY_FREE &&
           atomic_fetch_add_explicit(&inject->occasions, 1, memory_order_relaxed) == 0;
}

bool inject_has_failed(const struct inject *inject) {
    unsigned occasions = atomic_load_explicit(&inject->occasions, memory_order_relaxed);

    switch (inject->kind) {
    case INJECT_FLIP:
    case INJECT_TORN_COPY:
        return occasions < OCCASION;
    case INJECT_EARLY_FREE:
        return occasions < 1;
    default:
        return false;
    }
}

tn_status early_read_begin(struct early_read *read, const struct machine *machine, const void *from,
                           uint64_t bytes) {
    tn_status status = TN_OK;

    *read = (struct early_read){.count = bytes};
    read->bytes = memory_new((size_t)bytes, 1);
    status = tn_sim_stream_create(machine->sim, machine->at.index, 0, &read->stream);
    if (status == TN_OK) {
        status = tn_sim_queue_delay(machine->sim, read->stream, DELAY_NS);
    }
    if (status == TN_OK) {
        status = machine->ops->copy(machine->self, read->bytes, tn_location_pageable(), from,
                                    machine->at, bytes, read->stream);
    }
    return status;
}

tn_status early_read_wait(struct early_read *read, const struct machine *machine) {
    return machine->ops->stream_synchronize(machine->self, read->stream);
}

void early_read_end(struct early_read *read, const struct machine *machine) {
    if (read->stream != NULL) {
        tn_status status = tn_sim_stream_destroy(machine->sim, read->stream);

        (void)status; /* the run is about to end with what it found */
    }
    free(read->bytes);
    *read = (struct early_read){0};
}
