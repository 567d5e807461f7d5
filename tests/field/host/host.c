/* SPDX-License-Identifier: MIT */
/*
 * A program that knows nothing of Tenure until it loads it: with a crowd of other libraries before
 * it, or as several copies.
 *
 *     host [--crowd FOLDER DYNAMIC STATIC] LIBRARY...
 *
 * --crowd loads 64 copies of DYNAMIC and 8 of STATIC first (see crowd.c), which it makes in FOLDER.
 * Two threads, older than all of it, touch each member of the crowd; then each LIBRARY is loaded,
 * and both threads borrow a value of a manager of each. Says what is wrong and ends with 1.
 */
#include <dlfcn.h>
#include <link.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tenure/tenure.h>

enum { DYNAMIC = 64, STATIC = 8, LIBRARIES_MAX = 4, ROUNDS = 1000, BYTES = 4096, TLS_MAX = 64 };

#define NEED(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition);              \
            exit(1);                                                                               \
        }                                                                                          \
    } while (0)

#define FUNCTIONS(X)                                                                               \
    X(tn_api_version)                                                                              \
    X(tn_buffer_create)                                                                            \
    X(tn_buffer_payload)                                                                           \
    X(tn_buffer_segment)                                                                           \
    X(tn_manager_acquire)                                                                          \
    X(tn_manager_adopt)                                                                            \
    X(tn_manager_close)                                                                            \
    X(tn_manager_create)                                                                           \
    X(tn_manager_destroy)                                                                          \
    X(tn_lease_lookup)                                                                             \
    X(tn_lease_release)

struct library {
#define MEMBER(name) __typeof__(name) *name;
    FUNCTIONS(MEMBER)
#undef MEMBER
    tn_manager *manager;
    tn_handle handle;
    unsigned char byte; /* what its value is filled with */
};

static struct library libraries[LIBRARIES_MAX];
static int library_count;
static unsigned char *(*crowd[DYNAMIC + STATIC])(void);
static int crowd_count;
static pthread_barrier_t turn;

/* ---- The threads ---- */

static void touch_crowd(void) {
    unsigned char *previous = NULL;
    for (int i = 0; i < crowd_count; i++) {
        unsigned char *data = crowd[i]();
        NEED(data != previous && data[0] == 1);
        previous = data;
    }
}

static void borrow(struct library *t) {
    tn_lease lease;
    const void *payload;
    NEED(t->tn_manager_acquire(t->manager, &t->handle, 1, tn_location_pageable(), NULL, &lease) ==
         TN_OK);
    NEED(t->tn_lease_lookup(&lease, t->handle, &payload) == TN_OK);
    tn_segment segment = t->tn_buffer_segment(payload, 0);
    NEED(segment.bytes == BYTES);
    for (size_t i = 0; i < BYTES; i++)
        NEED(((unsigned char *)segment.data)[i] == t->byte);
    NEED(t->tn_lease_release(&lease, 0) == TN_OK);
}

static void *host_thread(void *arg) {
    (void)arg;
    pthread_barrier_wait(&turn);
    touch_crowd();
    pthread_barrier_wait(&turn);
    pthread_barrier_wait(&turn); /* the libraries are loaded meanwhile */
    for (int i = 0; i < ROUNDS; i++)
        borrow(&libraries[i % library_count]);
    touch_crowd();
    return NULL;
}

/* ---- Loading ---- */

static void copy_file(const char *from, const char *to) {
    char bytes[4096];
    size_t n;
    FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
    NEED(in && out);
    while ((n = fread(bytes, 1, sizeof bytes, in)) > 0)
        NEED(fwrite(bytes, 1, n, out) == n);
    NEED(fclose(in) == 0 && fclose(out) == 0);
}

static void *load(const char *path) {
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        fprintf(stderr, "%s\n", dlerror());
    NEED(library);
    return library;
}

static void load_crowd(const char *folder, const char *file, int count) {
    for (int i = 0; i < count; i++) {
        char path[4096];
        NEED(snprintf(path, sizeof path, "%s/crowd-%d.so", folder, crowd_count) < 4096);
        copy_file(file, path);
        *(void **)&crowd[crowd_count] = dlsym(load(path), "crowd_touch");
        NEED(crowd[crowd_count]);
        crowd_count++;
    }
}

static void load_library(const char *path) {
    void *library = load(path);
    struct library *t = &libraries[library_count];
#define RESOLVE(name)                                                                              \
    *(void **)&t->name = dlsym(library, #name);                                                    \
    NEED(t->name);
    FUNCTIONS(RESOLVE)
#undef RESOLVE
    NEED(t->tn_api_version() == TN_API_VERSION);
    for (int i = 0; i < library_count; i++) /* a library of its own, not one loaded before */
        NEED(libraries[i].tn_api_version != t->tn_api_version);
    t->byte = (unsigned char)(0x11 * ++library_count);
}

/* ---- Each library's manager ---- */

static void start(struct library *t) {
    tn_config config = TN_CONFIG_INIT;
    tn_buffer *buffer;
    uint64_t bytes = BYTES;
    config.mode = TN_MODE_CONCURRENT;
    NEED(t->tn_manager_create(&config, &t->manager) == TN_OK);
    NEED(t->tn_buffer_create(NULL, tn_location_pageable(), &bytes, 1, &buffer) == TN_OK);
    memset(t->tn_buffer_segment(buffer, 0).data, t->byte, BYTES);
    NEED(t->tn_manager_adopt(t->manager, t->tn_buffer_payload(buffer), tn_location_none(),
                             TN_REPLICABLE, &t->handle) == TN_OK);
}

/* A handle of one copy means nothing to another, whatever their managers' ids. */
static void strangers_are_refused(void) {
    for (int i = 0; i < library_count; i++) {
        struct library *t = &libraries[i], *other = &libraries[(i + 1) % library_count];
        tn_lease lease;
        if (other != t)
            NEED(t->tn_manager_acquire(t->manager, &other->handle, 1, tn_location_pageable(), NULL,
                                       &lease) != TN_OK);
    }
}

static void finish(struct library *t) {
    NEED(t->tn_manager_close(t->manager, 0) == TN_OK);
    NEED(t->tn_manager_destroy(t->manager) == TN_OK);
}

/* ---- What the process has loaded ---- */

static int look_at(struct dl_phdr_info *info, size_t size, void *arg) {
    int *found = arg;
    (void)size;
    if (!strstr(info->dlpi_name, "libtenure"))
        return 0;
    ++*found;
    for (int i = 0; i < info->dlpi_phnum; i++)
        NEED(info->dlpi_phdr[i].p_type != PT_TLS || info->dlpi_phdr[i].p_memsz <= TLS_MAX);
    return 0;
}

static bool is_loaded(const char *file) {
    void *library = dlopen(file, RTLD_LAZY | RTLD_NOLOAD);
    if (library)
        dlclose(library);
    return library != NULL;
}

int main(int argc, char **argv) {
    pthread_t threads[2];
    int first = 1, found = 0;
    NEED(argc > 1 && pthread_barrier_init(&turn, NULL, 3) == 0);
    for (int i = 0; i < 2; i++)
        NEED(pthread_create(&threads[i], NULL, host_thread, NULL) == 0);
    bool jemalloc = is_loaded("libjemalloc.so.2");
    NEED(!is_loaded("libtenure.so.0"));
    if (strcmp(argv[1], "--crowd") == 0) {
        NEED(argc > 5);
        load_crowd(argv[2], argv[3], DYNAMIC);
        load_crowd(argv[2], argv[4], STATIC);
        first = 5;
    }
    pthread_barrier_wait(&turn);
    touch_crowd();
    pthread_barrier_wait(&turn);
    NEED(argc - first >= 1 && argc - first <= LIBRARIES_MAX);
    for (int i = first; i < argc; i++)
        load_library(argv[i]);
    for (int i = 0; i < library_count; i++)
        start(&libraries[i]);
    pthread_barrier_wait(&turn);
    for (int i = 0; i < 2; i++)
        NEED(pthread_join(threads[i], NULL) == 0);
    strangers_are_refused();
    dl_iterate_phdr(look_at, &found);
    NEED(found == library_count);
    NEED(jemalloc || !is_loaded("libjemalloc.so.2")); /* it brings no allocator */
    for (int i = 0; i < library_count; i++)
        finish(&libraries[i]);
    pthread_barrier_destroy(&turn);
    printf("%d other libraries, %d of ours\n", crowd_count, library_count);
    return 0;
}
