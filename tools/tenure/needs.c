/* SPDX-License-Identifier: MIT */
#include "needs.h"

#include "base.h"

#include <inttypes.h>
#include <stdlib.h>

static uint64_t plus(uint64_t a, uint64_t b) { return a > INT64_MAX - b ? INT64_MAX : a + b; }

static uint64_t times(uint64_t a, uint64_t b) {
    return b != 0 && a > INT64_MAX / b ? INT64_MAX : a * b;
}

static void raise_to(uint64_t *most, uint64_t value) {
    if (value > *most) {
        *most = value;
    }
}

struct needs needs_find(struct program *const *programs, size_t count, uint64_t tenants) {
    struct needs needs = {0};

    for (size_t i = 0; i < count; i++) {
        const struct program *program = programs[i];

        needs.tenant_key_bytes = plus(needs.tenant_key_bytes, program->tenant_key_bytes);
        needs.source_bytes = plus(needs.source_bytes, times(program->source_bytes, tenants + 1));
        raise_to(&needs.largest_key_bytes, program->largest_key_bytes);
        raise_to(&needs.peak_bytes, program->peak_bytes);
        raise_to(&needs.need_bytes, program->need_bytes);
        if (i == 0 || program->need_bytes < needs.least_need_bytes) {
            needs.least_need_bytes = program->need_bytes;
        }
    }
    return needs;
}

static uint64_t share(double percent, uint64_t bytes) {
    double part = percent / 100 * (double)bytes;

    return part >= 9.2e18 ? INT64_MAX : (uint64_t)part;
}

static uint64_t budget_of(const struct budget *budget, uint64_t whole_bytes, uint64_t extra_bytes) {
    switch (budget->form) {
    case BUDGET_BYTES:
        return budget->bytes;
    case BUDGET_PERCENT:
        return plus(share(budget->percent, whole_bytes), extra_bytes);
    default:
        return UINT64_MAX;
    }
}

void needs_budgets(const struct needs *needs, const struct demand *demand,
                   uint64_t out_budget_bytes[TIER_COUNT]) {
    uint64_t per_worker = plus(needs->peak_bytes, times(2, needs->largest_key_bytes));

    if (demand->only_keys) {
        per_worker = 0;
    }
    out_budget_bytes[TIER_DEVICE] = budget_of(&demand->device_budget, needs->tenant_key_bytes,
                                              times(demand->workers, per_worker));
    out_budget_bytes[TIER_PINNED] =
        budget_of(&demand->pinned_budget, times(demand->tenants, needs->tenant_key_bytes), 0);
}

/* The numbers behind a refusal. */
static bool refuse(const struct needs *needs, const struct demand *demand, uint64_t device,
                   uint64_t least) {
    uint64_t workers = demand->workers;
    char *others = text_copy("");

    if (workers > 1) {
        free(others);
        others = text_format(", %" PRIu64 " for each other one", needs->least_need_bytes);
    }
    complain("%s: the device budget of %" PRIu64 " bytes is below the %" PRIu64
             " bytes that %" PRIu64 " worker%s: %" PRIu64
             " for the neediest request, its ciphertexts and workspace and what one operation "
             "reads (ciphertexts and workspace alone: %" PRIu64 ", largest key: %" PRIu64 ")%s",
             demand->command, device, least, workers, workers == 1 ? " needs" : "s need",
             needs->need_bytes, needs->peak_bytes, needs->largest_key_bytes, others);
    free(others);
    return false;
}

bool needs_judge(const struct needs *needs, const struct demand *demand,
                 const uint64_t budget_bytes[TIER_COUNT]) {
    uint64_t least = plus(needs->need_bytes, times(demand->workers - 1, needs->least_need_bytes));

    return budget_bytes[TIER_DEVICE] >= least ||
           refuse(needs, demand, budget_bytes[TIER_DEVICE], least);
}
