/* SPDX-License-Identifier: MIT */
/*
 * The pinned pool's way to the driver. A refusal is answered in this order: a single block instead
 * of a chunk, then idle chunks are given back (which waits for the device) and it is tried again.
 */
#include "driver/driver_priv.h"

/* ---- The driver ------------------------------------------------------------------------- */

/* M31: pinned memory that cannot be had is TN_ERR_PAYLOAD, whatever the driver calls it. */
static tn_status refused(tn_driver *d, tn_status status) {
    tn_status reported = tn__driver_report(d, status, "pinned_alloc", tn_location_pinned());
    if (status == TN_ERR_CLOSED || status == TN_ERR_DEVICE_LOST)
        return reported;
    tn__error_current()->status = TN_ERR_PAYLOAD;
    return TN_ERR_PAYLOAD;
}

/* M31: whether the block is what was asked for. A driver that cannot tell is believed. */
static tn_status verify(tn_driver *d, void *block) {
    tn_location at = tn_location_none();
    if (d->ops->pointer_location == NULL)
        return TN_OK;
    tn_status status = d->ops->pointer_location(d->self, block, &at);
    if (status != TN_OK)
        return refused(d, status);
    if (at.kind == TN_LOCATION_PINNED)
        return TN_OK;
    tn__error(TN_ERR_PAYLOAD, "driver %s gave pageable memory for pinned memory", d->ops->name)
        ->at = tn_location_pinned();
    return TN_ERR_PAYLOAD;
}

static tn_status no_pinned(const char *why) {
    tn__error(TN_ERR_PAYLOAD, "pinned memory cannot be had: %s", why)->at = tn_location_pinned();
    return TN_ERR_PAYLOAD;
}

static tn_status check_able(const tn_driver *d) {
    if (d == NULL)
        return no_pinned("there is no driver");
    if (d->ops->capabilities && (d->ops->capabilities(d->self) & TN_DRIVER_NO_PINNED))
        return no_pinned("the driver cannot pin");
    return TN_OK;
}

static tn_status take(tn_driver *d, uint64_t bytes, void **out) {
    void *block = NULL;
    tn_status status = d->ops->pinned_alloc(d->self, (size_t)bytes, &block);
    if (status != TN_OK)
        return refused(d, status);
    status = verify(d, block);
    if (status != TN_OK) {
        /* The error stays the verification's; a block that cannot be given back is the driver's
         * loss. */
        d->ops->pinned_free(d->self, block, (size_t)bytes);
        return status;
    }
    *out = block;
    return TN_OK;
}

/* ---- Trim ------------------------------------------------------------------------------- */

static tn_status give_chunk_back(tn_driver *d, tn__pinned_chunk *chunk, uint64_t *bytes) {
    tn_status status = d->ops->pinned_free(d->self, chunk->base, (size_t)chunk->bytes);
    if (status != TN_OK)
        status = tn__driver_report_gone_ok(d, status, "pinned_free", tn_location_pinned());
    if (status == TN_OK)
        *bytes += chunk->bytes;
    tn__pinned_idle_end(&d->pinned, chunk, status == TN_OK);
    return status;
}

/* Every idle chunk; the first failure is reported, and what failed stays. */
static tn_status trim(tn_driver *d, uint64_t *bytes) {
    uintptr_t from = 0;
    tn_error first;
    tn_status status = TN_OK;
    tn__pinned_chunk *chunk;
    while ((chunk = tn__pinned_idle(&d->pinned, &from)) != NULL) {
        tn_status one = give_chunk_back(d, chunk, bytes);
        if (one != TN_OK && status == TN_OK) {
            status = one;
            first = *tn__error_current();
        }
    }
    return status == TN_OK ? TN_OK : tn__error_restore(&first);
}

tn_status tn_driver_trim_pinned(tn_driver *driver, uint64_t *out_bytes) {
    uint64_t bytes = 0;
    tn__assert_may_wait("trim_pinned");
    if (driver == NULL)
        return tn__fail(TN_ERR_KIND, "the driver is NULL");
    tn_status status = trim(driver, &bytes);
    if (out_bytes != NULL)
        *out_bytes = bytes; /* also after a failure: what went is gone */
    return status;
}

/* Take from the driver; if it refuses, give back what is idle and try again. */
static tn_status take_or_trim(tn_driver *d, uint64_t bytes, void **out) {
    uint64_t given_back = 0;
    tn_status status = take(d, bytes, out);
    if (status != TN_ERR_PAYLOAD)
        return status;
    tn_error first = *tn__error_current();
    (void)trim(d, &given_back);
    return given_back > 0 ? take(d, bytes, out) : tn__error_restore(&first);
}

/* ---- Blocks ----------------------------------------------------------------------------- */

static tn_status grow(tn_driver *d, uint64_t bytes, void **out) {
    tn__pinned_chunk *chunk;
    void *base = NULL;
    if (!tn__pinned_grow_begin(&d->pinned, bytes, &chunk))
        return tn__no_memory();
    tn_status status = TN_ERR_PAYLOAD;
    if (chunk->count > 1)
        status = take(d, chunk->bytes, &base);
    if (status == TN_ERR_PAYLOAD) {
        tn__pinned_grow_less(chunk);
        status = take_or_trim(d, chunk->bytes, &base);
    }
    void *block = tn__pinned_grow_end(&d->pinned, chunk, status == TN_OK ? base : NULL);
    if (status == TN_OK)
        *out = block;
    return status;
}

tn_status tn__pinned_alloc(tn_driver *d, uint64_t bytes, void **out) {
    void *block = d != NULL ? tn__pinned_take(&d->pinned, bytes) : NULL;
    if (block != NULL) {
        *out = block;
        return TN_OK;
    }
    tn_status status = check_able(d);
    return status == TN_OK ? grow(d, bytes, out) : status;
}

tn_status tn__pinned_free(tn_driver *d, void *pointer, uint64_t bytes) {
    if (tn__pinned_give(&d->pinned, pointer, bytes))
        return TN_OK;
    tn__error(TN_ERR_VALUE, "%p is no block of %llu bytes of pinned memory of driver %s", pointer,
              (unsigned long long)bytes, d->ops->name)
        ->at = tn_location_pinned();
    return TN_ERR_VALUE;
}

/* ---- Rings ------------------------------------------------------------------------------ */

static void count_ring(tn_driver *d, uint64_t more, uint64_t less) {
    tn__lock(&d->pinned.lock);
    d->pinned.ring_bytes += more;
    d->pinned.ring_bytes -= less;
    tn__unlock(&d->pinned.lock);
}

tn_status tn__driver_ring_alloc(tn_driver *d, uint64_t bytes, void **out) {
    tn__assert_may_wait("ring_alloc");
    tn_status status = check_able(d);
    if (status == TN_OK)
        status = take_or_trim(d, bytes, out);
    if (status == TN_OK)
        count_ring(d, bytes, 0);
    return status;
}

void tn__driver_ring_free(tn_driver *d, void *pointer, uint64_t bytes) {
    tn__assert_may_wait("ring_free");
    if (d->ops->pinned_free(d->self, pointer, (size_t)bytes) == TN_ERR_CLOSED)
        tn__pinned_gone(&d->pinned);
    count_ring(d, 0, bytes);
}

uint64_t tn__driver_pinned_returned(tn_driver *d) {
    tn__lock(&d->pinned.lock);
    uint64_t returned = d->pinned.returned;
    tn__unlock(&d->pinned.lock);
    return returned;
}

/* ---- Managers, settings, figures -------------------------------------------------------- */

void tn__driver_use(tn_driver *d) {
    if (d == NULL)
        return;
    tn__lock(&d->pinned.lock);
    d->pinned.users++;
    tn__unlock(&d->pinned.lock);
}

void tn__driver_unuse(tn_driver *d) {
    uint64_t bytes = 0;
    if (d == NULL)
        return;
    tn__lock(&d->pinned.lock);
    bool last = --d->pinned.users == 0;
    tn__unlock(&d->pinned.lock);
    if (!last)
        return;
    tn_error kept = *tn__error_current();
    (void)trim(d, &bytes); /* what stays is idle, and tried again at the next trim */
    (void)tn__error_restore(&kept);
}

tn_status tn_driver_set_pinned_chunk(tn_driver *driver, uint64_t bytes) {
    if (driver == NULL)
        return tn__fail(TN_ERR_KIND, "the driver is NULL");
    if (bytes > (uint64_t)INT64_MAX)
        return tn__fail(TN_ERR_VALUE, "chunks of %llu bytes", (unsigned long long)bytes);
    tn__lock(&driver->pinned.lock);
    driver->pinned.chunk_bytes = bytes > 0 ? bytes : TN__PINNED_CHUNK_BYTES;
    tn__unlock(&driver->pinned.lock);
    return TN_OK;
}

tn_status tn_driver_read_pinned(tn_driver *driver, tn_pinned_figures *out) {
    tn_pinned_figures f = {.size = sizeof f};
    tn_status status = tn__struct_check_out(out, sizeof(size_t), "tn_pinned_figures");
    if (status == TN_OK && driver == NULL)
        status = tn__fail(TN_ERR_KIND, "the driver is NULL");
    if (status != TN_OK)
        return status;
    const tn__pinned *p = &driver->pinned;
    tn__lock(&driver->pinned.lock);
    f.live_bytes = p->live_bytes;
    f.idle_bytes = p->held_bytes - p->live_bytes;
    f.ring_bytes = p->ring_bytes;
    f.live_blocks = p->live_blocks;
    f.peak_live_bytes = p->peak_live_bytes;
    f.chunks = p->count;
    f.chunk_bytes = p->chunk_bytes;
    tn__unlock(&driver->pinned.lock);
    tn__struct_out(out, &f, sizeof f);
    return TN_OK;
}
