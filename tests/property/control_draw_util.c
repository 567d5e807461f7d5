/* SPDX-License-Identifier: MIT */
/* Drawing scenes, and writing them. */
#include "control_property.h"

#include <stdarg.h>
#include <string.h>

/* ---- Numbers --------------------------------------------------------------------------------- */

typedef struct dice {
    uint64_t state;
    int locations[MC_LOCATIONS], location_count; /* that occur */
    bool hard; /* little room, many ways: the walk has to search */
} dice;

static uint64_t next(dice *d) {
    uint64_t z = d->state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static int below(dice *d, int n) { return (int)(next(d) % (uint64_t)n); }
static bool percent(dice *d, int p) { return below(d, 100) < p; }
static int location(dice *d) { return d->locations[below(d, d->location_count)]; }

static void draw_locations(dice *d) {
    int wanted = 2 + below(d, 3);
    unsigned have = 0;
    while (__builtin_popcount(have) < wanted)
        have |= 1u << below(d, 4);
    d->location_count = 0;
    for (int l = 0; l < 4; l++)
        if (have >> l & 1)
            d->locations[d->location_count++] = l;
}

/* ---- The world ------------------------------------------------------------------------------- */

static void draw_value(dice *d, mc_world *w, int v) {
    static const char *const keys[MC_VALUES] = {"kk", "aa", "zz", "k", "b", "\xc3\xa4", "B", "a"};
    mc_value *value = &w->values[v];
    *value = (mc_value){.charge = percent(d, 6) ? 0 : 1 + (uint64_t)below(d, 3),
                        .replicable = percent(d, 50),
                        .source = percent(d, d->hard ? 10 : 40) ? location(d) : MC_NOWHERE,
                        .priority = percent(d, 25) ? below(d, 4) - 1 : 0,
                        .epoch = percent(d, 40) ? 1 + (uint64_t)below(d, 5) : 0,
                        .key = percent(d, 25) ? keys[v] : NULL};
    bool several = value->replicable && percent(d, d->hard ? 20 : 50);
    int places = several ? 1 + below(d, d->location_count) : 1;
    if (value->source != MC_NOWHERE && percent(d, 35))
        places = 0;
    while (__builtin_popcount(value->at) < places)
        value->at |= (uint8_t)(1u << location(d));
    for (int l = 0; l < MC_LOCATIONS; l++)
        if (value->at >> l & 1 && percent(d, d->hard ? 2 : 8))
            value->protected_ |= (uint8_t)(1u << l);
}

static void draw_budgets(dice *d, scene *s) {
    s->budget_count = 0;
    for (int l = 0; l < MC_LOCATIONS; l++)
        s->world.budget[l] = MC_NO_BUDGET;
    for (int i = 0; i < d->location_count; i++) {
        int l = d->locations[i];
        if (percent(d, 12))
            s->world.reserved[l] = 1 + (uint64_t)below(d, 2);
        if (percent(d, d->hard ? 3 : 20))
            continue;
        s->world.budget[l] = mc_used(&s->world, l) + s->world.reserved[l] +
                             (uint64_t)(percent(d, 55) ? 0 : 1 + below(d, 3));
        int at = below(d, s->budget_count + 1);
        memmove(&s->budget_order[at + 1], &s->budget_order[at],
                (size_t)(s->budget_count++ - at) * sizeof(int));
        s->budget_order[at] = l;
    }
}

static void draw_tiers(dice *d, scene *s) {
    memset(s->world.tier_count, 0, sizeof s->world.tier_count);
    for (int i = 0; i < d->location_count; i++) {
        int from = d->locations[i], *count = &s->world.tier_count[from];
        int wanted = percent(d, d->hard ? 10 : 40) ? 0 : 1 + below(d, d->location_count - 1);
        for (int tries = 0; *count < wanted && tries < 20; tries++) {
            int to = location(d);
            bool again = false;
            for (int k = 0; k < *count; k++)
                again |= s->world.tiers[from][k] == to;
            if (to != from && (!again || (s->custom && percent(d, 20))))
                s->world.tiers[from][(*count)++] = to;
        }
    }
}

static bool may_require(const mc_world *w, mc_endpoint e) {
    for (int i = 0; i < w->requirement_count; i++)
        if (w->requirements[i].value == e.value &&
            (w->requirements[i].at == e.at || !w->values[e.value].replicable))
            return false;
    return true;
}

static void draw_request(dice *d, mc_world *w) {
    int wanted = 1 + below(d, 4);
    w->requirement_count = w->reservation_count = 0;
    for (int tries = 0; w->requirement_count < wanted && tries < 20; tries++) {
        mc_endpoint e = {below(d, w->value_count), location(d)};
        if (may_require(w, e))
            w->requirements[w->requirement_count++] = e;
    }
    while (percent(d, 35) && w->reservation_count < 3)
        w->reservations[w->reservation_count++] = (mc_bytes){location(d), (uint64_t)below(d, 4)};
}

static void draw_asking(dice *d, scene *s) {
    s->custom = percent(d, 35);
    s->world.order = MC_LRU;
    if (s->custom && percent(d, 50))
        s->world.order = percent(d, 50) ? MC_LARGEST : MC_ODD_LENGTHS;
    s->world.limit = percent(d, 15) ? 1 + (uint64_t)below(d, 6) : CONTROL_CAP;
    draw_tiers(d, s);
    draw_request(d, &s->world);
}

void scene_draw(scene *s, uint64_t seed) {
    dice d = {.state = seed};
    d.hard = percent(&d, 20);
    *s = (scene){.concurrent = percent(&d, 50)};
    draw_locations(&d);
    s->world.value_count = d.hard ? 3 + below(&d, 4) : 1 + below(&d, 6);
    for (int v = 0; v < s->world.value_count; v++)
        draw_value(&d, &s->world, v);
    draw_budgets(&d, s);
    draw_asking(&d, s);
}

/* The locations that the world has something at, and more if that is only one. */
static dice dice_for(const scene *s, uint64_t seed) {
    dice d = {.state = seed, .hard = seed % 4 == 0};
    unsigned have = 1u;
    for (int l = 0; l < MC_LOCATIONS; l++)
        if (mc_used(&s->world, l) > 0 || s->world.budget[l] != MC_NO_BUDGET)
            have |= 1u << l;
    for (int l = 0; l < 4; l++)
        if (have >> l & 1 || __builtin_popcount(have) < 2) {
            have |= 1u << l;
            d.locations[d.location_count++] = l;
        }
    return d;
}

void scene_draw_request(scene *s, uint64_t seed) {
    dice d = dice_for(s, seed);
    draw_asking(&d, s);
}

void scene_draw_need(scene *s, uint64_t seed) {
    dice d = dice_for(s, seed);
    draw_request(&d, &s->world);
}

/* ---- Text ------------------------------------------------------------------------------------ */

const char *control_at(int at) {
    static const char *const names[MC_LOCATIONS] = {"H", "P", "D0", "D1", "D2", "D3", "D4", "D5"};
    return at == MC_NOWHERE ? "*" : names[at];
}

typedef struct text {
    char *out;
    size_t room, used;
} text;

__attribute__((format(printf, 2, 3))) static void put(text *t, const char *format, ...) {
    va_list args;
    va_start(args, format);
    int n = vsnprintf(t->out + t->used, t->room - t->used, format, args);
    va_end(args);
    if (n > 0)
        t->used = t->used + (size_t)n < t->room ? t->used + (size_t)n : t->room - 1;
}

static void put_values(text *t, const mc_world *w) {
    put(t, "\n    .values = \"");
    for (int v = 0; v < w->value_count; v++) {
        const mc_value *value = &w->values[v];
        const char *before = " @";
        put(t, "%sv%d %llu %c", v ? "; " : "", v, (unsigned long long)value->charge,
            value->replicable ? 'R' : 'X');
        for (int l = 0; l < MC_LOCATIONS; l++)
            if (value->at >> l & 1) {
                put(t, "%s%s", before, control_at(l));
                before = ",";
            }
        if (value->source != MC_NOWHERE)
            put(t, " src=%s", control_at(value->source));
    }
}

static void put_tiers(text *t, const mc_world *w) {
    bool first = true;
    for (int l = 0; l < MC_LOCATIONS; l++) {
        if (w->tier_count[l] == 0)
            continue;
        put(t, "%s%s to ", first ? "\",\n    .tiers = \"" : "; ", control_at(l));
        for (int i = 0; i < w->tier_count[l]; i++)
            put(t, "%s%s", i ? ", " : "", control_at(w->tiers[l][i]));
        first = false;
    }
}

static void put_before(text *t, const mc_world *w) {
    put(t, "\",\n    .before = \"");
    for (int v = 0; v < w->value_count; v++) {
        const mc_value *value = &w->values[v];
        if (value->priority || value->key)
            put(t, "meta v%d priority %lld%s%s; ", v, (long long)value->priority,
                value->key ? " key " : "", value->key ? value->key : "");
        if (value->epoch)
            put(t, "epoch v%d %llu; ", v, (unsigned long long)value->epoch);
        for (int l = 0; l < MC_LOCATIONS; l++)
            if (value->protected_ >> l & 1)
                put(t, "hold v%d@%s; ", v, control_at(l));
    }
    for (int l = 0; l < MC_LOCATIONS; l++)
        if (w->reserved[l])
            put(t, "reserve %s:%llu; ", control_at(l), (unsigned long long)w->reserved[l]);
}

/* In the notation of the cases; `epoch` stands for a use at that moment. */
void scene_write(const scene *s, char *out, size_t room) {
    static const char *const orders[] = {"LRU", "largest first", "LRU, odd lengths backwards"};
    text t = {out, room, 0};
    const mc_world *w = &s->world;
    put(&t, "{\n    .budgets = \"");
    for (int i = 0; i < s->budget_count; i++)
        put(&t, "%s%s=%llu", i ? ", " : "", control_at(s->budget_order[i]),
            (unsigned long long)w->budget[s->budget_order[i]]);
    put(&t, "\",");
    put_values(&t, w);
    put_tiers(&t, w);
    put_before(&t, w);
    put(&t, "\",\n    .limit = %llu,\n    .need = \"", (unsigned long long)w->limit);
    for (int i = 0; i < w->requirement_count; i++)
        put(&t, "%sv%d@%s", i ? ", " : "", w->requirements[i].value,
            control_at(w->requirements[i].at));
    put(&t, "\",\n    .reserve = \"");
    for (int i = 0; i < w->reservation_count; i++)
        put(&t, "%s%s:%llu", i ? ", " : "", control_at(w->reservations[i].at),
            (unsigned long long)w->reservations[i].bytes);
    put(&t, "\",\n} /* %s policy: %s; %s%s */", s->custom ? "custom" : "built-in", orders[w->order],
        s->concurrent ? "concurrent" : "serial", s->enter ? "; entered" : "");
}
