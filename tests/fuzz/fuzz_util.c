/* SPDX-License-Identifier: MIT */
/* What the fuzz targets share. */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

_Noreturn void fuzz_found(const char *what) {
    (void)!write(STDERR_FILENO, "\nfuzz: ", 7);
    dprintf(STDERR_FILENO, "%s\n", what);
    abort();
}

const char *fuzz_file(const uint8_t *data, size_t size) {
    static char path[32];
    static int fd = -1;
    if (fd < 0) {
        fd = memfd_create("fuzz", MFD_CLOEXEC);
        if (fd < 0)
            fuzz_found("no file in memory");
        snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    }
    if (ftruncate(fd, 0) != 0 || (size && pwrite(fd, data, size, 0) != (ssize_t)size))
        fuzz_found("the file in memory cannot be written");
    return path;
}

/* The stream only: sanitizers and libFuzzer write to the descriptor. */
void fuzz_quiet(void) {
    static FILE *nowhere;
    if (nowhere)
        return;
    nowhere = fopen("/dev/null", "w");
    if (!nowhere)
        fuzz_found("no /dev/null");
    stderr = nowhere;
}
