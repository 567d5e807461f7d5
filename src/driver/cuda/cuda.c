/* SPDX-License-Identifier: MIT */
/* Life of the CUDA backend, and its table. */
#include "driver/cuda/cuda_priv.h"

/* Serials of drivers; unique is all they need to be. */
static _Atomic uint32_t last_serial;

static tn_status device_count(void *self, uint32_t *out) {
    const tn__cuda *c = self;

    *out = c->count;
    return TN_OK;
}

static const tn_driver_ops table = {
    .size = sizeof(tn_driver_ops),
    .abi = TN_DRIVER_ABI,
    .name = "cuda",
    .device_count = device_count,
    .last_code = tn__cuda_last_code,
    .device_alloc = tn__cuda_device_alloc,
    .device_free = tn__cuda_device_free,
    .pinned_alloc = tn__cuda_pinned_alloc,
    .pinned_free = tn__cuda_pinned_free,
    .stream_create = tn__cuda_stream_create,
    .stream_destroy = tn__cuda_stream_destroy,
    .stream_info = tn__cuda_stream_info,
    .stream_synchronize = tn__cuda_stream_synchronize,
    .stream_wait = tn__cuda_stream_wait,
    .event_create = tn__cuda_event_create,
    .event_destroy = tn__cuda_event_destroy,
    .event_record = tn__cuda_event_record,
    .event_query = tn__cuda_event_query,
    .event_synchronize = tn__cuda_event_synchronize,
    .copy = tn__cuda_copy,
    .device_synchronize = tn__cuda_device_synchronize,
    .host_function = tn__cuda_host_function,
    .device_memory = tn__cuda_device_memory,
    .pointer_location = tn__cuda_pointer_location,
};

static bool has_pools(const tn__cuda_api *api) {
    return api->cuMemPoolCreate && api->cuMemPoolDestroy && api->cuMemPoolSetAttribute &&
           api->cuMemPoolGetAttribute && api->cuMemPoolTrimTo && api->cuMemAllocFromPoolAsync &&
           api->cuMemFreeAsync;
}

static tn__cuda *cuda_new(const tn__cuda_api *api, uint32_t count) {
    tn__cuda *c = tn__zalloc(sizeof(*c) + count * sizeof(c->devices[0]));
    uint32_t i;

    if (c == NULL)
        return NULL;
    c->api = *api;
    c->ops = table;
    if (api->cuLaunchHostFunc == NULL)
        c->ops.host_function = NULL;
    c->serial = tn__add_rlx(&last_serial, 1) + 1;
    c->pools = has_pools(api);
    c->count = count;
    tn__mutex_init(&c->lock, TN__RANK_CUDA);
    for (i = 0; i < count; i++)
        tn__mutex_init(&c->devices[i].idle_lock, TN__RANK_LEAF);
    return c;
}

static tn_status refuse(CUresult code, const char *text, const char **why) {
    tn__error(TN_ERR_DRIVER, "%s", text)->native_code = code;
    *why = text;
    return TN_ERR_DRIVER;
}

static tn_status make(const tn__cuda_api *api, tn__cuda **out, const char **why) {
    int count = 0;
    CUresult code = api->cuDeviceGetCount(&count);
    tn__cuda *c;
    uint32_t i;

    if (code != CUDA_SUCCESS)
        return refuse(code, "the CUDA driver cannot count its devices", why);
    if (count <= 0) {
        *why = "there is no CUDA device here";
        return tn__fail(TN_ERR_UNSUPPORTED, "%s", *why);
    }
    if (count > (int)TN_CUDA_INDEX_MAX + 1)
        count = (int)TN_CUDA_INDEX_MAX + 1;
    c = cuda_new(api, (uint32_t)count);
    if (c == NULL) {
        *why = "there is no memory for the CUDA backend";
        return tn__no_memory();
    }
    for (i = 0; i < c->count && code == CUDA_SUCCESS; i++)
        code = api->cuDeviceGet(&c->devices[i].handle, (int)i);
    if (code != CUDA_SUCCESS) {
        tn__cuda_close(c);
        return refuse(code, "the CUDA driver cannot name its devices", why);
    }
    *out = c;
    return TN_OK;
}

tn_status tn__cuda_open(const char *library, tn__cuda **out, const char **why) {
    tn__cuda_api api;
    tn_status status = tn__cuda_load(library, &api, why);

    if (status == TN_OK)
        status = tn__cuda_init(&api, why);
    return status == TN_OK ? make(&api, out, why) : status;
}

const tn_driver_ops *tn__cuda_table(const tn__cuda *c) { return &c->ops; }

void tn__cuda_close(void *self) {
    tn__cuda *c = self;
    uint32_t i;

    for (i = 0; i < c->count; i++)
        tn__cuda_device_close(c, &c->devices[i]);
    tn__mutex_fini(&c->lock);
    tn__free(c);
}
