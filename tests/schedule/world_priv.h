/* SPDX-License-Identifier: MIT */
#ifndef SCHEDULE_WORLD_PRIV_H
#define SCHEDULE_WORLD_PRIV_H

#include "world.h"

extern const tn_value_type world_type;
extern uint64_t world_budgets[3];
tn_source world_source(uint32_t value);
uint64_t world_payloads(void); /* live ones */
/* It is this value's and whole; its serial number. */
uint64_t world_payload_see(const void *data, uint32_t value);
void world_payload_check(const void *data, uint64_t serial);
const void *world_payload_block(const void *data);

#endif
