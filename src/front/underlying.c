/* SPDX-License-Identifier: MIT
 *
 * The underlying allocator: the C library's, or another one: behind ours in the chain of preloads,
 * or the program's own, before ours. It serves force_libc, and frees its own blocks: those made
 * before we were in place, in another namespace, or by its own names.
 *
 * Whether a pointer is its block must be decided without touching unmapped memory: the C library's
 * (glibc) by its chunk header, another allocator's by its malloc_usable_size.
 *
 * A plugin may have a heap of its own, and operators of C++ over it. Ours take the place of those
 * that it exports, not of those that it hides: their blocks come to our delete. So a pointer that
 * has no owner goes to the free or delete of an object among its callers. */
#include "front/underlying.h"

#include "base/knobs.h"
#include "front/tcache.h"
#include "os/cpu.h"
#include "os/libc.h"
#include "os/optional.h"
#include "stack/stack.h"

/* Whose a foreign block is. */
typedef enum source { FROM_NOBODY, FROM_LIBC, FROM_OTHER } source_t;

/* As found by everybody: ours, or those of a program, which gets what it made without us. */
extern void *public_malloc(size_t bytes) __asm__("malloc");
extern void public_free(void *block) HAK_LIBC(free);
extern void public_delete(void *block) HAK_LIBC(_ZdlPv);

/* [atomic] The one before ours, or the next one in the chain if it is not the C library. */
static void (*other_free)(void *);
static void *(*other_realloc)(void *, size_t);
static size_t (*other_usable)(void *); /* may be NULL */
static bool is_libc_itself = true;     /* [atomic] see underlying_look_up */
static bool is_looked_up;              /* [atomic] */

/* Whether malloc as found by everybody has another heap, which is not the C library's: it may be a
 * wrapper of ours. */
static bool has_other_ahead(void) {
    if (hak_libc_symbol(NULL, "free") == (void *)hak_libc_free) {
        return false; /* a plugin brought ours */
    }
    void *block = public_malloc(1);
    bool is_other = block != NULL && hak_pagemap_get(hak_pagemap_base(), block) == 0;
    public_free(block);
    return is_other;
}

/* dlsym may allocate and take the loader's lock, so this waits for the first foreign pointer. Under
 * force_libc all blocks come from the C library's own names: no free searches for an owner. Another
 * allocator may define those names, too (mimalloc does): then __libc_free is its function, and the
 * C library's heap is out of reach.
 *
 * A C library without a second name of free (musl) has blocks that nobody knows from outside, and
 * stops a program that asks it for the size of another's: its pointers are nobody's.
 *
 * All functions must belong to one allocator: if it lacks malloc_usable_size, dlsym finds the C
 * library's, which would read a header that is not there. Such an allocator cannot be asked; it
 * gets all pointers that no other allocator owns. */
static void underlying_look_up(void) {
    if (hak_load_acquire(&is_looked_up) || hak_libc_symbol == NULL) { /* pairs UNDERLYING */
        return;
    }
    bool is_forced = hak_load_relaxed(&hak_knobs.force_libc);
    bool is_ahead = HAK_OVERRIDE && !is_forced && has_other_ahead();
    void *from = is_ahead ? NULL : HAK_LIBC_NEXT; /* RTLD_DEFAULT */
    void *release = hak_libc_symbol(from, "free"), *resize = hak_libc_symbol(from, "realloc");
    void *usable = hak_libc_symbol(from, "malloc_usable_size"), *libc_free = (void *)hak_libc_free;
    hak_libc_object_t object = hak_libc_object_of(release);
    uintptr_t libc = hak_libc_object(), libc_free_start = hak_libc_object_of(libc_free).start;
    bool is_itself =
        libc_free != NULL && (libc == 0 || libc_free_start == 0 || libc == libc_free_start);
    bool is_nameless = libc_free == NULL && libc != 0 && object.start == libc;
    bool is_other = release != libc_free && !is_nameless && !is_forced;
    hak_store_relaxed(&is_libc_itself, is_itself);
    if ((is_other || (!is_itself && !is_nameless)) && release != NULL && resize != NULL &&
        object.start == hak_libc_object_of(resize).start) {
        bool is_asked = object.start == hak_libc_object_of(usable).start;
        hak_store_relaxed(&other_usable, (size_t(*)(void *))(is_asked ? usable : NULL));
        hak_store_relaxed(&other_realloc, (void *(*)(void *, size_t))resize);
        hak_store_relaxed(&other_free, (void (*)(void *))release);
    }
    hak_store_release(&is_looked_up, true);                           /* pairs UNDERLYING */
    if (hak_load_relaxed(&other_free) != NULL && object.start != 0) { /* may free foreign blocks */
        hak_libc_keep_library(object.file);
        if (hak_libc_object_of(release).start != object.start) { /* unloaded meanwhile */
            hak_store_relaxed(&other_free, NULL);
            hak_store_relaxed(&other_realloc, NULL);
            hak_store_relaxed(&other_usable, NULL);
        }
    }
}

/* Asks the C library first: other allocators crash on foreign pointers. */
static source_t source_of(const void *block) {
    underlying_look_up();
    if (!hak_os_is_readable(block)) {
        return FROM_NOBODY;
    }
    bool is_sole = hak_load_relaxed(&other_free) == NULL;
    if (hak_libc_free != NULL && hak_load_relaxed(&is_libc_itself) &&
        hak_libc_owns(block, is_sole)) {
        return FROM_LIBC;
    }
    if (is_sole) {
        return FROM_NOBODY;
    }
    size_t (*usable)(void *) = hak_load_relaxed(&other_usable);
    return usable == NULL || usable((void *)block) != 0 ? FROM_OTHER : FROM_NOBODY;
}

bool hak_underlying_owns(const void *block) {
    return source_of(block) != FROM_NOBODY;
}

/* --- blocks of callers ------------------------------------------------------------------------ */

enum { PASS_CALLERS = 8 };

/* The free or delete that the object around the code defines. NULL: none, or the
 * C library's, which was asked already. */
static void *pass_target(uintptr_t code) {
    uintptr_t start = hak_libc_object_of((const void *)code).start;
    void *found = hak_os_definition(start, "free");
    found = found != NULL ? found : hak_os_definition(start, "_ZdlPv");
    bool is_known = found == (void *)public_free || found == (void *)public_delete ||
                    hak_os_definition(start, "getauxval") != NULL;
    return is_known ? NULL : found;
}

/* false: nobody took it, or who took it called our free for it again, and has no heap. */
static HAK_COLD HAK_NOINLINE bool pass_on(void *block) {
    uintptr_t callers[PASS_CALLERS];
    hak_stack_at_t here = {.is_exact = true, .ends_unsure = true};
    hak_cpu_registers(&here.code, &here.stack, &here.frame);
    unsigned count = HAK_SHARED ? hak_stack_walk_from(&here, callers, PASS_CALLERS) : 0;
    uint64_t mixed = (uintptr_t)block * 0x9e3779b97f4a7c15ull >> 48;
    uint16_t before = hak_thread_self.passed, now = (uint16_t)(mixed != 0 ? mixed : 1);
    void *target = NULL;
    for (unsigned i = 0; i < count && target == NULL; i++) {
        target = pass_target(callers[i]);
    }
    if (target == NULL || now == before) {
        return false;
    }
    hak_thread_self.passed = now;
    ((void (*)(void *))target)(block);
    hak_thread_self.passed = before;
    return true;
}

/* A chunk outside the data segment is known by less than others: callers are asked first. */
bool hak_underlying_free(void *block) {
    bool is_forced = hak_load_relaxed(&hak_knobs.force_libc) && hak_libc_free != NULL;
    source_t source = is_forced ? FROM_LIBC : source_of(block);
    void (*release)(void *) = source == FROM_OTHER ? hak_load_relaxed(&other_free) : hak_libc_free;
    bool is_sure =
        is_forced || source == FROM_OTHER || (source == FROM_LIBC && hak_libc_owns(block, false));
    if (!is_sure && pass_on(block)) {
        return true;
    }
    bool has_owner = source != FROM_NOBODY && release != NULL;
    if (has_owner) {
        release(block);
    }
    return has_owner;
}

void *hak_underlying_realloc(void *block, size_t bytes) {
    void *(*resize)(void *, size_t) = hak_load_relaxed(&other_realloc);
    return resize != NULL && source_of(block) == FROM_OTHER ? resize(block, bytes)
                                                            : hak_libc_realloc(block, bytes);
}

/* The C library has no second name for this, the first may be another's: uses the chunk header. */
size_t hak_underlying_usable_size(void *block) {
    underlying_look_up();
    if (hak_load_relaxed(&other_free) != NULL && source_of(block) == FROM_OTHER) {
        size_t (*usable)(void *) = hak_load_relaxed(&other_usable);
        return usable != NULL ? usable(block) : 0;
    }
    return hak_libc_usable_size(block);
}
