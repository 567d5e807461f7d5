/* SPDX-License-Identifier: MIT */
/*
 * What explicit control does for one operation, as a plan.
 */
#include "rehearsal.h"

#include "base.h"

#include <inttypes.h>
#include <stdlib.h>

/* What is left at a tier, and the least recently used item there that has not been chosen yet. */
struct tier_room {
    uint64_t free_bytes; /* UINT64_MAX: unlimited */
    struct item *oldest;
};

static bool read_free(const struct rehearsal *rehearsal, tn_snapshot *snapshot, enum tier tier,
                      uint64_t *out_bytes) {
    tn_location_info info[8] = {{.size = sizeof info[0]}};
    size_t count = sizeof info / sizeof info[0];

    *out_bytes = scene_budget(rehearsal->scene, rehearsal->placement.at[tier]);
    if (*out_bytes == UINT64_MAX) {
        return true;
    }
    if (tn_snapshot_locations(snapshot, info, &count) != TN_OK) {
        return false;
    }
    for (size_t i = 0; i < count && i < sizeof info / sizeof info[0]; i++) {
        if (tn_location_equal(info[i].at, rehearsal->placement.at[tier])) {
            *out_bytes = info[i].remaining_bytes;
        }
    }
    return true;
}

static bool look(const struct rehearsal *rehearsal, struct tier_room room[TIER_COUNT]) {
    tn_snapshot *snapshot = NULL;
    bool good = tn_snapshot_take(rehearsal->scene->manager, &snapshot) == TN_OK;

    for (int tier = 0; good && tier < TIER_COUNT; tier++) {
        room[tier].oldest = rehearsal->placement.lru[tier].oldest;
        good = read_free(rehearsal, snapshot, (enum tier)tier, &room[tier].free_bytes);
    }
    tn_snapshot_drop(snapshot);
    if (!good) {
        char *text = status_text((tn_status)tn_last_error()->status);

        complain("explain: the manager's figures cannot be read: %s", text);
        free(text);
    }
    return good;
}

/* ---- Reclaim ---- */

static bool can_go(const struct item *item) { return item->users == 0; }

static bool could_fit(const struct tier_room *room, enum tier tier, uint64_t bytes) {
    uint64_t sum = room->free_bytes;

    for (const struct item *item = room->oldest; item != NULL && sum < bytes;
         item = item->newer[tier]) {
        sum += can_go(item) ? item->bytes : 0;
    }
    return sum >= bytes;
}

/* Takes so many bytes of a tier, dropping what must go. False: not even that is enough. */
static bool take(struct rehearsal *rehearsal, struct tier_room *room, enum tier tier,
                 uint64_t bytes) {
    bool fits = could_fit(room, tier, bytes);

    for (; room->oldest != NULL && room->free_bytes < bytes;
         room->oldest = room->oldest->newer[tier]) {
        if (can_go(room->oldest)) {
            scene_act(rehearsal->scene, TN_PHASE_RECLAIM,
                      tn_action_drop(room->oldest->handle, rehearsal->placement.at[tier]));
            room->free_bytes += room->oldest->bytes;
        }
    }
    if (room->free_bytes != UINT64_MAX) {
        room->free_bytes -= fits ? bytes : room->free_bytes;
    }
    return fits;
}

/* ---- Reservations ---- */

static uint64_t want(struct rehearsal *rehearsal, const struct workload_op *op) {
    const struct program *program = rehearsal->program;
    tn_location at = rehearsal->scene->machine.at;
    uint64_t workspace = program->stage_bytes[op->stage];
    uint64_t results = 0;

    for (uint32_t i = 0; i < op->writes.count; i++) {
        results += program->value_bytes[program->work->refs[op->writes.first + i]];
    }
    if (workspace > 0) {
        scene_want(rehearsal->scene, at, workspace, "workspace");
    }
    if (op->writes.count > 0) {
        scene_want(rehearsal->scene, at, results, "results");
    }
    return workspace + results;
}

/* ---- Enter and exit ---- */

static void ensure(struct rehearsal *rehearsal, tn_handle handle, enum tier tier) {
    scene_act(rehearsal->scene, TN_PHASE_ENTER,
              tn_action_ensure(handle, rehearsal->placement.at[tier]));
}

/* From its file by way of pinned memory, if that has room. */
static void read_item(struct rehearsal *rehearsal, struct tier_room *pinned, struct item *item) {
    bool is_pinned = item->listed[TIER_PINNED];

    if (!item->listed[TIER_DEVICE] && !is_pinned && could_fit(pinned, TIER_PINNED, item->bytes)) {
        is_pinned = take(rehearsal, pinned, TIER_PINNED, item->bytes);
        ensure(rehearsal, item->handle, TIER_PINNED);
    }
    ensure(rehearsal, item->handle, TIER_DEVICE);
    if (item->kind != KIND_PLAINTEXT || item->readers != 1) {
        return;
    }
    if (is_pinned) {
        scene_act(rehearsal->scene, TN_PHASE_EXIT,
                  tn_action_drop(item->handle, rehearsal->placement.at[TIER_PINNED]));
    }
    scene_act(rehearsal->scene, TN_PHASE_EXIT,
              tn_action_drop(item->handle, rehearsal->placement.at[TIER_DEVICE]));
}

static void read_all(struct rehearsal *rehearsal, struct tier_room *pinned,
                     const struct workload_op *op) {
    for (uint32_t i = 0; i < op->reads.count; i++) {
        uint32_t value = rehearsal->program->work->refs[op->reads.first + i];

        if (program_is_source(rehearsal->program, value)) {
            read_item(rehearsal, pinned, rehearsal_item(rehearsal, value));
        } else {
            ensure(rehearsal, rehearsal->owned[value].handle, TIER_DEVICE);
        }
    }
}

static void free_all(struct rehearsal *rehearsal, const struct workload_op *op) {
    for (uint32_t i = 0; i < op->frees.count; i++) {
        const struct rehearsed *owned =
            &rehearsal->owned[rehearsal->program->work->refs[op->frees.first + i]];

        if (owned->live) { /* else the operation itself writes it */
            scene_act(rehearsal->scene, TN_PHASE_EXIT, tn_action_discard(owned->handle));
        }
    }
}

/* Its items are in use, so that none of them goes (P1); returns the bytes that are not there. */
static uint64_t mark_reads(struct rehearsal *rehearsal, const struct workload_op *op) {
    uint64_t missing = 0;

    for (uint32_t i = 0; i < op->reads.count; i++) {
        uint32_t value = rehearsal->program->work->refs[op->reads.first + i];
        struct item *item = NULL;

        if (program_is_source(rehearsal->program, value)) {
            item = rehearsal_item(rehearsal, value);
            placement_use(&rehearsal->placement, item, true);
            missing += item->listed[TIER_DEVICE] ? 0 : item->bytes;
        }
    }
    return missing;
}

bool rehearsal_plan_explicit(struct rehearsal *rehearsal) {
    const struct workload *work = rehearsal->program->work;
    const struct workload_op *op = &work->ops[rehearsal->op];
    struct tier_room room[TIER_COUNT];
    char *name = NULL;
    uint64_t bytes = 0;
    tn_status status = TN_OK;

    if (!look(rehearsal, room)) {
        return false;
    }
    bytes = mark_reads(rehearsal, op);
    bytes += want(rehearsal, op);
    (void)take(rehearsal, &room[TIER_DEVICE], TIER_DEVICE, bytes); /* or the explanation says no */
    read_all(rehearsal, &room[TIER_PINNED], op);
    free_all(rehearsal, op);
    name = text_format("%.100s: operation %" PRIu64 ", %.100s", work->name, rehearsal->op + 1,
                       op->name);
    status = scene_plan(rehearsal->scene, name);
    free(name);
    if (status != TN_OK) {
        char *text = status_text(status);

        complain("explain: no plan for operation %" PRIu64 ": %s", rehearsal->op + 1, text);
        free(text);
    }
    return status == TN_OK;
}
