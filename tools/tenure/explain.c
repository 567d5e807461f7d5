/* SPDX-License-Identifier: MIT */
/*
 * tenure explain: the command, from the options to the exit code.
 */
#include "explain.h"

#include "base.h"
#include "commands.h"
#include "plan_file.h"
#include "rehearsal.h"

#include <getopt.h>
#include <stdio.h>
#include <string.h>

static const char usage[] =
    "usage: tenure explain [OPTION...] PLAN\n"
    "   or: tenure explain --op N [OPTION...] WORKLOAD\n"
    "\n"
    "Says what a plan would do in a given state, step by step: what moves where, the peak that it\n"
    "reaches at each location, whether it fits, and if it does not, what is in the way. Values "
    "are\n"
    "described, not allocated. The first form reads a plan file. The second form serves a "
    "recorded\n"
    "program up to an operation, as tenure serve does with one worker, and explains the plan for\n"
    "that operation.\n"
    "\n"
    "  --run                enter and close the plan's scope too, and print what it did\n"
    "  --json               one JSON object instead of the table\n"
    "  --help               this text\n"
    "\n"
    "With a workload:\n"
    "  --op N               the operation, from 1\n"
    "  --control KIND       as tenure serve places values (lru):\n"
    "                         lru       what the library's controller decides for the operation:\n"
    "                                   also each victim, its rank and why it can go, the policy\n"
    "                                   and its configuration, the states explored\n"
    "                         explicit  the plan that says the same as this program's steps\n"
    "  --requests N         complete requests that were served before (0)\n"
    "  --tenants N          tenants, each with keys of its own; requests go round them (2)\n"
    "  --scale A/B          scale of all bytes (1/64)\n"
    "  --device-budget B    bytes, or a share such as 75% of one tenant's keys plus the most\n"
    "                       ciphertexts and workspace and two keys; or unlimited (75%)\n"
    "  --pinned-budget B    bytes, or a share of all tenants' keys; or unlimited (75%)\n"
    "\n"
    "Members of a plan file, a JSON object; all but the first and the last may be left out:\n"
    "  plan_file            1\n"
    "  devices              how many the machine has (1)\n"
    "  budgets              an object: location, bytes\n"
    "  values               a list: name, bytes, replicas (replicable or exclusive), source (a\n"
    "                       location), at (a list of locations), discarded (true or false)\n"
    "  leases               a list: values (a list of names), at, pending (true or false)\n"
    "  holds                a list: values (a list of names), at\n"
    "  reservations         a list: at, bytes, label\n"
    "  plan                 an object: name, and lists reclaim, reservations, enter, exit; "
    "actions\n"
    "                       have ensure and at; move, to and from; drop and at; or discard\n"
    "\n"
    "Locations are pageable-host, pinned-host and cuda:N; bytes a number, or a text such as "
    "64MiB.\n"
    "\n"
    "Exit status: 0 feasible, and what --run asked for was done, 1 infeasible, or the run failed,\n"
    "2 wrong usage or file.\n";

enum {
    OPT_OP = 256, /* from here on: only with a workload */
    OPT_CONTROL,
    OPT_REQUESTS,
    OPT_TENANTS,
    OPT_SCALE,
    OPT_DEVICE_BUDGET,
    OPT_PINNED_BUDGET,
    OPT_RUN, /* from here on: always */
    OPT_JSON,
    OPT_HELP
};

static const struct option table[] = {{"op", required_argument, NULL, OPT_OP},
                                      {"control", required_argument, NULL, OPT_CONTROL},
                                      {"requests", required_argument, NULL, OPT_REQUESTS},
                                      {"tenants", required_argument, NULL, OPT_TENANTS},
                                      {"scale", required_argument, NULL, OPT_SCALE},
                                      {"device-budget", required_argument, NULL, OPT_DEVICE_BUDGET},
                                      {"pinned-budget", required_argument, NULL, OPT_PINNED_BUDGET},
                                      {"run", no_argument, NULL, OPT_RUN},
                                      {"json", no_argument, NULL, OPT_JSON},
                                      {"help", no_argument, NULL, OPT_HELP},
                                      {NULL, 0, NULL, 0}};

struct explain_options {
    const char *path; /* borrowed from argv */
    struct rehearsal_options rehearsal;
    const char *for_workload; /* the last option that needs one; NULL: none */
    bool runs, json;
};

static bool read_one(struct explain_options *options, int option, struct option_place place,
                     const char *text) {
    struct rehearsal_options *rehearsal = &options->rehearsal;

    switch (option) {
    case OPT_OP:
        return option_u64(place, text, 1, UINT64_MAX, &rehearsal->op);
    case OPT_CONTROL:
        return option_control(place, text, &rehearsal->control);
    case OPT_REQUESTS:
        return option_u64(place, text, 0, 1000000, &rehearsal->requests);
    case OPT_TENANTS:
        return option_u64(place, text, 1, 4096, &rehearsal->tenants);
    case OPT_SCALE:
        return option_scale(place, text, &rehearsal->scale);
    case OPT_DEVICE_BUDGET:
        return option_budget(place, text, &rehearsal->device_budget);
    case OPT_PINNED_BUDGET:
        return option_budget(place, text, &rehearsal->pinned_budget);
    case OPT_RUN:
        options->runs = true;
        return true;
    case OPT_JSON:
        options->json = true;
        return true;
    default:
        return false; /* getopt has said why */
    }
}

static int take_argument(struct explain_options *options, int argc, char **argv) {
    if (optind == argc) {
        complain("explain: no plan file or workload; see tenure explain --help");
        return EXIT_USAGE;
    }
    if (argc - optind > 1) {
        complain("explain: one plan file or workload at a time");
        return EXIT_USAGE;
    }
    if (options->for_workload != NULL && options->rehearsal.op == 0) {
        complain("explain: --%s is for a workload, with --op", options->for_workload);
        return EXIT_USAGE;
    }
    options->path = argv[optind];
    return EXIT_GOOD;
}

/* EXIT_GOOD; EXIT_USAGE after an error line; or -1: --help has been printed. */
static int read_options(struct explain_options *options, int argc, char **argv) {
    const struct budget share = {.form = BUDGET_PERCENT, .percent = 75};
    int option = 0;
    int index = 0;

    *options = (struct explain_options){.rehearsal = {.tenants = 2,
                                                      .scale = {.over = 1, .under = 64},
                                                      .device_budget = share,
                                                      .pinned_budget = share}};
    while ((option = getopt_long(argc, argv, "", table, &index)) != -1) {
        char name[32] = "";

        if (option == OPT_HELP) {
            fputs(usage, stdout);
            return -1;
        }
        if (option >= OPT_OP) {
            snprintf(name, sizeof name, "--%s", table[index].name);
        }
        if (!read_one(options, option, (struct option_place){"explain", name}, optarg)) {
            return EXIT_USAGE;
        }
        if (option < OPT_RUN) {
            options->for_workload = table[index].name;
        }
    }
    return take_argument(options, argc, argv);
}

static int explain(struct scene *scene, const struct explain_options *options) {
    struct account account = {0};
    int code = EXIT_USAGE;

    if (account_take(&account, scene, options->runs)) {
        if (options->json) {
            explain_print_json(&account);
        } else {
            explain_print(&account);
        }
        code = account.info.feasible && account.run.failed == NULL ? EXIT_GOOD : EXIT_FAILED;
    }
    account_fini(&account);
    return code;
}

static int explain_plan_file(struct scene *scene, const struct explain_options *options) {
    return plan_file_open(scene, options->path) ? explain(scene, options) : EXIT_USAGE;
}

static int explain_decision(struct rehearsal *rehearsal, struct scene *scene,
                            const struct explain_options *options) {
    tn_error error;
    tn_status status = rehearsal_decide(rehearsal, &error);

    if (status == TN_OK) {
        return explain(scene, options);
    }
    if (status != TN_ERR_PLAN) {
        return EXIT_USAGE; /* after an error line */
    }
    if (options->json) {
        explain_print_refusal_json(scene, &error);
    } else {
        explain_print_refusal(scene, &error);
    }
    return EXIT_FAILED;
}

static int explain_workload(struct scene *scene, const struct explain_options *options) {
    struct rehearsal rehearsal = {0};
    int code = EXIT_USAGE;

    if (!rehearsal_open(&rehearsal, scene, options->path, &options->rehearsal)) {
        code = EXIT_USAGE;
    } else if (options->rehearsal.control == CONTROL_EXPLICIT) {
        code = rehearsal_plan_explicit(&rehearsal) ? explain(scene, options) : EXIT_USAGE;
    } else {
        code = explain_decision(&rehearsal, scene, options);
    }
    rehearsal_close(&rehearsal);
    return code;
}

int command_explain(int argc, char **argv) {
    static char name[] = "tenure explain"; /* what getopt's messages begin with */
    struct explain_options options;
    struct scene scene = {0};
    int code = EXIT_GOOD;
    int output = EXIT_GOOD;

    argv[0] = name;
    code = read_options(&options, argc, argv);
    if (code != EXIT_GOOD) {
        return code == -1 ? output_finish() : code;
    }
    code = options.rehearsal.op > 0 ? explain_workload(&scene, &options)
                                    : explain_plan_file(&scene, &options);
    scene_close(&scene);
    output = output_finish();
    return output == EXIT_GOOD ? code : output;
}
