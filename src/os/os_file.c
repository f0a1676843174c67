/* SPDX-License-Identifier: MIT
 *
 * Linux implementation of os.h: files, which are all of /proc and /sys. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE 1
#endif
#include "os/os.h"
#include "os/syscall.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/syscall.h>

static long file_open(const char *path) {
    return hak_syscall(SYS_openat, AT_FDCWD, (long)path, O_RDONLY | O_CLOEXEC, 0, 0, 0);
}

/* At least a byte, unless it is the end. */
static size_t file_read(long fd, char *buffer, size_t capacity) {
    long done;
    do {
        done = hak_syscall(SYS_read, fd, (long)buffer, (long)capacity, 0, 0, 0);
    } while (done == -4); /* EINTR */
    return done < 0 ? 0 : (size_t)done;
}

static void file_close(long fd) {
    hak_syscall(SYS_close, fd, 0, 0, 0, 0, 0);
}

size_t hak_os_read_file(const char *path, char *buffer, size_t capacity) {
    size_t length = 0, more;
    if (hak_os_fault_hit(HAK_OS_CALL_READ)) {
        return 0;
    }
    if (hak_os_fault_file(path, buffer, capacity, &length)) {
        return length;
    }
    long fd = file_open(path);
    if (fd < 0) {
        return 0;
    }
    while (length < capacity && (more = file_read(fd, buffer + length, capacity - length)) != 0) {
        length += more;
    }
    file_close(fd);
    return length;
}

bool hak_os_read_pieces(const char *path, char *buffer, size_t capacity, hak_os_piece_t *take) {
    size_t length = 0, more;
    if (hak_os_fault_hit(HAK_OS_CALL_READ)) {
        return false;
    }
    if (hak_os_fault_file(path, buffer, capacity, &length)) {
        (void)take(buffer, length);
        return true;
    }
    long fd = file_open(path);
    if (fd < 0) {
        return false;
    }
    while ((more = file_read(fd, buffer + length, capacity - length)) != 0) {
        length = take(buffer, length + more);
    }
    file_close(fd);
    return true;
}

extern const Elf64_Ehdr os_library __asm__("__ehdr_start") HAK_HIDDEN;

/* In the archive our code is the program's, and cannot be told from it. */
bool hak_os_is_own_code(uintptr_t address) {
    uintptr_t start = (uintptr_t)&os_library, end = 0;
    for (unsigned i = 0; HAK_SHARED && i < os_library.e_phnum; i++) {
        const Elf64_Phdr *segment = (const Elf64_Phdr *)(start + os_library.e_phoff) + i;
        if (segment->p_type == PT_LOAD) {
            end = segment->p_vaddr + segment->p_memsz;
        }
    }
    return address - start < end;
}
