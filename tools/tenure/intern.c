/* SPDX-License-Identifier: MIT */
#include "intern.h"

#include "base.h"

#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* Text lives in chunks, so that pointers to it stay valid while more is added. */
struct chunk {
    struct chunk *next;
    size_t used_bytes, size_bytes;
    char text[];
};

struct entry {
    const char *text;
    size_t length;
    uint64_t hash;
};

struct intern {
    struct chunk *chunks;
    struct entry *entries;
    size_t count, capacity;
    uint32_t *slots; /* open addressing; INTERN_NONE is free; at most half full */
    size_t slot_count;
};

enum { CHUNK_BYTES = 1 << 16, FIRST_SLOTS = 256 };

struct intern *intern_create(void) {
    struct intern *all = memory_new(1, sizeof *all);

    all->slot_count = FIRST_SLOTS;
    all->slots = memory_new(FIRST_SLOTS, sizeof *all->slots);
    memset(all->slots, 0xff, FIRST_SLOTS * sizeof *all->slots);
    return all;
}

void intern_destroy(struct intern *all) {
    if (all == NULL) {
        return;
    }
    while (all->chunks != NULL) {
        struct chunk *next = all->chunks->next;

        free(all->chunks);
        all->chunks = next;
    }
    free(all->entries);
    free(all->slots);
    free(all);
}

static const char *keep(struct intern *all, const char *text, size_t length) {
    struct chunk *chunk = all->chunks;
    char *place = NULL;

    if (chunk == NULL || chunk->size_bytes - chunk->used_bytes <= length) {
        size_t size = length < CHUNK_BYTES ? CHUNK_BYTES : length + 1;

        chunk = memory_new(1, sizeof *chunk + size);
        chunk->size_bytes = size;
        chunk->next = all->chunks;
        all->chunks = chunk;
    }
    place = chunk->text + chunk->used_bytes;
    memcpy(place, text, length);
    place[length] = '\0';
    chunk->used_bytes += length + 1;
    return place;
}

/* The slot that holds the string, or the free one where it would go. */
static size_t slot_of(const struct intern *all, const char *text, size_t length, uint64_t hash) {
    size_t mask = all->slot_count - 1;
    size_t slot = (size_t)hash & mask;

    while (all->slots[slot] != INTERN_NONE) {
        const struct entry *entry = &all->entries[all->slots[slot]];

        if (entry->hash == hash && entry->length == length &&
            memcmp(entry->text, text, length) == 0) {
            break;
        }
        slot = (slot + 1) & mask;
    }
    return slot;
}

static void double_slots(struct intern *all) {
    size_t count = all->slot_count * 2;

    free(all->slots);
    all->slots = memory_new(count, sizeof *all->slots);
    memset(all->slots, 0xff, count * sizeof *all->slots);
    all->slot_count = count;
    for (size_t i = 0; i < all->count; i++) {
        const struct entry *entry = &all->entries[i];

        all->slots[slot_of(all, entry->text, entry->length, entry->hash)] = (uint32_t)i;
    }
}

uint32_t intern_add(struct intern *all, const char *text, size_t length) {
    uint64_t hash = XXH3_64bits(text, length);
    size_t slot = slot_of(all, text, length, hash);

    if (all->slots[slot] != INTERN_NONE) {
        return all->slots[slot];
    }
    if ((all->count + 1) * 2 > all->slot_count) {
        double_slots(all);
        slot = slot_of(all, text, length, hash);
    }
    all->entries =
        memory_reserve(all->entries, &all->capacity, all->count + 1, sizeof *all->entries);
    all->entries[all->count] =
        (struct entry){.text = keep(all, text, length), .length = length, .hash = hash};
    all->slots[slot] = (uint32_t)all->count;
    return (uint32_t)all->count++;
}

uint32_t intern_find(const struct intern *all, const char *text, size_t length) {
    return all->slots[slot_of(all, text, length, XXH3_64bits(text, length))];
}

const char *intern_text(const struct intern *all, uint32_t number) {
    return all->entries[number].text;
}
