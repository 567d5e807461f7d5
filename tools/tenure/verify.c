/* SPDX-License-Identifier: MIT */
#include "verify.h"

#include "base.h"
#include "replay.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

struct entry {
    size_t program;
    uint64_t tenant, number, digest;
};

struct verifier {
    struct replay **replays; /* used by the thread only */
    size_t replay_count;
    pthread_t thread;
    pthread_mutex_t mutex; /* guards everything below */
    pthread_cond_t changed;
    struct entry *queue; /* entries [next, count) wait */
    size_t next, count, capacity;
    bool ended;
    struct verdict verdict;
};

/* Waits for the next entry; false when there will be none. */
static bool take(struct verifier *verifier, struct entry *out_entry) {
    bool taken = false;

    pthread_mutex_lock(&verifier->mutex);
    while (verifier->next == verifier->count && !verifier->ended) {
        pthread_cond_wait(&verifier->changed, &verifier->mutex);
    }
    if (verifier->next < verifier->count) {
        *out_entry = verifier->queue[verifier->next++];
        taken = true;
    }
    pthread_mutex_unlock(&verifier->mutex);
    return taken;
}

static void note(struct verifier *verifier, const struct entry *entry, bool equal) {
    struct verdict *verdict = &verifier->verdict;

    pthread_mutex_lock(&verifier->mutex);
    if (equal) {
        verdict->equal++;
    } else if (verdict->compared == verdict->equal || entry->number < verdict->first_wrong) {
        verdict->first_wrong = entry->number;
    }
    verdict->compared++;
    pthread_mutex_unlock(&verifier->mutex);
}

static void *run(void *context) {
    struct verifier *verifier = context;
    struct entry entry;

    while (take(verifier, &entry)) {
        uint64_t digest =
            replay_request(verifier->replays[entry.program], entry.tenant, entry.number);

        note(verifier, &entry, digest == entry.digest);
    }
    return NULL;
}

static void destroy(struct verifier *verifier) {
    for (size_t i = 0; i < verifier->replay_count; i++) {
        replay_destroy(verifier->replays[i]);
    }
    pthread_cond_destroy(&verifier->changed);
    pthread_mutex_destroy(&verifier->mutex);
    free(verifier->replays);
    free(verifier->queue);
    free(verifier);
}

/* Signals are for the main thread. */
static int start_thread(struct verifier *verifier) {
    sigset_t all;
    sigset_t before;
    int error = 0;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_create(&verifier->thread, NULL, run, verifier);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

struct verifier *verifier_create(struct program *const *programs, size_t program_count,
                                 uint64_t seed, uint64_t tenants) {
    struct verifier *verifier = memory_new(1, sizeof *verifier);
    int error = 0;

    verifier->replay_count = program_count;
    verifier->replays = memory_new(program_count, sizeof(struct replay *));
    for (size_t i = 0; i < program_count; i++) {
        verifier->replays[i] = replay_create(programs[i], seed, tenants);
    }
    pthread_mutex_init(&verifier->mutex, NULL);
    pthread_cond_init(&verifier->changed, NULL);
    error = start_thread(verifier);
    if (error != 0) {
        complain("no thread for the plain replay: %s", strerror(error));
        destroy(verifier);
        return NULL;
    }
    return verifier;
}

void verifier_submit(struct verifier *verifier, size_t program, uint64_t tenant, uint64_t number,
                     uint64_t digest) {
    struct entry entry = {.program = program, .tenant = tenant, .number = number, .digest = digest};

    pthread_mutex_lock(&verifier->mutex);
    verifier->queue = memory_reserve(verifier->queue, &verifier->capacity, verifier->count + 1,
                                     sizeof *verifier->queue);
    verifier->queue[verifier->count++] = entry;
    pthread_cond_signal(&verifier->changed);
    pthread_mutex_unlock(&verifier->mutex);
}

struct verdict verifier_finish(struct verifier *verifier, bool drop_rest) {
    struct verdict verdict;

    pthread_mutex_lock(&verifier->mutex);
    verifier->ended = true;
    if (drop_rest) {
        verifier->count = verifier->next;
    }
    pthread_cond_signal(&verifier->changed);
    pthread_mutex_unlock(&verifier->mutex);
    pthread_join(verifier->thread, NULL);
    verdict = verifier->verdict;
    destroy(verifier);
    return verdict;
}
