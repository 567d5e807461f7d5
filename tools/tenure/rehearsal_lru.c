/* SPDX-License-Identifier: MIT */
/*
 * A rehearsal with --control lru: the steps of operation_lru.c and request.c, with weightless
 * values.
 */
#include "base.h"
#include "rehearsal.h"
#include "weightless.h"

#include <inttypes.h>
#include <stdlib.h>

enum { ANCHOR_BYTES = 8 };

/* ---- Opening and closing ---- */

static tn_status make_stream(struct rehearsal *rehearsal) {
    return tn_sim_stream_create(rehearsal->scene->machine.sim, 0, 0, &rehearsal->placer.stream);
}

bool rehearsal_open_control(struct rehearsal *rehearsal, uint64_t pinned_budget) {
    struct control *control = &rehearsal->control;
    tn_status status = make_stream(rehearsal);

    if (status != TN_OK) {
        return rehearsal_fail(rehearsal, status, "making", "a stream");
    }
    *control = (struct control){.manager = rehearsal->scene->manager,
                                .catalogue = &rehearsal->catalogue,
                                .at = {tn_location_pinned(), rehearsal->scene->machine.at},
                                .pinned_budget = pinned_budget};
    rehearsal->has_control = true;
    rehearsal->placer.control = control;
    status = control_open(control, weightless_create(tn_location_pageable(), ANCHOR_BYTES));
    if (status != TN_OK) {
        return rehearsal_fail(rehearsal, status, "making", "the controller");
    }
    scene_add_value(rehearsal->scene, control->anchor, "anchor");
    return true;
}

void rehearsal_close_control(struct rehearsal *rehearsal) {
    tn_status status = TN_OK;

    if (rehearsal->has_control) {
        status = control_close(&rehearsal->control);
    }
    if (status == TN_OK && rehearsal->placer.stream != NULL) {
        status = tn_sim_stream_destroy(rehearsal->scene->machine.sim, rehearsal->placer.stream);
    }
    if (status != TN_OK) {
        complain("explain: the controller does not close: %s", tn_status_text(status));
    }
    ask_fini(&rehearsal->ask);
}

/* ---- Steps ---- */

static void begin_ask(struct rehearsal *rehearsal, const char *what) {
    ask_begin(&rehearsal->ask, "%.100s: %.100s", rehearsal->program->work->name, what);
}

static void ask_operation(struct rehearsal *rehearsal, const struct workload_op *op) {
    const struct program *program = rehearsal->program;
    uint64_t bytes = 0;

    ask_begin(&rehearsal->ask, "%.100s: operation %" PRIu64 ", %.100s", program->work->name,
              rehearsal->op + 1, op->name);
    for (uint32_t i = 0; i < op->reads.count; i++) {
        uint32_t value = program->work->refs[op->reads.first + i];
        bool is_source = program_is_source(program, value);
        struct item *item = is_source ? rehearsal_item(rehearsal, value) : NULL;

        ask_value(&rehearsal->ask, is_source ? item->handle : rehearsal->owned[value].handle, item,
                  program->work->values[value].id);
    }
    for (uint32_t i = 0; i < op->writes.count; i++) {
        bytes += program->value_bytes[program->work->refs[op->writes.first + i]];
    }
    if (op->writes.count > 0) {
        ask_reserve(&rehearsal->ask, bytes, "results");
    }
}

bool rehearsal_move_in(struct rehearsal *rehearsal, uint32_t value) {
    const char *id = rehearsal->program->work->values[value].id;
    struct stay stay = {0};
    tn_status status = TN_OK;

    begin_ask(rehearsal, "input");
    ask_value(&rehearsal->ask, rehearsal->owned[value].handle, NULL, id);
    status = control_enter(&rehearsal->placer, &rehearsal->ask, &stay);
    if (status == TN_OK) {
        status = control_exit(&rehearsal->placer, &stay);
    }
    return status == TN_OK || rehearsal_fail(rehearsal, status, "moving", id);
}

bool rehearsal_open_workspace(struct rehearsal *rehearsal, uint64_t bytes) {
    tn_status status = TN_OK;

    begin_ask(rehearsal, "workspace");
    ask_reserve(&rehearsal->ask, bytes, "workspace");
    status = control_enter(&rehearsal->placer, &rehearsal->ask, &rehearsal->stage_use);
    return status == TN_OK || rehearsal_fail(rehearsal, status, "reserving", "workspace");
}

static bool adopt_all(struct rehearsal *rehearsal, const struct stay *stay,
                      struct workload_refs writes) {
    tn_reservation reservation = {NULL, 0};
    bool good = true;
    tn_status status = TN_OK;

    if (writes.count > 0) {
        status = control_reservation(stay, &reservation);
    }
    if (status != TN_OK) {
        return rehearsal_fail(rehearsal, status, "reserving room for", "its results");
    }
    for (uint32_t i = 0; good && i < writes.count; i++) {
        good = rehearsal_adopt(rehearsal, rehearsal->program->work->refs[writes.first + i],
                               rehearsal->scene->machine.at, &reservation);
    }
    return good;
}

/* Its lease ends with an event on the stream, which is idle: it is complete at once, and a look at
 * the manager lets it go. */
static tn_status let_go(struct rehearsal *rehearsal, struct stay *stay) {
    const struct machine *machine = &rehearsal->scene->machine;
    const tn_driver_ops *ops = tn_driver_table(machine->driver);
    tn_status status = control_exit(&rehearsal->placer, stay);

    if (status == TN_OK) {
        status = ops->stream_synchronize(tn_driver_self(machine->driver), rehearsal->placer.stream);
    }
    return status;
}

bool rehearsal_run_lru(struct rehearsal *rehearsal, const struct workload_op *op) {
    struct stay stay = {0};
    bool good = true;
    tn_status status = TN_OK;

    if (op->reads.count == 0 && op->writes.count == 0) {
        return true;
    }
    ask_operation(rehearsal, op);
    status = control_enter(&rehearsal->placer, &rehearsal->ask, &stay);
    if (status != TN_OK) {
        return rehearsal_fail(rehearsal, status, "entering", "what it needs");
    }
    good = adopt_all(rehearsal, &stay, op->writes);
    status = let_go(rehearsal, &stay);
    return good &&
           (status == TN_OK || rehearsal_fail(rehearsal, status, "giving back", "what it used"));
}

/* ---- The decision ---- */

static tn_status decide_once(struct rehearsal *rehearsal, bool *by_pinned) {
    tn_request *request = NULL;
    tn_status status = control_request(&rehearsal->control, &rehearsal->ask, by_pinned, &request);

    if (status == TN_OK) {
        status = tn_controller_decide(rehearsal->control.controller, request,
                                      &rehearsal->scene->decision);
    }
    tn_request_destroy(request);
    return status;
}

tn_status rehearsal_decide(struct rehearsal *rehearsal, tn_error *out_error) {
    const struct workload_op *op = &rehearsal->program->work->ops[rehearsal->op];
    bool by_pinned = true;
    tn_status status = TN_OK;

    ask_operation(rehearsal, op);
    status = decide_once(rehearsal, &by_pinned);
    if (status == TN_ERR_PLAN && by_pinned && tn_last_error()->at.kind == TN_LOCATION_PINNED) {
        by_pinned = false; /* as serve does */
        status = decide_once(rehearsal, &by_pinned);
    }
    if (status == TN_OK) {
        rehearsal->scene->plan = tn_decision_plan(rehearsal->scene->decision);
    } else if (status == TN_ERR_PLAN) {
        *out_error = *tn_last_error();
    } else {
        rehearsal_fail(rehearsal, status, "deciding", "what it needs");
    }
    return status;
}
