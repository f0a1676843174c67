/* SPDX-License-Identifier: MIT
 *
 * What files and headers of the core that are compiled in here ask for, alone in this file: a test
 * that is linked with the core has the core's. */
#include "os/os.h"
#include "os/syscall_linux.h"
#include "slab/sizeclass.h"
#include "span/dense.h"

#include <sys/syscall.h>

#define SC_INFO(size, unit_count, block_count)                                                     \
    {.bytes = (size), .units = (unit_count), .blocks = (block_count)},
const hak_sc_info_t hak_sc_info[HAK_SC_COUNT] = {HAK_SC_TABLE(SC_INFO)};

hak_dense_t hak_dense_sure;

void hak_os_random(void *buffer, size_t bytes) {
    hak_syscall(SYS_getrandom, buffer, bytes, 0);
}
