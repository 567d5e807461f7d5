/* SPDX-License-Identifier: MIT */
/*
 * The factory of the conformance suite: each backend implements these three, and one of them is
 * linked into every program. The suite uses the driver table and nothing else. Its streams must run
 * by themselves, without being stepped.
 */
#ifndef TN_TEST_BACKEND_H
#define TN_TEST_BACKEND_H

#include <tenure/driver.h>

/* A driver with one device at least; NULL: there is none here, which skips the test. A backend that
 * is there but broken fails the test instead. */
tn_driver *backend_open(void);
/* Why there is none; static text. */
const char *backend_why(void);
/* Close it. Returns NULL, or what the backend has to complain about; static text. */
const char *backend_close(tn_driver *driver);

#endif
