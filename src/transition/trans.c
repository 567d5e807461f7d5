/* SPDX-License-Identifier: MIT */
/*
 * The object, its clock and its default transfer streams.
 */
#include "transition/transition_priv.h"

tn_status tn__trans_create(const tn__trans_config *config, tn__trans **out) {
    tn__trans *t = tn__zalloc_line(sizeof *t);
    if (!t)
        return tn__no_memory();
    t->manager = config->manager;
    t->store = config->store;
    t->life = config->life;
    t->driver = config->driver;
    t->ring = config->ring;
    t->serial = config->mode == TN_MODE_SERIAL;
    t->now_ns = config->now_ns;
    t->now_context = config->now_context;
    t->trace.capacity = config->trace_capacity;
    tn__cond_init(&t->flow.changed);
    *out = t;
    return TN_OK;
}

void tn__trans_destroy(tn__trans *t) {
    if (!t)
        return;
    tn__scopes_orphan(t);
    for (uint32_t i = 0; i <= TN_CUDA_INDEX_MAX; i++) {
        tn_stream stream = tn__load_rlx(&t->streams[i]);
        if (stream)
            (void)tn__stream_destroy(t->driver, stream);
    }
    tn__free(t->trace.ring);
    tn__cond_fini(&t->flow.changed);
    tn__free(t);
}

uint64_t tn__trans_now(const tn__trans *t) {
    return t->now_ns ? t->now_ns(t->now_context) : tn__unix_ns();
}

bool tn__trans_serial(const tn__trans *t) { return t->serial; }

/* Two threads may make one each at the same time: one is kept. */
static tn_status own_stream(tn__trans *t, uint32_t device, tn_stream *out) {
    /* [own-stream] acquire. Pairs: the CAS below. Orders: the stream's making -> its use by
     * another thread. Without: a driver's stream is used before its making is visible. */
    *out = tn__load_acq(&t->streams[device]);
    if (*out)
        return TN_OK;
    tn_stream made = NULL, kept = NULL;
    tn_status status = tn__stream_create(t->driver, device, &made);
    if (status != TN_OK)
        return status;
    if (tn__cas_acq_rel(&t->streams[device], &kept, made)) { /* [own-stream] */
        *out = made;
        return TN_OK;
    }
    (void)tn__stream_destroy(t->driver, made);
    *out = kept;
    return TN_OK;
}

tn_status tn__trans_stream(tn__trans *t, uint32_t device, tn_stream given, tn_stream *out,
                           tn_stream_info *info) {
    *out = given;
    tn_status status = given ? TN_OK : own_stream(t, device, out);
    return status == TN_OK ? tn__driver_check_stream(t->driver, *out, device, info) : status;
}
