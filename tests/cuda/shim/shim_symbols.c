/* SPDX-License-Identifier: MIT */
/* The library has each symbol that the backend loads, with the type of the backend's pointer. That
 * its definitions have the types of cuda.h, the compiler has checked already. */
#include "shim_priv.h"

#include "driver/cuda/cuda_api.h"

#define CHECK(symbol, need)                                                                        \
    _Static_assert(__builtin_types_compatible_p(__typeof__(&symbol),                               \
                                                __typeof__(((tn__cuda_api *)0)->symbol)),          \
                   #symbol " has another type");
TN__CUDA_SYMBOLS(CHECK)

/* A reference to each: without a definition the library does not link. */
SHIM const tn__cuda_api cuda_shim_symbols;
const tn__cuda_api cuda_shim_symbols = {
#define TAKE(symbol, need) .symbol = symbol,
    TN__CUDA_SYMBOLS(TAKE)};
