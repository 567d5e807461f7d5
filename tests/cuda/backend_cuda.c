/* SPDX-License-Identifier: MIT */
/* The CUDA backend under the conformance suite: over the test driver and a simulated machine, or,
 * with TN_TEST_DRIVER=cuda, over the driver of this machine. */
#include "backend.h"

#include "tn_test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cuda_shim.h"
#include "tenure/sim.h"

static tn_sim *machine; /* NULL: the real driver */
static struct cuda_shim *shim;
static char complaint[256];

static tn_driver *open_real(void) {
    const char *require = getenv("TN_REQUIRE_GPU");
    tn_driver *driver = NULL;
    tn_status status = tn_driver_open_cuda(&driver);

    if (status == TN_ERR_UNSUPPORTED && (require == NULL || strcmp(require, "1") != 0))
        return NULL;
    assert_status(status, TN_OK); /* there, but broken */
    return driver;
}

tn_driver *backend_open(void) {
    const char *which = getenv("TN_TEST_DRIVER");

    assert_null(machine);
    if (which != NULL && strcmp(which, "cuda") == 0)
        return open_real();
    assert_ok(tn_sim_create("dev:2 mem=256MiB clock=threads", &machine));
    shim = cuda_shim_load(SHIM_FULL, tn_sim_driver(machine));
    return cuda_shim_open(SHIM_FULL);
}

const char *backend_why(void) { return tn_driver_why(); }

static const char *close_machine(void) {
    const char *text = NULL;

    if (tn_sim_violations(machine) > 0) {
        snprintf(complaint, sizeof(complaint), "%s", tn_sim_violation_text(machine));
        text = complaint;
    } else if (atomic_load(&shim->complaints) > 0) {
        snprintf(complaint, sizeof(complaint), "%s", shim->complaint);
        text = complaint;
    } else if (tn_sim_live_events(machine) + tn_sim_live_streams(machine) > 0) {
        text = "events or streams are left";
    } else if (atomic_load(&shim->retained) != 0 || atomic_load(&shim->live_pools) != 0) {
        text = "contexts or pools are left";
    }
    tn_sim_destroy(machine);
    machine = NULL;
    return text;
}

const char *backend_close(tn_driver *driver) {
    tn_driver_destroy(driver);
    return machine != NULL ? close_machine() : NULL;
}
