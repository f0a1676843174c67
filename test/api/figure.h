/* SPDX-License-Identifier: MIT
 *
 * What a black-box test may know of the allocator at work: the figures of hak_stats_print, and the
 * mappings of the process. Nothing here allocates. Under another allocator every figure is 0, so
 * that bounds on their growth hold there.
 */
#ifndef HAK_TEST_API_FIGURE_H
#define HAK_TEST_API_FIGURE_H

#include <hakmem/observe.h>

#include "expect.h"

enum { FIGURE_TEXT_BYTES = 32768 };

/* A figure that is not in the report fails the test. */
static inline size_t figure(const char *name) {
    static char text[FIGURE_TEXT_BYTES];
    if (!expect_is_hakmem()) {
        return 0;
    }
    (void)expect_text(hak_stats_print, text, sizeof text);
    char line[64];
    snprintf(line, sizeof line, "hakmem: %s ", name);
    const char *at = strstr(text, line);
    EXPECT(at != NULL);
    return (size_t)strtoull(at + strlen(line), NULL, 10);
}

/* The figure may have grown by this much since `before` and not more. */
static inline void figure_at_most(const char *name, size_t before, size_t growth) {
    size_t now = figure(name);
    if (now > before + growth) {
        expect_say("%s grew from %zu to %zu, allowed %zu\n", name, before, now, growth);
        EXPECT(now <= before + growth);
    }
}

/* Mappings of the process: lines of /proc/self/maps. */
static inline size_t figure_map_count(void) {
    char text[4096];
    size_t count = 0;
    int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    EXPECT(fd >= 0);
    for (ssize_t length; (length = read(fd, text, sizeof text)) > 0;) {
        for (ssize_t i = 0; i < length; ++i) {
            count += text[i] == '\n';
        }
    }
    close(fd);
    return count;
}

/* Address space may have grown by this much since `before` and not more; see expect_rss_at_most. */
static inline void figure_address_space_at_most(size_t before, size_t growth) {
    size_t now = expect_statm_bytes(0);
    if (now > before + growth && !EXPECT_SANITIZED && !expect_is_emulated()) {
        expect_say("address space grew from %zu to %zu MiB, allowed %zu MiB\n", before >> 20,
                   now >> 20, growth >> 20);
        EXPECT(now <= before + growth);
    }
}

#endif
