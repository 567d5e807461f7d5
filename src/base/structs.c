/* SPDX-License-Identifier: MIT */
#include <string.h>

#include "base/base_internal.h"

/* No struct of ours will ever be larger: a size beyond is garbage, and must not be read up to. */
#define SIZE_LIMIT 65536u

static size_t size_member(const void *object) {
    size_t size;
    memcpy(&size, object, sizeof size);
    return size;
}

tn_status tn__struct_in(void *to, size_t ours, size_t least, const void *from, const char *name) {
    if (!from)
        return tn__fail(TN_ERR_KIND, "%s is NULL", name);
    size_t theirs = size_member(from);
    if (theirs < least)
        return tn__fail(TN_ERR_KIND, "%s has the wrong size %zu", name, theirs);
    const unsigned char *bytes = from;
    for (size_t i = ours; i < theirs && theirs <= SIZE_LIMIT; i++)
        if (bytes[i])
            return tn__fail(TN_ERR_KIND, "%s is of a newer interface (size %zu)", name, theirs);
    if (theirs > SIZE_LIMIT)
        return tn__fail(TN_ERR_KIND, "%s has the wrong size %zu", name, theirs);
    memset(to, 0, ours);
    memcpy(to, from, theirs < ours ? theirs : ours);
    memcpy(to, &ours, sizeof ours);
    return TN_OK;
}

tn_status tn__struct_check_out(const void *out, size_t least, const char *name) {
    if (!out)
        return tn__fail(TN_ERR_KIND, "%s is NULL", name);
    if (size_member(out) < least || size_member(out) > SIZE_LIMIT)
        return tn__fail(TN_ERR_KIND, "%s has the wrong size %zu", name, size_member(out));
    return TN_OK;
}

void tn__struct_out(void *out, const void *from, size_t ours) {
    size_t theirs = size_member(out);
    memcpy(out, from, theirs < ours ? theirs : ours);
    if (theirs > ours)
        memset((unsigned char *)out + ours, 0, theirs - ours);
    memcpy(out, &theirs, sizeof theirs);
}

tn_status tn__structs_out(void *out, size_t *inout_count, const void *from, size_t ours,
                          size_t count, const char *name) {
    if (!inout_count)
        return tn__fail(TN_ERR_KIND, "the count is NULL");
    if (*inout_count > 0) {
        tn_status status = tn__struct_check_out(out, sizeof(size_t), name);
        if (status != TN_OK)
            return status;
    }
    size_t stride = *inout_count ? size_member(out) : 0;
    for (size_t i = 0; i < count && i < *inout_count; i++) {
        unsigned char *to = (unsigned char *)out + i * stride;
        memcpy(to, &stride, sizeof stride);
        tn__struct_out(to, (const unsigned char *)from + i * ours, ours);
    }
    *inout_count = count;
    return TN_OK;
}
