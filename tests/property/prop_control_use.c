/* SPDX-License-Identifier: MIT */
/* TN_TEST_TIMEOUT 600 */
/*
 * Random uses, nested and one after the other, on random small states, by the library and by the
 * reference model: after every step the status, the decision, the values, where everything is, what
 * is borrowed and reserved, and by its effect on later decisions the order of accesses must agree
 * (C124..C147), bound to the version and bound to the placement (D13, D14: there, hits).
 *
 *   TN_PROPERTY_SEQUENCES  how many (default 6000)
 *   TN_SEED                all of them
 *   TN_PROPERTY_ONLY       only this one of them
 *
 * The library runs in child processes: a crash is a failure like any other and is shrunk too.
 */
#include "tn_test.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base_internal.h"
#include "control_property.h"

#if TN__TSAN /* there is one thread here */
#define SEQUENCES 800
#else
#define SEQUENCES 6000
#endif
#define STEPS 16
#define SLOTS 3
#define DEVICES 2

enum kind { ENTER, EXIT, AGAIN };

typedef struct step {
    uint32_t kind, slot;
    uint64_t seed; /* of the request */
} step;

typedef struct sequence {
    uint64_t seed; /* of the world */
    uint32_t count;
    step steps[STEPS];
} sequence;

enum counter { ENTERED, HITS, RELEASES, REFUSALS, NESTED, AGAINS, UNBUILT, COUNTERS };

typedef struct shared {
    uint64_t n[COUNTERS];
    sequence running;
    char failure[CONTROL_TEXT];
    bool verbose;
} shared;

static shared *board;

/* ---- Both sides ------------------------------------------------------------------------------ */

typedef struct slot {
    tn_use *use;
    mc_world asked; /* its request counts */
    bool entered;
} slot;

typedef struct pair {
    scene s; /* the model's world, as it is now */
    live l;
    tn_controller *c;
    tn_stream streams[DEVICES];
    slot slots[SLOTS];
    uint8_t held[MC_VALUES];
    uint8_t uses[MC_VALUES][MC_LOCATIONS];
    uint64_t epoch;
    char *why;
} pair;

static void protect_all(pair *p) {
    for (int v = 0; v < p->s.world.value_count; v++) {
        uint8_t *at = &p->s.world.values[v].protected_;
        *at = p->held[v];
        for (int l = 0; l < MC_LOCATIONS; l++)
            *at |= (uint8_t)((p->uses[v][l] > 0) << l);
    }
}

/* The model's side of entry and exit. */
static void borrow(pair *p, const mc_world *asked, bool give_back) {
    for (int i = 0; i < asked->requirement_count; i++) {
        mc_endpoint e = asked->requirements[i];
        p->uses[e.value][e.at] = (uint8_t)(p->uses[e.value][e.at] + (give_back ? -1 : 1));
        if (!give_back)
            p->s.world.values[e.value].epoch = p->epoch;
    }
    for (int i = 0; i < asked->reservation_count; i++) {
        uint64_t *bytes = &p->s.world.reserved[asked->reservations[i].at];
        *bytes = give_back ? *bytes - asked->reservations[i].bytes
                           : *bytes + asked->reservations[i].bytes;
    }
    protect_all(p);
}

static bool same_value(pair *p, const tn_snapshot *s, int v) {
    const mc_value *want = &p->s.world.values[v];
    tn_materialization_info mats[MC_LOCATIONS] = {{.size = sizeof mats[0]}};
    size_t count = MC_LOCATIONS;
    if (control_places(s, p->l.handles[v]) != want->at)
        return CONTROL_FAIL(p->why, "v%d is at %02x, expected %02x", v,
                            control_places(s, p->l.handles[v]), want->at);
    if (tn_snapshot_materializations(s, p->l.handles[v], mats, &count) != TN_OK)
        return CONTROL_FAIL(p->why, "v%d: no materializations", v);
    for (size_t i = 0; i < count; i++) {
        int at = control_index(mats[i].at);
        if (mats[i].use_count != p->uses[v][at] || mats[i].pending_count != 0)
            return CONTROL_FAIL(p->why, "v%d@%s has %llu uses, %llu pending; expected %u", v,
                                control_at(at), (unsigned long long)mats[i].use_count,
                                (unsigned long long)mats[i].pending_count, p->uses[v][at]);
    }
    return true;
}

static bool same_state(pair *p) {
    tn_snapshot *s = NULL;
    tn_location_info rows[MC_LOCATIONS] = {{.size = sizeof rows[0]}};
    size_t count = MC_LOCATIONS;
    if (tn_snapshot_take(p->l.m, &s) != TN_OK ||
        tn_snapshot_locations(s, rows, &count) != TN_OK)
        return CONTROL_FAIL(p->why, "no snapshot");
    bool ok = true;
    for (int v = 0; v < p->s.world.value_count && ok; v++)
        ok = same_value(p, s, v);
    for (size_t i = 0; i < count && ok; i++) {
        int at = control_index(rows[i].at);
        if (rows[i].reserved_bytes != p->s.world.reserved[at] ||
            rows[i].used_bytes != mc_used(&p->s.world, at))
            ok = CONTROL_FAIL(p->why, "%s has %llu and %llu bytes, expected %llu and %llu",
                              control_at(at), (unsigned long long)rows[i].used_bytes,
                              (unsigned long long)rows[i].reserved_bytes,
                              (unsigned long long)mc_used(&p->s.world, at),
                              (unsigned long long)p->s.world.reserved[at]);
    }
    tn_snapshot_drop(s);
    return ok;
}

/* ---- Steps ----------------------------------------------------------------------------------- */

static bool same_values(const pair *p, const slot *t) {
    size_t count = 0;
    if (tn_use_count(t->use, &count) != TN_OK || count != (size_t)t->asked.requirement_count)
        return CONTROL_FAIL(p->why, "%zu values", count);
    for (int i = 0; i < t->asked.requirement_count; i++) {
        mc_endpoint e = t->asked.requirements[i];
        const void *data = NULL;
        if (tn_use_value(t->use, p->l.handles[e.value], control_location(e.at), &data) != TN_OK ||
            !data)
            return CONTROL_FAIL(p->why, "v%d@%s: %s", e.value, control_at(e.at),
                                tn_last_error()->message);
    }
    return true;
}

static bool same_entry(pair *p, slot *t, const mc_answer *want) {
    tn_use_info info = TN_USE_INFO_INIT;
    const tn_decision *d = NULL;
    bool nothing = want->release_count == 0 && want->action_count == 0;
    bool hit = p->s.concurrent && nothing;
    if (tn_use_read(t->use, &info) != TN_OK || tn_use_decision(t->use, &d) != TN_OK ||
        info.hit != hit || (d == NULL) != hit)
        return CONTROL_FAIL(p->why, "hit %u, decision %d; expected hit %d", info.hit, d != NULL,
                            hit);
    board->n[HITS] += nothing;
    board->n[RELEASES] += want->release_count > 0;
    if (d && !control_same_decision(&p->l, d, want, p->why))
        return false;
    for (int v = 0; v < p->s.world.value_count; v++)
        p->s.world.values[v].at = want->after[v];
    p->epoch++;
    borrow(p, &t->asked, false);
    t->entered = true;
    return same_values(p, t);
}

static bool enter(pair *p, slot *t) {
    mc_world w = p->s.world;
    mc_answer want;
    memcpy(w.requirements, t->asked.requirements, sizeof w.requirements);
    memcpy(w.reservations, t->asked.reservations, sizeof w.reservations);
    w.requirement_count = t->asked.requirement_count;
    w.reservation_count = t->asked.reservation_count;
    w.limit = CONTROL_CAP;
    if (!live_track(&p->l, &w, p->why))
        return false;
    mc_decide(&w, &want);
    if (want.verdict == MC_LIMIT)
        return true; /* not tried */
    for (int i = 0; i < SLOTS; i++)
        board->n[NESTED] += p->slots[i].entered;
    tn_status status = tn_use_enter(t->use);
    if (want.verdict == MC_FOUND) {
        board->n[ENTERED]++;
        return status == TN_OK ? same_entry(p, t, &want)
                               : CONTROL_FAIL(p->why, "enter: %s (%s); expected TN_OK",
                                              tn_status_name(status), tn_last_error()->message);
    }
    board->n[REFUSALS]++;
    return status == TN_ERR_PLAN || CONTROL_FAIL(p->why, "enter: %s; expected TN_ERR_PLAN",
                                                 tn_status_name(status));
}

static bool leave(pair *p, slot *t) {
    if (!t->entered)
        return true;
    t->entered = false;
    borrow(p, &t->asked, true);
    return tn_use_exit(t->use) == TN_OK || CONTROL_FAIL(p->why, "exit: %s",
                                                        tn_last_error()->message);
}

static bool begin(pair *p, slot *t, uint64_t seed) {
    tn_transfer_stream streams[DEVICES];
    tn_use_options options = TN_USE_OPTIONS_INIT;
    tn_request *request = NULL;
    unsigned seen = 0;
    tn_use_destroy(t->use);
    t->use = NULL;
    scene_draw_need(&p->s, seed);
    t->asked = p->s.world;
    for (int i = 0; i < t->asked.requirement_count; i++)
        seen |= 1u << t->asked.requirements[i].at;
    for (int k = 0; k < DEVICES; k++)
        if (seen >> (k + 2) & 1)
            streams[options.consumer_count++] =
                (tn_transfer_stream){control_location(k + 2), p->streams[k]};
    options.consumers = options.consumer_count ? streams : NULL;
    tn_status status = control_request(&p->l, &t->asked, &request);
    if (status == TN_OK)
        status = tn_use_create(p->c, request, &options, &t->use);
    tn_request_destroy(request);
    return status == TN_OK || CONTROL_FAIL(p->why, "use: %s", tn_last_error()->message);
}

static void print_step(const pair *p, const step *st) {
    static const char *const kinds[] = {"enter", "exit", "again"};
    const mc_world *w = &p->slots[st->slot].asked;
    if (!board->verbose)
        return;
    printf("  use %u: %s", st->slot, kinds[st->kind]);
    for (int i = 0; i < w->requirement_count && st->kind != EXIT; i++)
        printf("%s v%d@%s", i ? "," : "", w->requirements[i].value,
               control_at(w->requirements[i].at));
    for (int i = 0; i < w->reservation_count && st->kind != EXIT; i++)
        printf(", reserve %s:%llu", control_at(w->reservations[i].at),
               (unsigned long long)w->reservations[i].bytes);
    printf("\n");
    fflush(stdout);
}

static bool one_step(pair *p, const step *st) {
    slot *t = &p->slots[st->slot];
    bool ok = leave(p, t);
    if (ok && st->kind == ENTER)
        ok = begin(p, t, st->seed);
    print_step(p, st);
    if (!ok || st->kind == EXIT || !t->use)
        return ok && same_state(p);
    if (st->kind == AGAIN) {
        board->n[AGAINS]++;
        ok = tn_use_reset(t->use) == TN_OK;
    }
    return ok && enter(p, t) && same_state(p);
}

/* ---- Sequences ------------------------------------------------------------------------------- */

static bool run_steps(pair *p, const sequence *q) {
    bool ok = true;
    p->epoch = 1000;
    for (int v = 0; v < p->s.world.value_count; v++)
        p->held[v] = p->s.world.values[v].protected_;
    for (uint32_t i = 0; i < q->count && ok; i++)
        ok = one_step(p, &q->steps[i]);
    for (int i = 0; i < SLOTS; i++) {
        ok = leave(p, &p->slots[i]) && ok;
        tn_use_destroy(p->slots[i].use);
    }
    return ok;
}

static bool run_sequence(const sequence *q, tn_sim *sim, const tn_stream *streams) {
    static pair p;
    char text[CONTROL_TEXT];
    memset(&p, 0, sizeof p);
    board->running = *q;
    p.why = board->failure;
    memcpy(p.streams, streams, sizeof p.streams);
    scene_draw(&p.s, q->seed);
    if (!live_begin(&p.l, &p.s, tn_sim_driver(sim), p.why)) {
        board->n[UNBUILT]++;
        return *p.why == 0;
    }
    if (board->verbose) {
        scene_write(&p.s, text, sizeof text);
        printf("%s\n", text);
    }
    p.s.world.limit = CONTROL_CAP;
    p.c = control_controller(&p.l, &p.s, p.why);
    bool ok = p.c && run_steps(&p, q);
    tn_controller_destroy(p.c);
    live_end(&p.l);
    return ok;
}

static uint64_t mix(uint64_t x) {
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

static sequence drawn(uint64_t index) {
    uint64_t seed = mix(tn_test_seed() + mix(index + 1));
    sequence q = {.seed = seed, .count = STEPS};
    for (uint32_t i = 0; i < STEPS; i++) {
        uint64_t r = mix(seed + i + 1);
        uint32_t kind = r % 10 < 5 ? ENTER : r % 10 < 7 ? EXIT : AGAIN;
        q.steps[i] = (step){kind, (uint32_t)(r >> 8) % SLOTS, mix(r)};
    }
    return q;
}

static void child(const sequence *only, uint64_t first, uint64_t count) {
    tn_sim *sim = NULL;
    tn_stream streams[DEVICES];
    if (tn_sim_create("dev:2", &sim) != TN_OK ||
        tn_sim_stream_create(sim, 0, 0, &streams[0]) != TN_OK ||
        tn_sim_stream_create(sim, 1, 0, &streams[1]) != TN_OK)
        abort();
    bool ok = !only || run_sequence(only, sim, streams);
    for (uint64_t i = first; i < first + count && ok; i++) {
        sequence q = drawn(i);
        ok = run_sequence(&q, sim, streams);
    }
    if (ok && (tn_sim_violations(sim) || tt_count().live))
        ok = CONTROL_FAIL(board->failure, "%llu payloads left over; %s",
                          (unsigned long long)tt_count().live, tn_sim_violation_text(sim));
    if (!ok)
        _exit(1);
    for (int i = 0; i < DEVICES; i++)
        (void)!tn_sim_stream_destroy(sim, streams[i]);
    tn_sim_destroy(sim);
    exit(0); /* with what coverage and leak checkers do at the end */
}

static bool run_child(const sequence *only, uint64_t first, uint64_t count) {
    int status = 0;
    board->failure[0] = 0;
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        child(only, first, count);
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        fail_msg("no child");
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return true;
    if (!board->failure[0])
        snprintf(board->failure, CONTROL_TEXT, "the library ended the process");
    return false;
}

/* Steps away until none can go; then the rest is printed. */
static void shrink(sequence q) {
    char why[CONTROL_TEXT];
    for (uint32_t i = q.count; i-- > 0;) {
        sequence t = q;
        memmove(&t.steps[i], &t.steps[i + 1], (--t.count - i) * sizeof t.steps[0]);
        if (!run_child(&t, 0, 0))
            q = t;
    }
    board->verbose = true;
    printf("\n");
    bool alone = !run_child(&q, 0, 0);
    memcpy(why, board->failure, sizeof why);
    printf("%s\n", alone ? why : "not by itself");
    fflush(stdout);
}

static void uses_are_those_of_the_model(void **state) {
    (void)state;
    uint64_t only = tn_test_env_u64("TN_PROPERTY_ONLY", UINT64_MAX);
    uint64_t count = tn_test_env_u64("TN_PROPERTY_SEQUENCES", SEQUENCES);
    char why[CONTROL_TEXT];
    board = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    assert_true(board != MAP_FAILED);
    bool ok = only == UINT64_MAX ? run_child(NULL, 0, count) : run_child(NULL, only, 1);
    printf("seed %llu: entered %llu, hits %llu, with releases %llu, refused %llu, beside others "
           "%llu, again %llu, not built %llu\n",
           (unsigned long long)tn_test_seed(), (unsigned long long)board->n[ENTERED],
           (unsigned long long)board->n[HITS], (unsigned long long)board->n[RELEASES],
           (unsigned long long)board->n[REFUSALS], (unsigned long long)board->n[NESTED],
           (unsigned long long)board->n[AGAINS], (unsigned long long)board->n[UNBUILT]);
    if (!ok) {
        memcpy(why, board->failure, sizeof why);
        shrink(board->running);
        fail_msg("%s", why);
    }
    for (int i = 0; i < COUNTERS && count >= 500 && only == UINT64_MAX; i++)
        assert_true(board->n[i] > 0);
    assert_int_equal(munmap(board, sizeof *board), 0);
}

static const struct CMUnitTest tests[] = {cmocka_unit_test(uses_are_those_of_the_model)};

TN_TEST_MAIN("property.control_use", tests)
