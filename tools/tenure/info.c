/* SPDX-License-Identifier: MIT */
/*
 * tenure info: what there is to run on.
 */
#include "base.h"
#include "commands.h"
#include "machine.h"

#include <getopt.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage[] =
    "usage: tenure info [--json] [--machine TEXT]\n"
    "\n"
    "Prints the version, the host's memory and its allocator, and each driver: its devices and "
    "its\n"
    "pinned memory, or why there is none.\n"
    "\n"
    "  --machine TEXT   the simulated machine to describe (\"\": its defaults)\n"
    "  --json           one JSON object\n"
    "  --help           this text\n"
    "\n"
    "Exit status: 0 done, 2 wrong usage.\n";

static json_t *device_of(const tn_driver_ops *ops, void *self, uint32_t index) {
    tn_device_memory memory = {0, 0, 0, 0};
    tn_status status =
        ops->device_memory == NULL ? TN_ERR_UNSUPPORTED : ops->device_memory(self, index, &memory);

    if (status != TN_OK) {
        int64_t code = ops->last_code == NULL ? 0 : ops->last_code(self);

        return json_pack("{s:i, s:s, s:I}", "index", (int)index, "why_not", tn_status_text(status),
                         "native_code", (json_int_t)code);
    }
    return json_pack("{s:i, s:I, s:I, s:I, s:I}", "index", (int)index, "total_bytes",
                     (json_int_t)memory.total_bytes, "free_bytes", (json_int_t)memory.free_bytes,
                     "pool_used_bytes", (json_int_t)memory.pool_used_bytes, "pool_held_bytes",
                     (json_int_t)memory.pool_held_bytes);
}

/* This process has only just begun, so these are its own first bytes, and what the library keeps. */
static json_t *pageable(void) {
    tn_host_figures host = TN_HOST_FIGURES_INIT;

    if (tn_host_read_memory(&host) != TN_OK) {
        return json_object();
    }
    return json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:I}", "allocator", host.allocator, "version",
                     host.version, "live_bytes", (json_int_t)host.live_bytes, "allocated_bytes",
                     (json_int_t)host.allocated_bytes, "resident_bytes",
                     (json_int_t)host.resident_bytes, "mapped_bytes", (json_int_t)host.mapped_bytes,
                     "retained_bytes", (json_int_t)host.retained_bytes);
}

static json_t *pinned_of(tn_driver *driver) {
    tn_pinned_figures pinned = TN_PINNED_FIGURES_INIT;

    if (tn_driver_read_pinned(driver, &pinned) != TN_OK) {
        return json_object();
    }
    return json_pack("{s:I, s:I, s:I, s:I}", "live_bytes", (json_int_t)pinned.live_bytes,
                     "idle_bytes", (json_int_t)pinned.idle_bytes, "ring_bytes",
                     (json_int_t)pinned.ring_bytes, "chunk_bytes", (json_int_t)pinned.chunk_bytes);
}

static json_t *driver_of(const char *name, tn_driver *driver) {
    const tn_driver_ops *ops = tn_driver_table(driver);
    void *self = tn_driver_self(driver);
    uint32_t capabilities = ops->capabilities == NULL ? 0 : ops->capabilities(self);
    json_t *devices = json_array();
    uint32_t count = 0;
    tn_status status = ops->device_count(self, &count);

    for (uint32_t i = 0; status == TN_OK && i < count; i++) {
        json_array_append_new(devices, device_of(ops, self, i));
    }
    return json_pack("{s:s, s:b, s:s, s:b, s:b, s:o, s:o}", "driver", name, "present",
                     status == TN_OK && count > 0, "why_not",
                     status != TN_OK ? tn_status_text(status)
                     : count == 0    ? "no device"
                                     : "",
                     "host_addressable", (capabilities & TN_DRIVER_HOST_ADDRESSABLE) != 0, "pinned",
                     (capabilities & TN_DRIVER_NO_PINNED) == 0, "pinned_memory", pinned_of(driver),
                     "devices", devices);
}

static json_t *cuda_driver(void) {
    tn_driver *driver = NULL;
    json_t *described = NULL;

    if (tn_driver_open_cuda(&driver) != TN_OK) {
        char *why = machine_cuda_why();

        described =
            json_pack("{s:s, s:b, s:s, s:I, s:[]}", "driver", "cuda", "present", 0, "why_not", why,
                      "native_code", (json_int_t)tn_last_error()->native_code, "devices");
        free(why);
        return described;
    }
    described = driver_of("cuda", driver);
    tn_driver_destroy(driver);
    return described;
}

static double mib(json_t *object, const char *key) {
    return (double)json_integer_value(json_object_get(object, key)) / MIB;
}

static void print_allocator(json_t *all) {
    json_t *host = json_object_get(all, "pageable_memory");
    const char *version = json_string_value(json_object_get(host, "version"));

    printf("  pageable memory      %s %.*s: %.1f MiB in use, %.1f MiB mapped; values %.1f MiB\n",
           json_string_value(json_object_get(host, "allocator")), (int)strcspn(version, "-"),
           version, mib(host, "allocated_bytes"), mib(host, "mapped_bytes"),
           mib(host, "live_bytes"));
}

static void print_pinned(json_t *driver) {
    json_t *pinned = json_object_get(driver, "pinned_memory");

    printf(
        "    pinned memory      values %.1f MiB, idle %.1f MiB, rings %.1f MiB; chunks of at most "
        "%.1f MiB\n",
        mib(pinned, "live_bytes"), mib(pinned, "idle_bytes"), mib(pinned, "ring_bytes"),
        mib(pinned, "chunk_bytes"));
}

static void print_driver(json_t *driver) {
    size_t index = 0;
    json_t *device = NULL;

    printf("  driver %-14s", json_string_value(json_object_get(driver, "driver")));
    if (!json_is_true(json_object_get(driver, "present"))) {
        printf("none: %s\n", json_string_value(json_object_get(driver, "why_not")));
        return;
    }
    printf("%zu device%s, %s, %s\n", json_array_size(json_object_get(driver, "devices")),
           json_array_size(json_object_get(driver, "devices")) == 1 ? "" : "s",
           json_is_true(json_object_get(driver, "pinned")) ? "pins host memory"
                                                           : "cannot pin host memory",
           json_is_true(json_object_get(driver, "host_addressable"))
               ? "device memory readable by the host"
               : "device memory not readable by the host");
    print_pinned(driver);
    json_array_foreach(json_object_get(driver, "devices"), index, device) {
        json_t *total = json_object_get(device, "total_bytes");

        if (total != NULL) {
            printf("    device %zu           %.1f MiB, %.1f MiB free\n", index,
                   (double)json_integer_value(total) / MIB,
                   (double)json_integer_value(json_object_get(device, "free_bytes")) / MIB);
        } else {
            printf("    device %zu           memory unknown: %s (native code %lld)\n", index,
                   json_string_value(json_object_get(device, "why_not")),
                   (long long)json_integer_value(json_object_get(device, "native_code")));
        }
    }
}

static json_t *describe(const char *machine) {
    struct machine simulated;
    uint64_t pages = (uint64_t)sysconf(_SC_PHYS_PAGES);
    uint64_t page = (uint64_t)sysconf(_SC_PAGESIZE);
    json_t *all = NULL;

    if (machine_open_simulated(&simulated, machine) != EXIT_GOOD) {
        return NULL;
    }
    all = json_pack("{s:i, s:I, s:I, s:I, s:o, s:[o, o]}", "api_version", (int)tn_api_version(),
                    "built_for_api_version", (json_int_t)TN_API_VERSION, "host_memory_bytes",
                    (json_int_t)(pages * page), "processors",
                    (json_int_t)sysconf(_SC_NPROCESSORS_ONLN), "pageable_memory", pageable(),
                    "drivers", driver_of("sim", simulated.driver), cuda_driver());
    machine_close(&simulated);
    return all;
}

static void print_text(json_t *all) {
    json_t *drivers = json_object_get(all, "drivers");
    json_int_t version = json_integer_value(json_object_get(all, "api_version"));
    size_t index = 0;
    json_t *driver = NULL;

    printf("tenure %lld.%lld.%lld\n", (long long)version / 10000, (long long)version / 100 % 100,
           (long long)version % 100);
    printf("  host memory          %.1f MiB, %lld processors\n",
           (double)json_integer_value(json_object_get(all, "host_memory_bytes")) / MIB,
           (long long)json_integer_value(json_object_get(all, "processors")));
    print_allocator(all);
    json_array_foreach(drivers, index, driver) { print_driver(driver); }
}

static int info(const char *machine, bool json) {
    json_t *all = describe(machine);

    if (all == NULL) {
        return EXIT_USAGE;
    }
    if (json) {
        json_dumpf(all, stdout, JSON_INDENT(2));
        putchar('\n');
    } else {
        print_text(all);
    }
    json_decref(all);
    return output_finish();
}

int command_info(int argc, char **argv) {
    static const struct option options[] = {{"help", no_argument, NULL, 'h'},
                                            {"json", no_argument, NULL, 'j'},
                                            {"machine", required_argument, NULL, 'm'},
                                            {NULL, 0, NULL, 0}};
    static char name[] = "tenure info"; /* what getopt's messages begin with */
    const char *machine = "";
    bool json = false;
    int option = 0;

    argv[0] = name;
    while ((option = getopt_long(argc, argv, "h", options, NULL)) != -1) {
        switch (option) {
        case 'h':
            fputs(usage, stdout);
            return output_finish();
        case 'j':
            json = true;
            break;
        case 'm':
            machine = optarg;
            break;
        default:
            return EXIT_USAGE; /* getopt has said why */
        }
    }
    if (optind != argc) {
        complain("info: unexpected argument \"%s\"", argv[optind]);
        return EXIT_USAGE;
    }
    return info(machine, json);
}
