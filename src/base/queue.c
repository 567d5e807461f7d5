/* SPDX-License-Identifier: MIT */
/*
 * liburcu's functions are called, not compiled in, so that ThreadSanitizer does not take their
 * plain stores for races. The edge from a push to its pop, which it cannot see then, is told to it.
 */
#include <urcu/wfcqueue.h>

#include "base/base_internal.h"
#include "base/queue.h"

#if TN__TSAN
void __tsan_acquire(void *address);
void __tsan_release(void *address);
#define EDGE_RELEASE(node) __tsan_release(node)
#define EDGE_ACQUIRE(node) __tsan_acquire(node)
#else
#define EDGE_RELEASE(node) ((void)0)
#define EDGE_ACQUIRE(node) ((void)0)
#endif

_Static_assert(sizeof(tn__queue_node) == sizeof(struct cds_wfcq_node), "a node is liburcu's node");
_Static_assert(sizeof(struct __cds_wfcq_head) == sizeof(tn__queue_node), "a head is one node");
_Static_assert(sizeof(struct cds_wfcq_tail) == sizeof(void *), "a tail is one pointer");

static struct __cds_wfcq_head *head_of(tn__queue *q) { return (struct __cds_wfcq_head *)&q->head; }

static struct cds_wfcq_tail *tail_of(tn__queue *q) { return (struct cds_wfcq_tail *)&q->tail; }

void tn__queue_init(tn__queue *q) { __cds_wfcq_init(head_of(q), tail_of(q)); }

void tn__queue_push(tn__queue *q, tn__queue_node *node) {
    cds_wfcq_node_init((struct cds_wfcq_node *)node);
    EDGE_RELEASE(node);
    cds_wfcq_enqueue(head_of(q), tail_of(q), (struct cds_wfcq_node *)node);
}

tn__queue_node *tn__queue_pop(tn__queue *q) {
    struct cds_wfcq_node *node = __cds_wfcq_dequeue_nonblocking(head_of(q), tail_of(q));
    if (!node || node == CDS_WFCQ_WOULDBLOCK)
        return NULL;
    EDGE_ACQUIRE(node);
    return (tn__queue_node *)node;
}

bool tn__queue_empty(tn__queue *q) { return cds_wfcq_empty(head_of(q), tail_of(q)); }
