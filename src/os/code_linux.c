/* SPDX-License-Identifier: MIT
 *
 * Linux, for stack walks: whether an address lies in our code, or two in one mapping; where unwind
 * tables of loaded objects are; and what the kernel saves for a signal handler; that reads no
 * files. Also which functions a loaded object defines, and which the file of an object imports. */
#include "base/atomics.h"
#include "base/bits.h"
#include "os/libc.h"
#include "os/optional.h"
#include "os/syscall_linux.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <ucontext.h>

/* Of the library; in the archive, of the program. */
extern const Elf64_Ehdr os_library __asm__("__ehdr_start") HAK_HIDDEN HAK_WEAK;
/* Our code lies in sections of its own (src/api/place.ld, segments.ld). The symbols are NULL where
 * it was linked otherwise, as tests are. */
extern const char os_archive[] __asm__("__start_hak_text") HAK_WEAK;
extern const char os_archive_end[] __asm__("__stop_hak_text") HAK_WEAK;
extern const char os_archive_cold[] __asm__("__start_hak_cold") HAK_WEAK;
extern const char os_archive_cold_end[] __asm__("__stop_hak_cold") HAK_WEAK;

static bool code_is_between(uintptr_t address, const char *first, const char *end) {
    return address - (uintptr_t)first < (uintptr_t)end - (uintptr_t)first;
}

bool hak_os_is_own_code(uintptr_t address) {
    return code_is_between(address, os_archive, os_archive_end) ||
           code_is_between(address, os_archive_cold, os_archive_cold_end);
}

/* The thread's storage lies above the stack that it was started with; the kernel's random bytes lie
 * above the initial stack, in its last OS page or above that. */
uintptr_t hak_os_stack_end(uintptr_t at) {
    uintptr_t storage = (uintptr_t)hak_syscall_storage(), random = (uintptr_t)getauxval(AT_RANDOM);
    bool is_thread = at < storage && (random <= at || storage < random);
    uintptr_t page = hak_os_page_bytes();
    return hak_align_down(is_thread ? storage : random + page, page);
}

/* The kernel first refuses to grow several mappings: EFAULT. Later it finds no room, or too much
 * locked. A filter may answer anything, but then for what is no mapping, too. */
static bool is_mapping(uintptr_t from, size_t bytes, size_t new_bytes) {
    long result = hak_syscall(SYS_mremap, from, bytes, new_bytes);
    if (result == (long)from) {
        hak_syscall(SYS_munmap, from + bytes, new_bytes - bytes);
        return true;
    }
    return (result == -ENOMEM || result == -EAGAIN) &&
           hak_syscall(SYS_mremap, 0, HAK_UNIT_BYTES, 2 * HAK_UNIT_BYTES) == -EFAULT;
}

bool hak_os_is_one_mapping(void *base, size_t bytes) {
    return is_mapping((uintptr_t)base, bytes, bytes + hak_os_page_bytes());
}

/* The size asked for never fits: it reaches the initial stack, above all other mappings, unless
 * that is gone. */
bool hak_os_is_same_mapping(const void *low, const void *high) {
    size_t page = hak_os_page_bytes();
    uintptr_t from = hak_align_down((uintptr_t)low, page);
    uintptr_t to = hak_align_down((uintptr_t)high, page) + page;
    uintptr_t end = hak_align_down((uintptr_t)getauxval(AT_RANDOM), page) + page;
    bool is_range = from < to, is_top = to >= end;
    to = is_top ? end - page : to; /* the top of the initial stack: up to there */
    if (from >= to || (is_top && to - from == page)) { /* the page below it */
        return is_range;
    }
    return is_mapping(from, to - from, end - from);
}

/* --- unwind tables -----------------------------------------------------------------------------
 */

/* A loaded object that begins with its header, as linkers make them. */
typedef struct unwind_object {
    const Elf64_Phdr *segments;
    unsigned count;
    uintptr_t shift; /* between the addresses in its file and those in memory */
} unwind_object_t;

enum { UNWIND_HEAD_BYTES = 4096 }; /* readable from the first byte of an object on */

/* Empty: it does not begin so. */
HAK_AT_START static unwind_object_t object_of(const Elf64_Ehdr *head) {
    unwind_object_t object = {0};
    if (head == NULL || memcmp(head->e_ident, ELFMAG, SELFMAG) != 0 ||
        head->e_phentsize != sizeof(Elf64_Phdr) ||
        head->e_phoff > UNWIND_HEAD_BYTES - sizeof(Elf64_Phdr) * head->e_phnum ||
        head->e_phnum > UNWIND_HEAD_BYTES / sizeof(Elf64_Phdr)) {
        return object;
    }
    object.segments = (const Elf64_Phdr *)((uintptr_t)head + head->e_phoff);
    object.count = head->e_phnum;
    for (unsigned i = object.count; i-- > 0;) {
        const Elf64_Phdr *segment = &object.segments[i];
        if (segment->p_type == PT_LOAD) { /* the first one stays */
            object.shift = (uintptr_t)head - hak_align_down(segment->p_vaddr, UNWIND_HEAD_BYTES);
        }
    }
    return object;
}

static const Elf64_Phdr *object_segment(const unwind_object_t *object, uintptr_t address) {
    for (unsigned i = 0; i < object->count; i++) {
        const Elf64_Phdr *segment = &object->segments[i];
        if (segment->p_type == PT_LOAD &&
            address - object->shift - segment->p_vaddr < segment->p_filesz) {
            return segment;
        }
    }
    return NULL;
}

/* false: the code does not lie in the object. */
static bool object_tables(const Elf64_Ehdr *head, uintptr_t code, hak_os_unwind_t *tables) {
    unwind_object_t object = object_of(head);
    *tables = (hak_os_unwind_t){0};
    for (unsigned i = 0; i < object.count; i++) {
        if (object.segments[i].p_type == PT_GNU_EH_FRAME) {
            tables->header = object.shift + object.segments[i].p_vaddr;
        }
    }
    const Elf64_Phdr *segment = object_segment(&object, tables->header);
    if (segment != NULL) {
        tables->from = object.shift + segment->p_vaddr;
        tables->to = tables->from + segment->p_filesz;
    }
    return object_segment(&object, code) != NULL;
}

/* Its program headers follow the header. */
HAK_AT_START uintptr_t hak_os_program_start(void) {
    uintptr_t segments = (uintptr_t)getauxval(AT_PHDR);
    bool is_usual = segments % UNWIND_HEAD_BYTES == sizeof(Elf64_Ehdr);
    return is_usual ? segments - sizeof(Elf64_Ehdr) : 0;
}

/* That of a static program answers only after its start, and allocates before. */
static bool has_linker(void) {
    static uint8_t answer; /* [atomic] 0: not asked yet; 1: no; 2: yes */
    uint8_t known = hak_load_relaxed(&answer);
    if (HAK_UNLIKELY(known == 0)) {
        unwind_object_t own = object_of(&os_library);
        known = object_segment(&own, (uintptr_t)hak_libc_find_object) == NULL ? 2 : 1;
        hak_store_relaxed(&answer, known);
    }
    return known == 2;
}

bool hak_os_unwind_tables(uintptr_t code, bool is_sure, hak_os_unwind_t *tables) {
    uintptr_t start;
    return object_tables(&os_library, code, tables) ||
           (has_linker() && (is_sure || hak_libc_stays_loaded(code)) &&
            hak_libc_find_start(code, &start) &&
            object_tables((const Elf64_Ehdr *)start, code, tables)) ||
           object_tables((const Elf64_Ehdr *)hak_os_program_start(), code, tables);
}

uintptr_t hak_os_object_mark(uintptr_t code) {
    return has_linker() && !hak_os_is_own_code(code) ? hak_libc_object_mark(code) : 0;
}

/* --- symbols ---------------------------------------------------------------------------------- */

/* What an entry of the dynamic section points to. glibc turns these offsets into addresses, musl
 * does not. NULL: there is no such entry. */
HAK_AT_START static const void *object_dynamic(const unwind_object_t *object, uintptr_t start,
                                               int64_t tag) {
    for (unsigned i = 0; i < object->count; i++) {
        const Elf64_Phdr *segment = &object->segments[i];
        const Elf64_Dyn *entry = (const Elf64_Dyn *)(object->shift + segment->p_vaddr);
        if (segment->p_type != PT_DYNAMIC) {
            continue;
        }
        for (; entry->d_tag != DT_NULL; entry++) {
            if (entry->d_tag == tag) {
                uintptr_t at = entry->d_un.d_ptr;
                return (const void *)(at < start ? at + object->shift : at);
            }
        }
    }
    return NULL;
}

HAK_AT_START void *hak_os_definition(uintptr_t start, const char *name) {
    unwind_object_t object = object_of((const Elf64_Ehdr *)start);
    const uint32_t *table = object_dynamic(&object, start, DT_GNU_HASH);
    const Elf64_Sym *symbols = object_dynamic(&object, start, DT_SYMTAB);
    const char *names = object_dynamic(&object, start, DT_STRTAB);
    if (table == NULL || symbols == NULL || names == NULL || table[0] == 0) {
        return NULL;
    }
    uint32_t hash = 5381; /* of the table: buckets, first symbol, words of a filter, shift */
    for (const char *at = name; *at != '\0'; at++) {
        hash = hash * 33 + (unsigned char)*at;
    }
    const uint32_t *buckets = table + 4 + 2 * (size_t)table[2], *chains = buckets + table[0];
    uint32_t index = buckets[hash % table[0]], end = index < table[1];
    for (; end == 0; index++) {
        const Elf64_Sym *symbol = &symbols[index];
        uint32_t link = chains[index - table[1]]; /* the hash; its last bit ends the chain */
        end = link & 1;
        if ((link ^ hash) >> 1 == 0 && symbol->st_shndx != SHN_UNDEF &&
            ELF64_ST_TYPE(symbol->st_info) == STT_FUNC &&
            strcmp(names + symbol->st_name, name) == 0) {
            return (void *)(object.shift + symbol->st_value);
        }
    }
    return NULL;
}

bool hak_os_exports(const char *name) {
    return hak_os_definition((uintptr_t)&os_library, name) != NULL;
}

/* --- imports ---------------------------------------------------------------------------------- */

/* The file of an object, read piece by piece: it may hold anything, and change meanwhile. Symbols
 * and names are read by turns, each near the last one. */
enum { FILE_PIECES = 2, FILE_PIECE_BYTES = 2048 };
typedef struct object_file {
    long fd;
    unsigned segment_count, tag_count;
    Elf64_Phdr segment[16];
    Elf64_Dyn tag[128];
    uint64_t piece_offset[FILE_PIECES];
    long piece_bytes[FILE_PIECES]; /* negative: an error */
    char piece[FILE_PIECES][FILE_PIECE_BYTES];
} object_file_t;

static bool file_get(object_file_t *file, unsigned which, uint64_t offset, void *to, size_t bytes) {
    uint64_t from = offset - file->piece_offset[which];
    long has = file->piece_bytes[which];
    if (has < (long)bytes || from > (uint64_t)has - bytes) {
        has = hak_syscall(SYS_pread64, file->fd, file->piece[which], FILE_PIECE_BYTES, offset);
        file->piece_offset[which] = offset;
        file->piece_bytes[which] = has;
        from = 0;
    }
    if (has < (long)bytes) {
        return false;
    }
    memcpy(to, file->piece[which] + from, bytes);
    return true;
}

/* What will be at an address of the loaded object. */
static bool file_get_at(object_file_t *file, unsigned which, uint64_t address, void *to,
                        size_t bytes) {
    for (unsigned i = 0; i < file->segment_count; i++) {
        const Elf64_Phdr *segment = &file->segment[i];
        uint64_t offset = address - segment->p_vaddr;
        if (segment->p_type == PT_LOAD && offset < segment->p_filesz) {
            return bytes <= segment->p_filesz - offset &&
                   file_get(file, which, segment->p_offset + offset, to, bytes);
        }
    }
    return false;
}

static bool file_read_tags(object_file_t *file) {
    Elf64_Ehdr head = {0};
    if (!file_get(file, 0, 0, &head, sizeof head) || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0 ||
        head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_phentsize != sizeof(Elf64_Phdr) ||
        head.e_phnum > sizeof file->segment / sizeof *file->segment ||
        !file_get(file, 0, head.e_phoff, file->segment, head.e_phnum * sizeof *file->segment)) {
        return false;
    }
    file->segment_count = head.e_phnum;
    for (unsigned i = 0; i < file->segment_count; i++) {
        const Elf64_Phdr *segment = &file->segment[i];
        if (segment->p_type == PT_DYNAMIC && segment->p_filesz <= sizeof file->tag) {
            file->tag_count = (unsigned)(segment->p_filesz / sizeof *file->tag);
            return file_get(file, 0, segment->p_offset, file->tag, segment->p_filesz);
        }
    }
    return false;
}

/* The value of the first one; 0: there is none. */
static uint64_t file_tag(const object_file_t *file, int64_t tag) {
    for (unsigned i = 0; i < file->tag_count && file->tag[i].d_tag != DT_NULL; i++) {
        if (file->tag[i].d_tag == tag) {
            return file->tag[i].d_un.d_val;
        }
    }
    return 0;
}

enum { IMPORT_NAME_BYTES = 80, IMPORTS_MOST = 1 << 16 };

/* Longer names are cut: no function of ours has one. */
static bool file_visit(object_file_t *file, uint64_t name, bool is_object,
                       hak_os_import_visit_t *visit) {
    char text[IMPORT_NAME_BYTES];
    uint64_t left = file_tag(file, DT_STRSZ) - name, most = hak_least(left, sizeof text - 1);
    text[most] = '\0';
    return left <= file_tag(file, DT_STRSZ) &&
           file_get_at(file, 1, file_tag(file, DT_STRTAB) + name, text, most) &&
           visit(text, is_object);
}

/* In the table of symbols those that are not defined stand before those of the hash table, unless
 * there are none of these: then nothing tells how many there are. */
static bool file_visit_all(object_file_t *file, hak_os_import_visit_t *visit) {
    uint32_t hash[2] = {0};
    bool goes_on = file_tag(file, DT_AUXILIARY) == 0 && file_tag(file, DT_FILTER) == 0 &&
                   file_get_at(file, 0, file_tag(file, DT_GNU_HASH), hash, sizeof hash) &&
                   hash[1] > 1 && hash[1] <= IMPORTS_MOST;
    for (unsigned i = 0; goes_on && i < file->tag_count && file->tag[i].d_tag != DT_NULL; i++) {
        goes_on = file->tag[i].d_tag != DT_NEEDED ||
                  file_visit(file, file->tag[i].d_un.d_val, true, visit);
    }
    for (uint32_t i = 1; goes_on && i < hash[1]; i++) {
        Elf64_Sym symbol;
        goes_on = file_get_at(file, 0, file_tag(file, DT_SYMTAB) + i * sizeof symbol, &symbol,
                              sizeof symbol) &&
                  (symbol.st_shndx != SHN_UNDEF || file_visit(file, symbol.st_name, false, visit));
    }
    return goes_on;
}

bool hak_os_visit_imports(const char *path, hak_os_import_visit_t *visit) {
    object_file_t file = {
        .fd = hak_syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC | O_NONBLOCK)};
    bool is_done = file.fd >= 0 && file_read_tags(&file) && file_visit_all(&file, visit);
    if (file.fd >= 0) {
        hak_syscall(SYS_close, file.fd);
    }
    return is_done;
}

/* --- signals ---------------------------------------------------------------------------------- */

#if defined(__x86_64__)
/* movq $15, %rax; syscall */
static const unsigned char signal_return[] = {0x48, 0xc7, 0xc0, 15, 0, 0, 0, 0x0f, 0x05};
/* Before the context. */
enum { SIGNAL_INFO_BYTES = 0, SIGNAL_CONTEXT_BYTES = offsetof(ucontext_t, uc_mcontext.fpregs) };
#else
/* mov x8, #139; svc #0 */
static const unsigned char signal_return[] = {0x68, 0x11, 0x80, 0xd2, 0x01, 0, 0, 0xd4};
enum {
    SIGNAL_INFO_BYTES = sizeof(siginfo_t),
    SIGNAL_CONTEXT_BYTES = offsetof(ucontext_t, uc_mcontext.pstate)
};
#endif
const size_t hak_os_signal_bytes = SIGNAL_INFO_BYTES + SIGNAL_CONTEXT_BYTES;

/* No call stands before it: the address may be that of its first instruction, or one less. */
bool hak_os_is_signal_return(uintptr_t code) {
    enum { BYTES = sizeof signal_return };
    const unsigned char *at = (const unsigned char *)code;
    return hak_os_is_readable(at) && hak_os_is_readable(at + BYTES - 7) &&
           (memcmp(at, signal_return, BYTES) == 0 || memcmp(at + 1, signal_return, BYTES) == 0);
}

hak_os_registers_t hak_os_signal_registers(uintptr_t record) {
    const ucontext_t *context = (const ucontext_t *)(record + SIGNAL_INFO_BYTES);
    const mcontext_t *saved = &context->uc_mcontext;
#if defined(__x86_64__)
    return (hak_os_registers_t){.code = (uintptr_t)saved->gregs[REG_RIP],
                                .stack = (uintptr_t)saved->gregs[REG_RSP],
                                .frame = (uintptr_t)saved->gregs[REG_RBP]};
#else
    return (hak_os_registers_t){
        .code = saved->pc, .stack = saved->sp, .frame = saved->regs[29], .link = saved->regs[30]};
#endif
}
