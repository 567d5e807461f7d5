/* SPDX-License-Identifier: MIT */
/* What the files of the reference model share. */
#ifndef TN_TEST_MODEL_INTERNAL_H
#define TN_TEST_MODEL_INTERNAL_H

#include "model.h"

void tm__check(bool fits, const char *what);

/* Set the expected error; everything that no rule fixes for `status` is free. Returns `status`. */
tn_status tm__fail(tm_manager *m, tn_status status);
tn_status tm__fail_fault(tm_manager *m, const tm_fault *fault);
tn_status tm__fail_handle(tm_manager *m, tn_status status, tn_handle handle, tn_location at);
tn_status tm__fail_reason(tm_manager *m, tn_status status, tn_handle handle, uint32_t reason);
tn_status tm__fail_in_use(tm_manager *m, const tm_value *v, const tm_materialization *x);

/* M198 without nesting: a single thread nests only inside callbacks, where the guard is up. */
tn_status tm__entry(tm_manager *m);
/* M161, M165. */
tn_status tm__reap(tm_manager *m);
void tm__complete(tm_lease *l); /* a pending one */
/* M7. */
tn_status tm__resolve(tm_manager *m, tn_handle handle, tm_value **out);

bool tm__host(tn_location at);
bool tm__kind_ok(tn_location at);
/* Kind (KIND), index and existence (VALUE): M16. */
tn_status tm__location(tm_manager *m, tn_location at);
/* M217 without the destination's own checks: KIND, VALUE. */
tn_status tm__stream(tm_manager *m, tn_stream stream, tn_location at);

/* M41, M43, G42: TN_ERR_BUDGET. */
tn_status tm__admit(tm_manager *m, tn_location at, uint64_t charge);
tm_place *tm__track(tm_manager *m, tn_location at);
void tm__raise(tm_place *p);

/* M75, M95: type, agreement, logical bytes, ceiling: TN_ERR_MATERIALIZATION. */
tn_status tm__check_fit(tm_manager *m, const tn_value_spec *spec, const tm_payload *p,
                        const tm_measured *x, tn_location at);
/* M64, M65: TN_ERR_OWNERSHIP. */
tn_status tm__check_independent(tm_manager *m, const tm_payload *p);
void tm__install(tm_manager *m, tm_value *v, tn_location at, const tm_payload *p, uint64_t actual);
void tm__remove(tm_manager *m, tm_value *v, tn_location at);
void tm__destroy_payload(tm_manager *m);

bool tm__protected(const tm_materialization *x);
/* M23: the preferred replica but for `except`; kind none: there is no other. */
uint64_t tm__rank(tn_location at);
/* M218: the streams of a sequence or scope. */
tn_status tm__streams(tm_manager *m, const tm_options *options);
/* Simulate the parts of a plan, in their order; `sequence`: only its enter list (M184). */
void tm__simulate(tm_manager *m, const tm_plan *plan, bool sequence, tm_explained *out);
/* Wait until a stream, or all streams of a device, are idle. */
void tm__wait_stream(tm_world *w, tn_stream stream);
void tm__wait_device(tm_world *w, uint32_t device);
/* All records gone, payloads destroyed, sources forgotten (M240). */
void tm__clear(tm_manager *m);

#endif
