/* SPDX-License-Identifier: MIT */
/* One of the libraries that a host program has loaded before ours: CROWD_BYTES of thread-local
 * data, in the static block if CROWD_STATIC is 1. Loaded many times, from copies of its file. */
#define CROWD_MODEL_1 __attribute__((tls_model("initial-exec")))
#define CROWD_MODEL_0 __attribute__((tls_model("global-dynamic")))
#define CROWD_PASTE(a, b) a##b
#define CROWD_MODEL(is_static) CROWD_PASTE(CROWD_MODEL_, is_static)

static __thread unsigned char data[CROWD_BYTES] CROWD_MODEL(CROWD_STATIC) = {1};

unsigned char *crowd_touch(void);
unsigned char *crowd_touch(void) {
    data[CROWD_BYTES - 1]++;
    return data;
}
