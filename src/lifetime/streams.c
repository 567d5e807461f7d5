/* SPDX-License-Identifier: MIT */
/*
 * The consumer streams of a lease: a list whose head carries the lease's generation, so that
 * adding a stream to a lease that has been released and reused meanwhile fails (128-bit CAS of
 * {generation, first node}). Release closes the head; a failed release opens it again.
 */
#include "lifetime/lifetime_priv.h"

static tn__stream_node *node_at(uint64_t address) { return (tn__stream_node *)(uintptr_t)address; }

static void fill(tn__stream_node *node, tn_stream stream, const tn_stream_info *info) {
    tn__store_rlx(&node->stream, stream);
    tn__store_rlx(&node->context, info->context);
    tn__store_rlx(&node->device, info->device);
}

static void head_set(tn__record *record, uint64_t generation, tn__stream_node *first) {
    uint64_t low = tn__load_rlx(&record->streams.low), high = tn__load_rlx(&record->streams.high);
    /* [no-order] when a lease begins, the word that follows orders the first node. When a release has
     * failed, the nodes were made before the close of the head, and this step goes on with what that one
     * has released. An older link among them hides a stream: that one gets two events. */
    while (!tn__pair_cas_rlx(&record->streams, low, high, generation, (uint64_t)(uintptr_t)first)) {
        low = tn__load_rlx(&record->streams.low);
        high = tn__load_rlx(&record->streams.high);
    }
}

void tn__streams_open(tn__record *record, uint64_t generation, tn_stream stream,
                      const tn_stream_info *info) {
    if (!stream) {
        head_set(record, generation, NULL);
        return;
    }
    fill(&record->first, stream, info);
    tn__store_rlx(&record->first.next, NULL);
    head_set(record, generation, &record->first);
}

tn__stream_node *tn__streams_close(tn__record *record) {
    uint64_t low, high;
    do {
        low = tn__load_rlx(&record->streams.low);
        high = tn__load_rlx(&record->streams.high);
        /* [stream-head] acq_rel. Pairs: add() on other threads. Orders: the nodes' fields -> the head
         * that shows them. Without: an event is recorded on a stream that was not written yet. */
    } while (!tn__pair_cas_acq_rel(&record->streams, low, high, 0, 0));
    tn__stream_node *node = node_at(high), *reversed = NULL;
    while (node) { /* newest first -> registration order */
        tn__stream_node *next = tn__load_rlx(&node->next);
        tn__store_rlx(&node->next, reversed);
        reversed = node;
        node = next;
    }
    return reversed;
}

void tn__streams_reopen(tn__record *record, uint64_t generation, tn__stream_node *nodes) {
    tn__stream_node *reversed = NULL;
    while (nodes) {
        tn__stream_node *next = tn__load_rlx(&nodes->next);
        tn__store_rlx(&nodes->next, reversed);
        reversed = nodes;
        nodes = next;
    }
    head_set(record, generation, reversed);
}

static void free_node(tn__garbage *garbage) {
    tn__free(garbage); /* the first member of its node */
}

void tn__streams_retire(tn__life *life, tn__record *record, tn__stream_node *nodes) {
    while (nodes) {
        tn__stream_node *next = tn__load_rlx(&nodes->next);
        if (nodes != &record->first) {
            nodes->garbage.free = free_node;
            tn__garbage_push(life, &nodes->garbage);
        }
        nodes = next;
    }
}

void tn__streams_forget(tn__record *record) {
    tn__stream_node *node = tn__streams_close(record);
    while (node) {
        tn__stream_node *next = tn__load_rlx(&node->next);
        if (node != &record->first)
            tn__free(node);
        node = next;
    }
}

static bool listed(tn__stream_node *node, tn_stream stream) {
    for (; node; node = tn__load_rlx(&node->next))
        if (tn__load_rlx(&node->stream) == stream)
            return true;
    return false;
}

/* In a section: the nodes that we walk cannot be freed; what we read of them counts only if the
 * head did not change. */
static tn_status add(tn__record *record, uint64_t generation, tn__stream_node *node, bool *used) {
    tn_stream stream = tn__load_rlx(&node->stream);
    for (;;) {
        uint64_t low = tn__load_acq(&record->streams.low);   /* [stream-head] */
        uint64_t high = tn__load_acq(&record->streams.high); /* [stream-head] */
        if (low != generation)
            return TN_ERR_LIFETIME_CLOSED;
        bool known = listed(node_at(high), stream);
        tn__store_rlx(&node->next, node_at(high));
        uint64_t want = known ? high : (uint64_t)(uintptr_t)node;
        /* [stream-head] */
        if (tn__pair_cas_acq_rel(&record->streams, low, high, generation, want)) {
            *used = !known;
            return TN_OK;
        }
    }
}

/* What add_stream may know about the lease: in a section. */
static tn_status look(tn__record *record, uint64_t generation, tn_driver **driver,
                      tn_location *at) {
    uint64_t word = tn__record_word(record);
    enum tn__record_state state = tn__word_state(word);
    if (tn__word_generation(word) != generation || (state != TN__ACTIVE && state != TN__DETACHED))
        return tn__fail(TN_ERR_LIFETIME_CLOSED, "the lease has ended");
    *at = tn__what_location(tn__load_rlx(&record->what));
    *driver = record->slot->life->driver;
    return TN_OK;
}

static tn_status add_checked(tn_driver *driver, tn__record *record, uint64_t generation,
                             tn_stream stream, uint32_t device) {
    tn_stream_info info;
    tn_status status = tn__driver_check_stream(driver, stream, device, &info);
    if (status != TN_OK)
        return status;
    tn__stream_node *node = tn__zalloc(sizeof *node);
    if (!node)
        return tn__no_memory();
    fill(node, stream, &info);
    bool used = false;
    tn__rcu_lock();
    status = add(record, generation, node, &used);
    tn__rcu_unlock();
    if (!used)
        tn__free(node);
    return status == TN_OK ? TN_OK : tn__fail(status, "the lease has ended");
}

tn_status tn__lease_add_stream(const tn_lease *lease, tn_stream stream) {
    tn__record *record = lease->record;
    tn__thread *thread = tn__thread_self();
    if (!record)
        return tn__fail(TN_ERR_LIFETIME_CLOSED, "the lease is none");
    if (!thread)
        return tn__no_memory();
    tn__rcu_thread_ready(thread);
    tn_driver *driver =
        NULL; /* outlives the manager, which may be destroyed once we leave the section */
    tn_location at = {0, 0};
    tn__rcu_lock();
    tn_status status = look(record, lease->generation, &driver, &at);
    tn__rcu_unlock();
    if (status != TN_OK)
        return status;
    if (at.kind != TN_LOCATION_CUDA)
        return tn__fail(TN_ERR_VALUE, "a lease at a host location takes no stream");
    return add_checked(driver, record, lease->generation, stream, at.index);
}

void tn__lease_test_clear_streams(const tn_lease *lease) {
    tn__record *record = lease->record;
    tn__streams_forget(record);
    head_set(record, lease->generation, NULL);
}
