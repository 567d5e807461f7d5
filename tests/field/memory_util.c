/* SPDX-License-Identifier: MIT */
#include "memory_util.h"

#include <stdio.h>
#include <sys/uio.h>

#include "value/value_priv.h"

/* ---- Values ------------------------------------------------------------------------------ */

tn_handle hm_adopt(struct spec *f, tn_manager *m, uint64_t bytes, uint64_t seed) {
    tn_payload payload = tt_bytes(f->driver, P, bytes);
    tt_fill(payload, seed);
    return spec_adopt(m, payload, P, TN_REPLICABLE);
}

tn_handle hm_source(tn_manager *m, tt_source *s, uint64_t bytes, tn_location at) {
    tn_value_spec spec = tt_spec(bytes, bytes);
    return spec_register_spec(m, s, at, &spec);
}

static const void *peek(tn_manager *m, tn_handle h, tn_location at) {
    tn_stream stream = at.kind == TN_LOCATION_CUDA ? TN_STREAM_LEGACY : NULL;
    tn_lease lease = acquire(m, h, at, stream);
    const void *data = NULL;
    assert_ok(tn_lease_lookup(&lease, h, &data));
    release(&lease);
    return data;
}

bool hm_holds(tn_manager *m, tn_handle h, tn_location at, uint64_t seed) {
    return tt_check(peek(m, h, at), seed);
}

const unsigned char *hm_base(tn_manager *m, tn_handle h, tn_location at) {
    return tt_field_base(peek(m, h, at), 0);
}

/* Unix time of the virtual clock. */
static uint64_t virtual_now(void *context) { return HM_EPOCH_NS + tn_sim_now_ns(context); }

tn_manager *hm_manager_with_ring(struct spec *f, const tn_budget *budgets, size_t count,
                                 uint64_t block_bytes, uint32_t blocks) {
    tn_config config = spec_config(f);

    config.budgets = budgets;
    config.budget_count = count;
    config.ring_block_bytes = block_bytes;
    config.ring_blocks = blocks;
    config.now_ns = virtual_now;
    config.now_context = f->sim;
    return spec_manager_with(f, &config);
}

tn_pinned_figures hm_pinned(struct spec *f) {
    tn_pinned_figures figures = TN_PINNED_FIGURES_INIT;
    assert_ok(tn_driver_read_pinned(f->driver, &figures));
    return figures;
}

tn_sim_memory hm_memory(struct spec *f, tn_location at) {
    tn_sim_memory memory = {.size = sizeof memory};
    assert_ok(tn_sim_read_memory(f->sim, at, &memory));
    return memory;
}

uint64_t hm_now(struct spec *f) { return tn_sim_now_ns(f->sim); }

void hm_slow_pins(struct spec *f, uint64_t ns, uint64_t count) {
    tn_sim_fault fault = TN_SIM_FAULT_INIT;
    fault.entry = TN_SIM_PINNED_ALLOC;
    fault.count = count;
    fault.stall_ns = ns;
    assert_ok(tn_sim_fault_arm(f->sim, &fault));
}

/* ---- Files ------------------------------------------------------------------------------- */

unsigned char hm_byte(uint64_t piece, uint64_t i) {
    return (unsigned char)(i * 29 + (i >> 8) * 5 + piece * 71 + 3);
}

const char *hm_file(const char *name, uint64_t bytes, uint64_t count) {
    static char paths[8][4096];
    static unsigned next;
    char *path = paths[next++ % 8];
    snprintf(path, sizeof paths[0], "%s/%s", tn_test_tmpdir(), name);
    hm_rewrite(path, bytes, count);
    return path;
}

void hm_rewrite(const char *path, uint64_t bytes, uint64_t count) {
    unsigned char *piece = malloc(bytes);
    assert_non_null(piece);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    for (uint64_t p = 0; p < count; p++) {
        for (uint64_t i = 0; i < bytes; i++)
            piece[i] = hm_byte(p, i);
        assert_int_equal(fwrite(piece, 1, bytes, file), bytes);
    }
    assert_int_equal(fclose(file), 0);
    free(piece);
}

tn_handle hm_register(tn_manager *m, const char *path, uint64_t piece, uint64_t bytes,
                      tn_location at) {
    tn_value_spec spec = TN_VALUE_SPEC_INIT;
    tn_source source = TN_SOURCE_INIT;
    tn_handle h = {0, 0, NULL};
    spec.type = tn_buffer_type();
    spec.logical_bytes = spec.storage_bytes = bytes;
    spec.replica_mode = TN_REPLICABLE;
    spec.recoverability = TN_RECONSTRUCTIBLE;
    source.kind = TN_SOURCE_FILE;
    source.path = path;
    source.offset = piece * bytes;
    assert_ok(tn_manager_register_source(m, &spec, &source, at, &h));
    return h;
}

void hm_wait_legacy(struct spec *f) {
    const tn_driver_ops *ops = tn_driver_table(f->driver);
    assert_ok(ops->stream_synchronize(tn_driver_self(f->driver), TN_STREAM_LEGACY));
}

bool hm_is_piece(tn_manager *m, tn_handle h, tn_location at, uint64_t piece) {
    const tn_buffer *buffer = peek(m, h, at);
    tn_segment segment = tn_buffer_segment(buffer, 0);
    const unsigned char *data = segment.data;
    for (uint64_t i = 0; i < segment.bytes; i++)
        if (data[i] != hm_byte(piece, i))
            return false;
    return true;
}

static struct {
    struct hm_files *into;
    tn__file_layer layer;
    uint64_t reads; /* of the descriptor that is open */
    off_t last;
} counted;

static int counted_open(const char *path) {
    int descriptor = tn__file_system.open(path);
    counted.into->opens++;
    counted.into->open_now += descriptor >= 0;
    counted.reads = 0;
    counted.last = -1;
    return descriptor;
}

static ssize_t counted_read(int descriptor, const struct iovec *pieces, int count, off_t offset) {
    ssize_t got = tn__file_system.read(descriptor, pieces, count, offset);
    counted.into->reads++;
    counted.into->bytes += got > 0 ? (uint64_t)got : 0;
    counted.into->ascending &= offset > counted.last;
    counted.last = offset;
    if (++counted.reads > counted.into->most_reads)
        counted.into->most_reads = counted.reads;
    return got;
}

static int counted_close(int descriptor) {
    counted.into->open_now--;
    return tn__file_system.close(descriptor);
}

void hm_files_count(struct hm_files *into) {
    *into = (struct hm_files){.ascending = true};
    counted.into = into;
    counted.layer = tn__file_system;
    counted.layer.open = counted_open;
    counted.layer.read = counted_read;
    counted.layer.close = counted_close;
    tn__files = &counted.layer;
}

void hm_files_restore(void) { tn__files = &tn__file_system; }
