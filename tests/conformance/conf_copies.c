/* SPDX-License-Identifier: MIT */
/* Driver contract: copies between all kinds of location, complete on return or in the order of a
 * stream. */
#include "conf.h"

enum { BYTES = 300001 };

/* A block at a location that the test program or the driver owns. */
struct block {
    tn_location at;
    unsigned char *p;
};

static struct block block_at(const struct conf *c, tn_location at) {
    struct block b = {at, NULL};

    if (at.kind == TN_LOCATION_CUDA)
        b.p = conf_device(c, at.index, BYTES);
    else if (at.kind == TN_LOCATION_PINNED)
        b.p = conf_pinned(c, BYTES);
    else
        b.p = malloc(BYTES);
    assert_non_null(b.p);
    return b;
}

static void block_drop(const struct conf *c, struct block b) {
    if (b.at.kind == TN_LOCATION_CUDA)
        assert_ok(c->ops->device_free(c->self, b.at.index, b.p, BYTES));
    else if (b.at.kind == TN_LOCATION_PINNED)
        assert_ok(c->ops->pinned_free(c->self, b.p, BYTES));
    else
        free(b.p);
}

static void block_fill(const struct conf *c, struct block b, uint32_t seed) {
    unsigned char *bytes = conf_pattern(seed, BYTES);

    if (b.at.kind == TN_LOCATION_CUDA)
        conf_put(c, b.p, b.at.index, bytes, BYTES);
    else
        memcpy(b.p, bytes, BYTES);
    free(bytes);
}

static void block_check(const struct conf *c, struct block b, uint32_t seed) {
    unsigned char *bytes = malloc(BYTES);

    assert_non_null(bytes);
    if (b.at.kind == TN_LOCATION_CUDA)
        conf_get(c, bytes, b.p, b.at.index, BYTES);
    else
        memcpy(bytes, b.p, BYTES);
    conf_check(bytes, seed, BYTES);
    free(bytes);
}

static void check_copy(const struct conf *c, tn_location to_at, tn_location from_at,
                       tn_stream stream, uint32_t seed) {
    struct block from = block_at(c, from_at);
    struct block to = block_at(c, to_at);

    block_fill(c, from, seed);
    block_fill(c, to, seed + 1);
    assert_ok(c->ops->copy(c->self, to.p, to.at, from.p, from.at, BYTES, stream));
    if (stream != NULL)
        assert_ok(c->ops->stream_synchronize(c->self, stream));
    block_check(c, to, seed);
    block_check(c, from, seed);
    block_drop(c, from);
    block_drop(c, to);
}

/* Every pair with a device at one end at least. */
static void check_pairs(const struct conf *c, tn_stream stream) {
    const tn_location places[] = {tn_location_pageable(), tn_location_pinned(), tn_location_cuda(0),
                                  tn_location_cuda(1)};
    uint32_t to;
    uint32_t from;

    for (to = 0; to < 4; to++)
        for (from = 0; from < 4; from++) {
            bool second = c->devices < 2 && (to == 3 || from == 3);
            bool pin = !conf_can_pin(c) && (to == 1 || from == 1);

            if (!second && !pin && (to >= 2 || from >= 2))
                check_copy(c, places[to], places[from], stream, to * 4 + from);
        }
}

static void copy_without_stream_is_complete_on_return(void **state) {
    check_pairs(conf_of(state), NULL);
}

static void copy_on_a_stream_is_complete_when_the_stream_is(void **state) {
    struct conf *c = conf_of(state);
    tn_stream s = conf_stream(c, 0);

    check_pairs(c, s);
    assert_ok(c->ops->stream_destroy(c->self, s));
}

static void copy_of_a_part_leaves_the_rest(void **state) {
    struct conf *c = conf_of(state);
    struct block b = block_at(c, tn_location_cuda(0));
    unsigned char *bytes = malloc(BYTES);
    unsigned char part[100];

    assert_non_null(bytes);
    block_fill(c, b, 1);
    memset(part, 0xee, sizeof(part));
    conf_put(c, b.p + 1003, 0, part, sizeof(part));
    conf_get(c, bytes, b.p, 0, BYTES);
    conf_check(bytes, 1, 1003);
    assert_memory_equal(bytes + 1003, part, sizeof(part));
    assert_int_equal(bytes[1103], conf_byte(1, 1103));
    assert_int_equal(bytes[BYTES - 1], conf_byte(1, BYTES - 1));
    memset(part, 0, sizeof(part));
    conf_get(c, part, b.p + 2000, 0, 99);
    assert_int_equal(part[0], conf_byte(1, 2000));
    assert_int_equal(part[98], conf_byte(1, 2098));
    assert_int_equal(part[99], 0);
    free(bytes);
    block_drop(c, b);
}

static void copies_of_one_stream_run_in_order(void **state) {
    struct conf *c = conf_of(state);
    tn_stream s = conf_stream(c, 0);
    tn_location c0 = tn_location_cuda(0);
    struct block a = block_at(c, c0);
    struct block b = block_at(c, c0);
    struct block h = block_at(c, tn_location_pageable());
    int i;

    block_fill(c, h, 1);
    for (i = 0; i < 20; i++) {
        assert_ok(c->ops->copy(c->self, a.p, a.at, h.p, h.at, BYTES, s));
        assert_ok(c->ops->copy(c->self, b.p, b.at, a.p, a.at, BYTES, s));
        assert_ok(c->ops->copy(c->self, h.p, h.at, b.p, b.at, BYTES, s));
    }
    assert_ok(c->ops->stream_synchronize(c->self, s));
    block_check(c, h, 1);
    block_check(c, b, 1);
    block_drop(c, a);
    block_drop(c, b);
    block_drop(c, h);
    assert_ok(c->ops->stream_destroy(c->self, s));
}

/* "The source is read when it executes." Pinned memory only: real drivers may stage pageable memory
 * when asked. */
static void copy_queued_reads_pinned_memory_late(void **state) {
    struct conf *c = conf_of(state);
    struct block from;
    struct block to;
    struct gate g;
    tn_stream s;

    if (!conf_can_pin(c))
        TN_SKIP("the driver cannot pin");
    s = conf_stream(c, 0);
    from = block_at(c, tn_location_pinned());
    to = block_at(c, tn_location_cuda(0));
    block_fill(c, from, 1);
    gate_close(&g, c, s);
    assert_ok(c->ops->copy(c->self, to.p, to.at, from.p, from.at, BYTES, s));
    block_fill(c, from, 2);
    gate_open(&g);
    assert_ok(c->ops->stream_synchronize(c->self, s));
    block_check(c, to, 2);
    gate_fini(&g);
    block_drop(c, from);
    block_drop(c, to);
    assert_ok(c->ops->stream_destroy(c->self, s));
}

/* Pinned memory, because a copy with pageable memory may block the caller until it is complete. */
static void copy_behind_an_event_sees_what_it_waited_for(void **state) {
    struct conf *c = conf_of(state);
    struct block from;
    struct block to;
    struct block d;
    struct gate g;
    tn_stream a;
    tn_stream b;
    tn_event e;

    if (!conf_can_pin(c))
        TN_SKIP("the driver cannot pin");
    a = conf_stream(c, 0);
    b = conf_stream(c, 0);
    e = conf_event(c, a);
    d = block_at(c, tn_location_cuda(0));
    from = block_at(c, tn_location_pinned());
    to = block_at(c, tn_location_pinned());
    block_fill(c, d, 1);
    block_fill(c, from, 2);
    gate_close(&g, c, a);
    assert_ok(c->ops->copy(c->self, d.p, d.at, from.p, from.at, BYTES, a));
    assert_ok(c->ops->event_record(c->self, e, a));
    assert_ok(c->ops->stream_wait(c->self, b, e));
    assert_ok(c->ops->copy(c->self, to.p, to.at, d.p, d.at, BYTES, b));
    gate_open(&g);
    assert_ok(c->ops->stream_synchronize(c->self, b));
    block_check(c, to, 2);
    gate_fini(&g);
    block_drop(c, d);
    block_drop(c, from);
    block_drop(c, to);
    assert_ok(c->ops->event_destroy(c->self, e));
    assert_ok(c->ops->stream_destroy(c->self, a));
    assert_ok(c->ops->stream_destroy(c->self, b));
}

static const struct CMUnitTest tests[] = {
    CONF_TEST(copy_without_stream_is_complete_on_return),
    CONF_TEST(copy_on_a_stream_is_complete_when_the_stream_is),
    CONF_TEST(copy_of_a_part_leaves_the_rest),
    CONF_TEST(copies_of_one_stream_run_in_order),
    CONF_TEST(copy_queued_reads_pinned_memory_late),
    CONF_TEST(copy_behind_an_event_sees_what_it_waited_for),
};

TN_TEST_MAIN("conformance.copies", tests)
