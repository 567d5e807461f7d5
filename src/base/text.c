/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>

#include "base/base_internal.h"

bool tn__blank(const char *text) { return text[strspn(text, " \t\n\v\f\r")] == '\0'; }

tn_status tn__check_text(const char *text, const char *what) {
    if (!text)
        return tn__fail(TN_ERR_KIND, "%s is NULL", what);
    if (strnlen(text, 256) > 255)
        return tn__fail(TN_ERR_VALUE, "%s is longer than 255 bytes", what);
    if (tn__blank(text))
        return tn__fail(TN_ERR_VALUE, "%s is blank", what);
    return TN_OK;
}

tn_status tn__location_in(tn_location at, tn_location *out) {
    if (at.kind < TN_LOCATION_PAGEABLE || at.kind > TN_LOCATION_CUDA)
        return tn__fail(TN_ERR_KIND, "kind %u is no location", (unsigned)at.kind);
    if (at.kind != TN_LOCATION_CUDA)
        at.index = 0;
    else if (at.index > TN_CUDA_INDEX_MAX)
        return tn__fail(TN_ERR_VALUE, "CUDA index %u is above %u", (unsigned)at.index,
                        TN_CUDA_INDEX_MAX);
    *out = at;
    return TN_OK;
}

const char *tn__location_text(tn_location at, char *buffer) {
    static const char *const names[] = {"none", "pageable-host", "pinned-host"};
    if (at.kind < 3)
        snprintf(buffer, TN_LOCATION_NAME_MAX, "%s", names[at.kind]);
    else
        snprintf(buffer, TN_LOCATION_NAME_MAX, "cuda:%u", (unsigned)at.index);
    return buffer;
}
