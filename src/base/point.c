/* SPDX-License-Identifier: MIT */
#include "base/atomic.h"
#include "base/base_internal.h"

#if TN_CHECKS
/* Written by tests before their threads start; relaxed is enough. */
void (*_Atomic tn__point_hook)(enum tn__point point, void *object);

void tn__point_hit(enum tn__point point, void *object) {
    void (*hook)(enum tn__point, void *) = tn__load_rlx(&tn__point_hook);
    if (tn__unlikely(hook != NULL))
        hook(point, object);
}
#else
typedef int tn__point_unused; /* a translation unit needs a declaration */
#endif
