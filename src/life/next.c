/* SPDX-License-Identifier: MIT
 *
 * The allocator behind ours: the C library's, or another one in the chain of preloads. It serves
 * force_libc, and gets back what it handed out: blocks made before we were in place, in another
 * namespace, or through its own names.
 *
 * Whether it knows a pointer has to be found out without touching what may not be mapped. For the
 * C library (glibc) the chunk header must make sense; another allocator is asked through its
 * malloc_usable_size. */
#include "base/bits.h"
#include "base/knobs.h"
#include "front/event.h"
#include "life/life.h"
#include "os/os.h"

#include <elf.h>

#define NEXT_RTLD ((void *)-1l) /* RTLD_NEXT, without asking for GNU names everywhere */

extern void *__libc_malloc(size_t) HAK_WEAK;
extern void *__libc_calloc(size_t, size_t) HAK_WEAK;
extern void *__libc_realloc(void *, size_t) HAK_WEAK;
extern void *__libc_memalign(size_t, size_t) HAK_WEAK;
extern void __libc_free(void *) HAK_WEAK;
extern void *dlsym(void *, const char *) HAK_WEAK;
extern const char *gnu_get_libc_version(void) HAK_WEAK;

enum { NEXT_NODELETE_NOLOAD_LAZY = 0x1000 | 4 | 1 }; /* modes of dlopen */

struct dl_phdr_info { /* as link.h has it, and more behind */
    Elf64_Addr dlpi_addr;
    const char *dlpi_name;
    const Elf64_Phdr *dlpi_phdr;
    Elf64_Half dlpi_phnum;
};

typedef struct dl_info { /* Dl_info of dlfcn.h */
    const char *dli_fname;
    void *dli_fbase;
    const char *dli_sname;
    void *dli_saddr;
} Dl_info;

extern int dladdr(const void *, Dl_info *) HAK_WEAK;
typedef int object_visit_t(struct dl_phdr_info *info, size_t bytes, void *context);
extern int dl_iterate_phdr(object_visit_t *visit, void *context) HAK_WEAK;

enum {
    CHUNK_PREV_INUSE = 1,
    CHUNK_IS_MAPPED = 2,
    CHUNK_OTHER_ARENA = 4,
    CHUNK_FLAGS = 7,
    CHUNK_MIN_BYTES = 32,
    ARENA_HEAP_BYTES = 64 << 20,
};

/* More than any data segment has. */
static const uintptr_t DATA_MOST_BYTES = (uintptr_t)1 << 40;

/* Of whom a block is that is not ours. */
typedef enum next_owner { OWNER_NOBODY, OWNER_LIBC, OWNER_OTHER } next_owner_t;

/* [atomic] The next in the chain if it is not the C library. */
static void (*other_free)(void *);
static void *(*other_realloc)(void *, size_t);
static size_t (*other_usable)(void *); /* may be NULL */
static bool is_libc_itself = true; /* [atomic] __libc_free is the C library's, see next_look_up */
static bool is_looked_up;          /* [atomic] */

/* --- objects of the process ------------------------------------------------------------------- */

typedef struct object_search {
    hak_life_place_t *places;
    unsigned count, visited;
    const void *loader;   /* a function of it: objects of dlopen come after it */
    bool is_behind_start; /* the objects that follow came by dlopen */
} object_search_t;

static bool is_in_object(const struct dl_phdr_info *info, const void *address) {
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        uintptr_t from = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
        if (info->dlpi_phdr[i].p_type == PT_LOAD &&
            (uintptr_t)address - from < info->dlpi_phdr[i].p_memsz) {
            return true;
        }
    }
    return false;
}

static int visit_object(struct dl_phdr_info *info, size_t bytes, void *context) {
    object_search_t *search = context;
    (void)bytes;
    search->visited++;
    for (unsigned i = 0; i < search->count; i++) {
        hak_life_place_t *place = &search->places[i];
        if (place->object == 0 && is_in_object(info, place->address)) {
            place->object = search->visited;
            place->library = search->is_behind_start ? info->dlpi_name : NULL;
        }
    }
    search->is_behind_start = search->is_behind_start || is_in_object(info, search->loader);
    return 0;
}

void hak_life_find_objects(hak_life_place_t *places, unsigned count) {
    object_search_t search = {
        .places = places, .count = count, .loader = dlsym(NEXT_RTLD, "__tls_get_addr")};
    if (dl_iterate_phdr != NULL) {
        dl_iterate_phdr(visit_object, &search);
    }
}

void hak_life_keep_library(const char *library) {
    if (library != NULL && !hak_life_fork_left_threads) {
        void *(*open)(const char *, int) = (void *(*)(const char *, int))dlsym(NEXT_RTLD, "dlopen");
        (void)(open != NULL && open(library, NEXT_NODELETE_NOLOAD_LAZY) != NULL);
    }
}

/* --- the next allocator ----------------------------------------------------------------------- */

/* By the lock of dlopen, which the C library makes anew in the child of a fork, as it does not with
 * that of dl_iterate_phdr. NULL: it is not known. */
static void *object_of(const void *function, Dl_info *info) {
    bool is_known = dladdr != NULL && function != NULL && dladdr(function, info) != 0;
    return is_known ? info->dli_fbase : NULL;
}

/* dlsym may allocate and take the loader's lock, so this waits until a foreign pointer turns up.
 * Under force_libc all blocks are of the C library's own names, so that no free has to look for its
 * owner. Another allocator may have taken those names too (mimalloc does); then __libc_free is its
 * function, and the C library's heap is out of reach.
 *
 * The functions must be of one allocator: where it lacks malloc_usable_size, the symbol is the C
 * library's, which reads a header that is not there. Such a one cannot be asked; it gets what
 * nobody else owns. */
static void next_look_up(void) {
    if (hak_load_acquire(&is_looked_up) || dlsym == NULL) {
        return;
    }
    void *release = dlsym(NEXT_RTLD, "free"), *resize = dlsym(NEXT_RTLD, "realloc");
    void *usable = dlsym(NEXT_RTLD, "malloc_usable_size"), *libc_free = (void *)__libc_free;
    Dl_info at, ignored;
    void *object = object_of(release, &at);
    void *libc = object_of((void *)gnu_get_libc_version, &ignored);
    void *libc_free_object = object_of(libc_free, &ignored);
    bool is_itself =
        libc_free != NULL && (libc == NULL || libc_free_object == NULL || libc == libc_free_object);
    bool is_other = release != libc_free && !hak_load_relaxed(&hak_knobs.force_libc);
    hak_store_relaxed(&is_libc_itself, is_itself);
    if ((is_other || !is_itself) && release != NULL && resize != NULL &&
        object == object_of(resize, &ignored)) {
        bool is_asked = object == object_of(usable, &ignored);
        hak_store_relaxed(&other_usable, (size_t(*)(void *))(is_asked ? usable : NULL));
        hak_store_relaxed(&other_realloc, (void *(*)(void *, size_t))resize);
        hak_store_relaxed(&other_free, (void (*)(void *))release);
    }
    hak_store_release(&is_looked_up, true);
    if (hak_load_relaxed(&other_free) != NULL && object != NULL) { /* may free what is foreign */
        hak_life_keep_library(at.dli_fname);
        if (object_of(release, &ignored) != object) { /* it was unloaded meanwhile */
            hak_store_relaxed(&other_free, NULL);
            hak_store_relaxed(&other_realloc, NULL);
            hak_store_relaxed(&other_usable, NULL);
        }
    }
}

static size_t word_at(uintptr_t address) {
    return *(const size_t *)address;
}

static bool is_plausible_chunk(size_t head) {
    size_t bytes = head & ~(size_t)CHUNK_FLAGS;
    return bytes >= CHUNK_MIN_BYTES && bytes % 16 == 0 && bytes >> 47 == 0;
}

static bool is_mapped_chunk(uintptr_t chunk, size_t bytes) {
    size_t before = word_at(chunk);
    size_t page_mask = hak_os_page_bytes() - 1;
    return before % 16 == 0 && before < chunk && ((chunk - before) & page_mask) == 0 &&
           ((before + bytes) & page_mask) == 0 &&
           hak_os_is_readable((const void *)(chunk - before)) &&
           hak_os_is_readable((const void *)(chunk + bytes - 8));
}

static bool is_arena_chunk(uintptr_t chunk, size_t bytes) {
    uintptr_t heap = chunk & ~(uintptr_t)(ARENA_HEAP_BYTES - 1);
    if (!hak_os_is_readable((const void *)heap) || !hak_os_is_readable((const void *)(heap + 16))) {
        return false;
    }
    size_t heap_bytes = word_at(heap + 16);
    return heap_bytes <= ARENA_HEAP_BYTES && chunk + bytes <= heap + heap_bytes &&
           hak_os_is_readable((const void *)word_at(heap));
}

/* The chunk that follows must be one, too, and say that this one is in use. With another allocator
 * about, whose blocks have their neighbours' data where chunks have heads, it must lie in the data
 * segment, though glibc may continue its main arena elsewhere when that cannot grow. */
static bool is_main_chunk(uintptr_t chunk, size_t bytes) {
    uintptr_t next = chunk + bytes;
    uintptr_t end = hak_os_data_end();
    bool is_in_data = chunk < end && end - chunk <= DATA_MOST_BYTES && next <= end;
    if (!is_in_data && hak_load_relaxed(&other_free) != NULL) {
        return false;
    }
    if (!hak_os_is_readable((const void *)(next + 8))) {
        return false;
    }
    size_t head = word_at(next + 8);
    return (head & CHUNK_PREV_INUSE) != 0 && (head & ~(size_t)CHUNK_FLAGS) >= 16 && head >> 47 == 0;
}

static bool libc_owns(const void *block) {
    uintptr_t chunk = (uintptr_t)block - 16;
    if ((uintptr_t)block % 16 != 0 || (uintptr_t)block < 4096 ||
        !hak_os_is_readable((const void *)chunk) ||
        !hak_os_is_readable((const void *)(chunk + 8))) {
        return false;
    }
    size_t head = word_at(chunk + 8);
    size_t bytes = head & ~(size_t)CHUNK_FLAGS;
    if (!is_plausible_chunk(head)) {
        return false;
    }
    if ((head & CHUNK_IS_MAPPED) != 0) {
        return is_mapped_chunk(chunk, bytes);
    }
    if ((head & CHUNK_OTHER_ARENA) != 0) {
        return is_arena_chunk(chunk, bytes);
    }
    return is_main_chunk(chunk, bytes);
}

/* The C library is asked first: other allocators crash when asked for what they do not know. */
static next_owner_t owner_of(const void *block) {
    next_look_up();
    if (!hak_os_is_readable(block)) {
        return OWNER_NOBODY;
    }
    if (__libc_free != NULL && hak_load_relaxed(&is_libc_itself) && libc_owns(block)) {
        return OWNER_LIBC;
    }
    if (hak_load_relaxed(&other_free) == NULL) {
        return OWNER_NOBODY;
    }
    size_t (*usable)(void *) = hak_load_relaxed(&other_usable);
    return usable == NULL || usable((void *)block) != 0 ? OWNER_OTHER : OWNER_NOBODY;
}

static bool next_owns(const void *block) {
    return owner_of(block) != OWNER_NOBODY;
}

/* Of a block that somebody owns, as all these. */
static void next_free(void *block) {
    void (*release)(void *) = hak_load_relaxed(&other_free);
    if (release != NULL && owner_of(block) == OWNER_OTHER) {
        release(block);
    } else if (__libc_free != NULL) {
        __libc_free(block);
    }
}

static void *next_realloc(void *block, size_t bytes) {
    void *(*resize)(void *, size_t) = hak_load_relaxed(&other_realloc);
    return resize != NULL && owner_of(block) == OWNER_OTHER ? resize(block, bytes)
                                                            : __libc_realloc(block, bytes);
}

/* The C library has no second name for this one, and the first may be another allocator's: the
 * chunk header tells. */
static size_t next_usable_size(void *block) {
    next_look_up();
    if (hak_load_relaxed(&other_free) != NULL && owner_of(block) == OWNER_OTHER) {
        size_t (*usable)(void *) = hak_load_relaxed(&other_usable);
        return usable != NULL ? usable(block) : 0;
    }
    size_t head = word_at((uintptr_t)block - 8);
    return (head & ~(size_t)CHUNK_FLAGS) - ((head & CHUNK_IS_MAPPED) != 0 ? 16 : 8);
}

bool hak_life_next_has_libc(void) {
    return __libc_malloc != NULL && __libc_calloc != NULL && __libc_realloc != NULL &&
           __libc_memalign != NULL && __libc_free != NULL;
}

void hak_life_next_init(void) {
    hak_next_allocator = (hak_next_allocator_t){
        .owns = next_owns,
        .malloc = __libc_malloc,
        .calloc = __libc_calloc,
        .realloc = next_realloc,
        .memalign = __libc_memalign,
        .free = next_free,
        .usable_size = next_usable_size,
    };
}
