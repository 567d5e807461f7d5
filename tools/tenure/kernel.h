/* SPDX-License-Identifier: MIT */
/*
 * The evaluator's arithmetic (evaluate.h) in steps that many threads take at once: what one thread
 * of each kernel does, as C that compiles for the host and for CUDA.
 *
 *   set       the digest is a number
 *   open      an operation begins: the digest takes a number in, the lanes may be cleared
 *   rows      each chunk of rows is summed by itself, from empty lanes: one thread a chunk and lane
 *   combine   the chunks' sums enter the lanes, in order: one thread a lane
 *   fold      the lanes enter the digest: one thread
 *   expand    written words: one thread a chunk of them, whose generator begins where it would be
 *
 * K1  Every sum is below the prime, the one that evaluate.c has: addition modulo a prime does not
 *     depend on how rows are grouped.
 * K2  No thread waits for another of its kernel; a kernel sees what those before it on the stream
 *     wrote.
 */
#ifndef TENURE_KERNEL_H
#define TENURE_KERNEL_H

#include <stdint.h>

#ifdef __CUDACC__
#define KERNEL_INLINE static __host__ __device__ __forceinline__
#else
#define KERNEL_INLINE static inline
#endif

/* 2^61 - 1: a product is reduced with shifts; no single changed bit of a word is a multiple. */
#define KERNEL_PRIME ((UINT64_C(1) << 61) - 1)
#define KERNEL_FACTOR (UINT64_C(0x1b873593cc9e2d51) & KERNEL_PRIME)

enum {
    KERNEL_LANES = 512,
    KERNEL_CHUNKS = 1024, /* of rows, at most: what the partial sums have room for */
    KERNEL_ROWS = 16,     /* of a chunk, at least */
    KERNEL_EXPAND = 512,  /* words that one thread expands */
    KERNEL_JUMPS = 32,    /* 2^32 chunks of words */
    KERNEL_JUMP_WORDS = 256 * 4
};

/* What a kernel is launched with; each uses some of it. Pointers are the device's. */
struct kernel_args {
    uint64_t *digest; /* one word */
    uint64_t *lanes;
    uint64_t *partial; /* per chunk: KERNEL_LANES sums */
    const uint64_t *from;
    uint64_t *to;
    const uint64_t *jumps;        /* KERNEL_JUMPS matrices; see kernel_jump() */
    uint64_t words;               /* at from, or at to */
    uint64_t rows, rows_each;     /* at from; of each chunk but the last */
    uint64_t chunks;              /* of rows */
    uint64_t factor, last_factor; /* KERNEL_FACTOR to the power of the chunk's rows */
    uint64_t number;              /* set: the digest; open, expand: mixed in, 0: nothing */
    uint64_t low_words;           /* expand: so many words are shifted below the prime */
    uint64_t clears;              /* open: the lanes become empty */
};

/* a * factor + word, modulo the prime; a and factor are at most the prime. */
KERNEL_INLINE uint64_t kernel_step(uint64_t a, uint64_t factor, uint64_t word) {
#ifdef __CUDA_ARCH__
    uint64_t low = a * factor;
    uint64_t high = __umul64hi(a, factor);
#else
    unsigned __int128 product = (unsigned __int128)a * factor;
    uint64_t low = (uint64_t)product;
    uint64_t high = (uint64_t)(product >> 64);
#endif
    uint64_t sum = (low & KERNEL_PRIME) + ((high << 3) | (low >> 61));

    sum += (word & KERNEL_PRIME) + (word >> 61); /* below 2^63 + 8: no overflow */
    sum = (sum & KERNEL_PRIME) + (sum >> 61);
    return sum >= KERNEL_PRIME ? sum - KERNEL_PRIME : sum;
}

KERNEL_INLINE uint64_t kernel_mix(uint64_t a, uint64_t word) {
    return kernel_step(a, KERNEL_FACTOR, word);
}

/* KERNEL_FACTOR to the power of n. */
KERNEL_INLINE uint64_t kernel_power(uint64_t n) {
    uint64_t result = 1;
    uint64_t square = KERNEL_FACTOR;

    for (; n > 0; n >>= 1) {
        if (n & 1) {
            result = kernel_step(result, square, 0);
        }
        square = kernel_step(square, square, 0);
    }
    return result;
}

/* ---- The generator of content.c ---- */

KERNEL_INLINE uint64_t kernel_split(uint64_t *state) {
    uint64_t z = *state += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

KERNEL_INLINE uint64_t kernel_rotate(uint64_t x, int bits) {
    return (x << bits) | (x >> (64 - bits));
}

/* The next word. */
KERNEL_INLINE uint64_t kernel_next(uint64_t *s) {
    uint64_t word = kernel_rotate(s[1] * 5, 7) * 9;
    uint64_t t = s[1] << 17;

    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = kernel_rotate(s[3], 45);
    return word;
}

/*
 * The generator's next state is a linear function of its bits: a matrix over two elements, kept as
 * the images of the 256 bits, 4 words each.
 */
KERNEL_INLINE void kernel_jump(const uint64_t *matrix, uint64_t *s) {
    uint64_t to[4] = {0, 0, 0, 0};

    for (int i = 0; i < 4; i++) {
        for (int bit = 0; bit < 64; bit++) {
            const uint64_t *image = matrix + 4 * (64 * i + bit);
            uint64_t mask = 0 - ((s[i] >> bit) & 1);

            to[0] ^= image[0] & mask;
            to[1] ^= image[1] & mask;
            to[2] ^= image[2] & mask;
            to[3] ^= image[3] & mask;
        }
    }
    s[0] = to[0];
    s[1] = to[1];
    s[2] = to[2];
    s[3] = to[3];
}

/* ---- What thread number `thread` does ---- */

KERNEL_INLINE void kernel_do_set(const struct kernel_args *args, uint64_t thread) {
    if (thread == 0) {
        *args->digest = args->number;
    }
}

KERNEL_INLINE void kernel_do_open(const struct kernel_args *args, uint64_t thread) {
    if (thread == 0 && args->number != 0) {
        *args->digest = kernel_mix(*args->digest, args->number);
    }
    if (thread < KERNEL_LANES && args->clears) {
        args->lanes[thread] = 0;
    }
}

KERNEL_INLINE void kernel_do_rows(const struct kernel_args *args, uint64_t thread) {
    uint64_t chunk = thread / KERNEL_LANES;
    uint64_t row = chunk * args->rows_each;
    uint64_t end = row + args->rows_each < args->rows ? row + args->rows_each : args->rows;
    uint64_t lane = 0;

    if (chunk >= args->chunks) {
        return;
    }
    for (uint64_t i = row * KERNEL_LANES + thread % KERNEL_LANES; row < end; row++) {
        lane = kernel_mix(lane, i < args->words ? args->from[i] : 0);
        i += KERNEL_LANES;
    }
    args->partial[thread] = lane;
}

KERNEL_INLINE void kernel_do_combine(const struct kernel_args *args, uint64_t thread) {
    uint64_t lane = 0;

    if (thread >= KERNEL_LANES) {
        return;
    }
    lane = args->lanes[thread];
    for (uint64_t chunk = 0; chunk < args->chunks; chunk++) {
        lane = kernel_step(lane, chunk + 1 < args->chunks ? args->factor : args->last_factor,
                           args->partial[chunk * KERNEL_LANES + thread]);
    }
    args->lanes[thread] = lane;
}

KERNEL_INLINE void kernel_do_fold(const struct kernel_args *args, uint64_t thread) {
    uint64_t digest = *args->digest;

    if (thread != 0) {
        return;
    }
    for (int i = 0; i < KERNEL_LANES; i++) {
        digest = kernel_mix(digest, args->lanes[i]);
    }
    *args->digest = digest;
}

KERNEL_INLINE void kernel_do_expand(const struct kernel_args *args, uint64_t thread) {
    uint64_t seed = args->number != 0 ? kernel_mix(*args->digest, args->number) : *args->digest;
    uint64_t i = thread * KERNEL_EXPAND;
    uint64_t end = i + KERNEL_EXPAND < args->words ? i + KERNEL_EXPAND : args->words;
    uint64_t s[4];

    if (i >= args->words) {
        return;
    }
    for (int n = 0; n < 4; n++) {
        s[n] = kernel_split(&seed);
    }
    for (int bit = 0; bit < KERNEL_JUMPS; bit++) {
        if ((thread >> bit) & 1) {
            kernel_jump(args->jumps + (uint64_t)bit * KERNEL_JUMP_WORDS, s);
        }
    }
    for (; i < end; i++) {
        uint64_t word = kernel_next(s);

        args->to[i] = i < args->low_words ? word >> 4 : word;
    }
}

/* The kernels, by the end of their names: kernel_NAME in CUDA. */
#define KERNELS(X) X(set) X(open) X(rows) X(combine) X(fold) X(expand)

#endif
