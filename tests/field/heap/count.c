/* SPDX-License-Identifier: MIT */
/*
 * A heap to be preloaded: the one beneath it (the C library's, or another one preloaded after it),
 * with a note of each block handed out. A block freed that is not noted is foreign: it is counted,
 * not freed. At exit one line goes to the end of the file that TN_COUNT_FILE names.
 */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TABLE = 1 << 21, EARLY = 1 << 16 };

static struct {
    void *(*malloc)(size_t);
    void *(*calloc)(size_t, size_t);
    void *(*realloc)(void *, size_t);
    void *(*aligned_alloc)(size_t, size_t);
    int (*posix_memalign)(void **, size_t, size_t);
    void (*free)(void *);
} next;

/* All under the lock. Linear probing; an empty place is 0. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static uintptr_t table[TABLE];
static size_t noted, handed_out, foreign;

/* What the search for `next` itself allocates. */
static _Alignas(16) char early[EARLY];
static size_t early_used;
static __thread bool searching;

static bool is_early(const void *block) {
    return (const char *)block >= early && (const char *)block < early + EARLY;
}

static void *early_block(size_t bytes) {
    size_t at = early_used;
    early_used += (bytes + 31) & ~(size_t)15;
    if (early_used > EARLY)
        abort();
    memcpy(early + at, &bytes, sizeof bytes);
    return early + at + 16;
}

static void find(void *function, const char *name) {
    void *found = dlsym(RTLD_NEXT, name);
    if (!found)
        abort();
    memcpy(function, &found, sizeof found);
}

/* True: use `next`. The first call comes while the process has one thread. */
static bool ready(void) {
    if (next.free)
        return true;
    if (searching)
        return false;
    searching = true;
    find(&next.malloc, "malloc");
    find(&next.calloc, "calloc");
    find(&next.realloc, "realloc");
    find(&next.aligned_alloc, "aligned_alloc");
    find(&next.posix_memalign, "posix_memalign");
    find(&next.free, "free");
    searching = false;
    return true;
}

static size_t place(uintptr_t block) {
    return (size_t)((block >> 4) * UINT64_C(0x9e3779b97f4a7c15) >> 43) & (TABLE - 1);
}

static void *note(void *block) {
    if (!block)
        return NULL;
    pthread_mutex_lock(&lock);
    size_t i = place((uintptr_t)block);
    while (table[i] && table[i] != (uintptr_t)block)
        i = (i + 1) & (TABLE - 1);
    if (table[i] || ++noted > TABLE / 2)
        abort(); /* handed out twice, or too many */
    table[i] = (uintptr_t)block;
    handed_out++;
    pthread_mutex_unlock(&lock);
    return block;
}

/* Take entry i out, and move those after it that would no longer be found. */
static void take_out(size_t i) {
    for (size_t j = (i + 1) & (TABLE - 1); table[j]; j = (j + 1) & (TABLE - 1)) {
        size_t home = place(table[j]);
        if (((j - home) & (TABLE - 1)) >= ((j - i) & (TABLE - 1))) {
            table[i] = table[j];
            i = j;
        }
    }
    table[i] = 0;
    noted--;
}

/* Whether we handed it out. */
static bool forget(void *block) {
    pthread_mutex_lock(&lock);
    size_t i = place((uintptr_t)block);
    while (table[i] && table[i] != (uintptr_t)block)
        i = (i + 1) & (TABLE - 1);
    bool ours = table[i] != 0;
    if (ours)
        take_out(i);
    else
        foreign++;
    pthread_mutex_unlock(&lock);
    return ours;
}

void *malloc(size_t bytes) { return ready() ? note(next.malloc(bytes)) : early_block(bytes); }

void *calloc(size_t count, size_t bytes) {
    return ready() ? note(next.calloc(count, bytes)) : early_block(count * bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes) {
    return ready() ? note(next.aligned_alloc(alignment, bytes)) : NULL;
}

void *memalign(size_t alignment, size_t bytes) { return aligned_alloc(alignment, bytes); }

int posix_memalign(void **out, size_t alignment, size_t bytes) {
    if (!ready())
        return ENOMEM;
    int failed = next.posix_memalign(out, alignment, bytes);
    if (!failed)
        (void)note(*out);
    return failed;
}

void free(void *block) {
    if (block && !is_early(block) && ready() && forget(block))
        next.free(block);
}

void *realloc(void *block, size_t bytes) {
    if (!block)
        return malloc(bytes);
    if (is_early(block)) {
        size_t before;
        memcpy(&before, (char *)block - 16, sizeof before);
        void *moved = malloc(bytes);
        return moved ? memcpy(moved, block, before < bytes ? before : bytes) : NULL;
    }
    if (!ready() || !forget(block))
        return NULL;
    void *grown = next.realloc(block, bytes);
    if (!grown && bytes)
        (void)note(block);
    return note(grown);
}

static void before_fork(void) { pthread_mutex_lock(&lock); }
static void after_fork(void) { pthread_mutex_unlock(&lock); }

__attribute__((constructor)) static void begin(void) {
    pthread_atfork(before_fork, after_fork, after_fork);
}

__attribute__((destructor)) static void tell(void) {
    char line[128];
    const char *path = getenv("TN_COUNT_FILE");
    int file = path ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600) : -1;
    pthread_mutex_lock(&lock);
    int length = snprintf(line, sizeof line, "blocks %zu left %zu foreign %zu\n", handed_out, noted,
                          foreign);
    pthread_mutex_unlock(&lock);
    if (file >= 0 && write(file, line, (size_t)length) == length)
        (void)close(file);
}
