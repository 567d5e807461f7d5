/* SPDX-License-Identifier: MIT */
/* src/driver/sim/sim_map.c: against a plain array, on random insertions and removals. */
#include "tn_test.h"

#include <stdbool.h>
#include <stdlib.h>

#include "driver/sim/sim_map.h"

#define SPANS 300

static uint64_t random_state;

static uint64_t next_random(void) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

struct model {
    tn__sim_node nodes[SPANS];
    bool in[SPANS];
    tn__sim_node *root;
};

static tn__sim_node *model_below(struct model *m, uintptr_t address) {
    tn__sim_node *best = NULL;
    int i;

    for (i = 0; i < SPANS; i++)
        if (m->in[i] && m->nodes[i].base <= address)
            if (best == NULL || best->base < m->nodes[i].base)
                best = &m->nodes[i];
    return best;
}

static tn__sim_node *model_first_fit(struct model *m, uint64_t bytes) {
    tn__sim_node *best = NULL;
    int i;

    for (i = 0; i < SPANS; i++)
        if (m->in[i] && m->nodes[i].bytes >= bytes)
            if (best == NULL || best->base > m->nodes[i].base)
                best = &m->nodes[i];
    return best;
}

static void map_empty_finds_nothing(void **state) {
    (void)state;
    assert_null(tn__sim_map_below(NULL, 5));
    assert_null(tn__sim_map_at(NULL, 5));
    assert_null(tn__sim_map_first_fit(NULL, 1));
}

static void map_random_calls_agree_with_a_list(void **state) {
    struct model *m = calloc(1, sizeof(*m));
    int round;
    int i;

    (void)state;
    assert_non_null(m);
    random_state = tn_test_seed() | 1;
    for (i = 0; i < SPANS; i++) {
        m->nodes[i].base = (uintptr_t)(i + 1) * 100;
        m->nodes[i].bytes = next_random() % 100;
    }
    for (round = 0; round < 20000; round++) {
        uintptr_t address = (uintptr_t)(next_random() % (SPANS * 100 + 200));
        uint64_t bytes = 1 + next_random() % 100;

        i = (int)(next_random() % SPANS);
        if (m->in[i])
            tn__sim_map_remove(&m->root, &m->nodes[i]);
        else
            tn__sim_map_insert(&m->root, &m->nodes[i]);
        m->in[i] = !m->in[i];
        assert_ptr_equal(tn__sim_map_below(m->root, address), model_below(m, address));
        assert_ptr_equal(tn__sim_map_first_fit(m->root, bytes), model_first_fit(m, bytes));
        assert_ptr_equal(tn__sim_map_at(m->root, m->nodes[i].base), m->in[i] ? &m->nodes[i] : NULL);
    }
    free(m);
}

static unsigned depth(const tn__sim_node *node) {
    unsigned left;
    unsigned right;

    if (node == NULL)
        return 0;
    left = depth(node->left);
    right = depth(node->right);
    return 1 + (left > right ? left : right);
}

static void map_sorted_insertions_stay_shallow(void **state) {
    const int count = 100000;
    tn__sim_node *nodes = calloc((size_t)count, sizeof(*nodes));
    tn__sim_node *root = NULL;
    int i;

    (void)state;
    assert_non_null(nodes);
    for (i = 0; i < count; i++) {
        nodes[i].base = 0x7f0000000000u + (uintptr_t)i * 256;
        nodes[i].bytes = 256;
        tn__sim_map_insert(&root, &nodes[i]);
    }
    assert_true(depth(root) < 60);
    free(nodes);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(map_empty_finds_nothing),
    cmocka_unit_test(map_random_calls_agree_with_a_list),
    cmocka_unit_test(map_sorted_insertions_stay_shallow),
};

TN_TEST_MAIN("unit.sim_map", tests)
