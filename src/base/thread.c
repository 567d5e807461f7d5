/* SPDX-License-Identifier: MIT */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/atomic.h"
#include "base/rcu.h"
#include "base/thread.h"

tn__thread tn__thread_nobody;
__thread tn__thread *tn__thread_own = &tn__thread_nobody;
static pthread_key_t key;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static bool key_ready;

void (*_Atomic tn__thread_exit_slots)(tn__thread *thread);

/* Runs on the exiting thread. A later destructor of the host program that calls us again makes a
 * new block, for which the system runs this once more. */
static void thread_exit(void *block) {
    tn__thread *thread = block;
    tn__thread_own = thread;
    void (*exit_slots)(tn__thread *) = tn__load_rlx(&tn__thread_exit_slots);
    if (exit_slots && thread->slots)
        exit_slots(thread);
    tn__rcu_thread_exit(thread);
    tn__thread_own = &tn__thread_nobody;
    free(thread);
}

static void make_key(void) { key_ready = pthread_key_create(&key, thread_exit) == 0; }

/* Plain calloc: the block is not a failure point of an operation and outlives managers. */
tn__thread *tn__thread_make(void) {
    pthread_once(&once, make_key);
    tn__thread *thread = key_ready ? calloc(1, sizeof *thread) : NULL;
    if (!thread)
        return NULL;
    if (pthread_setspecific(key, thread) != 0) {
        free(thread);
        return NULL;
    }
    thread->error.size = sizeof thread->error;
    tn__thread_own = thread;
    return thread;
}

void tn__frame_push(tn__thread *thread, tn__frame *frame, uint64_t manager, bool callback) {
    frame->manager = manager;
    frame->callback = callback;
    frame->outer = thread->frames;
    frame->cached_id = thread->cached_id;
    frame->cached_slot = thread->cached_slot;
    thread->frames = frame;
    thread->cached_id = 0;
    thread->cached_slot = NULL;
}

/* The cached manager may be gone by now: ids are never used twice, so its slot is not followed. */
void tn__frame_pop(tn__thread *thread, tn__frame *frame) {
    TN_ASSERT(thread->frames == frame);
    thread->frames = frame->outer;
    thread->cached_id = frame->cached_id;
    thread->cached_slot = frame->cached_slot;
}

bool tn__frame_inside(const tn__thread *thread, uint64_t manager, bool callbacks_only) {
    for (const tn__frame *f = thread->frames; f; f = f->outer)
        if ((manager == 0 || f->manager == manager) && (f->callback || !callbacks_only))
            return true;
    return false;
}
