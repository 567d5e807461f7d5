/* SPDX-License-Identifier: MIT */
/*
 * Plan files: any bytes are a scene whose plan can be explained and run, or an error. What is
 * explained as feasible runs, whatever the file put into the way (M172 has no part here).
 */
#include "fuzz.h"

#include "account.h"
#include "plan_file.h"

static void explain(struct scene *scene) {
    struct account account = {0};
    if (account_take(&account, scene, true)) {
        if (account.info.feasible != (account.problem == NULL))
            fuzz_found("a feasible plan with a problem, or the reverse");
        if (account.has_run && account.info.feasible && account.run.status != TN_OK &&
            account.run.status != TN_ERR_DEVICE_MEMORY && account.run.status != TN_ERR_PLAN_EXEC)
            fuzz_found("a feasible plan was refused");
    }
    account_fini(&account);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct scene scene = {0};
    fuzz_quiet();
    if (plan_file_open(&scene, fuzz_file(data, size)))
        explain(&scene);
    scene_close(&scene);
    return 0;
}
