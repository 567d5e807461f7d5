/* SPDX-License-Identifier: MIT */
/*
 * What the tests spec_bad_input_*.c share. They go through what a program can get wrong in each
 * call of the public headers, in the order of the headers: NULL and out-of-range arguments, wrong
 * struct sizes, handles and streams that do not belong here, broken files.
 */
#ifndef SPEC_BAD_INPUT_H
#define SPEC_BAD_INPUT_H

#include "spec_common.h"

static const uint64_t too_many_bytes = (uint64_t)INT64_MAX + 1;
static const tn_location bad_kind = {17, 0};
/* What is not a stream. */
static const tn_stream no_stream = (tn_stream)(uintptr_t)0x5eed0;

/* A versioned struct as callers of another version pass it: its member `size` says `size`, and
 * what the library does not know holds `tail`. */
static inline void *resized(const void *object, size_t ours, size_t size, int tail) {
    unsigned char *copy = malloc(ours + size + sizeof(size_t));

    assert_non_null(copy);
    memset(copy, tail, ours + size + sizeof(size_t));
    memcpy(copy, object, ours);
    memcpy(copy, &size, sizeof(size));
    return copy;
}

/*
 * An input struct: sizes 0, 1 and `size_t` alone are wrong, a larger one is taken when what follows
 * is zero. `call` is an expression with the struct as `it`.
 */
#define CHECK_IN(type, object, call)                                                               \
    do {                                                                                           \
        static const size_t wrong_[] = {0, 1, sizeof(size_t), SIZE_MAX};                           \
        for (size_t i_ = 0; i_ < 4; i_++) {                                                        \
            type *it = resized((object), sizeof(type), 0, 0);                                      \
            memcpy(it, &wrong_[i_], sizeof(size_t));                                               \
            assert_status(call, TN_ERR_KIND);                                                      \
            free(it);                                                                              \
        }                                                                                          \
        type *it = resized((object), sizeof(type), sizeof(type) + 16, 1);                          \
        assert_status(call, TN_ERR_KIND); /* a newer caller's member that we do not know */        \
        free(it);                                                                                  \
        it = resized((object), sizeof(type), sizeof(type) + 16, 0);                                \
        assert_ok(call);                                                                           \
        free(it);                                                                                  \
    } while (0)

/* An output struct: sizes 0 and 1 are wrong; what a newer caller has besides becomes 0, and its
 * size stays. */
#define CHECK_OUT(type, call)                                                                      \
    do {                                                                                           \
        type zero_;                                                                                \
        memset(&zero_, 0, sizeof(zero_));                                                          \
        for (size_t i_ = 0; i_ < 2; i_++) {                                                        \
            type *it = resized(&zero_, sizeof(type), i_, 0);                                       \
            assert_status(call, TN_ERR_KIND);                                                      \
            free(it);                                                                              \
        }                                                                                          \
        type *it = resized(&zero_, sizeof(type), sizeof(type) + 8, 1);                             \
        const unsigned char *bytes_ = (const unsigned char *)it;                                   \
        assert_ok(call);                                                                           \
        assert_int_equal(it->size, sizeof(type) + 8);                                              \
        for (size_t i_ = 0; i_ < 8; i_++)                                                          \
            assert_int_equal(bytes_[sizeof(type) + i_], 0);                                        \
        assert_int_equal(bytes_[sizeof(type) + 8], 1); /* not ours */                              \
        free(it);                                                                                  \
    } while (0)

#endif
