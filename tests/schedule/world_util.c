/* SPDX-License-Identifier: MIT */
/*
 * The world of the scenarios: its beginning, what must be left of it, and its operations.
 */
#include "lifetime/lifetime_priv.h"
#include "manager/manager_internal.h"
#include "transition/transition_priv.h"
#include "world_priv.h"

world W;
uint64_t world_budgets[3];

/* ---- Begin ---- */

void world_begin(uint32_t mode, uint32_t reaper, uint32_t pageable, uint32_t pinned,
                 uint32_t cuda) {
    const tn_budget budgets[] = {
        {P, pageable * WORLD_BYTES}, {N, pinned * WORLD_BYTES}, {C0, cuda * WORLD_BYTES}};
    tn_config config = TN_CONFIG_INIT;
    W.mode = mode;
    for (size_t i = 0; i < 3; i++)
        world_budgets[i] = budgets[i].bytes;
    SCHED_OK(tn_sim_create("dev:1 mem=64KiB pinned=64KiB", &W.sim));
    W.driver = tn_sim_driver(W.sim);
    SCHED_OK(tn_sim_stream_create(W.sim, 0, 0, &W.stream));
    config.driver = W.driver;
    config.budgets = budgets;
    config.budget_count = 3;
    config.mode = mode;
    config.reaper = reaper;
    SCHED_OK(tn_manager_create(&config, &W.m));
    for (uint32_t i = 0; i < WORLD_VALUES; i++) {
        tn_value_spec spec = TN_VALUE_SPEC_INIT;
        tn_source source = world_source(i);
        spec.type = &world_type;
        spec.logical_bytes = spec.storage_bytes = WORLD_BYTES;
        spec.replica_mode = TN_REPLICABLE;
        spec.recoverability = TN_RECONSTRUCTIBLE;
        SCHED_OK(tn_manager_register_source(W.m, &spec, &source, P, &W.values[i]));
    }
    W.first_placement = W.m->store->newest->number;
    world_only_removes(false);
}

void world_on_host(uint32_t count) {
    for (uint32_t i = 0; i < count; i++)
        SCHED_OK(world_ensure(i, P));
}

void world_on_device(void) {
    SCHED_OK(world_ensure(0, C0));
    SCHED_OK(world_ensure(1, C0));
    SCHED_OK(tn_sim_run(W.sim));
}

/* ---- End ---- */

static void check_slots(void) {
    for (tn__slot *slot = tn__load_acq(&W.m->life->slots); slot; slot = slot->next) {
        uint64_t used = 0, listed = 0;
        SCHED_EQUAL(tn__load_acq(&slot->counter) % 2, 0);
        for (tn__block *b = tn__load_acq(&slot->blocks); b; b = b->next) {
            for (uint32_t i = 0; i < b->used; i++)
                SCHED_EQUAL(tn__word_state(tn__load_acq(&b->records[i].pair.low)), TN__FREE);
            used += b->used;
        }
        for (const tn__record *r = slot->free_local; r && listed <= used; r = r->next)
            listed++;
        for (const tn__record *r = tn__load_acq(&slot->free_remote); r && listed <= used;
             r = r->next)
            listed++;
        if (!W.detached)
            SCHED_EQUAL(listed, used); /* every record in one list, once */
        for (const tn__pool *pool = slot->pools; pool; pool = pool->next) {
            uint64_t all = 0, idle = 0;
            for (const tn__event *e = pool->all; e; e = e->all_next)
                all++;
            for (const tn__event *e = pool->local; e; e = e->next)
                idle++;
            for (const tn__event *e = tn__load_acq(&pool->returned); e; e = e->next)
                idle++;
            SCHED_EQUAL(idle, all);
        }
    }
}

static void check_counts(void) {
    bool stable = false;
    uint64_t lifetimes = tn__life_count(W.m->life, &stable);
    if (!W.lifetimes_unknown)
        SCHED_EQUAL(lifetimes, W.lifetimes);
    SCHED_CHECK(stable);
    if (!W.placement_unknown)
        SCHED_EQUAL(W.m->store->newest->number - W.first_placement, W.placement);
    SCHED_CHECK(!W.m->trans->flow.in_flight && !W.m->trans->flow.waiting);
}

static void check_bytes(void) {
    const tn_location places[] = {P, N, C0};
    look l;
    world_snapshot(&l);
    SCHED_EQUAL(l.head.exact, 1);
    SCHED_EQUAL(l.head.lease_count + l.head.pending_lease_count + l.head.hold_count +
                    l.head.reservation_count,
                0);
    for (size_t i = 0; i < 3; i++) {
        uint64_t total = 0, claimed = 0;
        tn__ledger_read(tn__store_ledger(W.m->store, places[i]), &total, &claimed);
        SCHED_EQUAL(claimed, 0);
        SCHED_EQUAL(total, l.used[i]);
    }
}

static void end_values(void) {
    for (uint32_t i = 0; i < WORLD_VALUES; i++) {
        tn_status status = tn_manager_discard(W.m, W.values[i], NULL);
        SCHED_CHECK(status == TN_OK || status == TN_ERR_HANDLE);
    }
    SCHED_OK(tn_manager_close(W.m, 0));
}

void world_end(void) {
    uint64_t completed = 0;
    SCHED_OK(tn_sim_run(W.sim));
    sched_settle();
    if (W.m && !W.closed) {
        if (W.m->life->manual)
            SCHED_OK(tn_manager_step(W.m, &completed));
        check_bytes(); /* without a thread that has missed its wake-up, nothing is pending */
        check_counts();
        end_values();
    }
    if (W.m) {
        check_slots();
        SCHED_OK(tn_manager_destroy(W.m));
    }
    tn_sim_memory memory = {.size = sizeof memory};
    SCHED_EQUAL(world_payloads(), 0);
    for (uint32_t i = 0; i < 2; i++) {
        SCHED_OK(tn_sim_read_memory(W.sim, i ? C0 : N, &memory));
        SCHED_EQUAL(memory.live_bytes, 0);
        SCHED_CHECK(memory.peak_bytes <= world_budgets[1 + i]); /* B1, by the machine's figures */
    }
    if (tn_sim_violations(W.sim) != 0)
        sched_fail(__FILE__, __LINE__, "the machine: %s", tn_sim_violation_text(W.sim));
}

/* ---- Transitions ---- */

static bool may_be(tn_status status) {
    return status == TN_ERR_IN_USE || status == TN_ERR_BUDGET || status == TN_ERR_UNAVAILABLE ||
           status == TN_ERR_CLOSED || status == TN_ERR_REENTRANCY || status == TN_ERR_SOURCE ||
           status == TN_ERR_MATERIALIZATION || status == TN_ERR_HANDLE || status == TN_ERR_PLAN ||
           status == TN_ERR_STALE;
}

#define MAY_BE(expr)                                                                               \
    do {                                                                                           \
        if ((expr) != TN_OK && !may_be(expr))                                                      \
            sched_fail(__FILE__, __LINE__, "refused by %s: %s", tn_status_name(expr),              \
                       tn_last_error()->message);                                                  \
    } while (0)

tn_status world_ensure(uint32_t value, tn_location at) {
    tn_report r = TN_REPORT_INIT;
    tn_status status = tn_manager_ensure(W.m, W.values[value], at, NULL, &r);
    MAY_BE(status);
    W.placement += status == TN_OK && !r.no_op;
    return status;
}

tn_status world_drop(uint32_t value, tn_location at) {
    tn_report r = TN_REPORT_INIT;
    tn_status status = tn_manager_drop(W.m, W.values[value], at, &r);
    MAY_BE(status);
    W.placement += status == TN_OK && !r.no_op;
    return status;
}

tn_status world_move(uint32_t value, tn_location to, tn_location from) {
    tn_report r = TN_REPORT_INIT;
    tn_status status = tn_manager_move(W.m, W.values[value], to, from, NULL, &r);
    MAY_BE(status);
    W.placement_unknown = true;
    return status;
}

tn_status world_discard(uint32_t value) {
    tn_status status = tn_manager_discard(W.m, W.values[value], NULL);
    MAY_BE(status);
    W.placement_unknown = true;
    return status;
}

tn_status world_actions(const tn_action *actions, size_t count, uint64_t effects) {
    tn_status status = tn_manager_execute_actions(W.m, "plan", actions, count, NULL, NULL);
    MAY_BE(status);
    W.placement += status == TN_OK ? effects : 0;
    return status;
}

tn_status world_reserve(tn_location at, uint64_t bytes, tn_reservation *out) {
    tn_status status = tn_manager_reserve(W.m, at, bytes, "world", out);
    MAY_BE(status);
    SCHED_CHECK(status != TN_OK || !W.closed);
    W.lifetimes += status == TN_OK;
    return status;
}

void world_unreserve(const tn_reservation *reservation) {
    SCHED_CHECK(!W.closed); /* a close waited for it, or it was refused */
    SCHED_OK(tn_reservation_release(reservation));
    W.lifetimes++;
}

/* ---- Close ---- */

void world_close(void *unused) {
    (void)unused;
    tn_status status = tn_manager_close(W.m, 0);
    SCHED_CHECK(status == TN_OK || status == TN_ERR_IN_USE);
    SCHED_CHECK(status != TN_OK || W.loans == 0);
    W.closed = status == TN_OK;
}

/* ---- Leases ---- */

/* In a serial manager a callback keeps everybody out for its time (M189): again. */
#define AT_LAST(status, expr)                                                                      \
    while (((status) = (expr)) == TN_ERR_REENTRANCY && W.mode == TN_MODE_SERIAL)                   \
    sched_pause_here()

tn_status world_borrow(const uint32_t *values, size_t count, tn_location at, loan *out) {
    tn_handle handles[WORLD_LOANS];
    for (size_t i = 0; i < count; i++)
        handles[i] = W.values[values[i]];
    tn_stream stream = at.kind == TN_LOCATION_CUDA ? W.stream : NULL;
    *out = (loan){.at = at, .count = count};
    tn_status status = tn_manager_acquire(W.m, handles, count, at, stream, &out->lease);
    MAY_BE(status);
    if (status != TN_OK)
        return status;
    SCHED_CHECK(!W.closed);
    W.lifetimes++;
    W.loans++;
    for (size_t i = 0; i < count; i++) {
        AT_LAST(status, tn_lease_lookup(&out->lease, handles[i], &out->seen[i].data));
        SCHED_OK(status);
        out->seen[i].serial = world_payload_see(out->seen[i].data, values[i]);
    }
    return TN_OK;
}

void world_look(const loan *l) {
    sched_point();
    for (size_t i = 0; i < l->count; i++)
        world_payload_check(l->seen[i].data, l->seen[i].serial);
}

void world_use(const loan *l, uint64_t ns) {
    for (size_t i = 0; i < l->count; i++)
        SCHED_OK(tn_sim_queue_read(W.sim, W.stream, world_payload_block(l->seen[i].data),
                                   WORLD_BYTES, ns));
}

void world_return(const loan *l, uint32_t flags) {
    tn_status status;
    world_look(l);
    W.loans--;
    AT_LAST(status, tn_lease_release(&l->lease, flags));
    SCHED_OK(status);
    W.lifetimes += l->at.kind == TN_LOCATION_CUDA ? 2 : 1;
}

tn_status world_visit(uint32_t value, tn_location at) {
    loan l;
    tn_status status = world_borrow(&value, 1, at, &l);
    if (status == TN_OK)
        world_return(&l, 0);
    return status;
}

/* ---- Snapshots ---- */

static void add_values(const tn_snapshot *s, look *out, uint64_t charges[3]) {
    tn_value_info value = {.size = sizeof value};
    uint64_t cursor = 0;
    bool more = false;
    while (tn_snapshot_next(s, &cursor, &value, &more) == TN_OK && more) {
        tn_materialization_info mats[3] = {{.size = sizeof mats[0]}};
        size_t count = 3;
        SCHED_OK(tn_snapshot_materializations(s, value.handle, mats, &count));
        for (size_t i = 0; i < count; i++) {
            charges[mats[i].at.kind - TN_LOCATION_PAGEABLE] += mats[i].charged_bytes;
            out->uses += mats[i].use_count;
            out->holds += mats[i].hold_count;
            out->pending += mats[i].pending_count;
        }
    }
}

void world_snapshot(look *out) {
    tn_location_info places[3] = {{.size = sizeof places[0]}};
    uint64_t charges[3] = {0, 0, 0};
    size_t count = 3;
    tn_snapshot *s = NULL;
    *out = (look){.head = {.size = sizeof out->head}};
    SCHED_OK(tn_snapshot_take(W.m, &s));
    SCHED_OK(tn_snapshot_read(s, &out->head));
    SCHED_OK(tn_snapshot_locations(s, places, &count));
    add_values(s, out, charges);
    for (size_t i = 0; i < count; i++) {
        out->used[i] = places[i].used_bytes;
        out->reserved[i] = places[i].reserved_bytes;
        SCHED_EQUAL(places[i].used_bytes, charges[i]); /* P3 */
        SCHED_CHECK(places[i].used_bytes + places[i].reserved_bytes <= places[i].budget_bytes);
        SCHED_CHECK(places[i].used_bytes + places[i].reserved_bytes <=
                    places[i].peak_charged_bytes); /* M51 */
    }
    tn_snapshot_drop(s);
}

void world_counts(uint32_t value, tn_materialization_info *out) {
    tn_snapshot *s = NULL;
    size_t count = 1;
    *out = (tn_materialization_info){.size = sizeof *out};
    SCHED_OK(tn_snapshot_take(W.m, &s));
    SCHED_OK(tn_snapshot_materializations(s, W.values[value], out, &count));
    tn_snapshot_drop(s);
}
