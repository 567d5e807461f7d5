/* SPDX-License-Identifier: MIT */
/*
 * Acquire: the reader's side of the protocol (src/README.md). One section: record ACQUIRING, look
 * up all values, store pins, light fence, load all state words, then the manager word, ACTIVE. A
 * reader never waits: it aborts the removal that it meets, and the outcome it then stores tells
 * that plan whether it was in use.
 */
#include "lifetime/lifetime_priv.h"

/* Why an attempt failed; made into an error after the section. */
typedef struct attempt {
    tn__life *life;
    tn__record *record;
    tn__pins *pins;
    size_t count;
    tn_location at;
    const tn_version *version; /* looked up in */
    tn__removal *closing;      /* a closing plan that this attempt has aborted */
    tn_status status;
    enum tn_handle_cause cause;
    bool busy;
    size_t failed; /* which pin */
} attempt;

/* Distinct handles in first-occurrence order (M129), into the pins of a FREE record. */
static size_t collapse(tn__pins *pins, const tn_handle *handles, size_t count) {
    size_t distinct = 0;
    uint64_t seen = 0; /* low bits of the indices so far: mostly there is nothing to compare */
    for (size_t i = 0; i < count; i++) {
        uint64_t bit = UINT64_C(1) << handles[i].index % 64;
        size_t j = seen & bit ? 0 : distinct;
        seen |= bit;
        while (j < distinct && (tn__load_rlx(&pins->pin[j].index) != handles[i].index ||
                                tn__load_rlx(&pins->pin[j].type) != handles[i].type))
            j++;
        if (j < distinct)
            continue;
        tn__store_rlx(&pins->pin[distinct].index, handles[i].index);
        tn__store_rlx(&pins->pin[distinct].type, handles[i].type);
        tn__store_rlx(&pins->pin[distinct].mat, NULL);
        pins->pin[distinct].aborted = NULL;
        distinct++;
    }
    return distinct;
}

static bool fail_handle(attempt *a, size_t i, enum tn_handle_cause cause) {
    a->status = TN_ERR_HANDLE;
    a->cause = cause;
    a->failed = i;
    return false;
}

static bool fail_unavailable(attempt *a, size_t i, bool busy) {
    a->status = TN_ERR_UNAVAILABLE;
    a->busy = busy;
    a->failed = i;
    return false;
}

/* Look up one value and store its pin. */
static bool pin_one(attempt *a, const tn_version *version, size_t i) {
    tn__pin *pin = &a->pins->pin[i];
    uint64_t index = tn__load_rlx(&pin->index);
    const tn__value *value = NULL;
    enum tn_handle_cause cause =
        tn__version_judge(version, index, tn__load_rlx(&pin->type), &value);
    if (tn__unlikely(cause != TN_HANDLE_CAUSE_NONE))
        return fail_handle(a, i, cause);
    tn__mat *mat = tn__value_mat(value, a->at);
    if (!mat)
        return fail_unavailable(a, i, false);
    tn__store_rlx(&pin->data, mat->payload.data);
    /* [no-order] that it is seen is [fence]'s part, that it is not taken for one of the last life
     * the part of tn__record_begin(). */
    tn__store_rlx(&pin->mat, mat);
    return true;
}

static bool pin_all(attempt *a) {
    a->version = tn__store_current(a->life->store);
    for (size_t i = 0; i < a->count; i++)
        if (!pin_one(a, a->version, i))
            return false;
    TN__AT(TN__POINT_PINS_STORED, a->record);
    tn__light_fence(); /* [fence] pins stored -> state words loaded */
    return true;
}

enum state_verdict { STATES_OK, STATES_GONE, STATES_TAKEN };

/* Load each state word once. Aborts the removals met; remembers which. */
static enum state_verdict states(attempt *a) {
    for (size_t i = 0; i < a->count; i++) {
        tn__pin *pin = &a->pins->pin[i];
        tn__mat *mat = tn__load_rlx(&pin->mat);
        /* [state] acquire. Pairs: release in removal.c. Orders: the word -> the descriptor's
         * fields. Without: a reader looks into a descriptor that is not written yet. */
        uintptr_t state = tn__load_acq(&mat->state);
        if (tn__likely(state == TN__MAT_LIVE))
            continue;
        a->failed = i;
        if (state == TN__MAT_GONE)
            return STATES_GONE;
        bool mine = false;
        if (!tn__decision_meet((tn__removal *)state, &mine))
            return STATES_TAKEN;
        if (mine)
            pin->aborted = (tn__removal *)state;
    }
    return STATES_OK;
}

static void outcomes(attempt *a, bool granted) {
    for (size_t i = 0; i < a->count; i++) {
        tn__pin *pin = &a->pins->pin[i];
        if (tn__unlikely(pin->aborted != NULL))
            tn__decision_outcome(pin->aborted, granted);
        pin->aborted = NULL;
    }
    if (tn__unlikely(a->closing != NULL))
        tn__decision_outcome(a->closing, granted);
}

/* The manager word, loaded last: the commit point. */
static bool manager_open(attempt *a) {
    uintptr_t word = tn__load_acq(&a->life->gate->word); /* [manager-word] */
    if (tn__likely(word == TN__MANAGER_OPEN || word == TN__MANAGER_GUARDED))
        return true; /* a guard raised meanwhile waits for this section */
    bool mine = false;
    if (word > TN__MANAGER_CLOSED && tn__decision_meet((tn__removal *)word, &mine)) {
        TN__BRANCH(reader_aborts_close);
        if (mine)
            a->closing = (tn__removal *)word;
        return true;
    }
    a->status = word == TN__MANAGER_FORKED ? TN_ERR_FORKED : TN_ERR_CLOSED;
    return false;
}

/* GONE: look up again, once, if the version without it is published by now; otherwise it would be
 * found again. So a reader looks twice at most once for each removal. */
static bool look_again(const attempt *a, tn__slot *slot, int look) {
    if (look > 0 || tn__store_current(a->life->store) == a->version) {
        TN__BRANCH(reader_finds_gone_fails);
        return false;
    }
    TN__BRANCH(reader_finds_gone_looks_again);
    tn__store_rlx(&slot->looks, tn__load_rlx(&slot->looks) + 1);
    return true;
}

static bool try_pins(attempt *a, tn__slot *slot) {
    for (int look = 0;; look++) {
        if (!pin_all(a))
            return false;
        switch (states(a)) {
        case STATES_OK:
            return manager_open(a);
        case STATES_TAKEN:
            return fail_unavailable(a, a->failed, true);
        case STATES_GONE:
            if (!look_again(a, slot, look))
                return fail_unavailable(a, a->failed, true);
        }
    }
}

static TN__COLD tn_status attempt_error(const attempt *a) {
    if (a->status != TN_ERR_HANDLE && a->status != TN_ERR_UNAVAILABLE)
        return tn__life_refuse(a->status);
    if (tn__life_closed(a->life)) /* meanwhile: its last version has no values */
        return tn__life_refuse(TN_ERR_CLOSED);
    const tn__pin *pin = &a->pins->pin[a->failed];
    tn_handle handle = {a->life->manager, tn__load_rlx(&pin->index), tn__load_rlx(&pin->type)};
    if (a->status == TN_ERR_HANDLE)
        return tn__handle_refuse(a->life->manager, handle, a->cause);
    char name[TN_LOCATION_NAME_MAX];
    tn_error *e =
        tn__error(TN_ERR_UNAVAILABLE, "value %llu is %s at %s", (unsigned long long)handle.index,
                  a->busy ? "being removed" : "not resident", tn__location_text(a->at, name));
    e->busy = a->busy;
    e->handle = handle;
    e->at = a->at;
    return TN_ERR_UNAVAILABLE;
}

/* The section. The record is FREE before and after a failure, ACTIVE after success. */
static tn_status commit(attempt *a, tn__slot *slot, uint64_t generation) {
    tn__record *record = a->record;
    tn__rcu_lock();
    /* [no-order] a first look: manager_open() decides */
    tn_status verdict = tn__life_verdict(a->life, tn__load_rlx(&a->life->gate->word), false);
    if (tn__unlikely(verdict != TN_OK)) {
        tn__rcu_unlock();
        return a->status = verdict;
    }
    uint64_t count = tn__count_begin(slot);
    /* [no-order] seen with the pins below: [fence] */
    tn__store_rlx(&record->pair.low, tn__word(generation, TN__ACQUIRING));
    bool ok = try_pins(a, slot);
    TN__AT(TN__POINT_ACQUIRED, record);
    /* [word] release: ACTIVE after the pins; FREE after the last look at them. Then the outcome,
     * then the counter. */
    tn__store_rel(&record->pair.low, tn__word(generation, ok ? TN__ACTIVE : TN__FREE));
    outcomes(a, ok);
    tn__count_end(slot, count, ok);
    tn__rcu_unlock();
    return ok ? TN_OK : a->status;
}

/* How many handles stand before the first foreign one. */
static size_t own_handles(const tn__life *life, const tn_handle *handles, size_t count) {
    size_t own = 0;
    while (own < count && handles[own].manager == life->manager)
        own++;
    return own;
}

/* Leases and holds alike. */
static tn_status acquire(tn__life *life, enum tn__record_kind kind, const tn_handle *handles,
                         size_t count, tn_location at, tn_stream stream, const tn_stream_info *info,
                         tn_lease *out) {
    tn__thread *thread;
    tn_status status = tn__life_thread(life, &thread);
    if (status != TN_OK)
        return status;
    size_t usable = own_handles(life, handles, count);
    bool some_foreign = usable < count;
    if (some_foreign && usable == 0)
        return tn__handle_refuse(life->manager, handles[0], TN_HANDLE_FOREIGN);
    tn__slot *slot = tn__life_own_slot(life, thread);
    tn__record *record = tn__record_obtain(slot);
    if (!record)
        return tn__no_memory();
    attempt a = {.life = life, .record = record, .at = at, .pins = tn__record_pins(record, usable)};
    if (!a.pins) {
        tn__record_recycle(record, slot);
        return tn__no_memory();
    }
    a.count = collapse(a.pins, handles, usable);
    tn__store_rlx(&record->pin_count, (uint32_t)a.count);
    tn__store_rlx(&record->what, tn__what(kind, at));
    uint64_t generation = tn__word_generation(tn__load_rlx(&record->pair.low)) + 1;
    if (at.kind == TN_LOCATION_CUDA && kind == TN__KIND_LEASE)
        tn__streams_open(record, generation, stream, info);
    /* the handles before it come first (M131): a trial that is never committed */
    if (some_foreign) {
        tn__rcu_lock();
        bool resident = pin_all(&a);
        tn__rcu_unlock();
        tn__record_recycle(record, slot);
        return resident ? tn__handle_refuse(life->manager, handles[usable], TN_HANDLE_FOREIGN)
                        : attempt_error(&a);
    }
    status = commit(&a, slot, generation);
    if (tn__unlikely(status != TN_OK)) {
        if (kind == TN__KIND_LEASE && at.kind == TN_LOCATION_CUDA)
            tn__streams_close(record);
        status = attempt_error(&a);
        tn__record_recycle(record, slot);
        return status;
    }
    *out = (tn_lease){record, generation};
    return TN_OK;
}

tn_status tn__life_acquire(tn__life *life, const tn_handle *handles, size_t count, tn_location at,
                           tn_stream stream, const tn_stream_info *stream_info, tn_lease *out) {
    return acquire(life, TN__KIND_LEASE, handles, count, at, stream, stream_info, out);
}

tn_status tn__life_hold(tn__life *life, const tn_handle *handles, size_t count, tn_location at,
                        tn_hold *out) {
    tn_lease lease;
    tn_status status = acquire(life, TN__KIND_HOLD, handles, count, at, NULL, NULL, &lease);
    if (status == TN_OK)
        *out = (tn_hold){lease.record, lease.generation};
    return status;
}
