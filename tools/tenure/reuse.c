/* SPDX-License-Identifier: MIT */
#include "reuse.h"

#include "base.h"

#include <stdlib.h>

void key_uses_init(struct key_uses *uses, const struct workload *work) {
    uint32_t *number = memory_new(work->value_count, sizeof *number);

    *uses = (struct key_uses){.keys = memory_new(work->ref_count, sizeof *uses->keys),
                              .step_first = memory_new(work->op_count + 1, sizeof *number),
                              .key_bytes = memory_new(work->value_count, sizeof(uint64_t))};
    for (size_t i = 0; i < work->value_count; i++) {
        if (work->values[i].kind == KIND_KEY) {
            uses->key_bytes[uses->key_count] = work->values[i].bytes;
            number[i] = (uint32_t)uses->key_count++;
        }
    }
    for (size_t i = 0; i < work->op_count; i++) {
        const struct workload_refs *reads = &work->ops[i].reads;
        size_t before = uses->use_count;

        for (uint32_t r = 0; r < reads->count; r++) {
            uint32_t value = work->refs[reads->first + r];

            if (work->values[value].kind == KIND_KEY) {
                uses->keys[uses->use_count++] = number[value];
            }
        }
        if (uses->use_count > before) {
            uses->step_first[++uses->step_count] = (uint32_t)uses->use_count;
        }
    }
    free(number);
}

void key_uses_fini(struct key_uses *uses) {
    free(uses->keys);
    free(uses->step_first);
    free(uses->key_bytes);
}

/* A Fenwick tree over points in time: 1 where a point is the latest use of its key so far. */
static void tree_add(int64_t *tree, size_t size, size_t at, int64_t change) {
    for (size_t i = at + 1; i <= size; i += i & (~i + 1)) {
        tree[i] += change;
    }
}

static int64_t tree_sum(const int64_t *tree, size_t before) {
    int64_t sum = 0;

    for (size_t i = before; i > 0; i -= i & (~i + 1)) {
        sum += tree[i];
    }
    return sum;
}

static int compare_u64(const void *left, const void *right) {
    uint64_t a = *(const uint64_t *)left;
    uint64_t b = *(const uint64_t *)right;

    return (a > b) - (a < b);
}

static struct reuse summary(uint64_t *distances, size_t count) {
    struct reuse result = {0};

    if (count > 0) {
        qsort(distances, count, sizeof *distances, compare_u64);
        result.median = count % 2 == 1
                            ? (double)distances[count / 2]
                            : ((double)distances[count / 2 - 1] + (double)distances[count / 2]) / 2;
        result.most = distances[count - 1];
    }
    return result;
}

/* The program twice; the distances of the second time. */
struct reuse reuse_distances(const struct key_uses *uses) {
    size_t size = 2 * uses->use_count;
    int64_t *tree = memory_new(size + 1, sizeof *tree);
    size_t *last = memory_new(uses->key_count, sizeof *last); /* 1 + time; 0: not yet */
    uint64_t *distances = memory_new(uses->use_count, sizeof *distances);
    struct reuse result = {0};

    for (size_t time = 0; time < size; time++) {
        uint32_t key = uses->keys[time % uses->use_count];

        if (time >= uses->use_count) {
            distances[time - uses->use_count] =
                (uint64_t)(tree_sum(tree, time) - tree_sum(tree, last[key]));
        }
        if (last[key] != 0) {
            tree_add(tree, size, last[key] - 1, -1);
        }
        tree_add(tree, size, time, 1);
        last[key] = time + 1;
    }
    result = summary(distances, uses->use_count);
    free(tree);
    free(last);
    free(distances);
    return result;
}
