/* SPDX-License-Identifier: MIT */
/*
 * The commands. Each gets its own name as argv[0] and returns an exit code of base.h.
 */
#ifndef TENURE_COMMANDS_H
#define TENURE_COMMANDS_H

int command_serve(int argc, char **argv);
int command_info(int argc, char **argv);
int command_workload(int argc, char **argv);
int command_explain(int argc, char **argv);

#endif
