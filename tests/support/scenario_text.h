/* SPDX-License-Identifier: MIT */
/* Reading and writing the notation of scenario.h; shared by its sources only. */
#ifndef SCENARIO_TEXT_H
#define SCENARIO_TEXT_H

#include "scenario.h"

#define TEXT_MAX 256

/** The next part of *text up to `separator`, without blanks around it; false at the end. NULL is an
 * empty text. */
bool text_part(const char **text, char separator, char out[TEXT_MAX]);
/** How many parts there are. */
size_t text_parts(const char *text, char separator);

typedef struct text_endpoint {
    char name[16];
    tn_location at;
} text_endpoint;

/** `a@P`. */
text_endpoint text_endpoint_of(const char *text);

typedef struct text_bytes {
    tn_location at;
    uint64_t bytes;
} text_bytes;

/** `P=64` or `P:64`, by the sign. */
text_bytes text_bytes_of(const char *text, char sign);

/** The notation of a location: one of a few static buffers. */
const char *text_at(tn_location at);

/** The value's name; `?` for an unknown handle. */
const char *scenario_name(const world *w, tn_handle h);
/** The victims; freed by the caller. */
tn_eviction *scenario_evictions(const tn_decision *d, size_t *count);

#define PEAKS_MAX 16
/** The predicted peaks; how many. */
size_t scenario_peaks(const tn_decision *d, tn_predicted_peak out[PEAKS_MAX]);

/** End the test: this text is not in the notation. */
_Noreturn void text_bad(const char *what, const char *text);

#endif
