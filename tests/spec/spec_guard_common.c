/* SPDX-License-Identifier: MIT */
#include "spec_guard_common.h"

void guard_prepare(struct guard *g, struct spec *f,
                   tn_status (*callback)(void *context, const tn_load_request *request)) {
    tt_source *source = spec_source(f);

    memset(g, 0, sizeof *g);
    g->f = f;
    g->m = MANAGER(f);
    g->other = MANAGER(f);
    g->v = adopt_rep(f, g->m, P);
    g->spare = adopt_rep(f, g->m, P);
    ensure(g->m, g->v, C0);
    ensure(g->m, g->spare, N);
    source->hook = callback;
    source->hook_context = g;
    g->loading = register_src(g->m, source);
    g->beyond = register_src(g->other, spec_source(f));
    g->stream = spec_stream(f, 0);
    g->host = acquire(g->m, g->v, P, NULL);
    g->device = acquire(g->m, g->v, C0, g->stream);
    g->held = hold(g->m, g->v, P);
    g->reservation = reserve(g->m, P, 8, "open");
    g->extra = spec_source(f);
    g->version = version(g->m);
}

void guard_finish(struct guard *g) {
    assert_int_equal(mat(g->m, g->v, P).use_count, 1);
    assert_int_equal(mat(g->m, g->v, P).hold_count, 1);
    assert_int_equal(mat(g->m, g->v, C0).use_count, 1);
    release(&g->host);
    release(&g->device);
    release_hold(&g->held);
    release_reservation(&g->reservation);
    assert_int_equal(mat(g->m, g->v, P).use_count, 0);
    assert_int_equal(mat(g->m, g->v, P).hold_count, 0);
    assert_int_equal(info(g->m).reservation_count, 0);
    assert_null_text(spec_b_check(g->m));
}

const char *guard_lifetimes_are_open(struct guard *g) {
    TN_WORKER_CHECK(tn_lease_active(&g->host));
    TN_WORKER_CHECK(tn_lease_active(&g->device));
    TN_WORKER_CHECK(tn_hold_active(&g->held));
    TN_WORKER_CHECK(tn_reservation_active(&g->reservation));
    return NULL;
}

tn_status guard_wait_until_told(void *context, const tn_load_request *request) {
    struct guard *g = context;

    (void)request;
    atomic_store(&g->entered, true);
    if (!spec_b_wait(&g->go, SPEC_B_PATIENCE_MS))
        g->text = "nobody told the callback to go on";
    return TN_OK;
}
