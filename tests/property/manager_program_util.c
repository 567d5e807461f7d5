/* SPDX-License-Identifier: MIT */
/* Property test of the manager: what a sequence is, how it is drawn, written and read. */
#include "manager_property.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const names[] = {
#define OP_NAME(name, weight) #name,
    OPS(OP_NAME)
#undef OP_NAME
};

static const uint8_t weights[] = {
#define OP_WEIGHT(name, weight) weight,
    OPS(OP_WEIGHT)
#undef OP_WEIGHT
};

const char *op_name(uint32_t op) { return names[op % OP_COUNT]; }

/* splitmix64's finaliser: independent numbers from consecutive ones. */
uint64_t property_mix(uint64_t x) {
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

typedef struct dice {
    uint64_t state;
} dice;

static uint32_t roll(dice *d, uint32_t sides) {
    d->state += UINT64_C(0x9e3779b97f4a7c15);
    return (uint32_t)((property_mix(d->state) >> 32) * sides >> 32);
}

static uint8_t draw_op(dice *d) {
    uint32_t total = 0;
    for (size_t i = 0; i < OP_COUNT; i++)
        total += weights[i];
    uint32_t at = roll(d, total);
    uint8_t op = 0;
    while (at >= weights[op])
        at -= weights[op++];
    return op;
}

static void draw_call(dice *d, call *c, uint32_t mistakes, uint32_t faults) {
    memset(c, 0, sizeof *c);
    c->op = draw_op(d);
    c->which = (uint8_t)roll(d, 8);
    if (roll(d, 100) < mistakes) {
        c->wrong[0] = (uint8_t)(1 + roll(d, WRONG_COUNT - 1));
        if (roll(d, 4) == 0)
            c->wrong[1] = (uint8_t)(1 + roll(d, WRONG_ALONE - 1));
    }
    if (roll(d, 100) < faults)
        c->fault = (uint8_t)(1 + roll(d, 250));
    c->quiet = roll(d, 4) == 0;
    for (size_t i = 0; i < CALL_ARGS; i++)
        c->arg[i] = (uint16_t)roll(d, 1 << 16);
}

bool program_large(const program *p) { return p->setup[1] >> 12 == 1; }

void program_draw(program *p, uint64_t seed) {
    dice d = {seed};
    memset(p, 0, sizeof *p);
    for (size_t i = 0; i < PROGRAM_SETUP; i++)
        p->setup[i] = (uint16_t)roll(&d, 1 << 16);
    /* Some sequences go well, most have a few mistakes and faults, some have many. */
    uint32_t mistakes = roll(&d, 4) * 8, faults = roll(&d, 4) * 8;
    p->count = PROGRAM_CALLS;
    for (size_t i = 0; i < PROGRAM_CALLS; i++)
        draw_call(&d, &p->calls[i], mistakes, faults);
    for (size_t i = 4; program_large(p) && i < PROGRAM_CALLS; i += 2) {
        p->calls[i].op = i % 4 ? OP_ADOPT : OP_REGISTER;
        p->calls[i].which = 0;
    }
    for (size_t i = 0; i < 4; i++) { /* there is little to do without values */
        p->calls[i].op = i % 2 ? OP_ADOPT : OP_REGISTER;
        p->calls[i].which = i == 3 ? 7 : 0;
    }
}

void program_write(const program *p, char *text, size_t room) {
    size_t used = 0;
    for (size_t i = 0; i < PROGRAM_SETUP && used < room; i++)
        used += (size_t)snprintf(text + used, room - used, "%s%x", i ? "," : "", p->setup[i]);
    for (size_t i = 0; i < p->count && used < room; i++) {
        const call *c = &p->calls[i];
        used += (size_t)snprintf(text + used, room - used, "/%x,%x,%x,%x,%x,%x", c->op, c->which,
                                 c->wrong[0], c->wrong[1], c->fault, c->quiet);
        for (size_t k = 0; k < CALL_ARGS && used < room; k++)
            used += (size_t)snprintf(text + used, room - used, ",%x", c->arg[k]);
    }
}

static bool read_number(const char **text, uint16_t *out) {
    char *end;
    unsigned long value = strtoul(*text, &end, 16);
    if (end == *text || value > UINT16_MAX)
        return false;
    *out = (uint16_t)value;
    *text = end + (*end == ',');
    return true;
}

bool program_read(program *p, const char *text) {
    memset(p, 0, sizeof *p);
    for (size_t i = 0; i < PROGRAM_SETUP; i++)
        if (!read_number(&text, &p->setup[i]))
            return false;
    while (*text == '/' && p->count < PROGRAM_CALLS) {
        call *c = &p->calls[p->count++];
        uint16_t head[6];
        text++;
        for (size_t i = 0; i < 6; i++)
            if (!read_number(&text, &head[i]))
                return false;
        *c = (call){.op = (uint8_t)(head[0] % OP_COUNT),
                    .which = (uint8_t)head[1],
                    .wrong = {(uint8_t)head[2], (uint8_t)head[3]},
                    .fault = (uint8_t)head[4],
                    .quiet = (uint8_t)head[5]};
        for (size_t i = 0; i < CALL_ARGS; i++)
            if (!read_number(&text, &c->arg[i]))
                return false;
    }
    return *text == 0;
}
