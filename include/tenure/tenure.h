/* SPDX-License-Identifier: MIT */
/* Everything. */
#ifndef TENURE_TENURE_H
#define TENURE_TENURE_H

#include <tenure/controller.h>
#include <tenure/driver.h>
#include <tenure/error.h>
#include <tenure/lease.h>
#include <tenure/manager.h>
#include <tenure/plan.h>
#include <tenure/policy.h>
#include <tenure/scope.h>
#include <tenure/sim.h>
#include <tenure/snapshot.h>
#include <tenure/status.h>
#include <tenure/types.h>
#include <tenure/value.h>
#include <tenure/version.h>

#endif
