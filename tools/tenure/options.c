/* SPDX-License-Identifier: MIT */
#include "options.h"

#include "base.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool refuse(struct option_place place, const char *text, const char *wanted) {
    complain("%s: %s: \"%s\" is not %s", place.command, place.option, text, wanted);
    return false;
}

bool option_control(struct option_place place, const char *text, enum control_kind *out_control) {
    *out_control = strcmp(text, "lru") == 0 ? CONTROL_LRU : CONTROL_EXPLICIT;
    return *out_control == CONTROL_LRU || strcmp(text, "explicit") == 0 ||
           refuse(place, text, "lru or explicit");
}

/* Decimal digits only. Returns what follows them, or NULL. */
static const char *whole(const char *text, uint64_t *out_value) {
    char *end = NULL;
    unsigned long long value = 0;

    if (*text < '0' || *text > '9') {
        return NULL;
    }
    errno = 0;
    value = strtoull(text, &end, 10);
    if (errno != 0) {
        return NULL;
    }
    *out_value = value;
    return end;
}

bool option_u64(struct option_place place, const char *text, uint64_t least, uint64_t most,
                uint64_t *out_value) {
    uint64_t value = 0;
    const char *end = whole(text, &value);

    if (end == NULL || *end != '\0' || value < least || value > most) {
        complain("%s: %s: \"%s\" is not a whole number from %" PRIu64 " to %" PRIu64, place.command,
                 place.option, text, least, most);
        return false;
    }
    *out_value = value;
    return true;
}

bool option_scale(struct option_place place, const char *text, struct scale *out_scale) {
    struct scale scale = {.over = 0, .under = 1};
    const char *end = whole(text, &scale.over);

    if (end != NULL && *end == '/') {
        end = whole(end + 1, &scale.under);
    }
    if (end == NULL || *end != '\0' || scale.over == 0 || scale.under == 0 ||
        scale.over > UINT32_MAX || scale.under > UINT32_MAX) {
        return refuse(place, text, "a scale such as 1/64 or 1");
    }
    *out_scale = scale;
    return true;
}

uint64_t scale_bytes(struct scale scale, uint64_t bytes) {
    unsigned __int128 scaled = (unsigned __int128)bytes * scale.over;
    const uint64_t most = INT64_MAX & ~(uint64_t)7;

    scaled = (scaled + scale.under - 1) / scale.under;
    scaled = (scaled + 7) & ~(unsigned __int128)7;
    if (scaled < 8) {
        return 8;
    }
    return scaled > most ? most : (uint64_t)scaled;
}

struct unit {
    const char *name;
    double factor;
};

static const struct unit byte_units[] = {
    {"", 1},       {"B", 1},    {"KiB", 1024.0}, {"MiB", MIB},          {"GiB", GIB},
    {"K", 1024.0}, {"M", MIB},  {"G", GIB},      {"TiB", 1024.0 * GIB}, {"kB", 1e3},
    {"KB", 1e3},   {"MB", 1e6}, {"GB", 1e9},     {"TB", 1e12}};

static const struct unit rate_units[] = {{"Bps", 1}, {"kBps", 1e3}, {"MBps", 1e6}, {"GBps", 1e9}};

static const struct unit time_units[] = {{"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}};

/* A number that is not negative, then one of the units; false if it is anything else. */
static bool measure(const char *text, const struct unit *units, size_t count, double *out_value) {
    char *end = NULL;
    double value = 0;

    if ((*text < '0' || *text > '9') && *text != '.') {
        return false;
    }
    value = strtod(text, &end);
    if (end == text || !isfinite(value)) {
        return false;
    }
    while (*end == ' ') {
        end++;
    }
    for (size_t i = 0; i < count; i++) {
        if (strcmp(end, units[i].name) == 0) {
            *out_value = value * units[i].factor;
            return *out_value < 9.2e18;
        }
    }
    return false;
}

bool bytes_parse(const char *text, uint64_t *out_bytes) {
    double value = 0;
    uint64_t exact = 0;
    const char *end = whole(text, &exact);

    if (end != NULL && *end == '\0' && exact <= INT64_MAX) {
        *out_bytes = exact; /* no detour over floating point */
        return true;
    }
    if (!measure(text, byte_units, sizeof byte_units / sizeof byte_units[0], &value)) {
        return false;
    }
    *out_bytes = (uint64_t)value;
    return true;
}

bool option_bytes(struct option_place place, const char *text, uint64_t *out_bytes) {
    return bytes_parse(text, out_bytes) || refuse(place, text, "a number of bytes such as 200MiB");
}

bool option_rate(struct option_place place, const char *text, double *out_bytes_per_s) {
    double value = 0;

    if (!measure(text, rate_units, sizeof rate_units / sizeof rate_units[0], &value) || value < 1) {
        return refuse(place, text, "a rate such as 25GBps");
    }
    *out_bytes_per_s = value;
    return true;
}

bool option_duration(struct option_place place, const char *text, uint64_t *out_ns) {
    double value = 0;

    if (strcmp(text, "0") != 0 &&
        !measure(text, time_units, sizeof time_units / sizeof time_units[0], &value)) {
        return refuse(place, text, "a duration such as 10us");
    }
    *out_ns = (uint64_t)value;
    return true;
}

bool option_budget(struct option_place place, const char *text, struct budget *out_budget) {
    static const struct unit percent = {"%", 1};
    struct budget budget = {.form = BUDGET_BYTES};

    if (strcmp(text, "unlimited") == 0) {
        budget.form = BUDGET_UNLIMITED;
    } else if (strchr(text, '%') != NULL) {
        budget.form = BUDGET_PERCENT;
        if (!measure(text, &percent, 1, &budget.percent)) {
            return refuse(place, text, "a share such as 75%");
        }
    } else if (!option_bytes(place, text, &budget.bytes)) {
        return false;
    }
    *out_budget = budget;
    return true;
}
