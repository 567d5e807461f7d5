/* SPDX-License-Identifier: MIT */
/*
 * What a search remembers: states that are dead ends, and room searches that have nothing (more) to
 * deliver (C94, C95). Looked up by a wide hash, with an exact comparison of the whole key. Memory is
 * taken only after the first dead end or empty room.
 */
#include <stdlib.h>
#include <string.h>

#include "controller/controller_priv.h"

typedef struct entry {
    struct entry *next;
    tn__hash hash;
    size_t count;
    uint64_t key[];
} entry;

struct tn__memory {
    entry **buckets;
    size_t room, count;
};

/* A key being written: which state, then what about it. */
typedef struct text {
    uint64_t *words;
    size_t count, room;
    bool ok;
} text;

static void put(text *t, uint64_t word) {
    t->ok = t->ok && tn__grow(&t->words, &t->room, t->count, sizeof *t->words);
    if (t->ok)
        t->words[t->count++] = word;
}

static int ascending(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* The endpoints that differ from the version, in order. */
static void put_state(text *t, const tn__walk *w) {
    size_t from = t->count;
    for (size_t i = 0; i < w->piece_count; i++) {
        const tn__piece *piece = &w->pieces[i];
        for (unsigned k = 0; k < TN__LOC_WORDS; k++) {
            uint64_t differ = piece->now.bits[k] ^ piece->before.bits[k];
            for (; differ; differ &= differ - 1)
                put(t, piece->value->index * 256 + k * 64 + (unsigned)__builtin_ctzll(differ));
        }
    }
    if (t->ok && t->count > from)
        qsort(t->words + from, t->count - from, sizeof *t->words, ascending);
}

static void put_room(text *t, const tn__room_key *key) {
    size_t from;
    put(t, UINT64_MAX - key->context); /* no endpoint */
    put(t, key->at);
    put(t, key->bytes);
    from = t->count;
    for (size_t i = 0; i < key->chain_count; i++)
        put(t, key->chain[i]);
    if (t->ok && !key->context && t->count > from) /* a set */
        qsort(t->words + from, t->count - from, sizeof *t->words, ascending);
}

static tn__hash hash_of(const text *t) {
    tn__hash h = {t->count, ~t->count};
    for (size_t i = 0; i < t->count; i++) {
        tn__hash word = tn__hash_endpoint(t->words[i] + i, (tn__loc)(i & 0x7f));
        h.a = h.a * UINT64_C(0x9e3779b97f4a7c15) ^ word.a;
        h.b = (h.b ^ word.b) * UINT64_C(0xff51afd7ed558ccd);
    }
    return h;
}

static text text_of(const tn__walk *w, const tn__room_key *key) {
    text t = {.ok = true};
    put_state(&t, w);
    if (key)
        put_room(&t, key);
    return t;
}

static bool knows(tn__walk *w, const tn__room_key *key) {
    const tn__memory *m = w->memory;
    if (!m || m->count == 0)
        return false;
    text t = text_of(w, key);
    tn__hash h = hash_of(&t);
    bool found = false;
    w->no_memory = w->no_memory || !t.ok;
    for (const entry *e = t.ok ? m->buckets[h.a & (m->room - 1)] : NULL; e && !found; e = e->next)
        found = e->hash.a == h.a && e->hash.b == h.b && e->count == t.count &&
                memcmp(e->key, t.words, t.count * sizeof *t.words) == 0;
    tn__free(t.words);
    return found;
}

static bool more_buckets(tn__memory *m) {
    size_t room = m->room ? m->room * 2 : 64;
    entry **buckets = tn__zalloc(room * sizeof(entry *));
    if (!buckets)
        return false;
    for (size_t i = 0; i < m->room; i++)
        for (entry *e = m->buckets[i], *next; e; e = next) {
            next = e->next;
            entry **bucket = &buckets[e->hash.a & (room - 1)];
            e->next = *bucket;
            *bucket = e;
        }
    tn__free(m->buckets);
    m->buckets = buckets;
    m->room = room;
    return true;
}

static bool add(tn__walk *w, const tn__room_key *key) {
    if (!w->memory)
        w->memory = tn__zalloc(sizeof *w->memory);
    tn__memory *m = w->memory;
    if (!m || (m->count >= m->room && !more_buckets(m)))
        return false;
    text t = text_of(w, key);
    entry *e = t.ok ? tn__alloc(sizeof *e + t.count * sizeof e->key[0]) : NULL;
    if (e) {
        e->hash = hash_of(&t);
        e->count = t.count;
        if (t.count)
            memcpy(e->key, t.words, t.count * sizeof *t.words);
        entry **bucket = &m->buckets[e->hash.a & (m->room - 1)];
        e->next = *bucket;
        *bucket = e;
        m->count++;
    }
    tn__free(t.words);
    return e != NULL;
}

bool tn__memory_dead(tn__walk *w) { return knows(w, NULL); }
bool tn__memory_add_dead(tn__walk *w) { return add(w, NULL); }
bool tn__memory_empty(tn__walk *w, const tn__room_key *key) { return knows(w, key); }
bool tn__memory_add_empty(tn__walk *w, const tn__room_key *key) { return add(w, key); }

void tn__memory_free(tn__walk *w) {
    tn__memory *m = w->memory;
    if (!m)
        return;
    for (size_t i = 0; i < m->room; i++)
        for (entry *e = m->buckets[i], *next; e; e = next) {
            next = e->next;
            tn__free(e);
        }
    tn__free(m->buckets);
    tn__free(m);
    w->memory = NULL;
}
