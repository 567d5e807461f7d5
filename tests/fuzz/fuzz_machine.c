/* SPDX-License-Identifier: MIT */
/* Machine strings: any text is a machine, or TN_ERR_VALUE with a column in the text. */
#include "fuzz.h"

#include <string.h>

#include <tenure/tenure.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    char text[512];
    tn_sim *sim = NULL;
    if (size >= sizeof text)
        return 0;
    if (size)
        memcpy(text, data, size);
    text[size] = 0;
    tn_status status = tn_sim_create(text, &sim);
    if (status == TN_OK) {
        if (!sim || !tn_sim_driver(sim))
            fuzz_found("a machine without a driver");
        tn_sim_destroy(sim);
        return 0;
    }
    if (sim)
        fuzz_found("a machine and an error");
    if (status == TN_ERR_VALUE &&
        (tn_last_error()->actual == 0 || tn_last_error()->actual > strlen(text) + 1))
        fuzz_found("an error outside the text");
    if (status != TN_ERR_VALUE && status != TN_ERR_HOST_MEMORY)
        fuzz_found("an unexpected status");
    return 0;
}
