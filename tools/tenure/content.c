/* SPDX-License-Identifier: MIT */
#include "content.h"

#include <string.h>
#include <xxhash.h>

/* splitmix64: spreads a seed over the whole state, which must not be all zero. */
static uint64_t split(uint64_t *state) {
    uint64_t z = *state += 0x9e3779b97f4a7c15u;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

struct generator generator_seeded(uint64_t seed) {
    struct generator generator;

    for (int i = 0; i < 4; i++) {
        generator.state[i] = split(&seed);
    }
    return generator;
}

static uint64_t rotate(uint64_t x, int bits) { return (x << bits) | (x >> (64 - bits)); }

void generator_fill(struct generator *generator, void *to, uint64_t bytes) {
    uint64_t s0 = generator->state[0];
    uint64_t s1 = generator->state[1];
    uint64_t s2 = generator->state[2];
    uint64_t s3 = generator->state[3];
    char *place = to;

    for (uint64_t i = 0; i < bytes; i += 8) {
        uint64_t word = rotate(s1 * 5, 7) * 9;
        uint64_t t = s1 << 17;

        memcpy(place + i, &word, 8);
        s2 ^= s0;
        s3 ^= s1;
        s1 ^= s2;
        s0 ^= s3;
        s2 ^= t;
        s3 = rotate(s3, 45);
    }
    generator->state[0] = s0;
    generator->state[1] = s1;
    generator->state[2] = s2;
    generator->state[3] = s3;
}

uint64_t content_hash(struct content_name name) {
    uint64_t mixed = name.seed;

    mixed = split(&mixed) ^ name.tenant;
    mixed = split(&mixed);
    return XXH3_64bits_withSeed(name.id, strlen(name.id), mixed);
}

struct generator content_generator(struct content_name name) {
    return generator_seeded(content_hash(name));
}
