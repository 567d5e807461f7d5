/* SPDX-License-Identifier: MIT */
/*
 * Policies: the object, and every check of what a policy says (C15..C24).
 */
#include <string.h>

#include "controller/controller_priv.h"

tn_status tn_policy_create(const tn_policy_spec *given, tn_policy **out) {
    tn_policy_spec spec;
    if (!out)
        return tn__fail(TN_ERR_KIND, "the output is NULL");
    tn_status status = tn__struct_in(&spec, sizeof spec, offsetof(tn_policy_spec, forget), given,
                                     "tn_policy_spec");
    if (status != TN_OK)
        return status;
    if (!spec.name || !spec.config_identity || !spec.fallback_locations || !spec.order_candidates)
        return tn__fail(TN_ERR_KIND, "a policy lacks a callback");
    tn_policy *policy = tn__zalloc(sizeof *policy);
    if (!policy)
        return tn__no_memory();
    tn__store_rlx(&policy->refs, 1); /* [no-order] not shared yet */
    policy->spec = spec;
    *out = policy;
    return TN_OK;
}

void tn__policy_keep(const tn_policy *policy) {
    (void)tn__add_rlx(&((tn_policy *)policy)->refs, 1); /* [policy-refs] by a holder */
}

void tn__policy_let_go(const tn_policy *policy) {
    tn_policy *own = (tn_policy *)policy;
    /* [policy-refs] acq_rel. Pairs: itself on other threads. Orders: every use of the policy ->
     * its freeing. Without: a policy is forgotten while another thread still asks it. */
    if (tn__sub_acq_rel(&own->refs, 1) != 1)
        return;
    if (own->spec.forget)
        own->spec.forget(own->spec.context);
    tn__free(own);
}

void tn_policy_destroy(tn_policy *policy) {
    if (policy)
        tn__policy_let_go(policy);
}

const char *tn_policy_name(const tn_policy *policy) {
    return policy ? policy->spec.name(policy->spec.context) : NULL;
}

tn_status tn_policy_config(const tn_policy *policy, const tn_config_pair **out, size_t *out_count) {
    if (!policy || !out || !out_count)
        return tn__fail(TN_ERR_KIND, "an argument is NULL");
    *out_count = 0;
    *out = policy->spec.config_identity(policy->spec.context, out_count);
    if (!*out)
        *out_count = 0;
    return TN_OK;
}

tn_status tn__policy_check(const tn_policy *policy) {
    const char *name = tn_policy_name(policy);
    if (!name || tn__blank(name) || strlen(name) > 255)
        return tn__fail(TN_ERR_VALUE, "the policy's name is blank or longer than 255 bytes");
    return TN_OK;
}

/* ---- Fallbacks -------------------------------------------------------------------------- */

tn_status tn_policy_fallbacks(const tn_policy *policy, tn_location at, tn_location *out,
                              size_t *inout_count) {
    if (!policy || !inout_count || (*inout_count > 0 && !out))
        return tn__fail(TN_ERR_KIND, "an argument is NULL");
    tn_status status = tn__location_in(at, &at);
    if (status != TN_OK)
        return status;
    size_t room = *inout_count, count = 0;
    status = policy->spec.fallback_locations(policy->spec.context, at, out, room, &count);
    if (status != TN_OK)
        return tn__error_current()->status == (uint32_t)status
                   ? status
                   : tn__fail(status, "the policy failed to name fallback locations");
    for (size_t i = 0; i < count && i < room; i++) {
        tn_location to;
        if (tn__location_in(out[i], &to) != TN_OK)
            return tn__fail(TN_ERR_POLICY, "the policy names a fallback that is no location");
        if (tn__location_same(to, at))
            return tn__fail(TN_ERR_POLICY, "the policy names a location as its own fallback");
        out[i] = to;
    }
    *inout_count = count;
    return TN_OK;
}

/* ---- Order ------------------------------------------------------------------------------ */

static tn_status check_candidates(const tn_candidate *candidates, size_t count) {
    for (size_t i = 0; i < count; i++) {
        tn_location at;
        const tn_candidate *c = &candidates[i];
        if (c->handle.manager == 0 || c->handle.index == 0 || !c->handle.type ||
            tn__location_in(c->at, &at) != TN_OK || c->charged_bytes > (uint64_t)INT64_MAX)
            return tn__fail(TN_ERR_KIND, "candidate %zu is none", i);
    }
    return TN_OK;
}

/* Each index exactly once (C19). */
static tn_status check_order(const size_t *order, size_t count) {
    uint8_t *seen = tn__zalloc(count);
    if (!seen)
        return tn__no_memory();
    tn_status status = TN_OK;
    for (size_t i = 0; i < count && status == TN_OK; i++) {
        if (order[i] >= count)
            status = tn__fail(TN_ERR_POLICY, "the policy adds a candidate (%zu of %zu)", order[i],
                              count);
        else if (seen[order[i]]++)
            status = tn__fail(TN_ERR_POLICY, "the policy repeats candidate %zu and leaves one out",
                              order[i]);
    }
    tn__free(seen);
    return status;
}

tn_status tn_policy_order(const tn_policy *policy, const tn_candidate *candidates, size_t count,
                          size_t *out_order) {
    if (!policy || (count > 0 && (!candidates || !out_order)))
        return tn__fail(TN_ERR_KIND, "an argument is NULL");
    tn_status status = check_candidates(candidates, count);
    if (status != TN_OK)
        return status;
    for (size_t i = 0; i < count; i++)
        out_order[i] = SIZE_MAX; /* what is left out is noticed */
    status = policy->spec.order_candidates(policy->spec.context, candidates, count, out_order);
    if (status != TN_OK)
        return tn__error_current()->status == (uint32_t)status
                   ? status
                   : tn__fail(status, "the policy failed to order the candidates");
    return check_order(out_order, count);
}

/* ---- Identity --------------------------------------------------------------------------- */

static char *copy_text(char **to, const char *text) {
    size_t n = strlen(text ? text : "") + 1;
    char *at = memcpy(*to, text ? text : "", n);
    *to += n;
    return at;
}

tn_status tn__identity_read(const tn_policy *policy, tn__identity *out) {
    const tn_config_pair *pairs;
    size_t count;
    *out = (tn__identity){.count = 0};
    const char *name = tn_policy_name(policy);
    tn_status status = tn_policy_config(policy, &pairs, &count);
    if (status != TN_OK)
        return status;
    size_t bytes = strlen(name ? name : "") + 1;
    for (size_t i = 0; i < count; i++)
        bytes += strlen(pairs[i].key ? pairs[i].key : "") +
                 strlen(pairs[i].value ? pairs[i].value : "") + 2;
    out->pairs = tn__alloc(count * sizeof *out->pairs);
    out->block = tn__alloc(bytes);
    if (!out->pairs || !out->block) {
        tn__identity_fini(out);
        return tn__no_memory();
    }
    char *to = out->block;
    out->name = copy_text(&to, name);
    out->count = count;
    for (size_t i = 0; i < count; i++) {
        out->pairs[i].key = copy_text(&to, pairs[i].key);
        out->pairs[i].value = copy_text(&to, pairs[i].value);
    }
    return TN_OK;
}

void tn__identity_fini(tn__identity *identity) {
    tn__free(identity->pairs);
    tn__free(identity->block);
    *identity = (tn__identity){.count = 0};
}

bool tn__identity_same(const tn__identity *a, const tn__identity *b) {
    bool same = strcmp(a->name, b->name) == 0 && a->count == b->count;
    for (size_t i = 0; i < a->count && same; i++)
        same = strcmp(a->pairs[i].key, b->pairs[i].key) == 0 &&
               strcmp(a->pairs[i].value, b->pairs[i].value) == 0;
    return same;
}

tn_status tn__identity_check(const tn__identity *identity) {
    for (size_t i = 0; i < identity->count; i++)
        if (tn__blank(identity->pairs[i].key))
            return tn__fail(TN_ERR_VALUE, "key %zu of the policy's configuration is blank", i);
    return TN_OK;
}
