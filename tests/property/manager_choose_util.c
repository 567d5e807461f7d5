/* SPDX-License-Identifier: MIT */
/* Property test of the manager: from the small integers of a call to arguments. */
#include "manager_property.h"

#include <stdio.h>
#include <string.h>

const tn_location locations[LOCATIONS] = {{TN_LOCATION_PAGEABLE, 0},
                                          {TN_LOCATION_PINNED, 0},
                                          {TN_LOCATION_CUDA, 0},
                                          {TN_LOCATION_CUDA, 1}};

static const tn_value_type *unused_type(const tn_value_type *type) {
    return type == tt_other_type() ? tt_type() : tt_other_type();
}

tn_location choose_location(uint32_t x) {
    static const uint8_t often[8] = {0, 1, 2, 0, 2, 1, 3, 2};
    return locations[often[x % 8]];
}

/* Seven times out of eight one that is not discarded. */
tn_handle choose_value(run *r, side *s, uint32_t x) {
    (void)r;
    tm_manager *m = &s->model;
    size_t live[TM_VALUES], count = 0;
    for (size_t i = 0; i < m->value_count; i++)
        if (!m->values[i].discarded)
            live[count++] = i;
    uint32_t pick = x >> 3;
    if (count && x % 8 != 7)
        return m->values[live[pick % count]].handle;
    if (m->value_count)
        return m->values[pick % m->value_count].handle;
    return (tn_handle){m->id, 1000 + pick, tt_type()};
}

tn_location choose_place(side *s, tn_handle handle, uint32_t x) {
    tm_value *v = tm_find(&s->model, handle);
    if (v && v->count && x % 4 != 3)
        return v->at[(x >> 2) % v->count].at;
    return choose_location(x >> 2);
}

tn_stream choose_stream(run *r, tn_location at, uint32_t x) {
    if (at.kind != TN_LOCATION_CUDA || at.index > 1)
        return NULL;
    return at.index ? r->streams[4 + x % 2] : r->streams[x % 4];
}

/* ---- Mistakes -------------------------------------------------------------------------------- */

static uint32_t resolve_wrong(const call *c, uint32_t index) {
    uint32_t w = c->wrong[index] % WRONG_COUNT;
    if (index == 1 && (w >= WRONG_ALONE || c->wrong[0] % WRONG_COUNT >= WRONG_ALONE))
        return WRONG_NONE;
    return w;
}

bool wrong(run *r, uint32_t what) {
    return resolve_wrong(r->now, 0) == what || resolve_wrong(r->now, 1) == what;
}

tn_handle wrong_handle(run *r, side *s, tn_handle handle) {
    side *other = &r->sides[s == &r->sides[0]];
    if (wrong(r, WRONG_TYPE))
        handle.type = unused_type(handle.type);
    if (wrong(r, WRONG_UNKNOWN))
        handle.index += 1000;
    if (wrong(r, WRONG_FOREIGN))
        handle = choose_value(r, other, r->now->arg[0]);
    if (wrong(r, WRONG_ZERO_HANDLE))
        memset(&handle, 0, sizeof handle);
    return handle;
}

tn_location wrong_location(run *r, tn_location at) {
    if (wrong(r, WRONG_HOST_INDEX) && at.kind != TN_LOCATION_CUDA)
        at.index = 3;
    if (wrong(r, WRONG_LOCATION_ABSENT))
        at = tn_location_cuda(2 + r->now->arg[0] % 126);
    if (wrong(r, WRONG_LOCATION_RANGE))
        at = tn_location_cuda(128 + r->now->arg[0]);
    if (wrong(r, WRONG_LOCATION_KIND))
        at.kind = 4 + r->now->arg[0];
    if (wrong(r, WRONG_LOCATION_NONE))
        at = tn_location_none();
    return at;
}

tn_stream wrong_stream(run *r, tn_location at, tn_stream stream) {
    static char garbage[64];
    bool host = at.kind != TN_LOCATION_CUDA;
    if (wrong(r, WRONG_STREAM_PRESENCE))
        stream = host ? r->streams[0] : NULL;
    if (wrong(r, WRONG_STREAM_DEVICE))
        stream = r->streams[!host && at.index == 0 ? 4 : 0];
    if (wrong(r, WRONG_STREAM_CAPTURING))
        stream = r->streams[6];
    if (wrong(r, WRONG_STREAM_THREAD))
        stream = TN_STREAM_PER_THREAD;
    if (wrong(r, WRONG_STREAM_GARBAGE))
        stream = (tn_stream)(void *)garbage;
    return stream;
}

/* ---- Names for the readable sequence --------------------------------------------------------- */

static char *scratch(void) {
    static char ring[16][64];
    static unsigned next;
    return ring[next++ % 16];
}

const char *handle_text(const run *r, tn_handle handle) {
    char *text = scratch();
    for (size_t i = 0; i < RUN_MANAGERS; i++)
        if (handle.manager == r->sides[i].model.id && handle.manager)
            return snprintf(text, 64, "m%zu:%llu%s", i, (unsigned long long)handle.index,
                            handle.type == tt_subtype()      ? "(sub)"
                            : handle.type == tt_other_type() ? "(other)"
                                                             : ""),
                   text;
    snprintf(text, 64, "{%llu,%llu,%p}", (unsigned long long)handle.manager,
             (unsigned long long)handle.index, (const void *)handle.type);
    return text;
}

const char *location_text(tn_location at) {
    char *text = scratch();
    switch (at.kind) {
    case TN_LOCATION_NONE:
        return "none";
    case TN_LOCATION_PAGEABLE:
        return "P";
    case TN_LOCATION_PINNED:
        return "N";
    case TN_LOCATION_CUDA:
        snprintf(text, 64, "C%u", at.index);
        return text;
    default:
        snprintf(text, 64, "kind %u", at.kind);
        return text;
    }
}

const char *stream_text(const run *r, tn_stream stream) {
    char *text = scratch();
    for (size_t i = 0; i < RUN_STREAMS; i++)
        if (stream && stream == r->streams[i]) {
            snprintf(text, 64, "s%zu", i);
            return text;
        }
    if (stream == TN_STREAM_PER_THREAD)
        return "per-thread";
    return stream ? "garbage" : "no stream";
}
