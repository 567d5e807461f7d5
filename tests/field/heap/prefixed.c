/* SPDX-License-Identifier: MIT */
/*
 * A library with a heap of its own, to be preloaded: jemalloc linked into it, under other names
 * and hidden, so that it is not the process's malloc. It holds blocks from begin to end. With
 * TN_PREFIXED_MIX set it makes the mistake that is looked for: it frees one into the other heap.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void *field_je_malloc(size_t bytes);
void field_je_free(void *block);

enum { BLOCKS = 1000 };

static unsigned char *blocks[BLOCKS];

static size_t bytes_of(int i) { return (size_t)(i % 300) + 1; }

__attribute__((constructor)) static void begin(void) {
    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = field_je_malloc(bytes_of(i));
        if (!blocks[i])
            abort();
        memset(blocks[i], i, bytes_of(i));
    }
    if (getenv("TN_PREFIXED_MIX"))
        free(field_je_malloc(1));
}

__attribute__((destructor)) static void end(void) {
    char line[64];
    const char *path = getenv("TN_COUNT_FILE");
    int file = path ? open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600) : -1;
    int whole = 0;
    for (int i = 0; i < BLOCKS; i++) {
        size_t same = 0;
        while (same < bytes_of(i) && blocks[i][same] == (unsigned char)i)
            same++;
        whole += same == bytes_of(i);
        field_je_free(blocks[i]);
    }
    int apart = dlsym(RTLD_DEFAULT, "malloc") != (void *)field_je_malloc;
    int length = snprintf(line, sizeof line, "prefixed %d apart %d\n", whole, apart);
    if (file >= 0 && write(file, line, (size_t)length) == length)
        (void)close(file);
}
