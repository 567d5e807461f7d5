/* SPDX-License-Identifier: MIT */
/*
 * An operation with --control explicit: what it reads is made resident and leased, the bytes of what
 * it writes are reserved.
 */
#include "base.h"
#include "operation.h"
#include "room.h"

#include <stdlib.h>

enum { BORROWS_MOST = 1000 /* times that others may drop what an operation has made resident */ };

static bool fail_loading(struct request *request, tn_status status, const struct item *item) {
    char *name = text_format("%s of %s", item->id, item->path);

    request_fail(request, status, "loading", name);
    free(name);
    return false;
}

static bool make_resident(struct request *request, struct workload_refs reads, bool again) {
    for (uint32_t i = 0; i < reads.count; i++) {
        uint32_t value = request->program->work->refs[reads.first + i];

        if (program_is_source(request->program, value)) {
            struct item *item = operation_item(request, value);
            tn_status status = placement_ensure(&request->worker->placer, item, again);

            if (status != TN_OK) {
                return fail_loading(request, status, item);
            }
        }
    }
    return true;
}

static bool reserve_results(struct request *request, struct workload_refs writes) {
    tn_status status = TN_OK;

    if (writes.count > 0) {
        status =
            placement_reserve(&request->worker->placer, operation_result_bytes(request, writes),
                              "results", &request->results_reservation);
    }
    return status == TN_OK || request_fail(request, status, "reserving room for", "its results");
}

/*
 * A drop that another worker had begun before our operation marked its values may still win. Then
 * what is gone is made resident again; now that it is marked, nobody begins another drop.
 */
static tn_status acquire_all(struct request *request, struct workload_refs reads) {
    struct server *server = request->server;

    for (int i = 0;; i++) {
        tn_status status =
            tn_manager_acquire(server->manager, request->handles, request->handle_count,
                               server->machine.at, request->worker->stream, &request->lease);

        if (status != TN_ERR_UNAVAILABLE || i == BORROWS_MOST) {
            return status;
        }
        request->worker->tally.retries.gone++;
        if (!make_resident(request, reads, true)) {
            return status;
        }
    }
}

static bool look_up(struct request *request, uint32_t value, tn_handle handle) {
    const void *payload = NULL;
    tn_status status = tn_lease_lookup(&request->lease, handle, &payload);

    if (status != TN_OK) {
        return request_fail(request, status, "looking up",
                            request->program->work->values[value].id);
    }
    operation_add_operand(request, value, payload);
    return true;
}

static bool borrow(struct request *request, struct workload_refs reads) {
    const uint32_t *values = request->program->work->refs + reads.first;
    tn_status status = TN_OK;

    if (reads.count == 0) {
        return true;
    }
    request->handle_count = reads.count;
    for (uint32_t i = 0; i < reads.count; i++) {
        request->handles[i] = operation_handle(request, values[i]);
    }
    status = acquire_all(request, reads);
    if (status != TN_OK) {
        request->lease = (tn_lease){NULL, 0};
        return request_fail(request, status, "borrowing", "what it reads");
    }
    for (uint32_t i = 0; i < reads.count; i++) {
        if (!look_up(request, values[i], request->handles[i])) {
            return false;
        }
    }
    return true;
}

bool explicit_open(struct request *request, const struct workload_op *op) {
    return make_resident(request, op->reads, false) && reserve_results(request, op->writes) &&
           operation_make_results(request, op->writes) && borrow(request, op->reads);
}

bool explicit_close(struct request *request) {
    tn_status status = tn_lease_release(&request->lease, 0);

    if (status != TN_OK) {
        return request_fail(request, status, "giving back", "what it read");
    }
    request->lease = (tn_lease){NULL, 0};
    return true;
}
