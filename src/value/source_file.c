/* SPDX-License-Identifier: MIT */
/*
 * Loading from a file: opened at each load, read in few large reads of ascending offset, straight
 * into host memory. On the way to a device the content passes through a ring (source_upload.c).
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "value/source_file.h"

#define READ_BYTES_MAX                                                                             \
    (UINT64_C(64) << 20) /* one read; its bytes are hashed while they are warm \
                                              */
#define PIECES_MAX 128   /* one read; below IOV_MAX */

_Static_assert(sizeof(off_t) == 8, "files are larger than 2 GiB");

/* ---- The real file layer ---------------------------------------------------------------- */

/* O_NONBLOCK: a pipe must not make us wait for its other end; regular files do not know it. */
static int system_open(const char *path) {
    return open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
}

const tn__file_layer tn__file_system = {system_open, fstat, preadv, close};
const tn__file_layer *tn__files = &tn__file_system;

/* ---- One load --------------------------------------------------------------------------- */

static tn_error *fail_at(const tn__file_load *l, tn_error *error) {
    error->handle = l->request->handle;
    error->at = l->request->at;
    return error;
}

static tn_status fail_system(const tn__file_load *l, const char *what, int code) {
    fail_at(l, tn__error(TN_ERR_SOURCE, "cannot %s `%.150s`: %s", what, tn__source_path(l->source),
                         strerror(code)))
        ->native_code = code;
    return TN_ERR_SOURCE;
}

static tn_status fail_short(const tn__file_load *l, uint64_t available) {
    tn_error *error = fail_at(
        l, tn__error(TN_ERR_MATERIALIZATION, "`%.150s` has %llu of %llu bytes from offset %llu",
                     tn__source_path(l->source), (unsigned long long)available,
                     (unsigned long long)l->source->file.bytes,
                     (unsigned long long)l->source->file.offset));
    error->expected = l->source->file.bytes;
    error->actual = available;
    return TN_ERR_MATERIALIZATION;
}

static tn_status open_file(tn__file_load *l) {
    do
        l->descriptor = tn__files->open(tn__source_path(l->source));
    while (l->descriptor < 0 && errno == EINTR);
    return l->descriptor < 0 ? fail_system(l, "open", errno) : TN_OK;
}

static tn_status check_size(const tn__file_load *l) {
    struct stat stat;
    if (tn__files->stat(l->descriptor, &stat) != 0)
        return fail_system(l, "examine", errno);
    if (!S_ISREG(stat.st_mode))
        return fail_system(l, "read", S_ISDIR(stat.st_mode) ? EISDIR : EINVAL);
    uint64_t size = stat.st_size > 0 ? (uint64_t)stat.st_size : 0;
    uint64_t available = size > l->source->file.offset ? size - l->source->file.offset : 0;
    return available < l->source->file.bytes ? fail_short(l, available) : TN_OK;
}

/* The next bytes at the cursor, at most READ_BYTES_MAX, as pieces of one read. */
static int gather(const tn__cursor *at, struct iovec *pieces) {
    int count = 0;
    uint64_t room = READ_BYTES_MAX;
    uint64_t inside = at->inside;
    for (size_t i = at->index; i < at->count && room > 0 && count < PIECES_MAX; ++i, inside = 0) {
        uint64_t bytes = at->extents[i].bytes - inside;
        if (bytes > room)
            bytes = room;
        if (bytes > 0)
            pieces[count++] = (struct iovec){(char *)at->extents[i].data + inside, (size_t)bytes};
        room -= bytes;
    }
    return count;
}

bool tn__cursor_next(tn__cursor *at, uint64_t limit, tn_segment *out) {
    while (at->index < at->count && at->inside == at->extents[at->index].bytes) {
        at->index++;
        at->inside = 0;
    }
    if (at->index == at->count || limit == 0)
        return false;
    uint64_t bytes = at->extents[at->index].bytes - at->inside;
    *out = (tn_segment){(char *)at->extents[at->index].data + at->inside,
                        bytes < limit ? bytes : limit};
    at->inside += out->bytes;
    return true;
}

static tn_status hash_bytes(const tn__file_load *l, const tn_segment *piece) {
    if (l->hash && XXH3_64bits_update(l->hash, piece->data, (size_t)piece->bytes) != XXH_OK)
        return tn__fail(TN_ERR_INTERNAL, "the hash failed");
    return TN_OK;
}

/* Move the cursor over `bytes` that were read. */
static tn_status take(tn__file_load *l, tn__cursor *at, uint64_t bytes) {
    tn_segment piece;
    l->done += bytes;
    while (tn__cursor_next(at, bytes, &piece)) {
        tn_status status = hash_bytes(l, &piece);
        if (status != TN_OK)
            return status;
        bytes -= piece.bytes;
    }
    return TN_OK;
}

tn_status tn__file_fill(tn__file_load *l, const tn_segment *extents, size_t count, uint64_t bytes) {
    tn__cursor at = {extents, count, 0, 0};
    struct iovec pieces[PIECES_MAX];
    uint64_t end = l->done + bytes;
    while (l->done < end) {
        int pieces_count = gather(&at, pieces);
        ssize_t got = tn__files->read(l->descriptor, pieces, pieces_count,
                                      (off_t)(l->source->file.offset + l->done));
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return fail_system(l, "read", errno);
        if (got == 0)
            return fail_short(l, l->done); /* it became shorter meanwhile */
        tn_status status = take(l, &at, (uint64_t)got);
        if (status != TN_OK)
            return status;
    }
    return TN_OK;
}

/* ---- Together --------------------------------------------------------------------------- */

static tn_status hash_begin(tn__file_load *l) {
    if (!(l->source->flags & TN_SOURCE_CHECKSUM))
        return TN_OK;
    l->hash = XXH3_createState();
    if (!l->hash || XXH3_64bits_reset(l->hash) != XXH_OK)
        return tn__no_memory();
    return TN_OK;
}

static tn_status hash_check(const tn__file_load *l) {
    if (!l->hash)
        return TN_OK;
    uint64_t actual = XXH3_64bits_digest(l->hash);
    if (actual == l->source->file.checksum)
        return TN_OK;
    fail_at(l, tn__error(TN_ERR_MATERIALIZATION,
                         "`%.120s` is corrupt: its checksum is %016llx, not %016llx",
                         tn__source_path(l->source), (unsigned long long)actual,
                         (unsigned long long)l->source->file.checksum));
    return TN_ERR_MATERIALIZATION;
}

static tn_status fill_buffer(tn__file_load *l, tn_buffer *buffer) {
    size_t count = 0;
    const tn_segment *extents = tn__buffer_extents(buffer, &count);
    tn_status status = hash_begin(l);
    if (status == TN_OK && l->route)
        status = tn__file_upload(l, extents, count);
    else if (status == TN_OK)
        status = tn__file_fill(l, extents, count, l->source->file.bytes);
    if (status == TN_OK)
        status = hash_check(l);
    XXH3_freeState(l->hash);
    return status;
}

static tn_status read_file(tn__file_load *l, tn_buffer **out) {
    tn_buffer *buffer = NULL;
    tn_status status = check_size(l);
    if (status == TN_OK)
        status = tn_buffer_create(l->request->driver, l->route ? l->route->to : l->request->at,
                                  l->source->tail, l->source->file.segment_count, &buffer);
    if (status != TN_OK)
        return status;
    status = fill_buffer(l, buffer);
    if (status != TN_OK) {
        tn__cleanup cleanup = {TN_OK, 0};
        tn_error first = *tn__error_current();
        tn__cleanup_destroy(&cleanup, tn_buffer_payload(buffer));
        return tn__cleanup_finish(&cleanup, &first, status);
    }
    *out = buffer;
    return TN_OK;
}

tn_status tn__source_file_load(const tn__source *source, const tn_load_request *request,
                               const tn__route *route, tn_payload *out) {
    tn__file_load l = {source, request, route, -1, 0, NULL};
    tn_buffer *buffer = NULL;
    tn__assert_may_wait("loading a file");
    tn_status status = open_file(&l);
    if (status != TN_OK)
        return status;
    status = read_file(&l, &buffer);
    (void)tn__files->close(l.descriptor); /* only read from: nothing can be lost */
    if (status == TN_OK)
        *out = tn_buffer_payload(buffer);
    return status;
}
