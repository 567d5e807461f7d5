/* SPDX-License-Identifier: MIT */
#include "sim_files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "value/value_priv.h"

static tn_sim *machine;

static int sim_open(const char *path) { return tn_sim_file_open(machine, path, 0); }

static int sim_stat(int descriptor, struct stat *out) {
    uint64_t bytes;

    if (tn_sim_file_stat(machine, descriptor, &bytes) != 0)
        return -1;
    memset(out, 0, sizeof(*out));
    out->st_mode = S_IFREG;
    out->st_size = (off_t)bytes;
    return 0;
}

static void scatter(const struct iovec *pieces, const char *from, size_t bytes) {
    for (; bytes > 0; pieces++) {
        size_t part = pieces->iov_len < bytes ? pieces->iov_len : bytes;

        memcpy(pieces->iov_base, from, part);
        from += part;
        bytes -= part;
    }
}

/* One read of the disk, whatever the number of pieces. */
static ssize_t sim_read(int descriptor, const struct iovec *pieces, int count, off_t offset) {
    size_t total = 0;
    char *block;
    int64_t got;
    int code;

    for (int i = 0; i < count; i++)
        total += pieces[i].iov_len;
    block = malloc(total > 0 ? total : 1);
    if (block == NULL) {
        errno = ENOMEM;
        return -1;
    }
    got = tn_sim_file_read(machine, descriptor, block, total, (uint64_t)offset);
    code = errno;
    if (got > 0)
        scatter(pieces, block, (size_t)got);
    free(block);
    errno = code;
    return (ssize_t)got;
}

static int sim_close(int descriptor) { return tn_sim_file_close(machine, descriptor); }

static const tn__file_layer layer = {sim_open, sim_stat, sim_read, sim_close};

void sim_files_use(tn_sim *sim) {
    machine = sim;
    tn__files = sim != NULL ? &layer : &tn__file_system;
}
