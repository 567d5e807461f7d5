/* SPDX-License-Identifier: MIT */
/*
 * Entry points of leases, holds and reservations.
 */
#include "manager/manager_internal.h"

#include "lifetime/fast.h"

tn_status tn__handles_in(const tn_handle *handles, size_t count) {
    if (count == 0)
        return tn__fail(TN_ERR_VALUE, "no handles");
    if (count > UINT32_MAX)
        return tn__fail(TN_ERR_VALUE, "too many handles");
    tn_status status = tn__not_null(handles, "the handles");
    for (size_t i = 0; i < count && status == TN_OK; i++)
        status = tn__handle_in(handles[i]);
    return status;
}

/* Everything up to the handles' own checks, for leases and holds (M131, M151). */
static tn_status begin(tn_manager *m, const tn_handle *handles, size_t count, tn_location *at,
                       const void *out) {
    tn__thread *thread;
    tn_status status = tn__not_null(m, "the manager");
    if (status == TN_OK)
        status = tn__not_null(out, "the output");
    if (status == TN_OK)
        status = tn__handles_in(handles, count);
    if (status == TN_OK)
        status = tn__manager_enter(m, false, &thread);
    if (status == TN_OK)
        status = tn__driver_check_location(m->driver, *at, at);
    return status;
}

/* M130. A host location takes no stream; something that is none is TN_ERR_KIND first. */
static tn_status check_stream(tn_manager *m, tn_location at, tn_stream stream,
                              tn_stream_info *info) {
    if (!stream)
        return TN_OK;
    bool cuda = at.kind == TN_LOCATION_CUDA;
    tn_status status = tn__driver_check_stream(m->driver, stream, cuda ? at.index : 0, info);
    if (status == TN_ERR_KIND || cuda)
        return status;
    return tn__fail(TN_ERR_VALUE, "a host location takes no stream");
}

static TN__COLD tn_status acquire_slowly(tn_manager *m, const tn_handle *handles, size_t count,
                                         tn_location at, tn_stream stream, tn_lease *out) {
    tn_stream_info info = {0, 0, 0};
    tn_status status = begin(m, handles, count, &at, out);
    if (status == TN_OK && at.kind == TN_LOCATION_CUDA && !stream)
        status = tn__fail(TN_ERR_VALUE, "a CUDA location needs a consumer stream");
    if (status == TN_OK)
        status = tn__life_reap_manual(m->life);
    if (status == TN_OK)
        status = check_stream(m, at, stream, &info);
    if (status == TN_OK)
        status = tn__life_acquire(m->life, handles, count, at, stream, &info, out);
    return tn__done(m, status);
}

/* Not part of the leaf path, which it would make save registers. */
static __attribute__((noinline)) tn_status acquire_many(tn_manager *m, const tn_handle *handles,
                                                        size_t count, tn_location at,
                                                        tn_stream stream, tn_lease *out) {
    bool host = at.kind - TN_LOCATION_PAGEABLE <= TN_LOCATION_PINNED - TN_LOCATION_PAGEABLE;
    if (tn__likely(count > 1 && host && !stream && m && handles && out)) {
        tn__hot_lease lease = {handles, count, at.kind};
        if (tn__likely(tn__hot_acquire(m->id, m->gate, m->store, &lease, out)))
            return TN_OK;
    }
    return acquire_slowly(m, handles, count, at, stream, out);
}

tn_status tn_manager_acquire(tn_manager *m, const tn_handle *handles, size_t count, tn_location at,
                             tn_stream stream, tn_lease *out) {
    bool host = at.kind - TN_LOCATION_PAGEABLE <= TN_LOCATION_PINNED - TN_LOCATION_PAGEABLE;
    if (tn__likely(count == 1 && host && !stream && m && handles && out)) {
        if (tn__likely(tn__fast_acquire(m->id, m->gate, m->store, handles, at.kind, out)))
            return TN_OK;
        return acquire_slowly(m, handles, 1, at, NULL, out);
    }
    return acquire_many(m, handles, count, at, stream, out);
}

tn_status tn_manager_hold(tn_manager *m, const tn_handle *handles, size_t count, tn_location at,
                          tn_hold *out) {
    tn_status status = begin(m, handles, count, &at, out);
    if (status == TN_OK)
        status = tn__life_reap_manual(m->life);
    if (status == TN_OK)
        status = tn__life_hold(m->life, handles, count, at, out);
    return tn__done(m, status);
}

tn_status tn_manager_reserve(tn_manager *m, tn_location at, uint64_t bytes, const char *label,
                             tn_reservation *out) {
    tn__thread *thread;
    tn_status status = tn__not_null(m, "the manager");
    if (status == TN_OK)
        status = tn__not_null(out, "the output");
    if (status == TN_OK && bytes > (uint64_t)INT64_MAX)
        status = tn__fail(TN_ERR_VALUE, "the bytes are above INT64_MAX");
    if (status == TN_OK)
        status = tn__check_text(label, "the label");
    if (status == TN_OK)
        status = tn__manager_enter(m, false, &thread);
    if (status == TN_OK)
        status = tn__driver_check_location(m->driver, at, &at);
    if (status == TN_OK) {
        status = tn__life_reserve(m->life, at, bytes, label, out);
        if (status != TN_OK)
            tn__verdict_here(m->id, m->store, m->life);
    }
    return tn__done(m, status);
}

/* ---- Leases ----------------------------------------------------------------------------- */

tn_status tn_lease_lookup(const tn_lease *lease, tn_handle handle, const void **out) {
    tn_status status = tn__not_null(lease, "the lease");
    if (status == TN_OK)
        status = tn__not_null(out, "the output");
    if (status == TN_OK)
        status = tn__handle_in(handle);
    return status == TN_OK ? tn__lease_lookup(lease, handle, out) : status;
}

tn_status tn_lease_contains(const tn_lease *lease, tn_handle handle, bool *out) {
    tn_status status = tn__not_null(lease, "the lease");
    if (status == TN_OK)
        status = tn__not_null(out, "the output");
    if (status == TN_OK)
        status = tn__handle_in(handle);
    return status == TN_OK ? tn__lease_contains(lease, handle, out) : status;
}

static tn_status read_handles(const void *lifetime, void *record, uint64_t generation,
                              tn_handle *out, size_t *inout_count) {
    tn_status status = tn__not_null(lifetime, "the lifetime");
    if (status == TN_OK)
        status = tn__not_null(inout_count, "the count");
    if (status == TN_OK && *inout_count > 0)
        status = tn__not_null(out, "the array");
    return status == TN_OK ? tn__record_handles(record, generation, out, inout_count) : status;
}

static tn_status read_location(const void *lifetime, void *record, uint64_t generation,
                               tn_location *out) {
    tn_status status = tn__not_null(lifetime, "the lifetime");
    if (status == TN_OK)
        status = tn__not_null(out, "the output");
    return status == TN_OK ? tn__record_location(record, generation, out) : status;
}

tn_status tn_lease_handles(const tn_lease *lease, tn_handle *out, size_t *inout_count) {
    return read_handles(lease, lease ? lease->record : NULL, lease ? lease->generation : 0, out,
                        inout_count);
}

tn_status tn_lease_location(const tn_lease *lease, tn_location *out) {
    return read_location(lease, lease ? lease->record : NULL, lease ? lease->generation : 0, out);
}

bool tn_lease_active(const tn_lease *lease) {
    return lease && tn__record_active(lease->record, lease->generation);
}

tn_status tn_lease_add_stream(const tn_lease *lease, tn_stream stream) {
    tn_status status = tn__not_null(lease, "the lease");
    return status == TN_OK ? tn__lease_add_stream(lease, stream) : status;
}

static TN__COLD tn_status release_slowly(const tn_lease *lease, uint32_t flags) {
    tn_status status = tn__not_null(lease, "the lease");
    if (status == TN_OK && (flags & ~(uint32_t)TN_RELEASE_WAIT))
        status = tn__fail(TN_ERR_VALUE, "unknown flags %#x", (unsigned)flags);
    return status == TN_OK ? tn__lease_release(lease, (flags & TN_RELEASE_WAIT) != 0) : status;
}

tn_status tn_lease_release(const tn_lease *lease, uint32_t flags) {
    if (tn__likely(lease && flags == 0) && tn__fast_release(lease))
        return TN_OK;
    return release_slowly(lease, flags);
}

/* ---- Holds and reservations ------------------------------------------------------------- */

tn_status tn_hold_release(const tn_hold *hold) {
    tn_status status = tn__not_null(hold, "the hold");
    return status == TN_OK ? tn__record_release(hold->record, hold->generation) : status;
}

tn_status tn_hold_handles(const tn_hold *hold, tn_handle *out, size_t *inout_count) {
    return read_handles(hold, hold ? hold->record : NULL, hold ? hold->generation : 0, out,
                        inout_count);
}

tn_status tn_hold_location(const tn_hold *hold, tn_location *out) {
    return read_location(hold, hold ? hold->record : NULL, hold ? hold->generation : 0, out);
}

bool tn_hold_active(const tn_hold *hold) {
    return hold && tn__record_active(hold->record, hold->generation);
}

tn_status tn_reservation_release(const tn_reservation *reservation) {
    tn_status status = tn__not_null(reservation, "the reservation");
    return status == TN_OK ? tn__record_release(reservation->record, reservation->generation)
                           : status;
}

bool tn_reservation_active(const tn_reservation *reservation) {
    return reservation && tn__record_active(reservation->record, reservation->generation);
}

tn_status tn_reservation_read(const tn_reservation *reservation, tn_reservation_info *out) {
    tn_status status = tn__not_null(reservation, "the reservation");
    if (status == TN_OK)
        status = tn__struct_check_out(out, sizeof(size_t), "tn_reservation_info");
    return status == TN_OK ? tn__reservation_read(reservation, out) : status;
}
