/* SPDX-License-Identifier: MIT */
/* Calls of the specification's cases that must succeed; see spec_common.h. */
#include "spec_common.h"

tn_report ensure(tn_manager *m, tn_handle h, tn_location at) {
    tn_report report = TN_REPORT_INIT;

    assert_ok(tn_manager_ensure(m, h, at, NULL, &report));
    return report;
}

tn_report move(tn_manager *m, tn_handle h, tn_location to) { return move_from(m, h, to, NOWHERE); }

tn_report move_from(tn_manager *m, tn_handle h, tn_location to, tn_location from) {
    tn_report report = TN_REPORT_INIT;

    assert_ok(tn_manager_move(m, h, to, from, NULL, &report));
    return report;
}

tn_report drop(tn_manager *m, tn_handle h, tn_location at) {
    tn_report report = TN_REPORT_INIT;

    assert_ok(tn_manager_drop(m, h, at, &report));
    return report;
}

tn_report discard(tn_manager *m, tn_handle h) {
    tn_report report = TN_REPORT_INIT;

    assert_ok(tn_manager_discard(m, h, &report));
    return report;
}

tn_lease acquire(tn_manager *m, tn_handle h, tn_location at, tn_stream stream) {
    tn_lease lease = {NULL, 0};

    assert_ok(tn_manager_acquire(m, &h, 1, at, stream, &lease));
    return lease;
}

tn_hold hold(tn_manager *m, tn_handle h, tn_location at) {
    tn_hold out = {NULL, 0};

    assert_ok(tn_manager_hold(m, &h, 1, at, &out));
    return out;
}

tn_reservation reserve(tn_manager *m, tn_location at, uint64_t bytes, const char *label) {
    tn_reservation r = {NULL, 0};

    assert_ok(tn_manager_reserve(m, at, bytes, label, &r));
    return r;
}

void release(const tn_lease *lease) { assert_ok(tn_lease_release(lease, 0)); }
void release_hold(const tn_hold *h) { assert_ok(tn_hold_release(h)); }
void release_reservation(const tn_reservation *r) { assert_ok(tn_reservation_release(r)); }
