/* SPDX-License-Identifier: MIT */
/*
 * Reclaim (P4): take what was replaced, wait for a grace period, then look at the pins.
 *
 * The grace period ends the sections of all readers who found the taken versions as current. What
 * is left are pins, and the count of a replaced version that reached 0 stays there: nobody takes
 * one from 0. Looking after the wait, not before it, also covers whoever pins by other means than
 * the count, and frees what was given up meanwhile.
 *
 * A node that a pinned version still has goes to the kept list of the youngest such version, and is
 * looked at again only when that version is given up: the next older pinned version is then the
 * only one to ask. So a long snapshot costs each node one visit, not one per collect.
 *
 * One collector at a time. While it works, versions older than `end` and their `next` and `kept`
 * are its own: writers append behind `end`.
 */
#include "placement/placement_priv.h"

struct work {
    tn_version *old;   /* versions replaced before the grace period, oldest first */
    tn_version *end;   /* the current one of that moment: not ours */
    tn_version *last;  /* the youngest that stays */
    tn__node *retired; /* nodes replaced before the grace period, youngest first */
    uint64_t versions_freed, nodes_freed;
};

void tn__store_note_garbage(tn__store *s) {
    /* [no-order] a count that became 0 precedes it ([version-ref] is an acquire, too), and between
     * the collector's taking of the mark and its look at the counts lies a grace period, which is a
     * fence of every thread where membarrier can be had: a pin that is given back while a collect
     * begins is seen by it, or announced for the next. Elsewhere it may wait for the next publish. */
    tn__store_rlx(&s->garbage, 1);
}

bool tn__store_has_garbage(tn__store *s) {
    return tn__load_rlx(&s->garbage) != 0; /* a hint: at worst one late or one idle collect */
}

/* False: nothing to do, or another collector is at work. */
static bool take_garbage(tn__store *s, struct work *w) {
    tn__lock(&s->lock);
    bool mine = !s->collecting;
    /* [no-order] as in tn__store_note_garbage(); a swap, so that no mark is lost between a look and a
     * store */
    if (mine && tn__swap_rlx(&s->garbage, 0)) {
        *w = (struct work){.old = s->oldest, .end = s->newest, .retired = s->retired};
        s->collecting = true;
        s->oldest = s->newest;
        s->retired = NULL;
    } else {
        mine = false;
    }
    tn__unlock(&s->lock);
    return mine;
}

/* Put back the versions that stay. */
static void finish(tn__store *s, struct work *w) {
    tn__lock(&s->lock);
    if (w->last) {
        w->last->next = s->oldest;
        s->oldest = w->old;
    }
    s->collecting = false;
    s->versions_freed += w->versions_freed;
    tn__unlock(&s->lock);
}

/* Keep a node with `pinned`, the youngest pinned version older than its replacement, or free it. */
static void judge(struct work *w, tn__node *n, tn_version *pinned) {
    if (pinned && pinned->number >= n->born) {
        n->next = pinned->kept;
        pinned->kept = n;
    } else {
        tn__node_free(n);
        w->nodes_freed++;
    }
}

static void judge_list(struct work *w, tn__node *list, tn_version *pinned) {
    for (tn__node *next; list; list = next) {
        next = list->next;
        judge(w, list, pinned);
    }
}

/* Free the old versions without pins, link the others. What a freed one kept goes to the pinned one
 * before it. */
static void judge_versions(struct work *w) {
    tn_version **link = &w->old;
    for (tn_version *v = w->old, *next; v != w->end; v = next) {
        next = v->next;
        /* [version-ref] acquire. Pairs: tn__store_unpin(). Orders: the reads of whoever gave back
         * the last pin -> the frees below. Without: nodes are freed under a reader. */
        if (tn__load_acq(&v->refs) != 0) {
            *link = w->last = v;
            link = &v->next;
            continue;
        }
        judge_list(w, v->kept, w->last);
        tn__version_free(v);
        w->versions_freed++;
    }
    *link = NULL;
}

static tn__node *reversed(tn__node *list) {
    tn__node *out = NULL;
    for (tn__node *next; list; list = next) {
        next = list->next;
        list->next = out;
        out = list;
    }
    return out;
}

/* Both lists run from old to young, so the versions are passed once. */
static void judge_retired(struct work *w) {
    tn_version *pinned = NULL, *younger = w->old;
    for (tn__node *n = reversed(w->retired), *next; n; n = next) {
        next = n->next;
        for (; younger && younger->number < n->replaced; younger = younger->next)
            pinned = younger;
        judge(w, n, pinned);
    }
}

tn_status tn__store_collect(tn__store *s, uint64_t *freed) {
    if (tn__rcu_in_section())
        return tn__fail(TN_ERR_REENTRANCY, "called inside an RCU read section");
    struct work w;
    if (!take_garbage(s, &w))
        return TN_OK;
    tn_status status = tn__rcu_synchronize();
    TN_ASSERT(status == TN_OK); /* its only refusal was looked for above */
    judge_versions(&w);
    judge_retired(&w);
    finish(s, &w);
    *freed += w.nodes_freed + w.versions_freed;
    return TN_OK;
}
