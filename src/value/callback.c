/* SPDX-License-Identifier: MIT */
#include "value/value_priv.h"

static bool known_failure(tn_status status) {
    switch ((uint32_t)status) {
#define CASE(name, number, text, advice) case number:
        TN_STATUS_MAP(CASE)
#undef CASE
        return status != TN_OK;
    default:
        return false;
    }
}

void tn__callback_begin(tn__callback *call) {
    tn__thread *thread = tn__thread_self();
    tn__assert_may_wait("a callback of a value type or source");
    call->error = thread ? &thread->error : NULL;
    call->before = TN_OK;
    if (call->error) {
        call->before = call->error->status;
        call->error->status = TN_OK;
    }
}

bool tn__callback_has_error(const tn__callback *call) {
    return call->error && call->error->status != TN_OK;
}

/* A call that succeeds leaves the thread's last error as it was. */
static void unmark(const tn__callback *call) {
    if (call->error && call->error->status == TN_OK)
        call->error->status = call->before;
}

tn_status tn__callback_end(const tn__callback *call, tn_status returned, tn_status fallback,
                           const char *what, const char *name) {
    if (returned == TN_OK) {
        unmark(call);
        return TN_OK;
    }
    if (!known_failure(returned)) {
        tn__error(fallback, "%s of %.64s returned %d, which is no status", what, name,
                  (int32_t)returned)
            ->native_code = (int32_t)returned;
        return fallback;
    }
    if (!call->error || call->error->status != (uint32_t)returned)
        return tn__fail(returned, "%s of %.64s failed: %s", what, name, tn_status_text(returned));
    return returned;
}

void tn__cleanup_note(tn__cleanup *cleanup, tn_status status) {
    if (status == TN_OK || cleanup->status != TN_OK)
        return;
    cleanup->status = status;
    cleanup->native_code = tn__error_current()->native_code;
}

tn_status tn__cleanup_finish(const tn__cleanup *cleanup, const tn_error *first, tn_status status) {
    tn_error error = *first;
    if (cleanup->status != TN_OK && error.cleanup_status == TN_OK) {
        error.cleanup_status = (uint32_t)cleanup->status;
        error.cleanup_native_code = cleanup->native_code;
    }
    (void)tn__error_restore(&error);
    return status;
}

void tn__cleanup_destroy(tn__cleanup *cleanup, tn_payload payload) {
    if (!payload.data)
        return;
    tn__callback call;
    tn__callback_begin(&call);
    payload.type->destroy(payload.data);
    if (tn__callback_has_error(&call))
        tn__cleanup_note(cleanup, (tn_status)call.error->status);
    unmark(&call);
}
