/* SPDX-License-Identifier: MIT */
/* Property test of the manager: plans, sequences and their options, from the numbers of a call. */
#include "manager_property.h"

#include <stdio.h>
#include <string.h>

typedef unsigned long long ull;

bool runs_actions(uint32_t op) {
    return (op >= OP_ENSURE && op <= OP_DISCARD) || op == OP_EXECUTE || op == OP_ENTER ||
           op == OP_EXIT;
}

/* ---- Drawing --------------------------------------------------------------------------------- */

/* One action from one number; often of the value that the one before concerns. */
static tn_action draw_action(run *r, side *s, uint32_t x, const tn_action *before) {
    static const uint8_t kinds[8] = {TN_ACTION_ENSURE, TN_ACTION_ENSURE, TN_ACTION_ENSURE,
                                     TN_ACTION_MOVE,   TN_ACTION_MOVE,   TN_ACTION_DROP,
                                     TN_ACTION_DROP,   TN_ACTION_DISCARD};
    uint32_t more = x ? (uint32_t)property_mix(x) : 0;
    tn_action a;
    memset(&a, 0, sizeof a);
    a.kind = kinds[x % 8];
    if (a.kind == TN_ACTION_DISCARD && more % 2)
        a.kind = TN_ACTION_MOVE;
    a.handle = before && x / 8 % 2 ? before->handle : choose_value(r, s, x >> 4);
    if (a.kind != TN_ACTION_DISCARD)
        a.at = a.kind == TN_ACTION_DROP ? choose_place(s, a.handle, more >> 1)
                                        : choose_location(more >> 4);
    if (a.kind == TN_ACTION_MOVE && (more >> 8) % 2)
        a.from = choose_place(s, a.handle, more >> 9);
    return a;
}

static void spoil(run *r, side *s, tn_action *a) {
    a->handle = wrong_handle(r, s, a->handle);
    if (a->kind != TN_ACTION_DISCARD)
        a->at = wrong_location(r, a->at);
    if (wrong(r, WRONG_VALUE_2) && a->kind == TN_ACTION_MOVE)
        a->from = tn_location_cuda(2 + r->now->arg[3] % 100);
}

void draw_options(run *r, side *s, uint32_t x, tm_options *out) {
    bool bad = wrong(r, WRONG_STREAM_GARBAGE) || wrong(r, WRONG_STREAM_DEVICE) ||
               wrong(r, WRONG_STREAM_THREAD) || wrong(r, WRONG_STREAM_CAPTURING) ||
               wrong(r, WRONG_STREAM_PRESENCE);
    memset(out, 0, sizeof *out);
    out->expected = TN_VERSION_ANY;
    if (x % 4 == 3)
        out->expected = s->model.version + (x / 4 % 4 == 3 ? 1 + x / 16 % 3 : 0);
    if (x % 4 == 2 && x / 4 % 4 == 3)
        out->expected = s->model.version ? s->model.version - 1 : 7;
    out->stream_count = (x >> 6) % 4 == 3 ? 2 : (x >> 6) % 2;
    if (bad && !out->stream_count)
        out->stream_count = 1;
    for (size_t i = 0; i < out->stream_count; i++) {
        out->streams[i].at = locations[2 + ((x >> 8) + i) % 2];
        out->streams[i].stream = choose_stream(r, out->streams[i].at, x >> 9);
    }
    if (out->stream_count == 2 && wrong(r, WRONG_VALUE_2))
        out->streams[1] = out->streams[0];
    if (!bad)
        return;
    if (wrong(r, WRONG_STREAM_PRESENCE) && x / 2 % 2)
        out->streams[0].at = locations[x % 2]; /* one for the host */
    out->streams[0].stream = wrong_stream(r, out->streams[0].at, out->streams[0].stream);
}

/* Which list an action is in, two bits each; then how many; then the reservations. */
void draw_plan(run *r, side *s, const call *c, tm_plan *out) {
    static const uint8_t sizes[8] = {32, 8, 0, 64, 1, 24, 40, 96};
    static const uint8_t lengths[8] = {0, 1, 2, 3, 4, 1, 2, 3}, reserved[4] = {0, 1, 0, 2};
    size_t count = lengths[(c->arg[0] >> 8) % 8], bad = count ? c->arg[5] % count : 0;
    const tn_action *before = NULL;
    memset(out, 0, sizeof *out);
    snprintf(out->name, sizeof out->name, "%s", wrong(r, WRONG_VALUE) ? " \t" : "");
    if (!out->name[0])
        snprintf(out->name, sizeof out->name, "plan %u", r->step);
    for (size_t i = 0; i < count; i++) {
        uint32_t part = (c->arg[0] >> (2 * i)) % 4;
        tm_list *list = part == 3 ? &out->reclaim : part == 2 ? &out->exit : &out->enter;
        tn_action *a = &list->actions[list->count++];
        *a = draw_action(r, s, c->arg[1 + i], before);
        if (i == bad)
            spoil(r, s, a);
        before = a;
    }
    out->reservation_count = reserved[(c->arg[0] >> 11) % 4];
    for (size_t i = 0; i < out->reservation_count; i++) {
        uint32_t x = c->arg[5] >> (6 * i);
        tn_location at = choose_location(x);
        out->reservations[i].at = !count && i == 0 ? wrong_location(r, at) : at;
        out->reservations[i].bytes = sizes[x / 8 % 8];
        if (c->arg[0] >> 13 == 7)
            out->reservations[i].bytes = INT64_MAX - i;
        if (wrong(r, WRONG_UNKNOWN) && i == 1)
            out->reservations[i].bytes = (uint64_t)INT64_MAX + 1 + x;
        snprintf(out->labels[i], sizeof out->labels[i], "%s",
                 wrong(r, WRONG_TYPE) && i == 1 ? "  "
                 : i                            ? "second"
                                                : "first");
        out->reservations[i].label = out->labels[i];
    }
}

void draw_sequence(run *r, side *s, const call *c, tm_plan *out) {
    size_t count = c->arg[0] % 8 < 5 ? 1 + c->arg[0] % 4 : c->arg[0] % 3;
    memset(out, 0, sizeof *out);
    snprintf(out->name, sizeof out->name, "%s",
             wrong(r, WRONG_VALUE)  ? "\n "
             : (c->arg[0] >> 3) % 4 ? "sequence"
                                    : "actions");
    for (size_t i = 0; i < count; i++)
        out->enter.actions[i] =
            draw_action(r, s, c->arg[1 + i], i ? &out->enter.actions[i - 1] : NULL);
    if (count)
        spoil(r, s, &out->enter.actions[c->arg[5] % count]);
    out->enter.count = count;
}

size_t choose_plan(const side *s, uint32_t x) {
    size_t have = s->plans_made < RUN_PLANS ? s->plans_made : RUN_PLANS;
    if (!have)
        return RUN_PLANS;
    return x % 4 == 3 ? x / 4 % have : (s->plans_made - 1) % RUN_PLANS;
}

/* ---- Pinned memory --------------------------------------------------------------------------- */

static bool pins(side *s, const tm_list *list) {
    tn_location pinned = tn_location_pinned();
    for (size_t i = 0; i < list->count; i++) {
        const tn_action *a = &list->actions[i];
        tm_value *v = tm_find(&s->model, a->handle);
        if (a->at.kind == TN_LOCATION_PINNED || (v && tm_resident(v, pinned)) ||
            (v && v->has_source && v->source_at.kind == TN_LOCATION_PINNED))
            return true;
    }
    return false;
}

/*
 * Freeing pinned memory waits for all work of the machine, and whether it is freed at once is the
 * library's affair. In the middle of a plan that would decide which leases the next step finds
 * complete, so a plan that may free some runs on an idle machine.
 */
bool idle_for(run *r, side *s, const tm_plan *plan) {
    uint64_t idle = r->world.now;
    if (!pins(s, &plan->reclaim) && !pins(s, &plan->enter) && !pins(s, &plan->exit))
        return true;
    for (size_t i = 0; i < r->world.stream_count; i++)
        if (r->world.streams[i].busy_until > idle)
            idle = r->world.streams[i].busy_until;
    uint64_t ns = idle - r->world.now;
    tm_world_advance(&r->world, ns);
    return ns == 0 || tn_sim_advance(r->sim, ns) == TN_OK || differ(r, "time stands still");
}

/* ---- The readable sequence ------------------------------------------------------------------- */

void say_list(run *r, const char *what, const tm_list *list) {
    static const char *const kinds[] = {"?", "ensure", "move", "drop", "discard"};
    for (size_t i = 0; i < list->count && r->verbose; i++) {
        const tn_action *a = &list->actions[i];
        say(r, "\n       %s: %s %s", what, kinds[a->kind % 5], handle_text(r, a->handle));
        if (a->kind != TN_ACTION_DISCARD)
            say(r, " %s", location_text(a->at));
        if (a->from.kind)
            say(r, " from %s", location_text(a->from));
    }
}

void say_options(run *r, const tm_options *o) {
    if (o->expected != TN_VERSION_ANY)
        say(r, ", version %llu", (ull)o->expected);
    for (size_t i = 0; i < o->stream_count; i++)
        say(r, ", %s: %s", location_text(o->streams[i].at), stream_text(r, o->streams[i].stream));
}

void say_plan(run *r, const tm_plan *plan) {
    say(r, "\"%s\"", plan->name);
    say_list(r, "reclaim", &plan->reclaim);
    for (size_t i = 0; i < plan->reservation_count; i++)
        say(r, "\n       reserve %llu at %s", (ull)plan->reservations[i].bytes,
            location_text(plan->reservations[i].at));
    say_list(r, "enter", &plan->enter);
    say_list(r, "exit", &plan->exit);
    say(r, "\n");
}
