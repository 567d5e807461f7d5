/* SPDX-License-Identifier: MIT */
#include "machine.h"

#include "base.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* "TN_ERR_PLAN_EXEC (TN_ERR_SOURCE)": of a plan, what its part says. */
static char *name_of(tn_status status, const tn_error *error) {
    if ((status == TN_ERR_PLAN || status == TN_ERR_PLAN_EXEC) && error->cause_status != TN_OK) {
        return text_format("%s (%s)", tn_status_name(status),
                           tn_status_name((tn_status)error->cause_status));
    }
    return text_copy(tn_status_name(status));
}

char *status_text(tn_status status) {
    const tn_error *error = tn_last_error();
    char *name = NULL;
    char *text = NULL;

    /* Without a matching detail the phrase has to do. */
    if (error->status != (uint32_t)status) {
        return text_format("%s: %s", tn_status_name(status), tn_status_text(status));
    }
    name = name_of(status, error);
    if (error->native_code != 0) {
        text = text_format("%s: %s (native code %" PRId64 ")", name, error->message,
                           error->native_code);
    } else {
        text = text_format("%s: %s", name, error->message);
    }
    free(name);
    return text;
}

char *machine_cuda_why(void) {
    const tn_error *error = tn_last_error();

    if (error->native_code != 0) {
        return text_format("%s (CUDA error %" PRId64 ")", error->message, error->native_code);
    }
    return text_format("%s", error->message);
}

int machine_open_simulated(struct machine *machine, const char *description) {
    tn_status status = TN_OK;

    *machine = (struct machine){0};
    status = tn_sim_create(description, &machine->sim);
    if (status == TN_ERR_VALUE) {
        complain("machine \"%s\": column %" PRIu64 ": %s", description, tn_last_error()->actual,
                 tn_last_error()->message);
        return EXIT_USAGE;
    }
    if (status != TN_OK) {
        complain("machine \"%s\": %s", description, tn_status_text(status));
        return EXIT_USAGE;
    }
    machine->driver = tn_sim_driver(machine->sim);
    machine->virtual_time = tn_sim_advance(machine->sim, 0) == TN_OK;
    return EXIT_GOOD;
}

static int open_real(struct machine *machine) {
    tn_status status = tn_driver_open_cuda(&machine->driver);

    if (status != TN_OK) {
        char *why = machine_cuda_why();

        complain("no CUDA device: %s", why);
        free(why);
        return EXIT_NO_DEVICE;
    }
    return EXIT_GOOD;
}

/* The index in "sim:N" or "cuda:N"; false if it is neither. */
static bool device_index(const char *device, const char *prefix, uint32_t *out_index) {
    size_t length = strlen(prefix);
    tn_location at = {0, 0};
    char text[32] = "cuda:";

    if (strncmp(device, prefix, length) != 0 || strlen(device + length) > 10) {
        return false;
    }
    strcat(text, device + length);
    if (tn_location_make(TN_LOCATION_CUDA, text, &at) != TN_OK) {
        return false;
    }
    *out_index = at.index;
    return true;
}

static int find_device(struct machine *machine, const char *device, uint32_t index) {
    uint32_t count = 0;
    tn_status status = TN_OK;

    machine->ops = tn_driver_table(machine->driver);
    machine->self = tn_driver_self(machine->driver);
    machine->at = tn_location_cuda(index);
    status = machine->ops->device_count(machine->self, &count);
    if (status != TN_OK) {
        complain("%s: %s", device, tn_status_text(status));
        return EXIT_NO_DEVICE;
    }
    if (index >= count) {
        complain("%s: no such device; this machine has %" PRIu32, device, count);
        return EXIT_NO_DEVICE;
    }
    return EXIT_GOOD;
}

int machine_open(struct machine *machine, const char *description, const char *device) {
    uint32_t index = 0;
    int code = EXIT_GOOD;

    *machine = (struct machine){0};
    if (device_index(device, "sim:", &index)) {
        code = machine_open_simulated(machine, description);
    } else if (device_index(device, "cuda:", &index)) {
        code = open_real(machine);
    } else {
        complain("device \"%s\" is not sim:N or cuda:N with N from 0 to %u", device,
                 TN_CUDA_INDEX_MAX);
        code = EXIT_USAGE;
    }
    if (code == EXIT_GOOD) {
        code = find_device(machine, device, index);
    }
    if (code != EXIT_GOOD) {
        machine_close(machine);
    }
    return code;
}

void machine_close(struct machine *machine) {
    if (machine->sim != NULL) {
        tn_sim_destroy(machine->sim); /* and its driver */
    } else {
        tn_driver_destroy(machine->driver);
    }
    *machine = (struct machine){0};
}

uint64_t machine_now_ns(const struct machine *machine) {
    struct timespec now;

    if (machine->sim != NULL) {
        return tn_sim_now_ns(machine->sim);
    }
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}
