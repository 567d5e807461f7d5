/* SPDX-License-Identifier: MIT */
/*
 * tenure explain: what its parts share. The command (explain.c) brings a scene into being, from a
 * plan file (plan_file.h) or from a workload (explain_workload.h), takes its account, prints it.
 */
#ifndef TENURE_EXPLAIN_H
#define TENURE_EXPLAIN_H

#include "account.h"

void explain_print(const struct account *account);
void explain_print_json(const struct account *account);

/** The request of an operation is infeasible: there is no decision, and no plan. */
void explain_print_refusal(const struct scene *scene, const tn_error *error);
void explain_print_refusal_json(const struct scene *scene, const tn_error *error);

#endif
