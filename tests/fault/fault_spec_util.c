/* SPDX-License-Identifier: MIT */
/* The fixture of the specification's cases, for the programs of this folder. */
#include "../spec/spec_common.c"
#include "../spec/spec_calls_common.c"
