/* SPDX-License-Identifier: MIT */
/*
 * The soak: everything at once, for as long as one likes, and the books balanced now and then.
 *
 * A world is one manager with four tiers (pageable, pinned, cuda:0, cuda:1), all full from the start,
 * and controllers over it. Its values stand in places, as in leases_torture.h, whose payloads these
 * are. Sixteen threads use, plan, enter scopes, borrow, hold, reserve, move and discard; what one
 * begins another may end; sources fail now and then; further managers with controllers come and
 * go on the same machine. At the end of each round all threads stand still and an audit is made:
 * nothing is protected, reserved or claimed, ledgers are the sums of what is resident, and so is
 * the memory of the machine; every record and event has come back; memory does not grow.
 */
#ifndef SOAK_TORTURE_H
#define SOAK_TORTURE_H

#include "leases_torture.h"

#define SOAK_THREADS 16
#define SOAK_PLACES 24
#define SOAK_LOCATIONS 4
#define SOAK_DEVICES 2
#define SOAK_STREAMS 3 /* of each device */
#define SOAK_MAIL 24
#define SOAK_CONTROLLERS 4
#define SOAK_SEEN_MAX 8

/* What is on its way to a thread that ends it. */
enum soak_kind { SOAK_LEASE, SOAK_HOLD, SOAK_RESERVATION, SOAK_USE, SOAK_SCOPE };

typedef struct soak_letter {
    enum soak_kind kind;
    tn_lease lease;
    tn_hold hold;
    tn_reservation reservation;
    tn_use *use;
    tn_scope *scope;
    tort_seen seen[SOAK_SEEN_MAX]; /* checked before it ends */
    uint32_t seen_count;
} soak_letter;

/* Counted by all threads, relaxed. */
typedef struct soak_tally {
    _Atomic uint64_t uses, hits, redecided, plans, partial, scopes, exits_failed, abandoned;
    _Atomic uint64_t leases, holds, reservations, letters, tenants, left_open, warned;
    _Atomic uint64_t refused, stale, infeasible, failed_loads, loads, snapshots, rounds;
} soak_tally;

typedef struct soak_world {
    uint32_t mode; /* enum tn_mode */
    tn_sim *sim;
    tn_driver *driver;
    tn_manager *m;
    tn_policy *policies[2];
    tn_controller *controllers[SOAK_CONTROLLERS];
    _Atomic uint64_t places[SOAK_PLACES]; /* index of the value that stands there */
    tn_stream streams[SOAK_DEVICES][SOAK_STREAMS];
    _Atomic(soak_letter *) mail[SOAK_MAIL];
    /* rounds: `stop` asks all threads to stand still, `arrived` counts them, `round` lets them go */
    atomic_bool stop, over;
    _Atomic uint32_t arrived, round;
    uint64_t end_ns;
    /* of the audits */
    uint64_t rss_first, rss_last, events_first, events_last;
    soak_tally tally;
} soak_world;

#define SOAK_COUNT(w, what) atomic_fetch_add_explicit(&(w)->tally.what, 1, memory_order_relaxed)
#define SOAK_TRY(expression)                                                                       \
    do {                                                                                           \
        const char *soak_text_ = (expression);                                                     \
        if (soak_text_)                                                                            \
            return soak_text_;                                                                     \
    } while (0)

/* ---- The world ---- */

tn_location soak_location(uint32_t i);
tn_location soak_any_location(tort_random *r);
bool soak_is_cuda(tn_location at);
tn_stream soak_stream(soak_world *w, tort_random *r, tn_location at); /* NULL on hosts */
tn_handle soak_handle(const soak_world *w, uint32_t place);
/* Register a new value for a place; retried while a guard is up. */
tn_status soak_register(soak_world *w, uint32_t place);
bool soak_pause(const soak_world *w); /* end this thread's round */

void soak_world_begin(soak_world *w, uint32_t mode, uint64_t ns);
void soak_world_end(soak_world *w);
/* The one thread that audits: rounds until the time is over. */
const char *soak_auditor(soak_world *w);

/* What any call here may say: TN_OK, or one of `also`, a set of 1 << status, or what everything may
 * say (values that were discarded, guards). NULL, or the text of a failure. */
const char *soak_expect(soak_world *w, const char *what, tn_status status, uint64_t also);
#define SOAK_MAY(name) (UINT64_C(1) << TN_ERR_##name)
/* What a load may say. */
#define SOAK_LOAD (SOAK_MAY(SOURCE) | SOAK_MAY(BUDGET) | SOAK_MAY(OWNERSHIP) | SOAK_MAY(IN_USE))

/* ---- What the threads do; one step each ---- */

typedef const char *soak_step_fn(soak_world *w, tort_random *r);
const char *soak_use(soak_world *w, tort_random *r);
const char *soak_plan(soak_world *w, tort_random *r);
const char *soak_scope(soak_world *w, tort_random *r);
const char *soak_borrow(soak_world *w, tort_random *r);
const char *soak_act(soak_world *w, tort_random *r);
const char *soak_tenant(soak_world *w, tort_random *r);
const char *soak_look(soak_world *w, tort_random *r);
const char *soak_read_mail(soak_world *w, tort_random *r);

/* Note and check a payload. */
const char *soak_see(soak_letter *letter, const void *data, uint32_t place);
/* Reads by a stream of all that was seen. */
const char *soak_queue(soak_world *w, tort_random *r, tn_stream stream, const soak_letter *letter);
/* End it here, or hand it to another thread. */
const char *soak_end(soak_world *w, const soak_letter *letter);
const char *soak_send(soak_world *w, tort_random *r, const soak_letter *letter);
const char *soak_mail_empty(soak_world *w);

/* `count` different places; fewer if the dice say so. */
uint32_t soak_choose_places(tort_random *r, uint32_t *places, uint32_t count);

#endif
