/* SPDX-License-Identifier: MIT */
/* The machine string; its grammar stands in sim.h. Each error names the column where the text stops
 * making sense. */
#include "driver/sim/sim_priv.h"

#include <string.h>

#define FRACTION_DIGITS 9

typedef struct parser {
    const char *text;
    const char *at;
    uint32_t seen; /* bits of items */
} parser;

typedef struct unit {
    const char *name;
    uint64_t factor;
} unit;

static const unit sizes[] = {{"B", 1},
                             {"KiB", UINT64_C(1) << 10},
                             {"MiB", UINT64_C(1) << 20},
                             {"GiB", UINT64_C(1) << 30},
                             {"TiB", UINT64_C(1) << 40},
                             {NULL, 0}};
static const unit rates[] = {
    {"Bps", 1}, {"kBps", 1000}, {"MBps", 1000000}, {"GBps", 1000000000}, {NULL, 0}};
static const unit times[] = {
    {"ns", 1}, {"us", 1000}, {"ms", 1000000}, {"s", 1000000000}, {NULL, 0}};

static tn_status wrong(const parser *p, const char *at, const char *what) {
    uint64_t column = (uint64_t)(at - p->text) + 1;

    tn__error(TN_ERR_VALUE, "machine string, column %llu: %s", (unsigned long long)column, what)
        ->actual = column;
    return TN_ERR_VALUE;
}

/* Whether the text goes on with `word`; if so, it is passed over. */
static bool accept(parser *p, const char *word) {
    size_t length = strlen(word);

    if (strncmp(p->at, word, length) != 0)
        return false;
    p->at += length;
    return true;
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static tn_status number(parser *p, uint64_t *out) {
    const char *start = p->at;
    uint64_t value = 0;

    if (!is_digit(*p->at))
        return wrong(p, p->at, "expected a number");
    for (; is_digit(*p->at); p->at++) {
        uint64_t digit = (uint64_t)(*p->at - '0');

        if (value > ((uint64_t)INT64_MAX - digit) / 10)
            return wrong(p, start, "the number is too large");
        value = value * 10 + digit;
    }
    *out = value;
    return TN_OK;
}

/* The digits after the point, scaled to FRACTION_DIGITS; further ones do not count. */
static tn_status fraction(parser *p, uint64_t *out) {
    uint64_t value = 0;
    int digits;

    if (!is_digit(*p->at))
        return wrong(p, p->at, "expected digits after the point");
    for (digits = 0; is_digit(*p->at); p->at++) {
        if (digits == FRACTION_DIGITS)
            continue;
        value = value * 10 + (uint64_t)(*p->at - '0');
        digits++;
    }
    for (; digits < FRACTION_DIGITS; digits++)
        value *= 10;
    *out = value;
    return TN_OK;
}

/* The word up to a blank or the end must be one of the units. */
static tn_status unit_factor(parser *p, const unit *units, const char *what, uint64_t *out) {
    size_t length = strcspn(p->at, " ");

    for (; units->name != NULL; units++) {
        if (strlen(units->name) == length && memcmp(units->name, p->at, length) == 0) {
            p->at += length;
            *out = units->factor;
            return TN_OK;
        }
    }
    return wrong(p, p->at, what);
}

static tn_status scaled(const parser *p, const char *start, uint64_t whole, uint64_t parts,
                        uint64_t factor, uint64_t *out) {
    unsigned __int128 value = (unsigned __int128)whole * factor;

    value += (unsigned __int128)parts * factor / 1000000000u;
    if (value > (unsigned __int128)INT64_MAX)
        return wrong(p, start, "the value is too large");
    *out = (uint64_t)value;
    return TN_OK;
}

static tn_status size_item(parser *p, uint64_t *out) {
    const char *start = p->at;
    uint64_t whole = 0;
    uint64_t factor = 1;
    tn_status status = number(p, &whole);

    if (status == TN_OK && *p->at != '\0' && *p->at != ' ')
        status =
            unit_factor(p, sizes, "expected B, KiB, MiB, GiB, TiB or the end of the item", &factor);
    return status == TN_OK ? scaled(p, start, whole, 0, factor, out) : status;
}

static tn_status rate_item(parser *p, uint64_t *out) {
    const char *start = p->at;
    uint64_t whole = 0;
    uint64_t parts = 0;
    uint64_t factor = 0;
    uint64_t value = 0;
    tn_status status = number(p, &whole);

    if (status == TN_OK && accept(p, "."))
        status = fraction(p, &parts);
    if (status == TN_OK)
        status = unit_factor(p, rates, "expected Bps, kBps, MBps or GBps", &factor);
    if (status == TN_OK)
        status = scaled(p, start, whole, parts, factor, &value);
    if (status != TN_OK)
        return status;
    if (value == 0)
        return wrong(p, start, "a rate is at least 1 Bps");
    *out = value;
    return TN_OK;
}

static tn_status time_item(parser *p, uint64_t *out) {
    const char *start = p->at;
    uint64_t whole = 0;
    uint64_t factor = 0;
    tn_status status = number(p, &whole);

    if (status == TN_OK)
        status = unit_factor(p, times, "expected ns, us, ms or s", &factor);
    return status == TN_OK ? scaled(p, start, whole, 0, factor, out) : status;
}

static tn_status devices_item(parser *p, uint32_t *out) {
    const char *start = p->at;
    uint64_t count = 0;
    tn_status status = number(p, &count);

    if (status != TN_OK)
        return status;
    if (count > TN_CUDA_INDEX_MAX + 1)
        return wrong(p, start, "at most 128 devices");
    *out = (uint32_t)count;
    return TN_OK;
}

/* One of two words. */
static tn_status choice(parser *p, const unit *words, const char *what, bool *out) {
    uint64_t second = 0;
    tn_status status = unit_factor(p, words, what, &second);

    if (status == TN_OK)
        *out = second != 0;
    return status;
}

static tn_status clock_item(parser *p, bool *out) {
    static const unit clocks[] = {{"virtual", 0}, {"threads", 1}, {NULL, 0}};

    return choice(p, clocks, "expected virtual or threads", out);
}

static tn_status host_item(parser *p, bool *out) {
    static const unit hosts[] = {{"separate", 0}, {"shared", 1}, {NULL, 0}};

    return choice(p, hosts, "expected separate or shared", out);
}

enum item_kind {
    DEVICES,
    MEMORY,
    PINNED,
    POOL,
    HOST_LINK,
    PEER_LINK,
    LATENCY,
    PIN,
    HOST,
    DISK,
    SEEK,
    SEED,
    CLOCK
};

static const unit items[] = {{"dev:", DEVICES},         {"mem=", MEMORY},
                             {"pinned=", PINNED},       {"pool=", POOL},
                             {"link=host:", HOST_LINK}, {"link=peer:", PEER_LINK},
                             {"latency=", LATENCY},     {"pin=", PIN},
                             {"host=", HOST},           {"disk=", DISK},
                             {"seek=", SEEK},           {"seed=", SEED},
                             {"clock=", CLOCK},         {NULL, 0}};

static tn_status item_value(parser *p, uint64_t kind, tn__sim_machine *m) {
    switch (kind) {
    case DEVICES:
        return devices_item(p, &m->devices);
    case MEMORY:
        return size_item(p, &m->memory_bytes);
    case PINNED:
        return size_item(p, &m->pinned_bytes);
    case POOL:
        return size_item(p, &m->pool_bytes);
    case HOST_LINK:
        return rate_item(p, &m->host_rate);
    case PEER_LINK:
        return rate_item(p, &m->peer_rate);
    case LATENCY:
        return time_item(p, &m->latency_ns);
    case PIN:
        return time_item(p, &m->pin_ns);
    case HOST:
        return host_item(p, &m->shared);
    case DISK:
        return rate_item(p, &m->disk_rate);
    case SEEK:
        return time_item(p, &m->seek_ns);
    case SEED:
        m->seeded = true;
        return number(p, &m->seed);
    default:
        return clock_item(p, &m->threads);
    }
}

static tn_status item(parser *p, tn__sim_machine *m) {
    const char *start = p->at;
    const unit *i = items;
    tn_status status;

    while (i->name != NULL && !accept(p, i->name))
        i++;
    if (i->name == NULL) {
        if (accept(p, "link="))
            return wrong(p, p->at, "expected host: or peer:");
        return wrong(p, start,
                     "expected dev:, mem=, pinned=, pool=, link=, latency=, pin=, host=, "
                     "disk=, seek=, seed= or clock=");
    }
    if (p->seen & (1u << i->factor))
        return wrong(p, start, "this item stands twice");
    p->seen |= 1u << i->factor;
    status = item_value(p, i->factor, m);
    if (status == TN_OK && *p->at != '\0' && *p->at != ' ')
        return wrong(p, p->at, "expected a space or the end");
    return status;
}

tn_status tn__sim_parse(const char *text, tn__sim_machine *out) {
    tn__sim_machine m = {.devices = 1,
                         .memory_bytes = UINT64_C(1) << 30,
                         .pinned_bytes = TN__SIM_NO_LIMIT,
                         .pool_bytes = TN__SIM_NO_LIMIT};
    parser p = {text, text, 0};

    while (text != NULL && *p.at != '\0') {
        tn_status status = item(&p, &m);

        if (status != TN_OK)
            return status;
        if (*p.at == ' ') {
            p.at += strspn(p.at, " ");
            if (*p.at == '\0')
                return wrong(&p, p.at, "expected an item after the space");
        }
    }
    *out = m;
    return TN_OK;
}
