/* SPDX-License-Identifier: MIT */
/*
 * Numbers on the command line. Each parser answers false after an error line that names the
 * command and the option.
 *
 * Threads: one at a time.
 */
#ifndef TENURE_OPTIONS_H
#define TENURE_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

/* What an error line names. */
struct option_place {
    const char *command; /* "serve" */
    const char *option;  /* "--tenants" */
};

bool option_u64(struct option_place place, const char *text, uint64_t least, uint64_t most,
                uint64_t *out_value);

/* A fraction of whole numbers, above 0. */
struct scale {
    uint64_t over, under;
};

/** "A/B" or "A". */
bool option_scale(struct option_place place, const char *text, struct scale *out_scale);
/** Bytes times the scale, rounded up to 8, at least 8. Saturates at INT64_MAX rounded down to 8. */
uint64_t scale_bytes(struct scale scale, uint64_t bytes);

/** As option_bytes(), without an error line. */
bool bytes_parse(const char *text, uint64_t *out_bytes);
/** "123", "1.5KiB", "200MiB", "2GiB", "10MB", "25GB": bytes. */
bool option_bytes(struct option_place place, const char *text, uint64_t *out_bytes);
/** "25GBps", "400MBps": bytes a second, at least 1. */
bool option_rate(struct option_place place, const char *text, double *out_bytes_per_s);
/** "2us", "10 ms", "1s", "500ns" or "0": nanoseconds. */
bool option_duration(struct option_place place, const char *text, uint64_t *out_ns);

/* Who places keys and plaintexts. */
enum control_kind { CONTROL_LRU, CONTROL_EXPLICIT };

/** "lru" or "explicit". */
bool option_control(struct option_place place, const char *text, enum control_kind *out_control);

/* A budget: bytes, or a part of something known later. */
struct budget {
    enum { BUDGET_BYTES, BUDGET_PERCENT, BUDGET_UNLIMITED } form;
    uint64_t bytes;
    double percent;
};

/** Bytes as above, "NN%" or "unlimited". */
bool option_budget(struct option_place place, const char *text, struct budget *out_budget);

#endif
