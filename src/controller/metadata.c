/* SPDX-License-Identifier: MIT */
/*
 * Metadata and access epochs, by value index (C1..C11, C124..C130): chunks of plain records, so
 * that a walk over the candidates of a location, which is in index order, reads them in order.
 */
#include <string.h>

#include "controller/controller_priv.h"

const tn__meta *tn__meta_find(const tn__metas *m, uint64_t index) {
    size_t chunk = (size_t)(index / TN__META_CHUNK);
    return chunk < m->chunk_count && m->chunks[chunk] ? &m->chunks[chunk][index % TN__META_CHUNK]
                                                      : NULL;
}

static bool more_chunks(tn__metas *m, size_t chunk) {
    size_t count = m->chunk_count ? m->chunk_count : 16;
    while (count <= chunk)
        count *= 2;
    tn__meta **chunks = tn__zalloc(count * sizeof(tn__meta *));
    if (!chunks)
        return false;
    if (m->chunk_count)
        memcpy(chunks, m->chunks, m->chunk_count * sizeof(tn__meta *));
    tn__free(m->chunks);
    m->chunks = chunks;
    m->chunk_count = count;
    return true;
}

tn__meta *tn__meta_of(tn__metas *m, uint64_t index) {
    size_t chunk = (size_t)(index / TN__META_CHUNK);
    if (chunk >= m->chunk_count && !more_chunks(m, chunk))
        return NULL;
    if (!m->chunks[chunk])
        m->chunks[chunk] = tn__zalloc(TN__META_CHUNK * sizeof(tn__meta));
    return m->chunks[chunk] ? &m->chunks[chunk][index % TN__META_CHUNK] : NULL;
}

/* ---- Keys ------------------------------------------------------------------------------- */

static size_t hash(const char *key) {
    uint64_t h = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
    for (; *key; key++)
        h = (h ^ (unsigned char)*key) * UINT64_C(0x100000001b3);
    return (size_t)(h ^ h >> 32);
}

/* The entry of a key, or where it would go. */
static uint64_t *entry(const tn__metas *m, const char *key) {
    size_t i = hash(key) & (m->key_room - 1);
    while (m->keys[i] && strcmp(tn__meta_find(m, m->keys[i])->key, key) != 0)
        i = (i + 1) & (m->key_room - 1);
    return &m->keys[i];
}

uint64_t tn__meta_owner(const tn__metas *m, const char *key) {
    return m->key_room ? *entry(m, key) : 0;
}

static bool more_keys(tn__metas *m) {
    tn__metas next = *m;
    next.key_room = m->key_room ? m->key_room * 2 : 64;
    next.keys = tn__zalloc(next.key_room * sizeof *next.keys);
    if (!next.keys)
        return false;
    for (size_t i = 0; i < m->key_room; i++)
        if (m->keys[i])
            *entry(&next, tn__meta_find(m, m->keys[i])->key) = m->keys[i];
    tn__free(m->keys);
    *m = next;
    return true;
}

/* Open addressing: what stands behind the gap moves up. */
static void forget_key(tn__metas *m, tn__meta *meta) {
    size_t gap = (size_t)(entry(m, meta->key) - m->keys);
    m->keys[gap] = 0;
    m->key_count--;
    for (size_t i = (gap + 1) & (m->key_room - 1); m->keys[i]; i = (i + 1) & (m->key_room - 1)) {
        uint64_t index = m->keys[i];
        m->keys[i] = 0;
        *entry(m, tn__meta_find(m, index)->key) = index;
    }
    tn__free(meta->key);
    meta->key = NULL;
}

bool tn__meta_set(tn__metas *m, uint64_t index, int64_t priority, const char *key) {
    tn__meta *meta = tn__meta_of(m, index);
    char *copy = NULL;
    if (!meta)
        return false;
    if (key && meta->key && strcmp(key, meta->key) == 0) {
        meta->priority = priority;
        return true;
    }
    if (key) {
        size_t n = strlen(key) + 1;
        if (m->key_count >= m->key_room / 2 && !more_keys(m))
            return false;
        copy = tn__alloc(n);
        if (!copy)
            return false;
        memcpy(copy, key, n);
    }
    if (meta->key)
        forget_key(m, meta);
    meta->priority = priority;
    meta->key = copy; /* free, so no entry leads here yet */
    if (copy) {
        *entry(m, copy) = index;
        m->key_count++;
    }
    return true;
}

void tn__metas_fini(tn__metas *m) {
    for (size_t c = 0; c < m->chunk_count; c++) {
        for (size_t i = 0; m->chunks[c] && i < TN__META_CHUNK; i++)
            tn__free(m->chunks[c][i].key);
        tn__free(m->chunks[c]);
    }
    tn__free(m->chunks);
    tn__free(m->keys);
}
