/* SPDX-License-Identifier: MIT
 *
 * /proc/self/maps as a test of guard/ states it: hak_os_fault_files(unit_maps_serve). */
#ifndef HAK_TEST_UNIT_GUARD_MAPS_H
#define HAK_TEST_UNIT_GUARD_MAPS_H

#include "double/os_fault.h"

#include <string.h>

static const char *unit_maps;

static inline size_t unit_maps_serve(const char *path, char *buffer, size_t capacity) {
    if (strcmp(path, "/proc/self/maps") != 0) {
        return HAK_OS_FAULT_REAL;
    }
    size_t length = strlen(unit_maps);
    memcpy(buffer, unit_maps, length < capacity ? length : capacity);
    return length;
}

#endif
