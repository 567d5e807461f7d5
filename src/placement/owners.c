/* SPDX-License-Identifier: MIT */
/*
 * Who owns which backing allocation (M64..M66): a hash table from (base, memory unit) to (value,
 * location), open addressing with linear probing and removal by backward shift. All under
 * store->lock.
 *
 * The table is cut into shards that grow one by one, so that the longest time under the lock is
 * that of rehashing one shard (about 16,000 entries at a million), not of all.
 */
#include "placement/placement_priv.h"

#define SHARD_BITS 6u
#define FIRST_ROOM 8u

struct entry {
    const void *base;
    const tn_value_type *type; /* of the owner's handle */
    uint64_t index;            /* of the owner's handle */
    tn_location at;
    uint32_t unit; /* 0: free; 1: host memory; 2 + N: cuda:N */
};

struct shard {
    struct entry *entries;
    uint32_t room; /* a power of two, or 0 */
    uint32_t count;
};

struct tn__owners {
    struct shard shards[1u << SHARD_BITS];
};

tn__owners *tn__owners_create(void) { return tn__zalloc(sizeof(tn__owners)); }

void tn__owners_destroy(tn__owners *owners) {
    if (!owners)
        return;
    for (uint32_t i = 0; i < 1u << SHARD_BITS; i++)
        tn__free(owners->shards[i].entries);
    tn__free(owners);
}

/* ---- One shard -------------------------------------------------------------------------- */

static uint32_t unit_of(tn_location at) { return at.kind == TN_LOCATION_CUDA ? 2 + at.index : 1; }

static uint64_t hash_of(const void *base, uint32_t unit) {
    uint64_t x = (uint64_t)(uintptr_t)base + unit * UINT64_C(0x9E3779B97F4A7C15);
    x = (x ^ (x >> 32)) * UINT64_C(0xD6E8FEB86659FD93);
    x = (x ^ (x >> 32)) * UINT64_C(0xD6E8FEB86659FD93);
    return x ^ (x >> 32);
}

static struct shard *shard_of(tn__owners *o, uint64_t hash) {
    return &o->shards[hash >> (64 - SHARD_BITS)];
}

/* The entry of a key, or the free one where it would go. The shard is not full. */
static uint32_t probe(const struct shard *s, const void *base, uint32_t unit, uint64_t hash) {
    uint32_t i = (uint32_t)hash & (s->room - 1);
    while (s->entries[i].unit != 0 && (s->entries[i].base != base || s->entries[i].unit != unit))
        i = (i + 1) & (s->room - 1);
    return i;
}

static struct entry *find(tn__owners *o, const tn_storage *storage) {
    uint32_t unit = unit_of(storage->at);
    uint64_t hash = hash_of(storage->base, unit);
    struct shard *s = shard_of(o, hash);
    if (storage->bytes == 0 || s->count == 0)
        return NULL;
    struct entry *e = &s->entries[probe(s, storage->base, unit, hash)];
    return e->unit ? e : NULL;
}

/* Make room for one more: at most three quarters are used. */
static bool prepare(struct shard *s) {
    if ((s->count + 1) * 4 <= s->room * 3)
        return true;
    struct shard bigger = {NULL, s->room ? s->room * 2 : FIRST_ROOM, s->count};
    bigger.entries = tn__zalloc(bigger.room * sizeof *bigger.entries);
    if (!bigger.entries)
        return false;
    for (uint32_t i = 0; i < s->room; i++) {
        const struct entry *e = &s->entries[i];
        if (e->unit)
            bigger.entries[probe(&bigger, e->base, e->unit, hash_of(e->base, e->unit))] = *e;
    }
    tn__free(s->entries);
    *s = bigger;
    return true;
}

static bool insert(tn__owners *o, const struct entry *e) {
    uint64_t hash = hash_of(e->base, e->unit);
    struct shard *s = shard_of(o, hash);
    if (!prepare(s))
        return false;
    uint32_t i = probe(s, e->base, e->unit, hash);
    TN_ASSERT(s->entries[i].unit == 0); /* storages of one payload are distinct (V2) */
    s->entries[i] = *e;
    s->count++;
    return true;
}

/* Empty a place and move back what would not be found across the gap. */
static void erase(struct shard *s, uint32_t hole) {
    uint32_t mask = s->room - 1;
    for (uint32_t i = (hole + 1) & mask; s->entries[i].unit; i = (i + 1) & mask) {
        uint32_t home = (uint32_t)hash_of(s->entries[i].base, s->entries[i].unit) & mask;
        if (((i - home) & mask) >= ((i - hole) & mask)) {
            s->entries[hole] = s->entries[i];
            hole = i;
        }
    }
    s->entries[hole] = (struct entry){0};
    s->count--;
}

/* ---- Clashes ---------------------------------------------------------------------------- */

static bool same_owner(const struct entry *a, const struct entry *b) {
    return a->index == b->index && a->type == b->type && tn__location_same(a->at, b->at);
}

/* Whether the owner of storage `last` also owns an earlier one. Only on the way to an error. */
static bool counted_already(tn__owners *o, const tn_storage *storages, size_t last,
                            const struct entry *owner) {
    for (size_t i = 0; i < last; i++) {
        const struct entry *e = find(o, &storages[i]);
        if (e && same_owner(e, owner))
            return true;
    }
    return false;
}

static TN__COLD tn_status clash(tn__store *s, const tn_storage *storages, size_t count,
                                tn_handle handle, tn_location at) {
    tn_error *error = tn__error(TN_ERR_OWNERSHIP, "storage of the payload is owned already");
    error->reason = TN_REASON_STORAGE_SHARED;
    error->manager = s->manager;
    error->handle = handle;
    error->at = at;
    for (size_t i = 0; i < count; i++) {
        const struct entry *e = find(s->owners, &storages[i]);
        if (!e || counted_already(s->owners, storages, i, e))
            continue;
        if (error->owner_count < TN_ERROR_OWNERS_MAX)
            error->owners[error->owner_count] = (tn_owner){{s->manager, e->index, e->type}, e->at};
        error->owner_count++;
    }
    return TN_ERR_OWNERSHIP;
}

/* ---- Interface -------------------------------------------------------------------------- */

tn_status tn__owners_claim(tn__store *s, const tn_storage *storages, size_t count, tn_handle handle,
                           tn_location at) {
    tn__assert_locked(&s->lock);
    for (size_t i = 0; i < count; i++)
        if (find(s->owners, &storages[i]))
            return clash(s, storages, count, handle, at);
    for (size_t i = 0; i < count; i++) {
        struct entry e = {storages[i].base, handle.type, handle.index, at, unit_of(storages[i].at)};
        if (storages[i].bytes == 0 || insert(s->owners, &e))
            continue;
        tn__owners_release(s, storages, i);
        return tn__no_memory();
    }
    return TN_OK;
}

void tn__owners_release(tn__store *s, const tn_storage *storages, size_t count) {
    tn__assert_locked(&s->lock);
    for (size_t i = 0; i < count; i++) {
        struct entry *e = find(s->owners, &storages[i]);
        TN_ASSERT(e != NULL || storages[i].bytes == 0);
        if (!e)
            continue;
        struct shard *shard = shard_of(s->owners, hash_of(e->base, e->unit));
        erase(shard, (uint32_t)(e - shard->entries));
    }
}
