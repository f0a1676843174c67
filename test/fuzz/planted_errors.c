/* SPDX-License-Identifier: MIT
 *
 * The errors, one each, and what is promised of them (docs/security.md). */
#include "fuzz/planted.h"

#include <dlfcn.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum { LINK_BYTES = 8, MARKER_BYTES = 2 };
enum { SMALL_MOST = 32768, LARGE_LEAST = 65537, HUGE_MOST = 1 << 23, ANY = 1 << 30 };

/* The compiler must not see what is done to an address. */
static void *hide(void *address) {
    void *volatile hidden = address;
    return hidden;
}

static unsigned any_lane(planted_program_t *program) {
    return (unsigned)planted_below(program, program->lanes);
}

/* Its block is the error's from now on. */
static char *take(planted_block_t *block) {
    char *at = block->at;
    block->at = NULL;
    return hide(at);
}

/* A block that a thread of the program has just freed; `bytes` becomes its size. */
static char *pick_freed(planted_program_t *program, size_t least, size_t most, size_t *bytes) {
    planted_block_t *block = planted_pick(program, least, most);
    if (block == NULL) {
        return NULL;
    }
    char *at = take(block);
    planted_free_in_lane(any_lane(program), at);
    *bytes = block->bytes;
    return at;
}

static void free_some(planted_program_t *program, unsigned lane, unsigned count) {
    for (unsigned i = 0; i < count; i++) {
        planted_block_t *block = planted_pick(program, 1, ANY);
        if (block != NULL) {
            planted_free_in_lane(lane, take(block));
        }
    }
}

/* --- freed twice ------------------------------------------------------------------------------ */

static bool free_twice(planted_program_t *program, size_t least, size_t most, unsigned between,
                       bool is_other_lane) {
    planted_block_t *block = planted_pick(program, least, most);
    if (block == NULL || (is_other_lane && program->lanes < 2)) {
        return false;
    }
    unsigned lane = any_lane(program);
    char *at = take(block);
    planted_free_in_lane(lane, at);
    free_some(program, lane, between);
    lane = is_other_lane ? (lane + 1) % program->lanes : lane;
    planted_free_in_lane(lane, at);
    return true;
}

static bool double_free(planted_program_t *program) {
    return free_twice(program, 1, SMALL_MOST, 0, false);
}

static bool double_free_later(planted_program_t *program) {
    return free_twice(program, 1, SMALL_MOST, 1 + (unsigned)planted_below(program, 20), false);
}

static bool double_free_by_another_thread(planted_program_t *program) {
    return free_twice(program, 1, SMALL_MOST, (unsigned)planted_below(program, 8), true);
}

static bool double_free_of_large(planted_program_t *program) {
    return free_twice(program, LARGE_LEAST, HUGE_MOST, 0, false);
}

static bool double_free_of_zero_size(planted_program_t *program) {
    return free_twice(program, 0, 0, (unsigned)planted_below(program, 4), false);
}

static bool free_of_what_realloc_moved(planted_program_t *program) {
    planted_block_t *block = planted_pick(program, 1, SMALL_MOST);
    if (block == NULL) {
        return false;
    }
    char *old = hide(block->at), *at = realloc(block->at, block->bytes * 3 + 100);
    *block = (planted_block_t){at, block->bytes * 3 + 100, 0};
    if (at == old) {
        return false;
    }
    planted_free_in_lane(any_lane(program), old);
    return true;
}

/* --- wrong addresses and sizes ---------------------------------------------------------------- */

static bool free_inside(planted_program_t *program) {
    planted_block_t *block = planted_pick(program, 2, HUGE_MOST);
    if (block == NULL) {
        return false;
    }
    planted_free_in_lane(any_lane(program),
                         take(block) + 1 + planted_below(program, block->bytes - 1));
    return true;
}

static bool free_of_no_block(planted_program_t *program) {
    static char area[4096];
    char frame[256] = {0};
    char *mapped = mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *at[] = {area + planted_below(program, sizeof area),
                  (char *)hide(frame) + planted_below(program, sizeof frame),
                  mapped + planted_below(program, 65536), (char *)planted_below(program, 4096) + 1,
                  (char *)(0x700000000000 + planted_below(program, 1ull << 40))};
    planted_free_in_lane(any_lane(program),
                         hide(at[planted_below(program, sizeof at / sizeof *at)]));
    return true;
}

static bool sized_free_of_another_size(planted_program_t *program) {
    void (*free_sized)(void *, size_t) =
        (void (*)(void *, size_t))dlsym(RTLD_DEFAULT, "free_sized");
    planted_block_t *block = planted_pick(program, 1, HUGE_MOST);
    if (block == NULL || free_sized == NULL) {
        return false;
    }
    size_t usable = malloc_usable_size(block->at);
    free_sized(take(block), usable + 1 + planted_below(program, 2 * usable));
    return true;
}

/* --- calls with a freed block ----------------------------------------------------------------- */

static bool realloc_of_freed(planted_program_t *program) {
    size_t bytes;
    char *at = pick_freed(program, 1, SMALL_MOST, &bytes);
    if (at == NULL) {
        return false;
    }
    (void)!realloc(at, 1 + planted_below(program, 2 * bytes));
    return true;
}

static bool usable_size_of_freed(planted_program_t *program) {
    size_t bytes;
    char *at = pick_freed(program, 1, SMALL_MOST, &bytes);
    if (at == NULL) {
        return false;
    }
    (void)!malloc_usable_size(at);
    return true;
}

/* --- writes ----------------------------------------------------------------------------------- */

/* Bytes that were not there. */
static void scribble(planted_program_t *program, char *from, size_t bytes) {
    volatile char *at = hide(from);
    for (size_t i = 0; i < bytes; i++) {
        at[i] = (char)(at[i] + 1 + (int)planted_below(program, 255));
    }
}

static bool write_after_free(planted_program_t *program) {
    size_t bytes;
    char *at = pick_freed(program, 1, SMALL_MOST, &bytes);
    if (at == NULL) {
        return false;
    }
    size_t from = planted_below(program, 2) == 0 ? 0 : planted_below(program, bytes);
    from = from == 1 || from >= LINK_BYTES ? from : 0; /* hits the marker, or no link */
    size_t room = bytes - from;
    scribble(program, at + from, 1 + planted_below(program, room < 32 ? room : 32));
    return true;
}

/* Only to the address in the link, beside the free marker. */
static bool write_to_a_link(planted_program_t *program) {
    size_t bytes;
    char *at = pick_freed(program, LINK_BYTES, SMALL_MOST, &bytes);
    if (at == NULL) {
        return false;
    }
    size_t from = MARKER_BYTES + planted_below(program, LINK_BYTES - MARKER_BYTES);
    planted_forget_contents(program);
    scribble(program, at + from, 1 + planted_below(program, LINK_BYTES - from));
    return true;
}

static bool write_after_free_of_large(planted_program_t *program) {
    size_t bytes;
    char *at = pick_freed(program, LARGE_LEAST, HUGE_MOST, &bytes);
    if (at == NULL) {
        return false;
    }
    scribble(program, at + planted_below(program, bytes - 32), 32);
    return true;
}

/* Behind all that is usable; then the block is freed. */
static bool overflow(planted_program_t *program) {
    planted_block_t *block = planted_pick(program, 1, SMALL_MOST);
    if (block == NULL) {
        return false;
    }
    size_t usable = malloc_usable_size(block->at);
    planted_forget_contents(program);
    char *at = take(block);
    scribble(program, at + usable, 1 + planted_below(program, 64));
    planted_free_in_lane(any_lane(program), at);
    return true;
}

static bool underflow(planted_program_t *program) {
    planted_block_t *block = planted_pick(program, 1, HUGE_MOST);
    size_t bytes = 1 + planted_below(program, 64);
    if (block == NULL) {
        return false;
    }
    planted_forget_contents(program);
    scribble(program, block->at - bytes, bytes);
    return true;
}

static bool overflow_of_large(planted_program_t *program) {
    planted_block_t *block = planted_pick(program, LARGE_LEAST, HUGE_MOST);
    if (block == NULL) {
        return false;
    }
    planted_forget_contents(program);
    scribble(program, block->at + malloc_usable_size(block->at), 1 + planted_below(program, 8192));
    return true;
}

static bool write_to_zero_size(planted_program_t *program) {
    planted_block_t *block = planted_pick(program, 0, 0);
    if (block == NULL) {
        return false;
    }
    scribble(program, block->at + planted_below(program, 16), 1);
    return true;
}

#define TWICE "double free|double free, or free of an address inside a block|" STALE
#define STALE "double free, or a write to a freed block"
#define INSIDE                                                                                     \
    "free of an address inside a block|double free, or free of an address inside a block|"         \
    "free of an address that no allocator here handed out"

const planted_error_t planted_errors[] = {
    {"double free", PLANTED_AT_END, PLANTED_AT_END, TWICE, false, false, 0, double_free},
    {"double free later", PLANTED_AT_END, PLANTED_AT_END, TWICE, false, false, 0,
     double_free_later},
    {"double free by another thread", PLANTED_AT_END, PLANTED_AT_END, TWICE, false, false, 0,
     double_free_by_another_thread},
    {"double free of a large block", PLANTED_AT_ONCE, PLANTED_AT_ONCE, INSIDE "|double free", false,
     false, 0, double_free_of_large},
    {"double free of size 0", PLANTED_AT_ONCE, PLANTED_AT_ONCE, "double free", false, false, 0,
     double_free_of_zero_size},
    {"free of what realloc moved", PLANTED_AT_END, PLANTED_AT_END, TWICE, false, false, 0,
     free_of_what_realloc_moved},
    {"free inside a block", PLANTED_AT_ONCE, PLANTED_AT_ONCE, INSIDE, false, false, 0, free_inside},
    {"free of no block", PLANTED_AT_ONCE, PLANTED_AT_ONCE, INSIDE, false, false, 0,
     free_of_no_block},
    {"sized free of another size", PLANTED_AT_ONCE, PLANTED_AT_ONCE,
     "sized free with a size that is not the block's", false, false, 0, sized_free_of_another_size},
    {"realloc of a freed block", PLANTED_AT_ONCE, PLANTED_AT_ONCE,
     "realloc of a freed block|realloc of an address that no allocator here handed out", false,
     false, 0, realloc_of_freed},
    {"usable size of a freed block", PLANTED_AT_ONCE, PLANTED_AT_ONCE,
     "malloc_usable_size of a freed block|"
     "malloc_usable_size of an address that no allocator here handed out",
     false, false, 0, usable_size_of_freed},
    {"write after free", PLANTED_SOUND, PLANTED_SOUND, STALE "|double free", false, false, 50,
     write_after_free},
    {"write to a link", PLANTED_SOUND, PLANTED_SOUND, STALE "|double free|" INSIDE, false, true, 80,
     write_to_a_link},
    {"write after free of a large block", PLANTED_SOUND, PLANTED_SOUND, "", true, false, 0,
     write_after_free_of_large},
    {"overflow", PLANTED_SOUND, PLANTED_AT_ONCE, STALE "|overflow of a block|double free", true,
     false, 30, overflow},
    {"underflow", PLANTED_SOUND, PLANTED_SOUND, STALE "|overflow of a block|double free", true,
     true, 5, underflow},
    {"overflow of a large block", PLANTED_SOUND, PLANTED_SOUND,
     STALE "|overflow of a block|double free", true, false, 5, overflow_of_large},
    {"write to size 0", PLANTED_AT_ONCE, PLANTED_AT_ONCE, "", true, false, 0, write_to_zero_size},
};
const size_t planted_error_count = sizeof planted_errors / sizeof *planted_errors;
