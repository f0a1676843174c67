/* SPDX-License-Identifier: MIT
 *
 * Owners of slabs: about one per CPU that the process may use, shared by threads. With an owner
 * each, every thread would keep slabs of every class it uses.
 *
 * Nobody waits for an owner but while all are locked. A thread whose home stays locked for longer
 * than a section lasts (its holder was preempted) moves to another owner; its frees to the old home
 * become remote. So threads that run at the same time end up at different owners. */
#include "os/os.h"
#include "slab/remote.h"
#include "slab/slab_inl.h"

enum {
    OWNER_SPINS = 100,        /* a section without system calls lasts some dozens of these */
    OWNER_LEAST = 2,          /* with one CPU, too: a thread may be preempted in a section */
    OWNER_RESERVE = 2,        /* up to times as many, made while all are locked */
    OWNER_NAPS = 10000,       /* then all stay locked for good, by crashed threads: one more */
    OWNER_DRAIN_BUDGET = 256, /* slabs drained per owner visited */
    ADOPT_VISITS = 4,         /* owners locked for one slab: bounds the work of a refill */
    ADOPT_LOOKS = 64,         /* owners looked at */
    ADOPT_DRAIN_BUDGET = 32,
};

static HAK_LARGE_STATE(4) hak_owner_t owner_fallback; /* the first one when metadata is out */

HAK_LOCKED_STATE hak_owner_t *hak_all_owners;    /* [atomic] newest first; never shrinks */
HAK_LOCKED_STATE uint32_t hak_owner_count;       /* [lock REGISTRY] of both partitions */
HAK_LOCKED_STATE uint32_t hak_owner_plain_count; /* [lock REGISTRY] of the plain partition */
HAK_LOCKED_STATE hak_owner_t *hak_owner_first;   /* [const] once it is made */
HAK_LOCKED_STATE hak_owner_t *hak_owner_sampled; /* [atomic] SLAB-10; NULL: none yet */
/* [atomic] the owner visited last; a hint */
HAK_LOCKED_STATE hak_owner_t *hak_owner_maintain_cursor;
HAK_LOCKED_STATE hak_owner_t *hak_owner_adopt_cursor;

void hak_owner_init(hak_owner_t *owner, uint32_t first_entry) {
    owner->first_entry = first_entry;
    owner->purge_pass.peak_class = HAK_SC_COUNT - 1;
    for (unsigned sc = 0; sc < HAK_SC_COUNT; sc++) {
        hak_list_init(&owner->partial[sc]);
    }
    if (first_entry == HAK_KIND_SAMPLED) {
        hak_store_release(&hak_owner_sampled, owner); /* pairs OWNERS */
    }
}

/* HAK_LOCK_REGISTRY held. */
static void owner_add(hak_owner_t *owner, hak_partition_t partition) {
    bool is_plain = HAK_HARDEN && partition == HAK_PARTITION_PLAIN;
    hak_owner_plain_count += is_plain;
    hak_owner_init(owner, ++hak_owner_count << 8 | (is_plain ? HAK_SLAB_PLAIN_ID : 0));
    hak_lock_add(&owner->lock);
    owner->next = hak_load_relaxed(&hak_all_owners);
    hak_store_release(&hak_all_owners, owner); /* pairs OWNERS */
}

/* Metadata begins with it: with the first tcache and the table of superslabs it fills two OS pages
 * (docs/experiments/0076-small-processes.md). */
hak_owner_t *hak_owner_start(void) {
    hak_lock_acquire(HAK_LOCK_REGISTRY);
    if (hak_owner_count == 0) {
        hak_owner_t *owner = hak_meta_alloc(sizeof *owner);
        hak_owner_first = owner != NULL ? owner : &owner_fallback;
        owner_add(hak_owner_first, HAK_PARTITION_ANY);
    }
    hak_lock_release(HAK_LOCK_REGISTRY);
    return hak_owner_first;
}

/* HAK_LOCK_REGISTRY held; NULL: there are enough. */
static hak_owner_t *owner_create(hak_partition_t partition, unsigned times) {
    uint32_t plain = hak_owner_plain_count;
    uint32_t count = partition == HAK_PARTITION_PLAIN ? plain : hak_owner_count - plain;
    if (count / hak_most(hak_os_cpu_count(), OWNER_LEAST) >= times) {
        return NULL;
    }
    hak_owner_t *owner = hak_meta_alloc(sizeof *owner);
    if (owner != NULL) {
        owner_add(owner, partition);
    }
    return owner;
}

static bool owner_is_idle(const hak_owner_t *owner) {
    return hak_load_relaxed(&owner->users) == 0;
}

/* Without the registry's lock, as every owner's line is read: threads start at the same time. */
hak_owner_t *hak_owner_join(hak_partition_t partition) {
    for (;;) {
        uint32_t least = UINT32_MAX, count = 0;
        hak_owner_t *best = NULL;
        /* pairs OWNERS */
        for (hak_owner_t *o = hak_load_acquire(&hak_all_owners); o != NULL; o = o->next) {
            uint32_t users = hak_load_relaxed(&o->users);
            bool is_alike = hak_slab_partition(o->first_entry) == partition;
            count += is_alike;
            best = is_alike && users < least ? o : best;
            least = best == o ? users : least;
        }
        if (least != 0 && count < hak_most(hak_os_cpu_count(), OWNER_LEAST)) {
            hak_lock_acquire(HAK_LOCK_REGISTRY);
            hak_owner_t *fresh = owner_create(partition, 1);
            hak_lock_release(HAK_LOCK_REGISTRY);
            least = fresh != NULL ? 0 : least;
            best = fresh != NULL ? fresh : best;
        }
        if (best == NULL || hak_cas_relaxed(&best->users, &least, least + 1)) {
            return best;
        }
    }
}

/* The owner is held. An owner without users offers its current slabs for adoption. */
static void owner_maintain(hak_owner_t *owner, unsigned budget) {
    hak_remote_drain(owner, budget);
    if (owner_is_idle(owner)) {
        hak_store_relaxed(&owner->is_left, false);
        hak_slab_release_current(owner);
    }
}

/* true: the owner has no user left. */
static bool owner_remove_user(hak_owner_t *owner) {
    uint32_t users = hak_load_relaxed(&owner->users);
    /* never below 0: a fork inside a section resets the count in the child */
    while (users != 0 && !hak_cas_relaxed(&owner->users, &users, users - 1)) {
    }
    if (users != 1) {
        return false;
    }
    hak_store_relaxed(&owner->is_left, true);
    return true;
}

void hak_owner_quit(hak_owner_t *owner) {
    if (owner_remove_user(owner) && hak_owner_try_lock(owner)) {
        owner_maintain(owner, OWNER_DRAIN_BUDGET);
        hak_owner_unlock(owner);
    }
}

void hak_owner_move(hak_owner_t *from, hak_owner_t *to) {
    hak_add_relaxed(&to->users, 1);
    owner_remove_user(from);
}

/* --- locking ---------------------------------------------------------------------------------- */

static HAK_NOINLINE bool owner_lock_spin(hak_owner_t *owner) {
    for (unsigned spin = 0; spin < OWNER_SPINS; spin++) {
        if (hak_load_relaxed(&owner->lock.is_taken) == 0 && hak_lock_try(&owner->lock)) {
            return true;
        }
        hak_os_relax();
    }
    return false;
}

bool hak_owner_try_lock(hak_owner_t *owner) {
    return HAK_LIKELY(hak_lock_try(&owner->lock)) || owner_lock_spin(owner);
}

void hak_owner_unlock(hak_owner_t *owner) {
    hak_lock_unlock(&owner->lock);
}

/* The list is walked as a ring. */
static hak_owner_t *owner_after(hak_owner_t *owner) {
    bool has_next = owner != NULL && owner->next != NULL;
    return has_next ? owner->next : hak_load_acquire(&hak_all_owners); /* pairs OWNERS */
}

static bool is_alike(const hak_owner_t *a, const hak_owner_t *b) {
    return hak_slab_partition(a->first_entry) == hak_slab_partition(b->first_entry);
}

static hak_owner_t *owner_lock_any(hak_owner_t *home) {
    hak_owner_t *owner = home;
    do {
        if (is_alike(owner, home) && hak_lock_try(&owner->lock)) {
            return owner;
        }
        owner = owner_after(owner);
    } while (owner != home);
    return NULL;
}

hak_owner_t *hak_owner_next(hak_owner_t **cursor) {
    hak_owner_t *owner = owner_after(hak_load_acquire(cursor)); /* pairs CURSOR */
    hak_store_release(cursor, owner);                           /* pairs CURSOR */
    return owner;
}

/* All were locked, perhaps by a fork, which has ended once we hold the lock. */
static hak_owner_t *owner_lock_new(hak_owner_t *home, unsigned times) {
    hak_lock_acquire(HAK_LOCK_REGISTRY);
    hak_owner_t *owner = owner_lock_any(home);
    if (owner == NULL) {
        hak_owner_t *fresh = owner_create(hak_slab_partition(home->first_entry), times);
        owner = fresh != NULL && hak_lock_try(&fresh->lock) ? fresh : NULL;
    }
    hak_lock_release(HAK_LOCK_REGISTRY);
    return owner;
}

static const uint64_t OWNER_NAP_NS = 50000;

static HAK_COLD hak_owner_t *owner_lock_other(hak_owner_t *home) {
    hak_owner_t *owner = owner_lock_any(home);
    if (owner == NULL) {
        owner = owner_lock_new(home, OWNER_RESERVE);
    }
    for (unsigned naps = 0; owner == NULL; naps++) {
        hak_os_sleep(OWNER_NAP_NS);
        owner = naps % OWNER_NAPS != OWNER_NAPS - 1 ? owner_lock_any(home)
                                                    : owner_lock_new(home, UINT32_MAX);
    }
    return owner;
}

hak_owner_t *hak_owner_lock(hak_owner_t *home) {
    return HAK_LIKELY(hak_owner_try_lock(home)) ? home : owner_lock_other(home);
}

/* --- on behalf of others ---------------------------------------------------------------------- */

/* A hint: the count may change at once. A full slab may have blocks once the owner is drained. */
static bool owner_may_give(const hak_owner_t *owner, unsigned sc, uint32_t least) {
    const uint32_t *count = least == 1 ? owner->slab_count : owner->partial_count;
    return hak_single_writer_load(&count[sc]) >= least;
}

static hak_slab_t *owner_adopt_from(hak_owner_t *from, hak_owner_t *owner, unsigned sc,
                                    uint32_t least) {
    if (from == owner || !hak_lock_try(&from->lock)) {
        return NULL;
    }
    owner_maintain(from, ADOPT_DRAIN_BUDGET);
    hak_slab_t *slab = from->partial_count[sc] >= least ? hak_slab_take_partial(from, sc) : NULL;
    if (slab != NULL) {
        hak_slab_change_owner(slab, owner);
    }
    hak_lock_unlock(&from->lock);
    return slab;
}

/* At most once round the ring. A thread that changes its home would leave partial slabs behind,
 * which nobody allocates from until a thread comes back: so owners with users give, too. */
hak_slab_t *hak_slab_adopt(hak_owner_t *owner, unsigned sc, hak_adopt_t from_which) {
    hak_slab_t *slab = NULL;
    if (owner->first_entry == HAK_KIND_SAMPLED) { /* SLAB-10 */
        return NULL;
    }
    /* pairs CURSOR */
    hak_owner_t *first = owner_after(hak_load_acquire(&hak_owner_adopt_cursor));
    hak_owner_t *from = first;
    unsigned looks = from_which == HAK_ADOPT_LAST_RESORT ? UINT32_MAX : ADOPT_LOOKS;
    for (unsigned visits = looks > ADOPT_LOOKS ? looks : ADOPT_VISITS;
         from != NULL && looks > 0 && visits > 0; looks--) {
        bool is_any = from_which != HAK_ADOPT_SPARE || owner_is_idle(from);
        uint32_t least = is_any ? 1 : HAK_SLAB_ADOPT_LEAST;
        if (is_alike(from, owner) && owner_may_give(from, sc, least)) {
            slab = owner_adopt_from(from, owner, sc, least);
            visits--;
        }
        hak_owner_t *next = owner_after(from);
        if (slab != NULL || next == first) {
            break;
        }
        from = next;
    }
    hak_store_release(&hak_owner_adopt_cursor, from); /* pairs CURSOR */
    return slab;
}

static bool owner_wants_maintenance(const hak_owner_t *owner) {
    return hak_remote_is_pending(owner) ||
           (hak_load_relaxed(&owner->is_left) && owner_is_idle(owner));
}

/* The owner of sampled blocks is in no ring: its frees that met its lock wait here. */
static void owner_maintain_sampled(unsigned budget) {
    hak_owner_t *sampled = hak_load_acquire(&hak_owner_sampled); /* pairs OWNERS */
    if (sampled != NULL && hak_remote_is_pending(sampled) && hak_lock_try(&sampled->lock)) {
        hak_remote_drain(sampled, budget);
        hak_owner_unlock(sampled);
    }
}

void hak_owner_maintain(unsigned budget) {
    owner_maintain_sampled(OWNER_DRAIN_BUDGET);
    for (; budget > 0; budget--) {
        hak_owner_t *owner = hak_owner_next(&hak_owner_maintain_cursor);
        if (owner_wants_maintenance(owner) && hak_lock_try(&owner->lock)) {
            owner_maintain(owner, OWNER_DRAIN_BUDGET);
            hak_owner_unlock(owner);
        }
    }
}

static void owner_collect(hak_owner_t *owner) {
    if (hak_owner_try_lock(owner)) {
        hak_remote_drain(owner, UINT32_MAX);
        hak_slab_release_current(owner);
        hak_owner_unlock(owner);
    }
}

void hak_owner_collect(void) {
    /* pairs OWNERS */
    for (hak_owner_t *o = hak_load_acquire(&hak_all_owners); o != NULL; o = o->next) {
        owner_collect(o);
    }
    hak_owner_t *sampled = hak_load_acquire(&hak_owner_sampled); /* pairs OWNERS */
    if (sampled != NULL) {
        owner_collect(sampled);
    }
}

void hak_owner_visit(void (*visit)(hak_owner_t *, void *), void *context) {
    /* pairs OWNERS */
    for (hak_owner_t *o = hak_load_acquire(&hak_all_owners); o != NULL; o = o->next) {
        visit(o, context);
    }
}

void hak_owner_after_fork(hak_owner_t *home) {
    for (hak_owner_t *o = hak_all_owners; o != NULL; o = o->next) {
        o->users = 0;
        o->is_left = o != home;
    }
    if (home != NULL) {
        hak_add_relaxed(&home->users, 1);
    }
}
