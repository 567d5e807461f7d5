/* SPDX-License-Identifier: MIT */
/* The evaluator's kernels (kernel.h, steps.c), run on the host, thread by thread in any order,
 * against evaluate.c and against plain long division. */
#include "tn_test.h"

#include <stdlib.h>
#include <string.h>

#include "content.h"
#include "evaluate.h"
#include "jump.h"
#include "steps.h"

#define PRIME ((UINT64_C(1) << 61) - 1)

typedef void run_fn(const struct kernel_args *args, uint64_t thread);

#define RUNNER(name)                                                                               \
    static void run_##name(const struct kernel_args *args, uint64_t thread) {                      \
        kernel_do_##name(args, thread);                                                            \
    }
KERNELS(RUNNER)

static run_fn *const runners[] = {
#define RUN(name) run_##name,
    KERNELS(RUN)};

static uint64_t jumps[KERNEL_JUMPS * KERNEL_JUMP_WORDS];

struct machine {
    struct steps steps;
    uint64_t digest;
    uint64_t local[KERNEL_LANES];
    uint64_t partial[KERNEL_CHUNKS * KERNEL_LANES];
    uint64_t launches;
    uint64_t chunks; /* the most of one launch */
    uint64_t refuse; /* this launch fails; 0: none */
};

/* More threads than were asked for, as whole blocks have; the last first. */
static bool launch(void *context, enum kernel kernel, uint64_t threads,
                   const struct kernel_args *args) {
    struct machine *machine = context;
    uint64_t i;

    if (++machine->launches == machine->refuse)
        return false;
    if (args->chunks > machine->chunks)
        machine->chunks = args->chunks;
    for (i = (threads + 127) / 128 * 128; i > 0; i--)
        runners[kernel](args, i - 1);
    return true;
}

static struct machine *machine_new(void) {
    struct machine *machine = calloc(1, sizeof(*machine));

    assert_non_null(machine);
    if (jumps[0] == 0)
        jump_fill(jumps);
    machine->steps = (struct steps){.launch = launch,
                                    .context = machine,
                                    .digest = &machine->digest,
                                    .local = machine->local,
                                    .partial = machine->partial,
                                    .jumps = jumps};
    return machine;
}

static uint64_t below(uint64_t *rng, uint64_t end) { return kernel_split(rng) % end; }

static uint64_t *random_words(uint64_t *rng, uint64_t words) {
    uint64_t *p = malloc(words * 8 + 8);
    uint64_t i;

    assert_non_null(p);
    for (i = 0; i < words; i++)
        p[i] = below(rng, 8) == 0 ? UINT64_MAX - below(rng, 3) : kernel_split(rng);
    return p;
}

/* Small, odd, around a row, around the first chunks, beyond the most chunks. */
static uint64_t random_bytes(uint64_t *rng) {
    static const uint64_t around[] = {0, 8 * KERNEL_LANES, 8 * KERNEL_LANES * KERNEL_ROWS,
                                      8 * KERNEL_LANES * KERNEL_ROWS * 3, 8 * KERNEL_EXPAND * 7};
    uint64_t base = around[below(rng, 5)];
    uint64_t more = 8 * below(rng, 40);

    return below(rng, 2) != 0 || base < more ? base + more : base - more;
}

static void step_is_long_division(void **state) {
    static const uint64_t edges[] = {0,         1,     2,         KERNEL_FACTOR,  PRIME / 2,
                                     PRIME - 1, PRIME, PRIME + 1, UINT64_MAX - 1, UINT64_MAX};
    enum { EDGES = sizeof(edges) / sizeof(edges[0]) };
    uint64_t rng = tn_test_seed();
    int i;

    (void)state;
    for (i = 0; i < 100000; i++) {
        uint64_t a = below(&rng, 4) != 0 ? kernel_split(&rng) % PRIME : edges[below(&rng, 7)];
        uint64_t factor = below(&rng, 4) != 0 ? kernel_split(&rng) % PRIME : edges[below(&rng, 7)];
        uint64_t word = below(&rng, 4) != 0 ? kernel_split(&rng) : edges[below(&rng, EDGES)];
        unsigned __int128 exact = (unsigned __int128)a * factor + word;

        assert_int_equal(kernel_step(a, factor, word), (uint64_t)(exact % PRIME));
    }
}

static void power_is_repeated_multiplication(void **state) {
    unsigned __int128 product = 1;
    uint64_t n;

    (void)state;
    for (n = 0; n < 3000; n++) {
        assert_int_equal(kernel_power(n), (uint64_t)product);
        product = product * KERNEL_FACTOR % PRIME;
    }
}

static void expanded_words_are_the_generators(void **state) {
    static const uint64_t bytes[] = {8,    16,   8 * KERNEL_EXPAND - 8, 8 * KERNEL_EXPAND,
                                     4104, 8008, 8 * KERNEL_EXPAND * 9, 8 * 100003};
    struct machine *machine = machine_new();
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(bytes) / sizeof(bytes[0]); i++) {
        struct generator generator = generator_seeded(kernel_mix(77 + i, 3));
        char *expected = malloc(bytes[i]);
        char *got = malloc(bytes[i] + 8);

        assert_non_null(expected);
        assert_non_null(got);
        memset(got + bytes[i], 0x5a, 8);
        generator_fill(&generator, expected, bytes[i]);
        assert_true(steps_begin(&machine->steps, 77 + i));
        assert_true(steps_write(&machine->steps, 2, got, bytes[i]));
        assert_memory_equal(got, expected, bytes[i]);
        assert_memory_equal(got + bytes[i], "ZZZZZZZZ", 8);
        free(expected);
        free(got);
    }
    free(machine);
}

/* One matrix is as good as its steps, also far beyond what can be stepped: 2^41 words. */
static void jumps_add_up(void **state) {
    uint64_t a[4] = {1, 2, 3, 4};
    uint64_t b[4] = {1, 2, 3, 4};
    struct machine *machine = machine_new();
    int i;

    (void)state;
    for (i = 0; i < 5 * KERNEL_EXPAND; i++)
        (void)kernel_next(a);
    kernel_jump(jumps, b);
    kernel_jump(jumps + 2 * KERNEL_JUMP_WORDS, b);
    assert_memory_equal(a, b, sizeof(a));
    for (i = 2; i < KERNEL_JUMPS; i++) { /* 2^i is twice 2^(i-1) */
        kernel_jump(jumps + i * KERNEL_JUMP_WORDS, a);
        kernel_jump(jumps + (i - 1) * KERNEL_JUMP_WORDS, b);
        kernel_jump(jumps + (i - 1) * KERNEL_JUMP_WORDS, b);
        assert_memory_equal(a, b, sizeof(a));
    }
    free(machine);
}

/* A value so large that there are as many chunks as can be, of several sizes of the last one. */
static void many_chunks_are_one_sum(void **state) {
    uint64_t most = (uint64_t)8 * KERNEL_LANES * KERNEL_ROWS * KERNEL_CHUNKS;
    uint64_t words = most / 8 + 3 * KERNEL_LANES * KERNEL_CHUNKS;
    uint64_t rng = tn_test_seed();
    struct machine *machine = machine_new();
    struct evaluation plain;
    uint64_t *from = random_words(&rng, words);
    uint64_t bytes[] = {most, most + 8, most - 4088, 8 * words - 8 * KERNEL_LANES, 8 * words - 16};
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(bytes) / sizeof(bytes[0]); i++) {
        evaluate_begin(&plain, i, 1, 2);
        assert_true(steps_begin(&machine->steps, plain.digest));
        evaluate_open_op(&plain, 5, false);
        evaluate_read(&plain, from, bytes[i]);
        evaluate_close_op(&plain, true);
        assert_true(steps_open_op(&machine->steps, 5, false));
        assert_true(steps_read(&machine->steps, from, bytes[i]));
        assert_true(steps_close_op(&machine->steps, true));
        assert_int_equal(machine->digest, plain.digest);
    }
    assert_in_range(machine->chunks, KERNEL_CHUNKS / 2, KERNEL_CHUNKS);
    free(from);
    free(machine);
}

/* One operation on both sides; what it writes is the same. */
static void run_op(uint64_t *rng, struct machine *machine, struct evaluation *plain, uint64_t op) {
    uint64_t reads = below(rng, 4);
    uint64_t writes = below(rng, 3);
    bool in_workspace = below(rng, 2) != 0;
    uint64_t i;

    evaluate_open_op(plain, op, in_workspace);
    assert_true(steps_open_op(&machine->steps, op, in_workspace));
    for (i = 0; i < reads; i++) {
        uint64_t bytes = random_bytes(rng) + (below(rng, 4) == 0 ? 5 : 0);
        uint64_t *from = random_words(rng, bytes / 8);

        if (below(rng, 3) == 0) { /* as its sum: E1 */
            struct evaluate_sum *sum = calloc(1, sizeof(*sum));

            assert_non_null(sum);
            evaluate_sum_add(sum, from, bytes);
            evaluate_read_sum(plain, sum);
            free(sum);
        } else {
            evaluate_read(plain, from, bytes);
        }
        assert_true(steps_read(&machine->steps, from, bytes));
        free(from);
    }
    evaluate_close_op(plain, writes > 0);
    assert_true(steps_close_op(&machine->steps, writes > 0));
    for (i = 0; i < writes; i++) {
        uint64_t bytes = random_bytes(rng) + 8;
        char *one = malloc(bytes);
        char *other = malloc(bytes);

        assert_non_null(one);
        assert_non_null(other);
        evaluate_write(plain, i, one, bytes);
        assert_true(steps_write(&machine->steps, i, other, bytes));
        assert_memory_equal(one, other, bytes);
        free(one);
        free(other);
    }
    assert_int_equal(machine->digest, plain->digest);
}

static void requests_have_the_same_digest(void **state) {
    uint64_t rng = tn_test_seed();
    struct machine *machine = machine_new();
    struct evaluation plain;
    int request;

    (void)state;
    for (request = 0; request < 40; request++) {
        uint64_t stages = 1 + below(&rng, 3);
        uint64_t op = 0;

        evaluate_begin(&plain, 1, 2, (uint64_t)request);
        assert_true(steps_begin(&machine->steps, plain.digest));
        for (; stages > 0; stages--) {
            /* None, less than the lanes, or more. */
            uint64_t bytes = below(&rng, 3) == 0 ? 0 : random_bytes(&rng);
            uint64_t *one = random_words(&rng, bytes / 8);
            uint64_t *other = random_words(&rng, bytes / 8);
            uint64_t ops = below(&rng, 5);

            if (bytes > 0) {
                evaluate_open_stage(&plain, one, bytes);
                assert_true(steps_open_stage(&machine->steps, other, bytes));
            }
            for (; ops > 0; ops--)
                run_op(&rng, machine, &plain, op++);
            assert_memory_equal(one, other, bytes);
            if (bytes > 0) {
                evaluate_close_stage(&plain);
                assert_true(steps_close_stage(&machine->steps));
            }
            assert_int_equal(machine->digest, plain.digest);
            free(one);
            free(other);
        }
    }
    free(machine);
}

/* Each call says so when a launch fails, whichever of its launches it is, and goes no further. */
static void failed_launch_is_reported(void **state) {
    struct machine *machine = machine_new();
    uint64_t words[2 * KERNEL_LANES] = {0};
    uint64_t nth;
    bool good = false;

    (void)state;
    for (nth = 1; !good; nth++) {
        machine->launches = 0;
        machine->refuse = nth;
        good = steps_begin(&machine->steps, 1) &&
               steps_open_stage(&machine->steps, words, sizeof(words)) &&
               steps_open_op(&machine->steps, 0, true) &&
               steps_read(&machine->steps, words, sizeof(words)) &&
               steps_close_op(&machine->steps, true) &&
               steps_write(&machine->steps, 0, words, sizeof(words)) &&
               steps_open_op(&machine->steps, 1, false) && steps_close_op(&machine->steps, false) &&
               steps_close_stage(&machine->steps);
        if (!good)
            assert_int_equal(machine->launches, nth);
    }
    assert_int_equal(machine->launches, 13); /* 1 + 1 + 1 + 2 + 1 + 1 + 1 + 1 + 4 */
    free(machine);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(step_is_long_division),
    cmocka_unit_test(power_is_repeated_multiplication),
    cmocka_unit_test(expanded_words_are_the_generators),
    cmocka_unit_test(jumps_add_up),
    cmocka_unit_test(many_chunks_are_one_sum),
    cmocka_unit_test(requests_have_the_same_digest),
    cmocka_unit_test(failed_launch_is_reported),
};

TN_TEST_MAIN("tool.steps", tests)
