/* SPDX-License-Identifier: MIT */
/* The simulator as a backend: real streams on threads. */
#include "backend.h"

#include "tn_test.h"

#include <stdio.h>

#include <tenure/sim.h>

static tn_sim *machine;

tn_driver *backend_open(void) {
    assert_null(machine);
    assert_ok(tn_sim_create("dev:2 mem=256MiB clock=threads", &machine));
    return tn_sim_driver(machine);
}

const char *backend_why(void) { return "the simulator is always there"; }

const char *backend_close(tn_driver *driver) {
    static char complaint[256];
    const char *text = NULL;

    assert_ptr_equal(driver, tn_sim_driver(machine));
    if (tn_sim_violations(machine) > 0) {
        snprintf(complaint, sizeof(complaint), "%s", tn_sim_violation_text(machine));
        text = complaint;
    } else if (tn_sim_live_events(machine) + tn_sim_live_streams(machine) > 0) {
        text = "events or streams are left";
    }
    tn_sim_destroy(machine);
    machine = NULL;
    return text;
}
