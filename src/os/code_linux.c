/* SPDX-License-Identifier: MIT
 *
 * Linux: whether an address lies in code, or two in one mapping, for stack walks. Reads neither
 * files nor the address. */
#include "base/bits.h"
#include "os/optional.h"
#include "os/syscall_linux.h"

#include <elf.h>
#include <errno.h>
#include <sys/auxv.h>
#include <sys/syscall.h>

extern const Elf64_Ehdr os_library __asm__("__ehdr_start") HAK_HIDDEN;
/* In the archive our code lies in a section of its own (src/api/place.ld). The symbols are NULL
 * where it was linked otherwise, as tests are. */
extern const char os_archive[] __asm__("__start_hak_text") HAK_WEAK;
extern const char os_archive_end[] __asm__("__stop_hak_text") HAK_WEAK;

static uintptr_t code_library_bytes(void) {
    uintptr_t end = 0;
    for (unsigned i = 0; i < os_library.e_phnum; i++) {
        const char *headers = (const char *)&os_library + os_library.e_phoff;
        const Elf64_Phdr *segment = (const Elf64_Phdr *)(const void *)headers + i;
        if (segment->p_type == PT_LOAD) {
            end = segment->p_vaddr + segment->p_memsz;
        }
    }
    return end;
}

bool hak_os_is_own_code(uintptr_t address) {
    return HAK_SHARED ? address - (uintptr_t)&os_library < code_library_bytes()
                      : address - (uintptr_t)os_archive <
                            (uintptr_t)os_archive_end - (uintptr_t)os_archive;
}

/* The kernel refuses, before any other check, to grow a range of several mappings: EFAULT. The
 * requested size never fits: it reaches the initial stack, which lies above all other mappings. */
bool hak_os_is_same_mapping(const void *low, const void *high) {
    size_t page = hak_os_page_bytes();
    uintptr_t from = hak_align_down((uintptr_t)low, page);
    uintptr_t to = hak_align_down((uintptr_t)high, page) + page;
    uintptr_t end = hak_align_down((uintptr_t)getauxval(AT_RANDOM), page) + page;
    if (from >= to || to >= end) {
        return from < to;
    }
    long result = hak_syscall(SYS_mremap, from, to - from, end - from);
    if (result == (long)from) { /* the initial stack is gone */
        hak_syscall(SYS_munmap, to, end - to);
    }
    return result != -EFAULT;
}
