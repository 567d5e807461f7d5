/* SPDX-License-Identifier: MIT */
/*
 * The lifetimes of one manager: creation, the manager word, entry checks, warnings, garbage.
 */
#include <sys/mman.h>
#include <unistd.h>

#include "lifetime/lifetime_priv.h"

/* The manager word on a page of its own: a forked child sees it wiped to 0 (F-H05). An old kernel
 * without MADV_WIPEONFORK leaves it as it is: a fork is then not noticed. */
static tn_status word_create(tn__life *life) {
    void *page = mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return tn__no_memory();
#ifdef MADV_WIPEONFORK
    (void)madvise(page, (size_t)sysconf(_SC_PAGESIZE), MADV_WIPEONFORK);
#endif
    life->gate = page;
    /* [no-order] the manager is published by its creator's own means */
    tn__store_rlx(&life->gate->word, TN__MANAGER_OPEN);
    return TN_OK;
}

static void word_destroy(tn__life *life) {
    if (life->gate)
        munmap(life->gate, (size_t)sysconf(_SC_PAGESIZE));
}

tn_status tn__life_create(const tn__life_config *config, tn__life **out) {
    tn__life *life = tn__zalloc_line(sizeof *life);
    if (!life)
        return tn__no_memory();
    life->manager = config->manager;
    life->store = config->store;
    life->driver = config->driver;
    life->manual = config->manual;
    life->diagnostic = config->diagnostic;
    life->diagnostic_context = config->diagnostic_context;
    tn__fence_ready();
    tn__mutex_init(&life->slots_lock, TN__RANK_SLOTS);
    tn__mutex_init(&life->reap_lock, TN__RANK_REAP);
    tn__queue_init(&life->queue);
    life->waiting_tail = &life->waiting;
    sem_init(&life->wake, 0, 0);
    tn_status status = word_create(life);
    if (status == TN_OK) {
        tn__life_registry_add(life);
        status = tn__reaper_start(life);
        if (status != TN_OK)
            tn__life_registry_remove(life);
    }
    if (status != TN_OK) {
        word_destroy(life);
        tn__free(life);
        return status;
    }
    *out = life;
    return TN_OK;
}

static void slots_destroy(tn__life *life) {
    tn__slot *slot = tn__load_rlx(&life->slots);
    while (slot) {
        tn__slot *next = slot->next;
        tn__block *block = tn__load_rlx(&slot->blocks);
        while (block) {
            tn__block *older = block->next;
            tn__block_give_back(block);
            block = older;
        }
        tn__pools_destroy(life, slot);
        tn__free(slot);
        slot = next;
    }
}

void tn__life_destroy(tn__life *life) {
    uint64_t freed = 0;
    tn__reaper_stop(life);
    tn__life_registry_remove(life);
    tn__life_wait_idle(life);
    tn_status status = tn__life_collect(life, &freed);
    TN_ASSERT(status == TN_OK); /* our caller has refused inside a section of the host's */
    (void)status;
    slots_destroy(life);
    tn__mutex_fini(&life->slots_lock);
    tn__mutex_fini(&life->reap_lock);
    sem_destroy(&life->wake);
    word_destroy(life);
    tn__free(life);
}

/* ---- Entry ------------------------------------------------------------------------------ */

tn_status tn__life_verdict(const tn__life *life, uintptr_t word, bool closed_ok) {
    (void)life;
    if (tn__likely(word == TN__MANAGER_OPEN))
        return TN_OK;
    if (word == TN__MANAGER_FORKED)
        return TN_ERR_FORKED;
    if (word == TN__MANAGER_GUARDED)
        return TN_ERR_REENTRANCY;
    if (word == TN__MANAGER_CLOSED)
        return closed_ok ? TN_OK : TN_ERR_CLOSED;
    return TN_OK; /* a close that is being decided: it is met at the commit point */
}

tn_status tn__life_refuse(tn_status verdict) {
    switch (verdict) {
    case TN_ERR_FORKED:
        return tn__fail(verdict, "the manager belongs to the parent process");
    case TN_ERR_REENTRANCY:
        return tn__fail(verdict, "a source callback of this manager is running");
    case TN_ERR_CLOSED:
        return tn__fail(verdict, "the manager is closed");
    default:
        return verdict;
    }
}

tn__gate *tn__life_gate(tn__life *life) { return life->gate; }

static uintptr_t manager_word(const tn__life *life) {
    /* [manager-word] acquire. Pairs: release in guard_raise, guard_lower and close. Orders: the
     * word -> whatever its writer did before. Without: an operation after a guard reads placement
     * from before it. */
    return tn__load_acq(&life->gate->word);
}

tn_status tn__life_enter(tn__life *life, tn__thread *thread, bool closed_ok) {
    uintptr_t word = manager_word(life);
    if (word != TN__MANAGER_FORKED && tn__frame_inside(thread, life->manager, true))
        return tn__fail(TN_ERR_REENTRANCY, "called from a source callback of this manager");
    tn_status verdict = tn__life_verdict(life, word, closed_ok);
    if (tn__unlikely(verdict != TN_OK))
        return tn__life_refuse(verdict);
    if (tn__unlikely(thread->frames != NULL) && tn__frame_inside(thread, life->manager, false))
        return tn__fail(TN_ERR_REENTRANCY, "called from inside an operation of this manager");
    return TN_OK;
}

tn_status tn__life_enter_waited(tn__life *life) {
    return tn__life_refuse(tn__life_verdict(life, manager_word(life), false));
}

tn_status tn__life_enter_guard_only(tn__life *life, tn__thread *thread) {
    uintptr_t word = manager_word(life);
    if (word != TN__MANAGER_FORKED && tn__frame_inside(thread, life->manager, true))
        return tn__fail(TN_ERR_REENTRANCY, "called from a source callback of this manager");
    return tn__life_refuse(tn__life_verdict(life, word, true));
}

tn_status tn__life_enter_parent(const tn__life *life) {
    return manager_word(life) == TN__MANAGER_FORKED ? tn__life_refuse(TN_ERR_FORKED) : TN_OK;
}

bool tn__life_forked(const tn__life *life) { return manager_word(life) == TN__MANAGER_FORKED; }

bool tn__life_closed(const tn__life *life) { return manager_word(life) == TN__MANAGER_CLOSED; }

/* ---- Counters --------------------------------------------------------------------------- */

void tn__life_counts(tn__life *life, tn__counts *out) {
    tn__counts c = {0, 0, 0, false};
    /* [slots] acquire. Pairs: release in slot_push(). Orders: pointer -> the slot's fields.
     * Without: a new slot's counter is read as garbage. */
    for (tn__slot *slot = tn__load_acq(&life->slots); slot; slot = slot->next) {
        /* [count] acquire: each count is read before the next one, and before what the caller reads
         * then: another pass, or the records. */
        uint64_t counter = tn__load_acq(&slot->counter);
        c.sum += counter / 2;
        c.raw += counter;
        c.slots++;
        c.odd |= (counter & 1) != 0;
    }
    *out = c;
}

uint64_t tn__life_looks(tn__life *life) {
    uint64_t sum = 0;
    /* [no-order] a figure for tests, asked for when all is quiet */
    for (tn__slot *slot = tn__load_rlx(&life->slots); slot; slot = slot->next)
        sum += tn__load_rlx(&slot->looks);
    return sum;
}

uint64_t tn__life_count(tn__life *life, bool *out_stable) {
    tn__counts before, after;
    *out_stable = false;
    tn__life_counts(life, &before);
    for (int tries = 0; tries < 64; tries++) {
        tn__life_counts(life, &after);
        if (after.sum == before.sum && after.slots == before.slots && !after.odd && !before.odd) {
            *out_stable = true;
            break;
        }
        before = after;
        tn__relax();
    }
    return after.sum;
}

/* ---- Warnings, garbage ------------------------------------------------------------------ */

void tn__life_warn(tn__life *life, enum tn_diagnostic_kind kind, tn_status status, tn_location at,
                   const char *message) {
    if (!life->diagnostic)
        return;
    tn__assert_may_wait("diagnostic hook");
    tn_error kept = *tn__error_current();
    tn_diagnostic d = {.size = sizeof d,
                       .kind = (uint32_t)kind,
                       .status = (uint32_t)status,
                       .native_code = status == TN_OK ? 0 : kept.native_code,
                       .manager = life->manager,
                       .at = at,
                       .message = message};
    tn__thread *thread = tn__thread_self();
    tn__frame frame;
    if (thread)
        tn__frame_push(thread, &frame, life->manager, false);
    life->diagnostic(life->diagnostic_context, &d);
    if (thread)
        tn__frame_pop(thread, &frame);
    tn__error_restore(&kept);
}

void tn__garbage_push(tn__life *life, tn__garbage *garbage) {
    garbage->next = tn__load_rlx(&life->garbage);
    /* [garbage] release. Pairs: acquire in tn__life_collect(). Orders: the last use of the object
     * -> its place in the list. Without: it is freed with stores to it still on their way. */
    while (!tn__cas_rel(&life->garbage, &garbage->next, garbage))
        continue;
}

tn_status tn__life_collect(tn__life *life, uint64_t *freed) {
    if (tn__rcu_in_section())
        return tn__fail(TN_ERR_REENTRANCY, "called inside an RCU read section");
    tn__garbage *g = tn__swap_acq(&life->garbage, NULL); /* [garbage] */
    if (!g)
        return TN_OK;
    tn_status status = tn__rcu_synchronize();
    TN_ASSERT(status == TN_OK);
    while (g) {
        tn__garbage *next = g->next;
        g->free(g);
        ++*freed;
        g = next;
    }
    return status;
}
