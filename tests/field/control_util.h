/* SPDX-License-Identifier: MIT */
/* For field cases of the controller: uses of one value each, and what their decisions evicted. */
#ifndef CONTROL_UTIL_H
#define CONTROL_UTIL_H

#include "field_common.h"

struct control {
    struct spec *f;
    tn_manager *m;
    tn_policy *policy;
    tn_controller *controller;
    tn_stream stream;      /* of device 0 */
    uint64_t drops, moves; /* by control_use() */
};

/** The built-in policy with these tiers; decisions of full versions. */
void control_begin(struct control *c, struct spec *f, tn_manager *m, const tn_tier *tiers,
                   size_t count);
void control_end(struct control *c);
/** A request of these endpoints, without reservations. */
tn_request *control_request(const tn_requirement *needs, size_t count);
/** Use one value at C0: enter, exit, let the stream finish, reap. Must succeed. */
void control_use(struct control *c, tn_handle h, tn_location at);

#endif
