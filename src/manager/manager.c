/* SPDX-License-Identifier: MIT */
/*
 * Life cycle of a manager.
 */
#include "manager/manager_internal.h"

#define DEFAULT_TRACE 4096u
#define DEFAULT_KEEP 4096u
#define DEFAULT_RING_BLOCK (UINT64_C(8) << 20)
#define DEFAULT_RING_BLOCKS 4u

/* Ids are never used twice in a process (M1). Relaxed: only uniqueness matters. */
static _Atomic uint64_t ids;

tn_status tn__not_null(const void *pointer, const char *what) {
    return pointer ? TN_OK : tn__fail(TN_ERR_KIND, "%s is NULL", what);
}

/* ---- Creation --------------------------------------------------------------------------- */

static tn_status check_budget(const tn_config *config, size_t i) {
    const tn_budget *b = &config->budgets[i];
    tn_location at;
    tn_status status = tn__driver_check_location(config->driver, b->at, &at);
    if (status != TN_OK)
        return status;
    if (b->bytes > (uint64_t)INT64_MAX)
        return tn__fail(TN_ERR_VALUE, "budget %zu is above INT64_MAX", i);
    for (size_t j = 0; j < i; j++)
        if (tn__location_same(config->budgets[j].at, at))
            return tn__fail(TN_ERR_VALUE, "budget %zu names a location twice", i);
    return TN_OK;
}

static tn_status check_config(const tn_config *config) {
    if (config->mode > TN_MODE_CONCURRENT)
        return tn__fail(TN_ERR_KIND, "mode %u is out of range", (unsigned)config->mode);
    if (config->reaper > TN_REAPER_MANUAL)
        return tn__fail(TN_ERR_KIND, "reaper %u is out of range", (unsigned)config->reaper);
    if (config->budget_count > 0 && !config->budgets)
        return tn__fail(TN_ERR_KIND, "the budgets are NULL");
    if (config->ring_blocks > TN_RING_BLOCKS_MAX || config->reserved0 != 0)
        return tn__fail(TN_ERR_VALUE, "the ring has %u blocks, at most %u, and reserved0 is 0",
                        (unsigned)config->ring_blocks, TN_RING_BLOCKS_MAX);
    if (config->ring_block_bytes > (uint64_t)INT64_MAX / TN_RING_BLOCKS_MAX)
        return tn__fail(TN_ERR_VALUE, "the blocks of the ring are too large");
    for (size_t i = 0; i < config->budget_count; i++) {
        tn_status status = check_budget(config, i);
        if (status != TN_OK)
            return status;
    }
    return TN_OK;
}

static uint64_t trace_capacity(const tn_config *config) {
    switch (config->trace_capacity) {
    case 0:
        return DEFAULT_TRACE;
    case TN_TRACE_NONE:
        return 0;
    case TN_TRACE_UNLIMITED:
        return UINT64_MAX;
    default:
        return config->trace_capacity;
    }
}

static tn_status create_ring(tn_manager *m, const tn_config *config) {
    tn_status status = tn__ring_create(
        config->driver, config->ring_block_bytes ? config->ring_block_bytes : DEFAULT_RING_BLOCK,
        config->ring_blocks ? config->ring_blocks : DEFAULT_RING_BLOCKS, &m->ring);
    if (status == TN_OK)
        tn__driver_use(m->driver);
    return status;
}

static tn_status create_parts(tn_manager *m, const tn_config *config) {
    tn_status status = create_ring(m, config);
    if (status == TN_OK)
        status = tn__store_create(m->id, config->budgets, config->budget_count,
                                  config->keep_discarded ? config->keep_discarded : DEFAULT_KEEP,
                                  &m->store);
    if (status != TN_OK)
        return status;
    tn__trans_config trans = {.manager = m->id,
                              .store = m->store,
                              .driver = config->driver,
                              .ring = m->ring,
                              .mode = config->mode,
                              .trace_capacity = trace_capacity(config),
                              .now_ns = config->now_ns,
                              .now_context = config->now_context};
    tn__life_config life = {.manager = m->id,
                            .store = m->store,
                            .driver = config->driver,
                            .manual = config->reaper == TN_REAPER_MANUAL,
                            .diagnostic = config->diagnostic,
                            .diagnostic_context = config->diagnostic_context};
    status = tn__life_create(&life, &m->life);
    if (status != TN_OK)
        return status;
    m->gate = tn__life_gate(m->life);
    trans.life = m->life;
    return tn__trans_create(&trans, &m->trans);
}

static void destroy_parts(tn_manager *m) {
    tn__trans_destroy(m->trans);
    if (m->life)
        tn__life_destroy(m->life);
    if (m->store)
        tn__store_release(m->store);
    if (m->ring) {
        tn__ring_destroy(m->ring);
        tn__driver_unuse(m->driver);
    }
    tn__free(m);
}

tn_status tn_manager_create(const tn_config *config, tn_manager **out) {
    tn_config c = TN_CONFIG_INIT;
    tn_status status = tn__not_null(out, "the output");
    if (status == TN_OK && config)
        status = tn__struct_in(&c, sizeof c, sizeof(size_t) + 1, config, "tn_config");
    if (status == TN_OK)
        status = check_config(&c);
    if (status != TN_OK)
        return status;
    if (tn__rcu_stranded())
        return tn__fail(TN_ERR_FORKED, "this process was forked while other threads used managers; "
                                       "fork before, or exec");
    tn__thread *thread = tn__thread_self();
    tn_manager *m = thread ? tn__zalloc(sizeof *m) : NULL;
    if (!m)
        return tn__no_memory();
    tn__rcu_thread_ready(thread);
    m->id = tn__add_rlx(&ids, 1) + 1;
    m->driver = c.driver;
    status = create_parts(m, &c);
    if (status != TN_OK) {
        tn_error kept = *tn__error_current();
        destroy_parts(m);
        return tn__error_restore(&kept);
    }
    *out = m;
    return TN_OK;
}

/* ---- Entry ------------------------------------------------------------------------------ */

tn_status tn__manager_enter(tn_manager *m, bool closed_ok, tn__thread **out_thread) {
    return tn__life_begin(m->life, closed_ok, out_thread);
}

tn_status tn__manager_enter_guard_only(tn_manager *m) {
    tn__thread *thread = tn__thread_self();
    if (!thread)
        return tn__no_memory();
    tn__rcu_thread_ready(thread);
    return tn__life_enter_guard_only(m->life, thread);
}

/* ---- Close and destroy ------------------------------------------------------------------ */

tn_status tn_manager_close(tn_manager *m, uint32_t flags) {
    tn__thread *thread;
    tn_status status = tn__not_null(m, "the manager");
    if (status == TN_OK && (flags & ~(uint32_t)(TN_CLOSE_NO_WAIT | TN_CLOSE_FORCE)))
        status = tn__fail(TN_ERR_VALUE, "unknown flags %#x", (unsigned)flags);
    if (status == TN_OK)
        status = tn__manager_enter(m, true, &thread);
    if (status != TN_OK)
        return tn__done(m, status);
    return tn__done(m, tn__trans_close(m->trans, thread, !(flags & TN_CLOSE_NO_WAIT),
                                       (flags & TN_CLOSE_FORCE) != 0));
}

/* D15: each open lifetime gives a warning; streams of open leases are synchronised; then
 * everything is cleared. */
static tn_status close_for_destroy(tn_manager *m, tn__thread *thread) {
    if (tn__life_closed(m->life))
        return TN_OK;
    tn__life_abandon(m->life);
    return tn__trans_close_for_destroy(m->trans, thread);
}

tn_status tn_manager_destroy(tn_manager *m) {
    tn__thread *thread;
    if (!m)
        return TN_OK;
    tn_status status = tn__manager_enter(m, true, &thread);
    if (status == TN_OK && tn__rcu_in_section())
        status = tn__fail(TN_ERR_REENTRANCY, "called inside an RCU read section");
    if (status == TN_OK)
        status = close_for_destroy(m, thread);
    if (status != TN_OK)
        return tn__done(m, status);
    destroy_parts(m);
    return TN_OK;
}

uint64_t tn_manager_id(const tn_manager *m) { return m ? m->id : 0; }
