/* SPDX-License-Identifier: MIT */
/*
 * The decisions of a run, one JSON object a line, in the order in which they were entered.
 *
 * Threads: opened and closed by one; decision_log_add() any, which writes one whole line at a time.
 */
#ifndef TENURE_DECISION_LOG_H
#define TENURE_DECISION_LOG_H

#include "ask.h"

#include <stdbool.h>

struct control;
struct decision_log;

/** NULL after an error line: the file cannot be written. */
struct decision_log *decision_log_open(const char *path);
/** False after an error line: not everything could be written. NULL is nothing. */
bool decision_log_close(struct decision_log *log);

/** Adds the decision for an ask; `again`: how often it was decided anew. */
void decision_log_add(struct decision_log *log, const struct control *control,
                      const struct ask *ask, const tn_decision *decision, uint64_t again);

#endif
