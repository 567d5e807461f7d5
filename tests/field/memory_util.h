/* SPDX-License-Identifier: MIT */
/*
 * What the field cases of host memory share, on top of the fixture of the specification's cases (spec_common.h):
 * values of any size, files with patterns, a file layer that counts, and what every case ends with.
 */
#ifndef TN_FIELD_MEMORY_UTIL_H
#define TN_FIELD_MEMORY_UTIL_H

#include "field_common.h"

/** Adopt a replicable test payload of `bytes` at P with the pattern of `seed`. */
tn_handle hm_adopt(struct spec *f, tn_manager *m, uint64_t bytes, uint64_t seed);
/** Register a callback source of `bytes`; `s` lives as spec_source() says. */
tn_handle hm_source(tn_manager *m, tt_source *s, uint64_t bytes, tn_location at);
/** Whether the payload at a host location, or on the simulated device, has the pattern. */
bool hm_holds(tn_manager *m, tn_handle h, tn_location at, uint64_t seed);
/** The address of its only field, through a lease that is over when this returns. */
const unsigned char *hm_base(tn_manager *m, tn_handle h, tn_location at);

/** A manager whose file sources read through a ring of `blocks` (0: the usual one), and whose
 * reports have the machine's time, from HM_EPOCH_NS on. */
#define HM_EPOCH_NS UINT64_C(1700000000000000000)
tn_manager *hm_manager_with_ring(struct spec *f, const tn_budget *budgets, size_t count,
                                 uint64_t block_bytes, uint32_t blocks);

/** The driver's pinned memory. */
tn_pinned_figures hm_pinned(struct spec *f);
/** What the machine says of a location. */
tn_sim_memory hm_memory(struct spec *f, tn_location at);
uint64_t hm_now(struct spec *f);
/** Every pinned allocation (or `count` of them) from now on takes `ns`. */
void hm_slow_pins(struct spec *f, uint64_t ns, uint64_t count);

/* ---- Files ------------------------------------------------------------------------------ */

/** A file of `count` pieces of `bytes` in the test's folder; piece i has the bytes of
 * hm_byte(i, ...). The text stays valid. */
const char *hm_file(const char *name, uint64_t bytes, uint64_t count);
/** Write it anew. */
void hm_rewrite(const char *path, uint64_t bytes, uint64_t count);
unsigned char hm_byte(uint64_t piece, uint64_t i);
/** Register piece `piece` of it as a buffer. */
tn_handle hm_register(tn_manager *m, const char *path, uint64_t piece, uint64_t bytes,
                      tn_location at);
/** Wait, where streams have threads, for the lease of a look at a device to be over. */
void hm_wait_legacy(struct spec *f);
/** Whether a resident buffer is that piece. */
bool hm_is_piece(tn_manager *m, tn_handle h, tn_location at, uint64_t piece);

/** What the file layer has done since hm_files_count(); the real layer is back afterwards. */
struct hm_files {
    uint64_t opens, reads, bytes;
    uint64_t open_now;
    uint64_t most_reads; /* of one descriptor's life */
    bool ascending;      /* within each */
};
void hm_files_count(struct hm_files *into);
void hm_files_restore(void);

#endif
