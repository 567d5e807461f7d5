/* SPDX-License-Identifier: MIT */
/*
 * Shared by the files of this folder only.
 */
#ifndef TENURE_PLAN_PRIV_H
#define TENURE_PLAN_PRIV_H

#include "plan/plan_internal.h"

/* ---- Overlay: the simulated state (false and NULL: no memory) ---------------------------- */

bool tn__sim_places_begin(tn__sim *sim);
/* A location is met: it appears among the peaks (M181). */
uint32_t tn__sim_meet(tn__sim *sim, tn_location at);
/* A change of bytes that this step makes (N3). */
bool tn__sim_touch(tn__sim *sim, uint32_t place, int64_t peak, int64_t delta);

/* The entry of an index; `now` is NULL until tn__sim_value_begin(). */
tn__sim_value *tn__sim_value_of(tn__sim *sim, uint64_t index);
bool tn__sim_value_begin(tn__sim_value *v, const tn__value *real);
bool tn__sim_install(tn__sim *sim, tn__sim_value *v, tn_location at);
bool tn__sim_remove(tn__sim *sim, tn__sim_value *v, tn__mat *mat);

#endif
