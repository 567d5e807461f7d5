/* SPDX-License-Identifier: MIT */
#include "serve_options.h"

#include "base.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

static const char usage[] =
    "usage: tenure serve [OPTION...] WORKLOAD...\n"
    "\n"
    "Serves requests that replay recorded CKKS programs operation by operation: lease what an\n"
    "operation reads, adopt what it writes, discard what it frees. Requests go round the tenants,\n"
    "then round the workloads. Every borrowed byte is computed on; every digest is compared with "
    "a\n"
    "plain replay.\n"
    "\n"
    "  --tenants N          tenants, each with keys of its own (2)\n"
    "  --requests N         requests in all (40)\n"
    "  --workers N          threads that serve one request at a time each (1)\n"
    "  --stagger TIME       worker i starts i times this late (700ms)\n"
    "  --control KIND       who places keys and plaintexts (lru):\n"
    "                         lru       the library's controller: each operation states what it "
    "needs\n"
    "                         explicit  this program, step by step\n"
    "  --only keys          replay only the operations' reads of keys; a share as device budget "
    "is\n"
    "                       then of one tenant's keys and nothing else\n"
    "  --log-decisions FILE write each decision of --control lru as a line of JSON\n"
    "  --scale A/B          scale of all bytes and of the link (1/64)\n"
    "  --device-budget B    bytes, or a share such as 75% of one tenant's keys plus, per worker,\n"
    "                       the most ciphertexts and workspace and two keys; or unlimited (75%)\n"
    "  --pinned-budget B    bytes, or a share of all tenants' keys; or unlimited (75%)\n"
    "  --link RATE          between host and device, before scaling (25GBps)\n"
    "  --latency TIME       of each copy (10us)\n"
    "  --clock KIND         of the simulated machine: virtual (with 1 worker) or real (real)\n"
    "  --machine TEXT       the simulated machine, such as \"dev:2 mem=64MiB link=host:12GBps\";\n"
    "                       instead of --link, --latency and --clock; not scaled\n"
    "  --device NAME        sim:N, or cuda:N (or cuda) for a real one, whose kernels compute "
    "(sim:0)\n"
    "  --cache DIR          where the values' files are kept ($XDG_CACHE_HOME/tenure)\n"
    "  --seed N             of all content (1)\n"
    "  --inject FAULT       flip, swap, early-free or torn-copy: a defect that must be found\n"
    "                       (on a real device: swap)\n"
    "  --json               one JSON object instead of the table\n"
    "  --help               this text\n"
    "\n"
    "With both kinds of control a value that is not on the device comes from its file to pinned\n"
    "memory and from there to the device, or straight to the device where pinned memory is "
    "refused;\n"
    "the least recently used one that nobody uses is dropped where room is needed, for its file "
    "is\n"
    "still there; plaintexts go after their last reader; ciphertexts stay. With --control lru the\n"
    "policy is deterministic-tiered-lru without tiers: nothing is moved anywhere to make room.\n"
    "\n"
    "Exit status: 0 all requests served and right, 1 corruption or a failed request, 2 wrong "
    "usage\n"
    "or file, or budgets below what the workers need, 3 no such device, 130 interrupted.\n";

enum {
    OPT_TENANTS = 256,
    OPT_REQUESTS,
    OPT_WORKERS,
    OPT_STAGGER,
    OPT_CONTROL,
    OPT_ONLY,
    OPT_LOG_DECISIONS,
    OPT_SCALE,
    OPT_DEVICE_BUDGET,
    OPT_PINNED_BUDGET,
    OPT_LINK,
    OPT_LATENCY,
    OPT_CLOCK,
    OPT_MACHINE,
    OPT_DEVICE,
    OPT_CACHE,
    OPT_SEED,
    OPT_INJECT,
    OPT_JSON,
    OPT_HELP
};

static const struct option table[] = {{"tenants", required_argument, NULL, OPT_TENANTS},
                                      {"requests", required_argument, NULL, OPT_REQUESTS},
                                      {"workers", required_argument, NULL, OPT_WORKERS},
                                      {"stagger", required_argument, NULL, OPT_STAGGER},
                                      {"control", required_argument, NULL, OPT_CONTROL},
                                      {"only", required_argument, NULL, OPT_ONLY},
                                      {"log-decisions", required_argument, NULL, OPT_LOG_DECISIONS},
                                      {"scale", required_argument, NULL, OPT_SCALE},
                                      {"device-budget", required_argument, NULL, OPT_DEVICE_BUDGET},
                                      {"pinned-budget", required_argument, NULL, OPT_PINNED_BUDGET},
                                      {"link", required_argument, NULL, OPT_LINK},
                                      {"latency", required_argument, NULL, OPT_LATENCY},
                                      {"clock", required_argument, NULL, OPT_CLOCK},
                                      {"machine", required_argument, NULL, OPT_MACHINE},
                                      {"device", required_argument, NULL, OPT_DEVICE},
                                      {"cache", required_argument, NULL, OPT_CACHE},
                                      {"seed", required_argument, NULL, OPT_SEED},
                                      {"inject", required_argument, NULL, OPT_INJECT},
                                      {"json", no_argument, NULL, OPT_JSON},
                                      {"help", no_argument, NULL, OPT_HELP},
                                      {NULL, 0, NULL, 0}};

static bool refuse(struct option_place place, const char *text, const char *wanted) {
    complain("%s: %s: \"%s\" is not %s", place.command, place.option, text, wanted);
    return false;
}

static bool read_clock(struct option_place place, const char *text, bool *out_virtual) {
    *out_virtual = strcmp(text, "virtual") == 0;
    return *out_virtual || strcmp(text, "real") == 0 || refuse(place, text, "virtual or real");
}

static const char *const injection_names[] = {"none", "flip", "swap", "early-free", "torn-copy"};

static bool read_injection(struct option_place place, const char *text, enum injection *out) {
    for (size_t i = 1; i < sizeof injection_names / sizeof injection_names[0]; i++) {
        if (strcmp(text, injection_names[i]) == 0) {
            *out = (enum injection)i;
            return true;
        }
    }
    return refuse(place, text, "flip, swap, early-free or torn-copy");
}

static bool read_one(struct serve_options *options, int option, struct option_place place,
                     const char *text) {
    switch (option) {
    case OPT_TENANTS:
        return option_u64(place, text, 1, 4096, &options->tenants);
    case OPT_REQUESTS:
        return option_u64(place, text, 1, 1000000000, &options->requests);
    case OPT_WORKERS:
        return option_u64(place, text, 1, 256, &options->workers);
    case OPT_STAGGER:
        return option_duration(place, text, &options->stagger_ns);
    case OPT_CONTROL:
        return option_control(place, text, &options->control);
    case OPT_ONLY:
        options->only_keys = true;
        return strcmp(text, "keys") == 0 || refuse(place, text, "keys");
    case OPT_LOG_DECISIONS:
        options->decision_log = text;
        return true;
    case OPT_SCALE:
        return option_scale(place, text, &options->scale);
    case OPT_DEVICE_BUDGET:
        return option_budget(place, text, &options->device_budget);
    case OPT_PINNED_BUDGET:
        return option_budget(place, text, &options->pinned_budget);
    case OPT_LINK:
        return option_rate(place, text, &options->link_bytes_per_s);
    case OPT_LATENCY:
        return option_duration(place, text, &options->latency_ns);
    case OPT_CLOCK:
        return read_clock(place, text, &options->virtual_time);
    case OPT_SEED:
        return option_u64(place, text, 0, UINT64_MAX, &options->seed);
    case OPT_INJECT:
        return read_injection(place, text, &options->inject);
    case OPT_MACHINE:
        options->machine = text;
        return true;
    case OPT_DEVICE:
        options->device = strcmp(text, "cuda") == 0 ? "cuda:0" : text;
        return true;
    case OPT_CACHE:
        options->cache = text;
        return true;
    case OPT_JSON:
        options->json = true;
        return true;
    default:
        return false; /* getopt has said why */
    }
}

int serve_options_read(struct serve_options *options, int argc, char **argv) {
    const struct budget share = {.form = BUDGET_PERCENT, .percent = 75};
    int option = 0;
    int index = 0;
    bool describes_link = false;
    bool is_real = false;

    *options = (struct serve_options){.tenants = 2,
                                      .workers = 1,
                                      .requests = 40,
                                      .seed = 1,
                                      .latency_ns = 10000,
                                      .stagger_ns = 700000000,
                                      .link_bytes_per_s = 25e9,
                                      .scale = {.over = 1, .under = 64},
                                      .device_budget = share,
                                      .pinned_budget = share,
                                      .device = "sim:0"};
    while ((option = getopt_long(argc, argv, "", table, &index)) != -1) {
        char name[32] = "";

        if (option == OPT_HELP) {
            fputs(usage, stdout);
            return -1;
        }
        if (option >= OPT_TENANTS) {
            snprintf(name, sizeof name, "--%s", table[index].name);
        }
        if (!read_one(options, option, (struct option_place){"serve", name}, optarg)) {
            return EXIT_USAGE;
        }
        describes_link |= option == OPT_LINK || option == OPT_LATENCY || option == OPT_CLOCK;
    }
    if (options->machine != NULL && describes_link) {
        complain("serve: --machine stands instead of --link, --latency and --clock");
        return EXIT_USAGE;
    }
    if (options->decision_log != NULL && options->control != CONTROL_LRU) {
        complain("serve: --log-decisions: only --control lru decides");
        return EXIT_USAGE;
    }
    is_real = strncmp(options->device, "cuda:", 5) == 0;
    if (is_real && (options->machine != NULL || describes_link)) {
        complain("serve: --machine, --link, --latency and --clock describe a simulated machine, "
                 "not %s",
                 options->device);
        return EXIT_USAGE;
    }
    if (is_real && options->inject != INJECT_NONE && options->inject != INJECT_SWAP) {
        complain("serve: --inject %s needs a simulated machine; on %s there is swap",
                 injection_names[options->inject], options->device);
        return EXIT_USAGE;
    }
    if (optind == argc) {
        complain("serve: no workload file; see tenure serve --help");
        return EXIT_USAGE;
    }
    options->workloads = argv + optind;
    options->workload_count = (size_t)(argc - optind);
    return EXIT_GOOD;
}
