/* SPDX-License-Identifier: MIT */
/* The API number, at compile time and at run time. */
#ifndef TENURE_VERSION_H
#define TENURE_VERSION_H

#include <tenure/status.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TN_VERSION_MAJOR 0
#define TN_VERSION_MINOR 1
#define TN_VERSION_PATCH 0

/** The API as one number: major * 10000 + minor * 100 + patch. */
#define TN_API_VERSION (TN_VERSION_MAJOR * 10000 + TN_VERSION_MINOR * 100 + TN_VERSION_PATCH)

/**
 * The API number of the library that is loaded; compare it with TN_API_VERSION.
 *
 * Threads:  any.
 * Blocks:   never.
 */
TN_API uint32_t tn_api_version(void);

#ifdef __cplusplus
}
#endif

#endif
