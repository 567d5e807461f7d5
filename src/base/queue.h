/* SPDX-License-Identifier: MIT */
/*
 * A queue with wait-free enqueue (liburcu's wfcqueue). Any thread pushes; one consumer at a time
 * pops (the caller's lock). A push is a full barrier.
 */
#ifndef TENURE_BASE_QUEUE_H
#define TENURE_BASE_QUEUE_H

#include <stdbool.h>

typedef struct tn__queue_node {
    void *next;
} tn__queue_node;

/* Storage only: the layout is the library's. Head and tail on lines of their own. */
typedef struct tn__queue {
    tn__queue_node head;
    char pad0[56];
    void *tail;
    char pad1[56];
} __attribute__((aligned(64))) tn__queue;

void tn__queue_init(tn__queue *q);
void tn__queue_push(tn__queue *q, tn__queue_node *node);
/* NULL: empty, or a push is half done (its thread makes it visible by itself). */
tn__queue_node *tn__queue_pop(tn__queue *q);
bool tn__queue_empty(tn__queue *q);

#endif
