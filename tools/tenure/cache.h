/* SPDX-License-Identifier: MIT */
/*
 * The cache directory: one file per key and plaintext, made once, used by every later run.
 *
 * A file is a header of CACHE_HEADER_BYTES and the content. It is written under another name and
 * renamed when complete, so a file with its right name is whole unless someone damaged it. A header
 * that does not fit, or a wrong length, makes the file again; damaged content is left for the load
 * to find, by the checksum.
 *
 * Threads: one at a time. Several processes may share a directory.
 */
#ifndef TENURE_CACHE_H
#define TENURE_CACHE_H

#include "content.h"

#include <stdbool.h>
#include <stdint.h>

enum { CACHE_HEADER_BYTES = 64 };

struct cache {
    char *directory;
    uint64_t made_count, made_bytes; /* files written by this process */
};

/**
 * Opens (and makes) the directory.
 *
 * @param directory  borrowed; NULL: $XDG_CACHE_HOME/tenure, ~/.cache/tenure, or a directory of
 *                   this user below /tmp, the first that can be written.
 * @return false after an error line.
 */
bool cache_open(struct cache *cache, const char *directory);
void cache_close(struct cache *cache);

/* A file that is ready to be loaded. */
struct cache_file {
    char *path;        /* owned */
    uint64_t checksum; /* XXH3 64 of the content */
};

/** Makes the file if it is not there yet. Returns false after an error line. */
bool cache_file_ready(struct cache *cache, struct content_name name, uint64_t bytes,
                      struct cache_file *out_file);

#endif
