/* SPDX-License-Identifier: MIT */
#include "base.h"
#include "commands.h"

#include <stdio.h>
#include <string.h>

#include <tenure/version.h>

static const char usage[] =
    "usage: tenure COMMAND [OPTION...] [ARGUMENT...]\n"
    "\n"
    "  serve WORKLOAD...          serve requests that replay recorded CKKS programs\n"
    "  explain FILE               what a plan would do, and whether it fits\n"
    "  info                       drivers, devices, memory\n"
    "  workload check FILE...     validate workload files and print their figures\n"
    "\n"
    "Every command has --help and --json; --version prints the version.\n"
    "Exit status: 0 done, 1 corruption, a failed request or an infeasible plan, 2 wrong usage or\n"
    "file, 3 no such device, 130 interrupted.\n";

struct command {
    const char *name;
    int (*run)(int argc, char **argv);
};

static const struct command commands[] = {{"serve", command_serve},
                                          {"explain", command_explain},
                                          {"info", command_info},
                                          {"workload", command_workload}};

int main(int argc, char **argv) {
    if (argc < 2) {
        fputs(usage, stderr);
        return EXIT_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0) {
        fputs(usage, stdout);
        return output_finish();
    }
    if (strcmp(argv[1], "--version") == 0) {
        uint32_t version = tn_api_version();
        printf("tenure %u.%u.%u\n", version / 10000, version / 100 % 100, version % 100);
        return output_finish();
    }
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        if (strcmp(argv[1], commands[i].name) == 0) {
            return commands[i].run(argc - 1, argv + 1);
        }
    }
    complain("unknown command \"%s\"; see tenure --help", argv[1]);
    return EXIT_USAGE;
}
