/* SPDX-License-Identifier: MIT */
#include <tenure/version.h>

#include "base/base_internal.h"

const char *tn_status_name(tn_status status) {
    switch ((int)status) {
#define NAME(name, number, text, advice)                                                           \
    case number:                                                                                   \
        return "TN_" #name;
        TN_STATUS_MAP(NAME)
#undef NAME
    default:
        return "TN_UNKNOWN";
    }
}

const char *tn_status_text(tn_status status) {
    switch ((int)status) {
#define TEXT(name, number, text, advice)                                                           \
    case number:                                                                                   \
        return text;
        TN_STATUS_MAP(TEXT)
#undef TEXT
    default:
        return "unknown status";
    }
}

const char *tn_status_advice(tn_status status) {
    switch ((int)status) {
#define ADVICE(name, number, text, advice)                                                         \
    case number:                                                                                   \
        return advice;
        TN_STATUS_MAP(ADVICE)
#undef ADVICE
    default:
        return "report it to us";
    }
}

uint32_t tn_api_version(void) { return TN_API_VERSION; }
