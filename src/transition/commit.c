/* SPDX-License-Identifier: MIT */
/*
 * Commit: under the short writer lock, everything that can fail first, then what cannot: settle,
 * GONE, publish, trace. Storage is freed after unlocking, and only then its bytes are given back:
 * until then they are claimed, so that real memory never exceeds the budget either.
 */
#include <string.h>

#include "transition/transition_priv.h"

/* What a commit removed, copied before the version without it is published, as the objects may be
 * freed after. Its bytes are claimed until the payload is gone. */
typedef struct removed {
    size_t count;
    struct {
        tn_payload payload;
        tn__ledger *ledger;
        uint64_t bytes;
    } one[TN__LEDGER_COUNT];
} removed;

void tn__run_removals(const tn__run *run, tn__mat *const **mats, size_t *count) {
    *mats = NULL;
    *count = 0;
    if (run->action.kind == TN_ACTION_DISCARD) {
        *mats = run->value->mats;
        *count = run->value->mat_count;
    } else if (run->choice.remove) {
        *mats = &run->choice.remove;
        *count = 1;
    }
}

static tn_status own_made(tn__run *run) {
    if (!run->mat || tn__in_place(run))
        return TN_OK; /* in place: owned since the load */
    return tn__owners_claim(run->t->store, run->mat->storages, run->mat->storage_count,
                            run->action.handle, run->mat->at);
}

static tn_status build(tn__run *run, tn__build *b) {
    tn_status status = TN_OK;
    tn__mat *const *mats;
    size_t count;
    tn__run_removals(run, &mats, &count);
    if (run->mat) {
        status = tn__build_track(b, run->mat->at);
        if (status == TN_OK)
            status = tn__build_install(b, run->value->index, run->mat);
    }
    for (size_t i = 0; i < count && status == TN_OK; i++)
        status = tn__build_remove(b, mats[i]);
    if (status == TN_OK && run->action.kind == TN_ACTION_DISCARD)
        status = tn__build_discard(b, run->value->index);
    return status;
}

/* Bytes go up before the version shows them ... */
static void raise(tn__run *run) {
    if (run->mat && !tn__in_place(run))
        tn__need_settle(&run->needs[0]);
}

/* A charge that is over becomes a claim, until the storage behind it is freed. */
static void charge_to_claim(tn__need *need) {
    tn__ledger_reclaim(need->ledger, need->bytes);
    need->claimed = true; /* settle_rest() gives it back */
}

/* ... and down after. The old objects are still there: whoever frees them needs the lock first. That
 * their bytes come back has been said since they were to be removed: by show_removals(), or by the
 * needs of the plan, which go on saying it up to tn__claims_step(). */
static void lower(tn__run *run, tn__mat *const *mats, size_t count, removed *out) {
    tn__store *store = run->t->store;
    for (size_t i = 0; i < count; i++) {
        tn__ledger *ledger = tn__store_ledger(store, mats[i]->at);
        out->one[i].payload = mats[i]->payload;
        out->one[i].ledger = ledger;
        out->one[i].bytes = mats[i]->charged_bytes;
        tn__owners_release(store, mats[i]->storages, mats[i]->storage_count);
        tn__ledger_reclaim(ledger, mats[i]->charged_bytes);
    }
    out->count = count;
    if (run->temporary && !tn__in_place(run)) {
        charge_to_claim(&run->needs[1]);
        tn__owners_release(store, run->loaded_measured.storages,
                           run->loaded_measured.storage_count);
    }
    run->temporary = false;
}

static void finish_report(tn__run *run) {
    uint64_t now = run->t->now_ns ? run->report.completed_at_ns : tn__unix_ns();
    run->report.completed_at_ns = now > run->report.started_at_ns ? now : run->report.started_at_ns;
    run->sequence = tn__trace_append(&run->t->trace, &run->report);
}

static tn_status publish(tn__run *run, removed *out) {
    tn__build b;
    tn__mat *const *mats;
    size_t count;
    tn__store *store = run->t->store;
    if (!tn__trace_prepare(&run->t->trace))
        return tn__no_memory();
    tn_status status = tn__build_begin(store, &b);
    if (status != TN_OK)
        return status;
    status = build(run, &b);
    if (status == TN_OK)
        status = own_made(run);
    if (status != TN_OK) {
        tn__build_abort(&b);
        return status;
    }
    tn__run_removals(run, &mats, &count);
    run->forgotten = run->action.kind == TN_ACTION_DISCARD ? run->value->source : NULL;
    raise(run);
    if (count)
        tn__removal_commit(run->removal, mats, count);
    if (run->mat && run->removed_later)
        tn__removal_add(run->removal, run->mat);
    tn__store_publish(&b);
    lower(run, mats, count, out);
    run->mat = NULL;
    run->made = (tn_payload){NULL, NULL};
    return TN_OK;
}

static tn_status commit_no_op(tn__run *run) {
    if (!tn__trace_prepare(&run->t->trace))
        return tn__no_memory();
    finish_report(run);
    return TN_OK;
}

/* A run that failed. */
static void give_back(tn__run *run) {
    tn__store *store = run->t->store;
    if (run->temporary)
        charge_to_claim(tn__in_place(run) ? &run->needs[0] : &run->needs[1]);
    if (run->loaded_owned)
        tn__owners_release(store, run->loaded_measured.storages,
                           run->loaded_measured.storage_count);
    run->temporary = false;
    run->loaded_owned = false;
}

/* No lock. */
static void free_storage(tn__run *run, const removed *gone) {
    for (size_t i = 0; i < gone->count; i++)
        tn_payload_destroy(gone->one[i].payload);
    tn__run_clean(run); /* also the temporary payload of a successful load */
    if (run->forgotten)
        tn__source_destroy(run->forgotten);
}

static void bytes_back(tn__run *run, tn__ledger *ledger, uint64_t bytes) {
    if (run->claims)
        tn__claims_return(run->claims, ledger, bytes);
    else
        tn__ledger_unclaim(ledger, bytes);
}

/* Claims that are left, and the bytes of storage that is freed by now: to the plan that goes on,
 * or to everybody. */
static void settle_rest(tn__run *run, const removed *gone, bool done) {
    for (size_t i = 0; i < gone->count; i++)
        bytes_back(run, gone->one[i].ledger, gone->one[i].bytes);
    for (int i = 0; i < 2; i++) {
        tn__need *need = &run->needs[i];
        if (need->claimed)
            bytes_back(run, need->ledger, need->bytes);
        need->claimed = need->held = false;
    }
    memset(run->ticket->freeing, 0, sizeof run->ticket->freeing);
    if (run->claims && done) /* a plan whose step fails is over */
        tn__claims_step(run->claims);
}

tn_status tn__run_commit(tn__run *run, tn_status status) {
    removed gone;
    tn__trans *t = run->t;
    gone.count = 0;
    tn__assert_locked(&t->store->lock);
    TN__AT(TN__POINT_COMMIT, run);
    bool no_op = run->choice.step == TN__STEP_NO_OP;
    if (status == TN_OK)
        status = no_op ? commit_no_op(run) : publish(run, &gone);
    if (status == TN_OK && !no_op)
        finish_report(run);
    else
        give_back(run);
    if (gone.count || run->made.data || run->loaded.data || run->forgotten) {
        tn__unlock(&t->store->lock);
        free_storage(run, &gone);
        tn__lock(&t->store->lock);
    }
    settle_rest(run, &gone, status == TN_OK);
    return status;
}

void tn__run_end(tn__run *run, tn_status status) {
    tn__run_clean(run);
    if (status == TN_OK)
        tn__report_end(run);
}
