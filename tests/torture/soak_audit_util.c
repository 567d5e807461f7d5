/* SPDX-License-Identifier: MIT */
/*
 * The audits of the soak, and its end.
 */
#include "soak_torture.h"

#include <inttypes.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "base/base_internal.h"
#include "lifetime/lifetime_priv.h"
#include "manager/manager_internal.h"

#define ROUND_NS UINT64_C(400000000)

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

/* ---- Memory of the process ---- */

static uint64_t resident_bytes(void) {
    unsigned long pages = 0, all = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f)
        return 0;
    if (fscanf(f, "%lu %lu", &all, &pages) != 2)
        pages = 0;
    (void)fclose(f);
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

/* ---- Standing still ---- */

/* What is over may wait for its consumer a little longer; the streams run on threads. */
static const char *settle(soak_world *w) {
    uint64_t until = tn__mono_ns() + UINT64_C(60000000000);
    tn_snapshot_info head = {.size = sizeof head};
    for (;;) {
        tn_snapshot *s = NULL;
        tn__life *life = w->m->life;
        TN_WORKER_STATUS(tn_manager_step(w->m, NULL), TN_OK);
        TN_WORKER_STATUS(tn_snapshot_take(w->m, &s), TN_OK);
        TN_WORKER_STATUS(tn_snapshot_read(s, &head), TN_OK);
        tn_snapshot_drop(s);
        tn__lock(&life->reap_lock);
        bool queued = life->waiting != NULL || !tn__queue_empty(&life->queue);
        tn__unlock(&life->reap_lock);
        if (head.pending_lease_count == 0 && !queued)
            return NULL;
        if (tn__mono_ns() > until)
            return "pending leases do not end";
    }
}

/* Adds up one snapshot: charges by location, and how many materializations there are. */
static const char *sum(const tn_snapshot *s, uint64_t *used, uint64_t *mats) {
    tn_value_info value = {.size = sizeof value};
    uint64_t cursor = 0;
    bool more = false;
    for (;;) {
        tn_materialization_info infos[SOAK_LOCATIONS] = {{.size = sizeof infos[0]}};
        size_t count = SOAK_LOCATIONS;
        TN_WORKER_STATUS(tn_snapshot_next(s, &cursor, &value, &more), TN_OK);
        if (!more)
            return NULL;
        TN_WORKER_STATUS(tn_snapshot_materializations(s, value.handle, infos, &count), TN_OK);
        TN_WORKER_CHECK(count <= SOAK_LOCATIONS);
        for (size_t i = 0; i < count; i++) {
            TN_WORKER_CHECK(infos[i].use_count + infos[i].hold_count + infos[i].pending_count == 0);
            tn_location at = infos[i].at;
            used[soak_is_cuda(at) ? 2 + at.index : at.kind - TN_LOCATION_PAGEABLE] +=
                infos[i].charged_bytes;
        }
        *mats += count;
    }
}

/* Location, ledger and the machine's memory all say the same (P3, B1). */
static const char *check_location(soak_world *w, const tn_location_info *info, uint64_t used,
                                  uint32_t i) {
    tn_location at = soak_location(i);
    tn_sim_memory memory = {.size = sizeof memory};
    tn_pinned_figures pinned = TN_PINNED_FIGURES_INIT;
    uint64_t total = 0, claimed = 0;
    TN_WORKER_CHECK(tn_location_equal(info->at, at));
    tn__ledger_read(tn__store_ledger(w->m->store, at), &total, &claimed);
    if (info->used_bytes != used || info->reserved_bytes != 0 || claimed != 0 || total != used)
        return tn_test_text("location %u: %" PRIu64 " bytes resident; used %" PRIu64
                            ", reserved %" PRIu64 ", ledger %" PRIu64 " with %" PRIu64 " claimed",
                            i, used, info->used_bytes, info->reserved_bytes, total, claimed);
    TN_WORKER_CHECK(info->peak_charged_bytes <= info->budget_bytes);
    TN_WORKER_CHECK(info->use_count + info->hold_count + info->pending_count == 0);
    if (soak_is_cuda(at)) {
        TN_WORKER_STATUS(tn_sim_read_memory(w->sim, at, &memory), TN_OK);
        TN_WORKER_CHECK(memory.live_bytes == used);
    } else if (i == 1) {
        TN_WORKER_STATUS(tn_driver_read_pinned(w->driver, &pinned), TN_OK);
        TN_WORKER_CHECK(pinned.live_bytes == used && pinned.ring_bytes == 0);
    }
    return NULL;
}

static const char *check_bytes(soak_world *w) {
    tn_snapshot *s = NULL;
    tn_snapshot_info head = {.size = sizeof head};
    tn_location_info infos[SOAK_LOCATIONS] = {{.size = sizeof infos[0]}};
    uint64_t used[SOAK_LOCATIONS] = {0}, mats = 0;
    size_t count = SOAK_LOCATIONS;
    TN_WORKER_STATUS(tn_snapshot_take(w->m, &s), TN_OK);
    TN_WORKER_STATUS(tn_snapshot_read(s, &head), TN_OK);
    TN_WORKER_STATUS(tn_snapshot_locations(s, infos, &count), TN_OK);
    TN_WORKER_CHECK(head.exact == 1 && count == SOAK_LOCATIONS);
    if (head.lease_count + head.hold_count + head.reservation_count != 0)
        return tn_test_text("%" PRIu64 " leases, %" PRIu64 " holds, %" PRIu64
                            " reservations are left over",
                            head.lease_count, head.hold_count, head.reservation_count);
    SOAK_TRY(sum(s, used, &mats));
    for (uint32_t i = 0; i < SOAK_LOCATIONS; i++)
        SOAK_TRY(check_location(w, &infos[i], used[i], i));
    tn_snapshot_drop(s);
    TN_WORKER_CHECK(mats == tort_payloads_live());
    return NULL;
}

/* Every record is free and every event idle, and the machine has no other events. */
static const char *check_lifetimes(soak_world *w) {
    uint64_t events = 0, busy = 0;
    bool stable = false;
    (void)tn__life_count(w->m->life, &stable);
    TN_WORKER_CHECK(stable);
    for (tn__slot *slot = tn__load_acq(&w->m->life->slots); slot; slot = slot->next) {
        for (tn__block *b = tn__load_acq(&slot->blocks); b; b = b->next)
            for (uint32_t i = 0; i < tn__load_acq(&b->used); i++)
                busy += tn__word_state(tn__load_acq(&b->records[i].pair.low)) != TN__FREE;
        for (const tn__pool *pool = slot->pools; pool; pool = pool->next) {
            for (const tn__event *e = pool->all; e; e = e->all_next)
                events++, busy++;
            for (const tn__event *e = pool->local; e; e = e->next)
                busy--;
            for (const tn__event *e = tn__load_acq(&pool->returned); e; e = e->next)
                busy--;
        }
    }
    TN_WORKER_CHECK(busy == 0);
    TN_WORKER_CHECK(events == tn_sim_live_events(w->sim));
    w->events_last = events;
    return NULL;
}

static const char *audit(soak_world *w) {
    SOAK_TRY(soak_mail_empty(w));
    SOAK_TRY(settle(w));
    SOAK_TRY(check_bytes(w));
    SOAK_TRY(check_lifetimes(w));
    if (tn_sim_violations(w->sim) != 0)
        return tn_sim_violation_text(w->sim);
    w->rss_last = resident_bytes();
    return NULL;
}

/* ---- Rounds ---- */

static void wait_for(soak_world *w, _Atomic uint32_t *what, uint32_t value) {
    const struct timespec pause = {0, 200000};
    while (atomic_load(what) != value && !tn_test_workers_failed())
        nanosleep(&pause, NULL);
    (void)w;
}

const char *soak_auditor(soak_world *w) {
    const struct timespec pause = {0, 5000000};
    bool over = false;
    while (!over && !tn_test_workers_failed()) {
        uint64_t until = tn__mono_ns() + ROUND_NS;
        while (tn__mono_ns() < until && !tn_test_workers_failed())
            nanosleep(&pause, NULL);
        over = tn__mono_ns() >= w->end_ns;
        atomic_store(&w->over, over);
        atomic_store(&w->stop, true);
        wait_for(w, &w->arrived, SOAK_THREADS - 1);
        if (tn_test_workers_failed())
            return NULL;
        SOAK_TRY(audit(w));
        uint64_t rounds = SOAK_COUNT(w, rounds) + 1;
        if (rounds == 4 || !w->rss_first) { /* all pools and arenas have been in use */
            w->rss_first = w->rss_last;
            w->events_first = w->events_last;
        }
        if (rounds % 150 == 0)
            print_message("  round %" PRIu64 ": %" PRIu64 " KiB resident, %" PRIu64 " events\n",
                          rounds, w->rss_last >> 10, w->events_last);
        atomic_store(&w->arrived, 0);
        atomic_store(&w->stop, false);
        atomic_fetch_add(&w->round, 1);
    }
    return NULL;
}

/* ---- End ---- */

static void print_tally(const soak_world *w) {
    const soak_tally *t = &w->tally;
    print_message("  rounds %llu; uses %llu (hits %llu, decided again %llu), plans %llu (partial "
                  "%llu), scopes %llu (exit failed %llu, abandoned %llu)\n",
                  (unsigned long long)t->rounds, (unsigned long long)t->uses,
                  (unsigned long long)t->hits, (unsigned long long)t->redecided,
                  (unsigned long long)t->plans, (unsigned long long)t->partial,
                  (unsigned long long)t->scopes, (unsigned long long)t->exits_failed,
                  (unsigned long long)t->abandoned);
    print_message("  leases %llu, holds %llu, reservations %llu, letters %llu; tenants %llu, which "
                  "left %llu open; refused %llu, stale %llu, infeasible %llu\n",
                  (unsigned long long)t->leases, (unsigned long long)t->holds,
                  (unsigned long long)t->reservations, (unsigned long long)t->letters,
                  (unsigned long long)t->tenants, (unsigned long long)t->left_open,
                  (unsigned long long)t->refused, (unsigned long long)t->stale,
                  (unsigned long long)t->infeasible);
    print_message("  loads %llu, of which %llu failed; %llu -> %llu KiB resident, %llu -> %llu "
                  "events\n",
                  (unsigned long long)t->loads, (unsigned long long)t->failed_loads,
                  (unsigned long long)w->rss_first >> 10, (unsigned long long)w->rss_last >> 10,
                  (unsigned long long)w->events_first, (unsigned long long)w->events_last);
}

/* The books were balanced in every round; now that nothing grew, and that all of it happened. */
static void check_world(const soak_world *w) {
    const soak_tally *t = &w->tally;
    assert_true(t->rounds >= 2 && t->uses > 0 && t->hits > 0 && t->plans > 0 && t->scopes > 0);
    assert_true(t->leases > 0 && t->holds > 0 && t->reservations > 0 && t->letters > 0);
    assert_true(t->tenants > 0 && t->loads > 0 && t->failed_loads > 0 && t->snapshots > 0);
    assert_int_equal(t->warned, t->left_open); /* each lease and hold that a tenant left */
    /* Bounded by what was in flight at once, not by time. */
    assert_in_range(w->events_last, 0, 4 * w->events_first + 4096);
    if (!SANITIZED)
        assert_in_range(w->rss_last, 0, w->rss_first + w->rss_first / 2 + (16u << 20));
}

void soak_world_end(soak_world *w) {
    print_tally(w);
    check_world(w);
    for (uint32_t i = 0; i < SOAK_CONTROLLERS; i++)
        tn_controller_destroy(w->controllers[i]);
    tn_policy_destroy(w->policies[0]);
    tn_policy_destroy(w->policies[1]);
    assert_ok(tn_manager_close(w->m, 0));
    assert_ok(tn_manager_destroy(w->m));
    assert_int_equal(tort_payloads_live(), 0);
    assert_int_equal(tn_sim_live_events(w->sim), 0);
    assert_int_equal(tn_sim_live_streams(w->sim), 0);
    for (uint32_t d = 0; d < SOAK_DEVICES; d++)
        for (int i = 0; i < SOAK_STREAMS; i++)
            assert_ok(tn_sim_stream_destroy(w->sim, w->streams[d][i]));
    assert_string_equal(tn_sim_violation_text(w->sim), "");
    tn_sim_destroy(w->sim);
    tort_payloads_reset();
}
