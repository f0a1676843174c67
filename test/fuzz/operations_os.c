/* SPDX-License-Identifier: MIT
 *
 * The system around the operations: a clock that moves when the input says so, calls that fail, a
 * control group with little memory. Nothing of the machine gets in, so that an input means the same
 * everywhere. */
#include "double/os_fault.h"
#include "fuzz/operations.h"

bool fuzz_may_refuse;

static uint64_t limit_bytes, used_bytes; /* 0: there is no limit */

static size_t serve(const char *path, char *buffer, size_t capacity) {
    char text[64] = "";
    const char *name = strrchr(path, '/');
    if (strcmp(path, "/proc/self/cgroup") == 0) {
        snprintf(text, sizeof text, "0::/fuzz\n");
    } else if (strcmp(name, "/memory.max") == 0 && limit_bytes != 0) {
        snprintf(text, sizeof text, "%llu\n", (unsigned long long)limit_bytes);
    } else if (strcmp(name, "/memory.max") == 0) {
        snprintf(text, sizeof text, "max\n");
    } else if (strcmp(name, "/memory.current") == 0) {
        snprintf(text, sizeof text, "%llu\n", (unsigned long long)used_bytes);
    }
    size_t length = strlen(text);
    memcpy(buffer, text, length < capacity ? length : capacity);
    return length;
}

void fuzz_os_begin(void) {
    hak_os_fault_files(serve);
    hak_os_fault_stop_clock();
}

void fuzz_os_end(void) {
    limit_bytes = 0;
    fuzz_os_relent();
    hak_os_fault_advance_clock(10ull * 1000 * 1000 * 1000); /* the limit is forgotten */
}

void fuzz_os_advance(fuzz_tape_t *tape) {
    hak_os_fault_advance_clock((uint64_t)fuzz_byte(tape) * 20 * 1000 * 1000);
}

/* Not unmapping: what cannot be unmapped is lost for good, and an input is one of many. */
void fuzz_os_fail(fuzz_tape_t *tape) {
    static const hak_os_call_t calls[] = {HAK_OS_CALL_MAP,   HAK_OS_CALL_COMMIT, HAK_OS_CALL_PURGE,
                                          HAK_OS_CALL_REMAP, HAK_OS_CALL_ADVISE, HAK_OS_CALL_READ};
    unsigned kind = fuzz_byte(tape);
    uint64_t first = fuzz_byte(tape), count = kind & 0x80 ? UINT64_MAX : 1 + (kind >> 4);
    hak_os_fault_plan(calls[kind % 8 % (sizeof calls / sizeof *calls)], first, count);
    fuzz_may_refuse = true;
}

void fuzz_os_relent(void) {
    for (unsigned call = 0; call < HAK_OS_CALL_COUNT; call++) {
        hak_os_fault_plan((hak_os_call_t)call, 0, 0);
    }
    fuzz_may_refuse = false;
}

void fuzz_os_limit(fuzz_tape_t *tape) {
    limit_bytes = (uint64_t)fuzz_byte(tape) << 20;
    used_bytes = limit_bytes * fuzz_byte(tape) / 255;
    hak_os_fault_groups_anew();
}
