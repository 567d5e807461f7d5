/* SPDX-License-Identifier: MIT */
/*
 * Loading the driver. Each attempt is new: a driver that is installed later is found. A library
 * that was initialised stays loaded, because it has threads and thread-local data of its own.
 */
#include "driver/cuda/cuda_priv.h"

#include <dlfcn.h>
#include <string.h>

enum need { REQUIRED, POOL, HOST, CAPTURE };

static const struct symbol {
    const char *name;
    const char *lacking;
    size_t at; /* in tn__cuda_api */
    enum need need;
} symbols[] = {
#define SYMBOL(symbol, need)                                                                       \
    {#symbol, "the CUDA driver is too old: it has no " #symbol, offsetof(tn__cuda_api, symbol),    \
     need},
    TN__CUDA_SYMBOLS(SYMBOL)
#undef SYMBOL
};

static tn_status refuse(tn_status status, const char *text, const char *detail, int64_t code,
                        const char **why) {
    tn_error *e = tn__error(status, "%s%s%s", text, detail[0] != '\0' ? ": " : "", detail);

    e->native_code = code;
    *why = text;
    return status;
}

static tn_status resolve(void *library, tn__cuda_api *api, const char **why) {
    size_t i;

    _Static_assert(sizeof(void *) == sizeof(api->cuInit), "a symbol's address is its pointer");
    memset(api, 0, sizeof(*api));
    for (i = 0; i < sizeof(symbols) / sizeof(symbols[0]); i++) {
        void *address = dlsym(library, symbols[i].name);

        if (address == NULL && symbols[i].need == REQUIRED)
            return refuse(TN_ERR_UNSUPPORTED, symbols[i].lacking, "", 0, why);
        memcpy((char *)api + symbols[i].at, &address, sizeof(address));
    }
    return TN_OK;
}

tn_status tn__cuda_load(const char *library, tn__cuda_api *out, const char **why) {
    /* All symbols bound now, so that a damaged library fails here; local, as it is nobody else's
     * business. */
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    tn_status status;

    if (handle == NULL) {
        const char *detail = dlerror();

        return refuse(TN_ERR_UNSUPPORTED, "there is no CUDA driver here",
                      detail != NULL ? detail : library, 0, why);
    }
    status = resolve(handle, out, why);
    if (status != TN_OK)
        dlclose(handle);
    return status;
}

tn_status tn__cuda_init(const tn__cuda_api *api, const char **why) {
    CUresult code = api->cuInit(0);
    int version = 0;

    switch ((int)code) {
    case CUDA_SUCCESS:
        break;
    case CUDA_ERROR_NO_DEVICE:
        return refuse(TN_ERR_UNSUPPORTED, "there is no CUDA device here", "", code, why);
    case CUDA_ERROR_STUB_LIBRARY:
        return refuse(TN_ERR_UNSUPPORTED,
                      "libcuda.so.1 is the Toolkit's stub library, not a driver", "", code, why);
    case CUDA_ERROR_SYSTEM_DRIVER_MISMATCH:
        return refuse(TN_ERR_DRIVER, "the CUDA driver does not fit the kernel's module", "", code,
                      why);
    case CUDA_ERROR_SYSTEM_NOT_READY:
        return refuse(TN_ERR_DRIVER, "the CUDA driver's system services are not running", "", code,
                      why);
    case CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE:
        return refuse(TN_ERR_DRIVER, "the CUDA compatibility driver does not support this device",
                      "", code, why);
    default:
        return refuse(TN_ERR_DRIVER, "the CUDA driver cannot be initialised (cuInit failed)", "",
                      code, why);
    }
    code = api->cuDriverGetVersion(&version);
    if (code != CUDA_SUCCESS || version < 10000)
        return refuse(TN_ERR_UNSUPPORTED, "the CUDA driver is older than CUDA 10.0", "", version,
                      why);
    return TN_OK;
}
