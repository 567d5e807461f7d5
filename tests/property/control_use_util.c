/* SPDX-License-Identifier: MIT */
/* One step of a use, by the library and by the model. */
#include "control_use.h"

#include <string.h>

/* ---- Both sides ------------------------------------------------------------------------------ */

static void protect_all(use_pair *p) {
    for (int v = 0; v < p->s.world.value_count; v++) {
        uint8_t *at = &p->s.world.values[v].protected_;
        *at = p->held[v];
        for (int l = 0; l < MC_LOCATIONS; l++)
            *at |= (uint8_t)((p->uses[v][l] > 0) << l);
    }
}

/* The model's side of entry and exit. */
static void borrow(use_pair *p, const mc_world *asked, bool give_back) {
    for (int i = 0; i < asked->requirement_count; i++) {
        mc_endpoint e = asked->requirements[i];
        p->uses[e.value][e.at] = (uint8_t)(p->uses[e.value][e.at] + (give_back ? -1 : 1));
        if (!give_back)
            p->s.world.values[e.value].epoch = p->epoch;
    }
    for (int i = 0; i < asked->reservation_count; i++) {
        uint64_t *bytes = &p->s.world.reserved[asked->reservations[i].at];
        *bytes = give_back ? *bytes - asked->reservations[i].bytes
                           : *bytes + asked->reservations[i].bytes;
    }
    protect_all(p);
}

static bool same_value(use_pair *p, const tn_snapshot *s, int v) {
    const mc_value *want = &p->s.world.values[v];
    tn_materialization_info mats[MC_LOCATIONS] = {{.size = sizeof mats[0]}};
    size_t count = MC_LOCATIONS;
    if (control_places(s, p->l.handles[v]) != want->at)
        return CONTROL_FAIL(p->why, "v%d is at %02x, expected %02x", v,
                            control_places(s, p->l.handles[v]), want->at);
    if (tn_snapshot_materializations(s, p->l.handles[v], mats, &count) != TN_OK)
        return CONTROL_FAIL(p->why, "v%d: no materializations", v);
    for (size_t i = 0; i < count; i++) {
        int at = control_index(mats[i].at);
        if (mats[i].use_count != p->uses[v][at] || mats[i].pending_count != 0)
            return CONTROL_FAIL(p->why, "v%d@%s has %llu uses, %llu pending; expected %u", v,
                                control_at(at), (unsigned long long)mats[i].use_count,
                                (unsigned long long)mats[i].pending_count, p->uses[v][at]);
    }
    return true;
}

static bool same_state(use_pair *p) {
    tn_snapshot *s = NULL;
    tn_location_info rows[MC_LOCATIONS] = {{.size = sizeof rows[0]}};
    size_t count = MC_LOCATIONS;
    if (tn_snapshot_take(p->l.m, &s) != TN_OK || tn_snapshot_locations(s, rows, &count) != TN_OK)
        return CONTROL_FAIL(p->why, "no snapshot");
    bool ok = true;
    for (int v = 0; v < p->s.world.value_count && ok; v++)
        ok = same_value(p, s, v);
    for (size_t i = 0; i < count && ok; i++) {
        int at = control_index(rows[i].at);
        if (rows[i].reserved_bytes != p->s.world.reserved[at] ||
            rows[i].used_bytes != mc_used(&p->s.world, at))
            ok = CONTROL_FAIL(p->why, "%s has %llu and %llu bytes, expected %llu and %llu",
                              control_at(at), (unsigned long long)rows[i].used_bytes,
                              (unsigned long long)rows[i].reserved_bytes,
                              (unsigned long long)mc_used(&p->s.world, at),
                              (unsigned long long)p->s.world.reserved[at]);
    }
    tn_snapshot_drop(s);
    return ok;
}

/* ---- Steps ----------------------------------------------------------------------------------- */

static bool same_values(const use_pair *p, const use_slot *t) {
    size_t count = 0;
    if (tn_use_count(t->use, &count) != TN_OK || count != (size_t)t->asked.requirement_count)
        return CONTROL_FAIL(p->why, "%zu values", count);
    for (int i = 0; i < t->asked.requirement_count; i++) {
        mc_endpoint e = t->asked.requirements[i];
        const void *data = NULL;
        if (tn_use_value(t->use, p->l.handles[e.value], control_location(e.at), &data) != TN_OK ||
            !data)
            return CONTROL_FAIL(p->why, "v%d@%s: %s", e.value, control_at(e.at),
                                tn_last_error()->message);
    }
    return true;
}

static bool same_entry(use_pair *p, use_slot *t, const mc_answer *want) {
    tn_use_info info = TN_USE_INFO_INIT;
    const tn_decision *d = NULL;
    bool nothing = want->release_count == 0 && want->action_count == 0;
    bool hit = p->s.concurrent && nothing;
    if (tn_use_read(t->use, &info) != TN_OK || tn_use_decision(t->use, &d) != TN_OK ||
        info.hit != hit || (d == NULL) != hit)
        return CONTROL_FAIL(p->why, "hit %u, decision %d; expected hit %d", info.hit, d != NULL,
                            hit);
    p->n[HITS] += nothing;
    p->n[RELEASES] += want->release_count > 0;
    if (d && !control_same_decision(&p->l, d, want, p->why))
        return false;
    for (int v = 0; v < p->s.world.value_count; v++)
        p->s.world.values[v].at = want->after[v];
    p->epoch++;
    borrow(p, &t->asked, false);
    t->entered = true;
    return same_values(p, t);
}

static bool enter(use_pair *p, use_slot *t) {
    mc_world w = p->s.world;
    mc_answer want;
    memcpy(w.requirements, t->asked.requirements, sizeof w.requirements);
    memcpy(w.reservations, t->asked.reservations, sizeof w.reservations);
    w.requirement_count = t->asked.requirement_count;
    w.reservation_count = t->asked.reservation_count;
    w.limit = CONTROL_CAP;
    if (!live_track(&p->l, &w, p->why))
        return false;
    mc_decide(&w, &want);
    if (want.verdict == MC_LIMIT)
        return true; /* not tried */
    for (int i = 0; i < SLOTS; i++)
        p->n[NESTED] += p->slots[i].entered;
    for (int i = 0; i < DEVICES; i++) /* whoever gives a lease back meanwhile leaves it pending */
        (void)!tn_sim_queue_delay(p->sim, p->streams[i], 1000000);
    tn_status status = tn_use_enter(t->use);
    (void)!tn_sim_run(p->sim);
    if (want.verdict == MC_FOUND) {
        p->n[ENTERED]++;
        return status == TN_OK ? same_entry(p, t, &want)
                               : CONTROL_FAIL(p->why, "enter: %s (%s); expected TN_OK",
                                              tn_status_name(status), tn_last_error()->message);
    }
    p->n[REFUSALS]++;
    return status == TN_ERR_PLAN ||
           CONTROL_FAIL(p->why, "enter: %s; expected TN_ERR_PLAN", tn_status_name(status));
}

bool use_leave(use_pair *p, use_slot *t) {
    if (!t->entered)
        return true;
    t->entered = false;
    borrow(p, &t->asked, true);
    return tn_use_exit(t->use) == TN_OK ||
           CONTROL_FAIL(p->why, "exit: %s", tn_last_error()->message);
}

static bool begin(use_pair *p, use_slot *t, uint64_t seed) {
    tn_transfer_stream streams[DEVICES];
    tn_use_options options = TN_USE_OPTIONS_INIT;
    tn_request *request = NULL;
    unsigned seen = 0;
    tn_use_destroy(t->use);
    t->use = NULL;
    scene_draw_need(&p->s, seed);
    t->asked = p->s.world;
    for (int i = 0; i < t->asked.requirement_count; i++)
        seen |= 1u << t->asked.requirements[i].at;
    for (int k = 0; k < DEVICES; k++)
        if (seen >> (k + 2) & 1)
            streams[options.consumer_count++] =
                (tn_transfer_stream){control_location(k + 2), p->streams[k]};
    options.consumers = options.consumer_count ? streams : NULL;
    tn_status status = control_request(&p->l, &t->asked, &request);
    if (status == TN_OK)
        status = tn_use_create(p->c, request, &options, &t->use);
    tn_request_destroy(request);
    return status == TN_OK || CONTROL_FAIL(p->why, "use: %s", tn_last_error()->message);
}

static void print_step(const use_pair *p, const use_step *st) {
    static const char *const kinds[] = {"enter", "exit", "again"};
    const mc_world *w = &p->slots[st->slot].asked;
    if (!p->verbose)
        return;
    printf("  use %u: %s", st->slot, kinds[st->kind]);
    for (int i = 0; i < w->requirement_count && st->kind != EXIT; i++)
        printf("%s v%d@%s", i ? "," : "", w->requirements[i].value,
               control_at(w->requirements[i].at));
    for (int i = 0; i < w->reservation_count && st->kind != EXIT; i++)
        printf(", reserve %s:%llu", control_at(w->reservations[i].at),
               (unsigned long long)w->reservations[i].bytes);
    printf("\n");
    fflush(stdout);
}

bool use_one_step(use_pair *p, const use_step *st) {
    use_slot *t = &p->slots[st->slot];
    bool ok = use_leave(p, t);
    if (ok && st->kind == ENTER)
        ok = begin(p, t, st->seed);
    print_step(p, st);
    if (!ok || st->kind == EXIT || !t->use)
        return ok && same_state(p);
    if (st->kind == AGAIN) {
        p->n[AGAINS]++;
        ok = tn_use_reset(t->use) == TN_OK;
    }
    return ok && enter(p, t) && same_state(p);
}
