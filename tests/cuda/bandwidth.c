/* SPDX-License-Identifier: MIT */
/*
 * bandwidth [MIB [VALUES [ROUNDS]]]: how fast values come from pinned memory to device 0 by
 * tn_manager_ensure(), and by a bare cuMemcpyHtoDAsync of the same bytes from the same memory.
 *
 * Prints one "NAME FIGURE" a line: GB/s, the best of the rounds after a first one that does not
 * count. `bare_each` waits for each copy, as ensure does; `bare_queued` once for all. Fails if a byte
 * is wrong. Exit status: 0 done, 1 failed, 2 usage, 3 no device.
 */
#include <cuda.h>

#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <tenure/tenure.h>

enum { VALUES_MOST = 4096 };

struct bare {
    __typeof__(&cuDeviceGet) device_get;
    __typeof__(&cuDevicePrimaryCtxRetain) retain;
    __typeof__(&cuDevicePrimaryCtxRelease_v2) release;
    __typeof__(&cuCtxPushCurrent_v2) push;
    __typeof__(&cuCtxPopCurrent_v2) pop;
    __typeof__(&cuMemcpyHtoDAsync_v2) copy;
    __typeof__(&cuStreamSynchronize) synchronize;
};

struct run {
    tn_driver *driver;
    const tn_driver_ops *ops;
    void *self;
    tn_manager *manager;
    tn_stream stream;
    uint64_t bytes;
    size_t count, rounds;
    tn_handle *handles;
    void **pinned;
    void *target; /* of bare copies */
    struct bare bare;
};

static void need(tn_status status, const char *what) {
    if (status == TN_OK)
        return;
    fprintf(stderr, "bandwidth: %s: %s: %s (native code %" PRId64 ")\n", what,
            tn_status_name(status), tn_last_error()->message, tn_last_error()->native_code);
    exit(1);
}

static void need_cuda(CUresult code, const char *what) {
    if (code != CUDA_SUCCESS) {
        fprintf(stderr, "bandwidth: %s: CUDA error %d\n", what, (int)code);
        exit(1);
    }
}

static void find(void *library, const char *name, void *out) {
    void *address = dlsym(library, name);

    if (address == NULL) {
        fprintf(stderr, "bandwidth: the CUDA driver has no %s\n", name);
        exit(1);
    }
    memcpy(out, &address, sizeof(address));
}

static void load_bare(struct bare *bare) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);

    if (library == NULL) {
        fprintf(stderr, "bandwidth: %s\n", dlerror());
        exit(1);
    }
    find(library, "cuDeviceGet", &bare->device_get);
    find(library, "cuDevicePrimaryCtxRetain", &bare->retain);
    find(library, "cuDevicePrimaryCtxRelease_v2", &bare->release);
    find(library, "cuCtxPushCurrent_v2", &bare->push);
    find(library, "cuCtxPopCurrent_v2", &bare->pop);
    find(library, "cuMemcpyHtoDAsync_v2", &bare->copy);
    find(library, "cuStreamSynchronize", &bare->synchronize);
}

static uint64_t word_of(size_t value, uint64_t i) {
    return (i + 1) * UINT64_C(0x9e3779b97f4a7c15) ^ (value << 7);
}

static void make_value(struct run *run, size_t n) {
    tn_buffer *buffer = NULL;
    uint64_t *p;

    need(tn_buffer_create(run->driver, tn_location_pinned(), &run->bytes, 1, &buffer),
         "pinned memory");
    run->pinned[n] = tn_buffer_segment(buffer, 0).data;
    p = run->pinned[n];
    for (uint64_t i = 0; i < run->bytes / 8; i++)
        p[i] = word_of(n, i);
    need(tn_manager_adopt(run->manager, tn_buffer_payload(buffer), tn_location_pinned(),
                          TN_REPLICABLE, &run->handles[n]),
         "adopting");
}

static double now_s(void) {
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static double ensure_all(struct run *run) {
    double began_s = now_s();
    double spent_s;

    for (size_t n = 0; n < run->count; n++)
        need(tn_manager_ensure(run->manager, run->handles[n], tn_location_cuda(0), run->stream,
                               NULL),
             "ensure");
    spent_s = now_s() - began_s;
    return spent_s;
}

static void drop_all(struct run *run) {
    for (size_t n = 0; n < run->count; n++)
        need(tn_manager_drop(run->manager, run->handles[n], tn_location_cuda(0), NULL), "drop");
}

static double copy_all(struct run *run, bool each) {
    double began_s = now_s();

    for (size_t n = 0; n < run->count; n++) {
        need_cuda(run->bare.copy((CUdeviceptr)(uintptr_t)run->target, run->pinned[n], run->bytes,
                                 run->stream),
                  "cuMemcpyHtoDAsync");
        if (each)
            need_cuda(run->bare.synchronize(run->stream), "cuStreamSynchronize");
    }
    need_cuda(run->bare.synchronize(run->stream), "cuStreamSynchronize");
    return now_s() - began_s;
}

static void check(struct run *run, const void *on_device, size_t value) {
    uint64_t *copy = malloc(run->bytes);

    if (copy == NULL)
        exit(1);
    need(run->ops->copy(run->self, copy, tn_location_pageable(), on_device, tn_location_cuda(0),
                        run->bytes, NULL),
         "copying back");
    for (uint64_t i = 0; i < run->bytes / 8; i++) {
        if (copy[i] != word_of(value, i)) {
            fprintf(stderr, "bandwidth: value %zu: word %" PRIu64 " is wrong\n", value, i);
            exit(1);
        }
    }
    free(copy);
}

static void check_values(struct run *run) {
    for (size_t n = 0; n < run->count; n++) {
        const void *payload = NULL;
        tn_lease lease;

        need(tn_manager_acquire(run->manager, &run->handles[n], 1, tn_location_cuda(0), run->stream,
                                &lease),
             "acquire");
        need(tn_lease_lookup(&lease, run->handles[n], &payload), "lookup");
        check(run, tn_buffer_segment(payload, 0).data, n);
        need(tn_lease_release(&lease, TN_RELEASE_WAIT), "release");
    }
}

static void show(const struct run *run, const char *name, double best_s) {
    printf("%s %.3f\n", name, (double)run->bytes * (double)run->count / best_s / 1e9);
}

/* The best of some rounds after the first. */
static void measure_ensure(struct run *run) {
    double best_s = 1e300;

    for (size_t round = 0; round <= run->rounds; round++) {
        double spent_s = ensure_all(run);

        if (round > 0 && spent_s < best_s)
            best_s = spent_s;
        if (round == run->rounds)
            check_values(run);
        drop_all(run);
    }
    show(run, "ensure", best_s);
}

static void measure_bare(struct run *run, const char *name, bool each) {
    double best_s = 1e300;

    for (size_t round = 0; round <= run->rounds; round++) {
        double spent_s = copy_all(run, each);

        if (round > 0 && spent_s < best_s)
            best_s = spent_s;
    }
    check(run, run->target, run->count - 1);
    show(run, name, best_s);
}

static void measure_all_bare(struct run *run) {
    CUdevice device = 0;
    CUcontext context = NULL;

    need(tn_memory_alloc(run->driver, tn_location_cuda(0), run->bytes, &run->target),
         "device memory");
    load_bare(&run->bare);
    need_cuda(run->bare.device_get(&device, 0), "cuDeviceGet");
    need_cuda(run->bare.retain(&context, device), "cuDevicePrimaryCtxRetain");
    need_cuda(run->bare.push(context), "cuCtxPushCurrent");
    measure_bare(run, "bare_each", true);
    measure_bare(run, "bare_queued", false);
    need_cuda(run->bare.pop(&context), "cuCtxPopCurrent");
    need_cuda(run->bare.release(device), "cuDevicePrimaryCtxRelease");
    need(tn_memory_free(run->driver, tn_location_cuda(0), run->target, run->bytes), "free");
}

static void open_manager(struct run *run) {
    tn_config config = TN_CONFIG_INIT;

    config.driver = run->driver;
    config.mode = TN_MODE_CONCURRENT;
    config.trace_capacity = TN_TRACE_NONE;
    need(tn_manager_create(&config, &run->manager), "manager");
    need(run->ops->stream_create(run->self, 0, &run->stream), "stream");
    run->handles = calloc(run->count, sizeof(*run->handles));
    run->pinned = calloc(run->count, sizeof(*run->pinned));
    if (run->handles == NULL || run->pinned == NULL)
        exit(1);
    for (size_t n = 0; n < run->count; n++)
        make_value(run, n);
}

static void close_manager(struct run *run) {
    need(tn_manager_close(run->manager, 0), "close");
    need(tn_manager_destroy(run->manager), "destroy");
    need(run->ops->stream_destroy(run->self, run->stream), "stream");
    tn_driver_destroy(run->driver);
    free(run->handles);
    free(run->pinned);
}

static unsigned long argument(int argc, char **argv, int n, unsigned long otherwise) {
    char *end = NULL;
    unsigned long value = argc > n ? strtoul(argv[n], &end, 10) : otherwise;

    if (value == 0 || value > VALUES_MOST || (end != NULL && *end != '\0')) {
        fprintf(stderr, "usage: bandwidth [MIB [VALUES [ROUNDS]]]\n");
        exit(2);
    }
    return value;
}

int main(int argc, char **argv) {
    struct run run = {.bytes = (uint64_t)argument(argc, argv, 1, 132) << 20,
                      .count = argument(argc, argv, 2, 16),
                      .rounds = argument(argc, argv, 3, 5)};

    if (tn_driver_open_cuda(&run.driver) != TN_OK) {
        fprintf(stderr, "bandwidth: no CUDA device: %s\n", tn_last_error()->message);
        return 3;
    }
    run.ops = tn_driver_table(run.driver);
    run.self = tn_driver_self(run.driver);
    open_manager(&run);
    measure_ensure(&run);
    measure_all_bare(&run);
    close_manager(&run);
    return fflush(stdout) != 0;
}
