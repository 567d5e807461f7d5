/* SPDX-License-Identifier: MIT */
/* The fixture of the specification's cases, for the unit tests of the core. */
#include "../spec/spec_common.c"
#include "../spec/spec_calls_common.c"
