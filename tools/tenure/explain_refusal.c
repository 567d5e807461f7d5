/* SPDX-License-Identifier: MIT */
#include "base.h"
#include "explain.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

/* What did not fit: a value, or a reservation by its label; owned. */
static char *subject(const struct scene *scene, const tn_error *error) {
    return error->label[0] != '\0' ? text_printable(error->label)
                                   : text_copy(scene_name(scene, error->handle));
}

static void print_blockers(const struct scene *scene, const tn_error *error) {
    for (uint64_t i = 0; i < error->blocker_count && i < TN_ERROR_OWNERS_MAX; i++) {
        const tn_blocker *blocker = &error->blockers[i];
        char *label = text_printable(blocker->label);

        printf("  in the way           %s %s, %" PRIu64 " bytes at %s\n",
               blocker_word(blocker->kind),
               label[0] != '\0' ? label : scene_name(scene, blocker->handle), blocker->bytes,
               location_text(blocker->at, "-").text);
        free(label);
    }
}

void explain_print_refusal(const struct scene *scene, const tn_error *error) {
    char *name = text_printable(error->plan);
    char *message = text_printable(error->message);
    char *what = subject(scene, error);

    printf("tenure explain, request \"%s\"\n", name);
    printf("  feasible             NO\n");
    printf("  verdict              %s\n", verdict_word(error->verdict));
    printf("  first problem        %s %" PRIu64 ": %s, %s\n", phase_word(error->phase),
           error->failed_index, reason_word(error->reason), what);
    printf("                       %s: %s\n", tn_status_name((tn_status)error->status), message);
    printf("  %-20s %" PRIu64 " bytes of %" PRIu64 " used, %" PRIu64 " reserved, %" PRIu64
           " wanted\n",
           location_text(error->at, "-").text, error->used_bytes, error->budget_bytes,
           error->reserved_bytes, error->requested_bytes);
    print_blockers(scene, error);
    free(what);
    free(name);
    free(message);
}

static json_t *whole(uint64_t value) { return json_integer((json_int_t)value); }

void explain_print_refusal_json(const struct scene *scene, const tn_error *error) {
    char *name = text_printable(error->plan);
    char *message = text_printable(error->message);
    char *what = subject(scene, error);
    json_t *all = json_pack(
        "{s:s?, s:b, s:s, s:{s:s, s:o, s:s, s:s?, s:s, s:s?, s:s, s:o, s:o, s:o, s:o}, s:n}",
        "request", name, "feasible", 0, "verdict", verdict_word(error->verdict), "problem", "phase",
        phase_word(error->phase), "index", whole(error->failed_index), "reason",
        reason_word(error->reason), "subject", what, "status",
        tn_status_name((tn_status)error->status), "message", message, "at",
        location_text(error->at, "-").text, "budget_bytes", whole(error->budget_bytes),
        "used_bytes", whole(error->used_bytes), "reserved_bytes", whole(error->reserved_bytes),
        "requested_bytes", whole(error->requested_bytes), "decision");

    json_dumpf(all, stdout, JSON_INDENT(2));
    putchar('\n');
    json_decref(all);
    free(what);
    free(name);
    free(message);
}
