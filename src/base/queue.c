/* SPDX-License-Identifier: MIT */
/* liburcu's functions are called, not compiled in: their ordering is then no concern of
 * ThreadSanitizer's. */
#include <urcu/wfcqueue.h>

#include "base/queue.h"

_Static_assert(sizeof(tn__queue_node) == sizeof(struct cds_wfcq_node), "a node is liburcu's node");
_Static_assert(sizeof(struct __cds_wfcq_head) == sizeof(tn__queue_node), "a head is one node");
_Static_assert(sizeof(struct cds_wfcq_tail) == sizeof(void *), "a tail is one pointer");

static struct __cds_wfcq_head *head_of(tn__queue *q) { return (struct __cds_wfcq_head *)&q->head; }

static struct cds_wfcq_tail *tail_of(tn__queue *q) { return (struct cds_wfcq_tail *)&q->tail; }

void tn__queue_init(tn__queue *q) { __cds_wfcq_init(head_of(q), tail_of(q)); }

void tn__queue_push(tn__queue *q, tn__queue_node *node) {
    cds_wfcq_node_init((struct cds_wfcq_node *)node);
    cds_wfcq_enqueue(head_of(q), tail_of(q), (struct cds_wfcq_node *)node);
}

tn__queue_node *tn__queue_pop(tn__queue *q) {
    struct cds_wfcq_node *node = __cds_wfcq_dequeue_nonblocking(head_of(q), tail_of(q));
    return node == CDS_WFCQ_WOULDBLOCK ? NULL : (tn__queue_node *)node;
}

bool tn__queue_empty(tn__queue *q) { return cds_wfcq_empty(head_of(q), tail_of(q)); }
