/* SPDX-License-Identifier: MIT
 *
 * glibc: chunk layout, dynamic linker, which musl has too, and the place of the CPU's number. */
#include "os/libc.h"

#include "os/optional.h"
#include "os/syscall_linux.h"

#include <dlfcn.h>
#include <link.h>
#include <linux/rseq.h>
#include <pthread.h>
#include <sys/auxv.h>

/* Since 2.35 the kernel writes the CPU's number there whenever the thread moves. */
extern const ptrdiff_t __rseq_offset HAK_WEAK;
extern const unsigned __rseq_size HAK_WEAK;
extern __typeof__(dladdr) dladdr HAK_WEAK;
extern __typeof__(dl_iterate_phdr) dl_iterate_phdr HAK_WEAK;

/* What glibc's pthread_atfork calls, which each of its users has a copy of; musl exports that
 * function itself. The shared library refers to both weakly: so it loads under either. A static
 * program must get the function from the archive of its C library. */
extern int libc_register_atfork(void (*prepare)(void), void (*parent)(void), void (*child)(void),
                                void *object) HAK_LIBC(__register_atfork);
HAK_HIDDEN extern void *__dso_handle;
#if HAK_SHARED
extern __typeof__(pthread_atfork) pthread_atfork HAK_WEAK;
#endif

extern const char *libc_version(void) HAK_LIBC(gnu_get_libc_version);

#if defined(__GLIBC__)
static const bool LIBC_IS_COMPILED = true;
#else
static const bool LIBC_IS_COMPILED = false;
#endif

bool hak_libc_is_glibc(void) {
    return HAK_SHARED ? libc_version != NULL : LIBC_IS_COMPILED;
}

bool hak_libc_at_fork(void (*prepare)(void), void (*parent)(void), void (*child)(void)) {
    if (HAK_SHARED && libc_register_atfork != NULL) {
        return libc_register_atfork(prepare, parent, child, __dso_handle) == 0;
    }
    return pthread_atfork(prepare, parent, child) == 0;
}

/* musl's fork calls it to run the handlers; its shared library does not export it. */
extern void libc_fork_handlers(int step) HAK_LIBC(__fork_handler);
/* Of musl 1.2.2 and later, whose fork takes the locks of malloc. */
extern int libc_fork_alone(void) HAK_LIBC(_Fork);

bool hak_libc_has_fork_locks(void (*function)(int step)) {
    void (*there)(int step) = hak_libc_fork_locks;
    HAK_OPAQUE(there); /* the linker decides */
    return !HAK_SHARED && libc_fork_handlers != NULL && libc_fork_alone != NULL &&
           there == function;
}

const uint32_t *hak_libc_cpu(void) {
    if (&__rseq_size == NULL || __rseq_size == 0) {
        return NULL;
    }
    const char *area = (const char *)hak_syscall_storage() + __rseq_offset;
    return &((const struct rseq *)(const void *)area)->cpu_id;
}

/* Flags; the first byte, the end; the object's record; its unwind tables. */
enum { OBJECT_START = 1, OBJECT_END, OBJECT_RECORD, OBJECT_TABLES, OBJECT_WORDS = 32 };

/* All 0 if it is not found. */
static bool libc_find_object(uintptr_t address, uint64_t object[OBJECT_WORDS]) {
    for (unsigned i = 0; i < OBJECT_WORDS; i++) {
        object[i] = 0;
    }
    return hak_libc_find_object != NULL && hak_libc_find_object((void *)address, object) == 0;
}

bool hak_libc_find_start(uintptr_t address, uintptr_t *start) {
    uint64_t object[OBJECT_WORDS];
    bool is_found = libc_find_object(address, object);
    *start = object[OBJECT_START];
    return is_found;
}

hak_libc_object_t hak_libc_object_of(const void *address) {
    uint64_t object[OBJECT_WORDS];
    Dl_info info;
    if (libc_find_object((uintptr_t)address, object)) {
        return (hak_libc_object_t){.start = object[OBJECT_START],
                                   .file = ((struct link_map *)object[OBJECT_RECORD])->l_name};
    }
    if (dladdr == NULL || address == NULL || dladdr(address, &info) == 0) {
        return (hak_libc_object_t){.file = ""};
    }
    return (hak_libc_object_t){.start = (uintptr_t)info.dli_fbase, .file = info.dli_fname};
}

uintptr_t hak_libc_object(void) {
    bool has_version = libc_version != NULL; /* both are functions that only the C library has */
    return hak_libc_object_of(has_version ? (void *)libc_version : (void *)getauxval).start;
}

const char *hak_libc_own_file(void) {
    return hak_libc_object_of((const void *)hak_libc_own_file).file;
}

uintptr_t hak_libc_object_mark(uintptr_t address) {
    uint64_t object[OBJECT_WORDS];
    (void)libc_find_object(address, object);
    uint64_t mixed = object[OBJECT_END] + object[OBJECT_RECORD] * 3 + object[OBJECT_TABLES] * 5;
    return mixed * 0x9e3779b97f4a7c15ull >> 48;
}

extern struct r_debug libc_objects HAK_LIBC(_r_debug);

/* The list of records has those of the start first; objects of dlopen follow the dynamic linker,
 * and only behind it records come and go. The record of an object that goes is not read. */
bool hak_libc_stays_loaded(uintptr_t address) {
    uint64_t object[OBJECT_WORDS], linker[OBJECT_WORDS];
    if (&libc_objects == NULL || !libc_find_object(address, object) ||
        !libc_find_object((uintptr_t)hak_libc_find_object, linker)) {
        return false;
    }
    const struct link_map *record = libc_objects.r_map;
    while (record != NULL && (uintptr_t)record != object[OBJECT_RECORD] &&
           (uintptr_t)record != linker[OBJECT_RECORD]) {
        record = record->l_next;
    }
    return (uintptr_t)record == object[OBJECT_RECORD];
}

static int libc_visit_first(struct dl_phdr_info *info, size_t bytes, void *unload_count) {
    bool has_counts = bytes >= offsetof(struct dl_phdr_info, dlpi_subs) + sizeof info->dlpi_subs;
    *(uint64_t *)unload_count = has_counts ? info->dlpi_subs : 0;
    return 1;
}

uint64_t hak_libc_unload_count(void) {
    static uint64_t count; /* [atomic] the last one */
    uint64_t now = hak_load_relaxed(&count) + 1;
    if (dl_iterate_phdr != NULL && !hak_libc_left_threads) {
        dl_iterate_phdr(libc_visit_first, &now);
    }
    hak_store_relaxed(&count, now);
    return now;
}

typedef struct libc_search {
    hak_libc_function_t *places;
    unsigned count, visited;
    const void *loader;   /* a function of it: objects of dlopen follow it */
    bool is_behind_start; /* the objects from here on came by dlopen */
} libc_search_t;

static bool libc_has_address(const struct dl_phdr_info *info, const void *address) {
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        uintptr_t from = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
        if (info->dlpi_phdr[i].p_type == PT_LOAD &&
            (uintptr_t)address - from < info->dlpi_phdr[i].p_memsz) {
            return true;
        }
    }
    return false;
}

static int libc_visit(struct dl_phdr_info *info, size_t bytes, void *context) {
    libc_search_t *search = context;
    (void)bytes;
    search->visited++;
    for (unsigned i = 0; i < search->count; i++) {
        hak_libc_function_t *place = &search->places[i];
        if (place->object == 0 && libc_has_address(info, place->address)) {
            place->object = search->visited;
            place->library = search->is_behind_start ? info->dlpi_name : NULL;
        }
    }
    search->is_behind_start = search->is_behind_start || libc_has_address(info, search->loader);
    return 0;
}

void hak_libc_find_objects(hak_libc_function_t *places, unsigned count) {
    libc_search_t search = {.places = places,
                            .count = count,
                            .loader = hak_libc_symbol(HAK_LIBC_NEXT, "__tls_get_addr")};
    if (dl_iterate_phdr != NULL) {
        dl_iterate_phdr(libc_visit, &search);
    }
}

bool hak_libc_left_threads;

void hak_libc_keep_library(const char *library) {
    if (library != NULL && !hak_libc_left_threads) {
        void *(*open)(const char *, int) =
            (void *(*)(const char *, int))hak_libc_symbol(HAK_LIBC_NEXT, "dlopen");
        (void)(open != NULL && open(library, RTLD_NODELETE | RTLD_NOLOAD | RTLD_LAZY) != NULL);
    }
}

enum {
    CHUNK_PREV_INUSE = 1,
    CHUNK_IS_MAPPED = 2,
    CHUNK_OTHER_ARENA = 4,
    CHUNK_FLAGS = 7,
    CHUNK_MIN_BYTES = 32,
    ARENA_HEAP_BYTES = 64 << 20,
};

/* No data segment is larger. */
static const uintptr_t DATA_MOST_BYTES = (uintptr_t)1 << 40;

static size_t chunk_word(uintptr_t address) {
    return *(const size_t *)address;
}

static bool chunk_is_plausible(size_t head) {
    size_t bytes = head & ~(size_t)CHUNK_FLAGS;
    return bytes >= CHUNK_MIN_BYTES && bytes % 16 == 0 && bytes >> 47 == 0;
}

static bool chunk_is_mapped(uintptr_t chunk, size_t bytes) {
    size_t before = chunk_word(chunk);
    size_t page_mask = hak_os_page_bytes() - 1;
    return before % 16 == 0 && before < chunk && ((chunk - before) & page_mask) == 0 &&
           ((before + bytes) & page_mask) == 0 &&
           hak_os_is_readable((const void *)(chunk - before)) &&
           hak_os_is_readable((const void *)(chunk + bytes - 8));
}

static bool chunk_is_of_arena(uintptr_t chunk, size_t bytes) {
    uintptr_t heap = chunk & ~(uintptr_t)(ARENA_HEAP_BYTES - 1);
    if (!hak_os_is_readable((const void *)heap) || !hak_os_is_readable((const void *)(heap + 16))) {
        return false;
    }
    size_t heap_bytes = chunk_word(heap + 16);
    return heap_bytes <= ARENA_HEAP_BYTES && chunk + bytes <= heap + heap_bytes &&
           hak_os_is_readable((const void *)chunk_word(heap));
}

/* The next chunk must be plausible, too, and mark this one as in use. Blocks of another allocator
 * have user data where chunks have heads; so with one present, the chunk must lie in the data
 * segment, although glibc may continue its main arena elsewhere when that cannot grow. */
static bool chunk_is_of_main(uintptr_t chunk, size_t bytes, bool is_sole) {
    uintptr_t next = chunk + bytes;
    uintptr_t end = hak_os_data_end();
    bool is_in_data = chunk < end && end - chunk <= DATA_MOST_BYTES && next <= end;
    if (!is_in_data && !is_sole) {
        return false;
    }
    if (!hak_os_is_readable((const void *)(next + 8))) {
        return false;
    }
    size_t head = chunk_word(next + 8);
    return (head & CHUNK_PREV_INUSE) != 0 && (head & ~(size_t)CHUNK_FLAGS) >= 16 && head >> 47 == 0;
}

bool hak_libc_owns(const void *block, bool is_sole) {
    uintptr_t chunk = (uintptr_t)block - 16;
    if ((uintptr_t)block % 16 != 0 || (uintptr_t)block < 4096 ||
        !hak_os_is_readable((const void *)chunk) ||
        !hak_os_is_readable((const void *)(chunk + 8))) {
        return false;
    }
    size_t head = chunk_word(chunk + 8);
    size_t bytes = head & ~(size_t)CHUNK_FLAGS;
    if (!chunk_is_plausible(head)) {
        return false;
    }
    if ((head & CHUNK_IS_MAPPED) != 0) {
        return chunk_is_mapped(chunk, bytes);
    }
    if ((head & CHUNK_OTHER_ARENA) != 0) {
        return chunk_is_of_arena(chunk, bytes);
    }
    return chunk_is_of_main(chunk, bytes, is_sole);
}

size_t hak_libc_usable_size(const void *block) {
    size_t head = chunk_word((uintptr_t)block - 8);
    return (head & ~(size_t)CHUNK_FLAGS) - ((head & CHUNK_IS_MAPPED) != 0 ? 16 : 8);
}
