/* SPDX-License-Identifier: MIT */
/*
 * The fuzz targets as ordinary tests: the corpus, then random mutations of it. No coverage guides
 * them; for that build with TN_FUZZ (tests/README.md).
 *
 *   TN_FUZZ_SECONDS  how long mutations are tried (default 1)
 *   TN_SEED          which ones
 *
 * The input that crashes is written to a file of this name in the working directory: crash-<target>.
 */
#include "tn_test.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "fuzz.h"

#ifdef __SANITIZE_ADDRESS__ /* it reports what happened, and ends the process in its own way */
#include <sanitizer/common_interface_defs.h>
#define CATCHES_SIGNALS 0
#else
#define CATCHES_SIGNALS 1
#endif

#define INPUT_MAX 4096u
#define CORPUS_MAX 64

typedef struct input {
    size_t size;
    uint8_t bytes[INPUT_MAX];
} input;

static input corpus[CORPUS_MAX], now;
static size_t corpus_count;
static uint64_t state;

/* ---- The input that crashes ------------------------------------------------------------------ */

static void keep(void) {
    int fd = open("crash-" FUZZ_TARGET, O_WRONLY | O_CREAT | O_TRUNC, 0644);
    if (fd >= 0 && write(fd, now.bytes, now.size) == (ssize_t)now.size)
        dprintf(STDERR_FILENO, "fuzz: the input is in crash-" FUZZ_TARGET "\n");
}

static void catch_signals(void (*handler)(int)) {
    static const int signals[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL};
    for (size_t i = 0; i < (CATCHES_SIGNALS ? sizeof signals / sizeof signals[0] : 1); i++)
        signal(signals[i], handler);
#if !CATCHES_SIGNALS
    __sanitizer_set_death_callback(handler == SIG_DFL ? NULL : keep);
#endif
}

static void crashed(int number) {
    keep();
    signal(number, SIG_DFL);
    raise(number);
}

static bool running;

static void ended(void) {
    if (running) { /* by exit(): a sanitizer, or the program gave up */
        keep();
        dprintf(STDERR_FILENO, "fuzz: the process was ended from inside\n");
        _exit(1);
    }
}

static void run_now(void) {
    running = true;
    (void)LLVMFuzzerTestOneInput(now.bytes, now.size);
    running = false;
}

/* ---- Corpus ---------------------------------------------------------------------------------- */

static int by_name(const struct dirent **a, const struct dirent **b) {
    return strcmp((*a)->d_name, (*b)->d_name);
}

static void read_one(const char *folder, const char *name) {
    char path[1024];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_true(corpus_count < CORPUS_MAX);
    input *to = &corpus[corpus_count++];
    to->size = fread(to->bytes, 1, INPUT_MAX, file);
    fclose(file);
}

static void read_corpus(void) {
    struct dirent **names;
    char folder[512];
    snprintf(folder, sizeof folder, "%s/tests/fuzz/corpus/" FUZZ_TARGET, getenv("TN_SOURCE_DIR"));
    int count = scandir(folder, &names, NULL, by_name);
    assert_true(count > 2);
    for (int i = 0; i < count; i++) {
        if (names[i]->d_name[0] != '.')
            read_one(folder, names[i]->d_name);
        free(names[i]);
    }
    free(names);
}

/* ---- Mutations ------------------------------------------------------------------------------- */

static uint32_t roll(uint32_t sides) {
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)((state >> 33) * sides >> 31);
}

static void insert(size_t at, const void *bytes, size_t count) {
    if (now.size + count > INPUT_MAX)
        return;
    memmove(now.bytes + at + count, now.bytes + at, now.size - at);
    memcpy(now.bytes + at, bytes, count);
    now.size += count;
}

static void erase(size_t at, size_t count) {
    memmove(now.bytes + at, now.bytes + at + count, now.size - at - count);
    now.size -= count;
}

static void lay_over(const input *from) {
    size_t at = roll((uint32_t)now.size + 1), start = roll((uint32_t)from->size + 1);
    size_t count = roll((uint32_t)(from->size - start) + 1);
    if (at + count > INPUT_MAX)
        return;
    memcpy(now.bytes + at, from->bytes + start, count);
    now.size = at + count > now.size ? at + count : now.size;
}

static void mutate(void) {
    static const char *const words[] = {"0",
                                        "-1",
                                        "9223372036854775807",
                                        "18446744073709551616",
                                        "\"",
                                        "{}",
                                        "[]",
                                        "null",
                                        "1e999",
                                        "\xff",
                                        "\n",
                                        "cuda:0",
                                        " ",
                                        ":",
                                        "127"};
    size_t at = roll((uint32_t)now.size + 1), left = now.size - at;
    const char *word = words[roll(sizeof words / sizeof words[0])];
    uint8_t byte = (uint8_t)roll(256);
    switch (roll(7)) {
    case 0:
        if (left)
            now.bytes[at] ^= (uint8_t)(1u << roll(8));
        break;
    case 1:
        if (left)
            now.bytes[at] = byte;
        break;
    case 2:
        insert(at, &byte, 1);
        break;
    case 3:
        insert(at, word, strlen(word));
        break;
    case 4:
        erase(at, roll((uint32_t)(left < 24 ? left : 24) + 1));
        break;
    case 5: /* the same again */
        insert(at, now.bytes + at, roll((uint32_t)(left < 64 ? left : 64) + 1));
        break;
    default:
        lay_over(&corpus[roll((uint32_t)corpus_count)]);
    }
}

/* ---- The test -------------------------------------------------------------------------------- */

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void corpus_and_mutations_find_nothing(void **unused) {
    (void)unused;
    uint64_t runs = 0;
    double until = seconds() + (double)tn_test_env_u64("TN_FUZZ_SECONDS", 1);
    state = tn_test_seed();
    catch_signals(crashed);
    (void)atexit(ended);
    read_corpus();
    for (size_t i = 0; i < corpus_count; i++) {
        now = corpus[i];
        run_now();
    }
    for (; seconds() < until; runs++) {
        now = corpus[roll((uint32_t)corpus_count)];
        for (uint32_t k = 1 + roll(4); k > 0; k--)
            mutate();
        run_now();
    }
    printf("%zu inputs and %llu mutations\n", corpus_count, (unsigned long long)runs);
    catch_signals(SIG_DFL);
    assert_true(runs > 0);
}

static const struct CMUnitTest tests[] = {cmocka_unit_test(corpus_and_mutations_find_nothing)};

TN_TEST_MAIN("fuzz." FUZZ_TARGET, tests)
