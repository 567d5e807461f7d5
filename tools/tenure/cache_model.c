/* SPDX-License-Identifier: MIT */
/*
 * LRU and the offline optimum over repeated runs. One heap serves both: its top is the next key to
 * evict. LRU orders by the time of the last use, the optimum by the distance of the next one; both
 * prefer, when equal, the key that was loaded first. Entries of the past stay in the heap and are
 * recognised by their stamp.
 */
#include "base.h"
#include "reuse.h"

#include <stdlib.h>

struct entry {
    uint64_t rank;  /* the largest leaves first */
    uint64_t order; /* the smallest leaves first when ranks are equal */
    uint64_t stamp;
    uint32_t key;
};

struct model {
    const struct key_uses *uses;
    uint64_t capacity, held;
    bool best; /* the optimum; else LRU */
    bool *resident;
    uint64_t *order;     /* per key: number of its load */
    uint64_t *stamp;     /* per key: of its valid heap entry */
    uint64_t *pinned_at; /* per key: 1 + the step that is using it */
    uint64_t *next_step; /* per use: the step of the same key's next use, in runs counted on */
    uint64_t loads, stamps;
    struct entry *heap;
    size_t heap_count, heap_capacity;
    struct entry *aside; /* entries of keys in use, taken off the heap for a moment */
    size_t aside_count, aside_capacity;
};

static bool leaves_before(const struct entry *a, const struct entry *b) {
    return a->rank != b->rank ? a->rank > b->rank : a->order < b->order;
}

static void sift_up(struct model *model, size_t at, struct entry entry) {
    while (at > 0 && leaves_before(&entry, &model->heap[(at - 1) / 2])) {
        model->heap[at] = model->heap[(at - 1) / 2];
        at = (at - 1) / 2;
    }
    model->heap[at] = entry;
}

static bool is_valid(const struct model *model, const struct entry *entry) {
    return model->resident[entry->key] && model->stamp[entry->key] == entry->stamp;
}

/* Throws the entries of the past away, so that the heap stays as large as the number of keys. */
static void clean(struct model *model) {
    size_t count = model->heap_count;

    model->heap_count = 0;
    for (size_t i = 0; i < count; i++) {
        if (is_valid(model, &model->heap[i])) {
            sift_up(model, model->heap_count++, model->heap[i]);
        }
    }
}

static void push(struct model *model, struct entry entry) {
    if (model->heap_count > 4 * model->uses->key_count + 64) {
        clean(model);
    }
    model->heap = memory_reserve(model->heap, &model->heap_capacity, model->heap_count + 1,
                                 sizeof *model->heap);
    sift_up(model, model->heap_count++, entry);
}

static struct entry pop(struct model *model) {
    struct entry top = model->heap[0];
    struct entry moved = model->heap[--model->heap_count];
    size_t at = 0;

    for (;;) {
        size_t child = 2 * at + 1;

        if (child >= model->heap_count) {
            break;
        }
        if (child + 1 < model->heap_count &&
            leaves_before(&model->heap[child + 1], &model->heap[child])) {
            child++;
        }
        if (!leaves_before(&model->heap[child], &moved)) {
            break;
        }
        model->heap[at] = model->heap[child];
        at = child;
    }
    model->heap[at] = moved;
    return top;
}

/* Takes the next victim out; false if every resident key is in use by this step. */
static bool evict_one(struct model *model, uint64_t step) {
    bool found = false;

    while (!found && model->heap_count > 0) {
        struct entry top = pop(model);

        if (!is_valid(model, &top)) {
            continue;
        }
        if (model->pinned_at[top.key] == step + 1) {
            model->aside = memory_reserve(model->aside, &model->aside_capacity,
                                          model->aside_count + 1, sizeof *model->aside);
            model->aside[model->aside_count++] = top;
            continue;
        }
        model->resident[top.key] = false;
        model->held -= model->uses->key_bytes[top.key];
        found = true;
    }
    while (model->aside_count > 0) {
        push(model, model->aside[--model->aside_count]);
    }
    return found;
}

static uint64_t add_up_to_max(uint64_t a, uint64_t b) {
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static bool use_key(struct model *model, uint64_t step, uint64_t run, size_t use,
                    struct cache_result *result) {
    uint32_t key = model->uses->keys[use];
    uint64_t bytes = model->uses->key_bytes[key];
    uint64_t base = run * model->uses->step_count;

    if (!model->resident[key]) {
        while (bytes > model->capacity || model->held > model->capacity - bytes) {
            if (!evict_one(model, step)) {
                return false;
            }
        }
        model->resident[key] = true;
        model->held += bytes;
        model->order[key] = ++model->loads;
        result->run_bytes[run] = add_up_to_max(result->run_bytes[run], bytes);
        result->run_keys[run]++;
    }
    model->stamp[key] = ++model->stamps;
    push(model, (struct entry){.rank = model->best ? base + model->next_step[use]
                                                   : UINT64_MAX - model->stamps,
                               .order = model->order[key],
                               .stamp = model->stamps,
                               .key = key});
    return true;
}

static bool run_once(struct model *model, uint64_t run, struct cache_result *result) {
    const struct key_uses *uses = model->uses;

    for (size_t s = 0; s < uses->step_count; s++) {
        uint64_t step = run * uses->step_count + s;

        for (uint32_t use = uses->step_first[s]; use < uses->step_first[s + 1]; use++) {
            model->pinned_at[uses->keys[use]] = step + 1;
        }
        for (uint32_t use = uses->step_first[s]; use < uses->step_first[s + 1]; use++) {
            if (!use_key(model, step, run, use, result)) {
                return false;
            }
        }
    }
    return true;
}

/* From the last use backwards; the program wraps around. */
static void find_next_steps(struct model *model) {
    const struct key_uses *uses = model->uses;
    uint64_t *next = memory_new(uses->key_count, sizeof *next);

    for (size_t s = uses->step_count; s-- > 0;) {
        for (uint32_t use = uses->step_first[s]; use < uses->step_first[s + 1]; use++) {
            next[uses->keys[use]] = uses->step_count + s;
        }
    }
    for (size_t s = uses->step_count; s-- > 0;) {
        for (uint32_t use = uses->step_first[s]; use < uses->step_first[s + 1]; use++) {
            model->next_step[use] = next[uses->keys[use]];
            next[uses->keys[use]] = s;
        }
    }
    free(next);
}

static void replay(const struct key_uses *uses, uint64_t capacity, bool best,
                   struct cache_result *result) {
    struct model model = {.uses = uses, .capacity = capacity, .best = best};
    size_t keys = uses->key_count;

    model.resident = memory_new(keys, sizeof *model.resident);
    model.order = memory_new(keys, sizeof *model.order);
    model.stamp = memory_new(keys, sizeof *model.stamp);
    model.pinned_at = memory_new(keys, sizeof *model.pinned_at);
    model.next_step = memory_new(uses->use_count, sizeof *model.next_step);
    find_next_steps(&model);
    *result = (struct cache_result){.fits = true};
    for (uint64_t run = 0; run < CACHE_RUNS && result->fits; run++) {
        result->fits = run_once(&model, run, result);
    }
    free(model.resident);
    free(model.order);
    free(model.stamp);
    free(model.pinned_at);
    free(model.next_step);
    free(model.heap);
    free(model.aside);
}

void cache_table(const struct key_uses *uses, struct cache_row *rows) {
    static const double fractions[CACHE_ROWS] = {0.50, 0.75, 0.90};
    uint64_t total = 0;

    for (size_t i = 0; i < uses->key_count; i++) {
        total += uses->key_bytes[i];
    }
    for (size_t i = 0; i < CACHE_ROWS; i++) {
        rows[i].fraction = fractions[i];
        rows[i].capacity_bytes = (uint64_t)((double)total * fractions[i]);
        replay(uses, rows[i].capacity_bytes, false, &rows[i].lru);
        replay(uses, rows[i].capacity_bytes, true, &rows[i].best);
    }
}

static uint64_t sum_from(const struct cache_result *result, size_t first) {
    uint64_t sum = 0;

    for (size_t run = first; run < CACHE_RUNS; run++) {
        sum = add_up_to_max(sum, result->run_bytes[run]);
    }
    return sum;
}

uint64_t cache_steady_bytes(const struct cache_result *result) { return sum_from(result, 1); }

uint64_t cache_all_bytes(const struct cache_result *result) { return sum_from(result, 0); }
