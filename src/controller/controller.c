/* SPDX-License-Identifier: MIT */
/*
 * The controller: life, metadata, decide, scope(decision).
 */
#include "controller/controller_priv.h"

/* ---- Life ------------------------------------------------------------------------------- */

static tn_status check(const tn_controller_config *config) {
    if (config->binding > TN_BIND_PLACEMENT)
        return tn__fail(TN_ERR_KIND, "binding %u is out of range", (unsigned)config->binding);
    if (config->search_limit == 0)
        return tn__fail(TN_ERR_VALUE, "the search limit is 0");
    return TN_OK;
}

static uint32_t binding_of(uint32_t asked, bool serial) {
    if (asked != TN_BIND_DEFAULT)
        return asked;
    return serial ? TN_BIND_VERSION : TN_BIND_PLACEMENT;
}

tn_status tn__controller_create(const tn__controlled *of, const tn_controller_config *config,
                                tn_controller **out) {
    tn_status status = check(config);
    tn_policy *own = NULL;
    if (status == TN_OK && !config->policy)
        status = tn_policy_tiered_lru(NULL, 0, &own);
    if (status == TN_OK)
        status = tn__policy_check(own ? own : config->policy);
    tn_controller *c = status == TN_OK ? tn__zalloc(sizeof *c) : NULL;
    if (!c) {
        tn_policy_destroy(own);
        return status == TN_OK ? tn__no_memory() : status;
    }
    if (!own)
        tn__policy_keep(config->policy);
    c->of = *of;
    c->policy = own ? own : config->policy;
    c->search_limit = config->search_limit;
    c->binding = binding_of(config->binding, of->serial);
    c->redecisions = config->redecisions;
    tn__mutex_init(&c->lock, TN__RANK_CONTROLLER);
    *out = c;
    return TN_OK;
}

void tn_controller_destroy(tn_controller *c) {
    if (!c)
        return;
    tn__policy_let_go(c->policy);
    tn__metas_fini(&c->metas);
    tn__free(c->walk);
    tn__mutex_fini(&c->lock);
    tn__free(c);
}

tn_manager *tn_controller_manager(const tn_controller *c) { return c ? c->of.manager : NULL; }

const tn_policy *tn_controller_policy(const tn_controller *c) { return c ? c->policy : NULL; }

/* Open, no callback, no nesting; reaped (C50, C56). */
static tn_status enter(const tn_controller *c) {
    tn__thread *thread;
    return tn__life_begin(c->of.life, false, &thread);
}

static tn_status done(const tn_controller *c, tn_status status) {
    if (status != TN_OK && c)
        tn__error_current()->manager = c->of.id;
    return status;
}

/* ---- Metadata --------------------------------------------------------------------------- */

static tn_status resolve(const tn_controller *c, tn_handle handle) {
    const tn__value *value;
    tn__rcu_lock();
    tn_status status =
        tn__version_resolve(tn__store_current(c->of.store), c->of.id, handle, &value);
    tn__rcu_unlock();
    return status;
}

/* The key of a discarded value is free again (D12). */
static bool is_discarded(const tn_controller *c, uint64_t index) {
    tn__rcu_lock();
    const tn__value *value = tn__version_value(tn__store_current(c->of.store), index);
    bool gone = !value || value->discarded;
    tn__rcu_unlock();
    return gone;
}

static tn_status set(tn_controller *c, uint64_t index, int64_t priority, const char *key) {
    uint64_t owner = key ? tn__meta_owner(&c->metas, key) : 0;
    if (owner && owner != index) {
        if (!is_discarded(c, owner))
            return tn__fail(TN_ERR_VALUE, "stable key \"%.60s\" is value %llu's", key,
                            (unsigned long long)owner);
        (void)tn__meta_set(&c->metas, owner, 0, NULL); /* needs no memory */
    }
    return tn__meta_set(&c->metas, index, priority, key) ? TN_OK : tn__no_memory();
}

tn_status tn_controller_set_metadata(tn_controller *c, tn_handle handle, int64_t priority,
                                     const char *stable_key) {
    if (!c)
        return tn__fail(TN_ERR_KIND, "the controller is NULL");
    tn_status status = stable_key ? tn__check_text(stable_key, "the stable key") : TN_OK;
    if (status == TN_OK)
        status = tn__handle_form(handle);
    if (status == TN_OK)
        status = enter(c);
    if (status != TN_OK)
        return done(c, status);
    tn__lock(&c->lock);
    status = resolve(c, handle);
    if (status == TN_OK)
        status = set(c, handle.index, priority, stable_key);
    tn__unlock(&c->lock);
    return done(c, status);
}

/* ---- Decisions -------------------------------------------------------------------------- */

tn_status tn_controller_decide(tn_controller *c, const tn_request *request, tn_decision **out) {
    if (!c || !request || !out)
        return tn__fail(TN_ERR_KIND, "an argument is NULL");
    tn_status status = enter(c);
    if (status == TN_OK)
        status = tn__life_reap_manual(c->of.life);
    if (status != TN_OK)
        return done(c, status);
    tn__lock(&c->lock);
    tn__uses_collect(c);
    status = tn__decide(c, request, out);
    tn__unlock(&c->lock);
    return done(c, status);
}

/* C116: the policy is equal to the one that decided. */
static tn_status same_policy(const tn_controller *c, const tn_decision *d) {
    tn__identity now;
    tn_status status = tn__identity_read(c->policy, &now);
    if (status != TN_OK)
        return status;
    bool same = tn__identity_same(&now, &d->identity);
    tn__identity_fini(&now);
    return same ? TN_OK : tn__fail(TN_ERR_PLAN, "the decision was made by another policy");
}

tn_status tn__decision_scope(tn_controller *c, const tn_decision *d, uint64_t expected,
                             const tn_transfer_stream *streams, size_t count, tn_scope **out) {
    tn_status status = TN_OK;
    if (d->manager != c->of.id) {
        status = tn__fail(TN_ERR_HANDLE, "the decision is another manager's");
        tn__error_current()->handle_cause = TN_HANDLE_FOREIGN;
    }
    if (status == TN_OK)
        status = same_policy(c, d);
    tn_run_options options = {sizeof options, expected, streams, count};
    return status == TN_OK ? tn__scope_create(c->of.trans, d->plan, &options, out) : status;
}

tn_status tn_controller_scope(tn_controller *c, const tn_decision *decision,
                              const tn_transfer_stream *streams, size_t stream_count,
                              tn_scope **out) {
    if (!c || !decision || !out || (stream_count > 0 && !streams))
        return tn__fail(TN_ERR_KIND, "an argument is NULL");
    tn_status status = tn__life_enter_parent(c->of.life);
    if (status == TN_OK)
        status = tn__decision_scope(c, decision, decision->version, streams, stream_count, out);
    return done(c, status);
}
