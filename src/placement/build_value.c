/* SPDX-License-Identifier: MIT */
/*
 * Steps of a build that concern one value: add, install, remove, discard.
 *
 * Each may fail half-way: what it has made by then goes with the build, which must be aborted.
 */
#include <string.h>

#include "placement/placement_priv.h"

static size_t value_bytes(uint32_t mats) { return sizeof(tn__value) + mats * sizeof(tn__mat *); }

tn_status tn__build_add_value(tn__build *b, const tn_value_spec *spec, tn__source *source,
                              tn_location source_at, uint64_t *out_index) {
    tn__assert_locked(&b->store->lock);
    tn__value *value = (tn__value *)tn__node_create(b, TN__NODE_VALUE, value_bytes(0));
    if (!value)
        return tn__no_memory();
    value->index = b->next->issued + 1;
    value->type = spec->type;
    value->logical_bytes = spec->logical_bytes;
    value->charge_bytes = spec->storage_bytes;
    value->source = source;
    value->source_at = source ? tn__location_plain(source_at) : tn_location_none();
    value->replicable = spec->replica_mode == TN_REPLICABLE;
    value->reconstructible = spec->recoverability == TN_RECONSTRUCTIBLE;
    if (!tn__radix_set(b, &b->next->values, value->index, value))
        return tn__no_memory();
    b->next->issued = value->index;
    b->next->value_count++;
    *out_index = value->index;
    return TN_OK;
}

tn__value *tn__build_value(tn__build *b, uint64_t index, uint16_t more) {
    tn__value *value = tn__radix_find(&b->next->values, index);
    TN_ASSERT(value != NULL);
    if (more == 0 && tn__node_fresh(&value->node))
        return value;
    size_t bytes = value_bytes(value->mat_count);
    value = (tn__value *)tn__node_copy(b, &value->node, bytes, bytes + more * sizeof(tn__mat *));
    if (!value || !tn__radix_set(b, &b->next->values, index, value))
        return NULL;
    return value;
}

/* ---- Materializations ------------------------------------------------------------------- */

tn_status tn__mat_create(tn_payload payload, tn_location at, const tn__measured *measured,
                         uint64_t charge, tn__mat **out) {
    size_t bytes = measured->storage_count * sizeof(tn_storage);
    tn__mat *mat = tn__zalloc(sizeof *mat + bytes);
    if (!mat)
        return tn__no_memory();
    tn__node_init(&mat->node, TN__NODE_MAT);
    mat->payload = payload;
    mat->at = tn__location_plain(at);
    mat->logical_bytes = measured->logical_bytes;
    mat->storage_bytes = measured->storage_bytes;
    mat->charged_bytes = charge;
    mat->storage_count = measured->storage_count;
    if (bytes)
        memcpy(mat->storages, measured->storages, bytes);
    *out = mat;
    return TN_OK;
}

void tn__mat_discard(tn__mat *mat) {
    TN_ASSERT(tn__node_fresh(&mat->node));
    tn__node_free(&mat->node);
}

/* The private table's place; NULL: no memory. */
static tn__place *own_place(tn__build *b, tn_location at) {
    tn__table *table = tn__build_table(b, 0);
    if (!table)
        return NULL;
    tn__place *place = tn__table_place(table, at);
    TN_ASSERT(place != NULL);
    return place;
}

tn_status tn__build_install(tn__build *b, uint64_t index, tn__mat *mat) {
    tn__assert_locked(&b->store->lock);
    TN_ASSERT(tn__node_fresh(&mat->node) && mat->node.next == NULL);
    tn__value *value = tn__build_value(b, index, 1);
    tn__place *place = value ? own_place(b, mat->at) : NULL;
    if (!place || !tn__radix_set(b, &place->resident, index, mat))
        return tn__no_memory();
    TN_ASSERT(!value->discarded && tn__value_mat(value, mat->at) == NULL);
    mat->index = index;
    mat->node.next = b->fresh;
    b->fresh = &mat->node;
    value->mats[value->mat_count++] = mat;
    place->value_count++;
    place->used_bytes += mat->charged_bytes;
    if (place->peak_used_bytes < place->used_bytes)
        place->peak_used_bytes = place->used_bytes;
    b->counted++;
    return TN_OK;
}

/* Take a materialization out of its value's list; the order of the others stays. */
static void unlist(tn__value *value, const tn__mat *mat) {
    uint32_t i = 0;
    while (i < value->mat_count && value->mats[i] != mat)
        i++;
    TN_ASSERT(i < value->mat_count);
    value->mat_count--;
    memmove(&value->mats[i], &value->mats[i + 1], (value->mat_count - i) * sizeof(tn__mat *));
}

tn_status tn__build_remove(tn__build *b, tn__mat *mat) {
    tn__assert_locked(&b->store->lock);
    tn__value *value = tn__build_value(b, mat->index, 0);
    tn__place *place = value ? own_place(b, mat->at) : NULL;
    if (!place || !tn__radix_remove(b, &place->resident, mat->index))
        return tn__no_memory();
    TN_ASSERT(place->used_bytes >= mat->charged_bytes && place->value_count > 0); /* P3 */
    unlist(value, mat);
    place->value_count--;
    place->used_bytes -= mat->charged_bytes;
    tn__node_retire(b, &mat->node);
    b->counted++;
    return TN_OK;
}

/* ---- Discarded values (D12) ------------------------------------------------------------- */

/* Take a value without materializations out of the next version. */
static bool forget(tn__build *b, uint64_t index) {
    tn__value *value = tn__radix_find(&b->next->values, index);
    TN_ASSERT(value != NULL && value->mat_count == 0);
    if (!tn__radix_remove(b, &b->next->values, index))
        return false;
    tn__node_retire(b, &value->node);
    b->next->value_count--;
    return true;
}

static bool mark(tn__build *b, uint64_t index) {
    tn__value *value = tn__build_value(b, index, 0);
    if (!value)
        return false;
    TN_ASSERT(value->mat_count == 0 && !value->discarded);
    value->discarded = 1;
    value->source = NULL;
    value->source_at = tn_location_none();
    return true;
}

/* The ring itself changes at publish. */
static bool keep_discarded(tn__build *b, uint64_t index) {
    tn__store *s = b->store;
    if (!mark(b, index) || !tn__discards_prepare(s))
        return false;
    b->discarded = index;
    return !tn__discards_full(s) || forget(b, tn__discards_oldest(s));
}

tn_status tn__build_discard(tn__build *b, uint64_t index) {
    tn__assert_locked(&b->store->lock);
    TN_ASSERT(b->discarded == 0); /* one per build */
    bool done = b->store->keep_discarded ? keep_discarded(b, index) : forget(b, index);
    if (!done)
        return tn__no_memory();
    b->counted++;
    return TN_OK;
}
