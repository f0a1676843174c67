/* SPDX-License-Identifier: MIT
 *
 * What the allocator holds for itself: at 1 GiB of live small blocks at most a hundredth of it,
 * bitmaps included; and in a program that allocates once, at most 300 KiB of touched memory in all,
 * the library's own data among it.
 * Arguments: MiB (default 1024), size of the blocks (default 16).
 */
#include "api/family.h"
#include "api/figure.h"

enum { KIBIBYTE = 1 << 10, MEBIBYTE = 1 << 20, TRIVIAL_BYTES = 300 * KIBIBYTE };

typedef struct link {
    struct link *next;
} link_t;

static size_t all_bytes, block_bytes;

/* --- the smallest program --------------------------------------------------------------------*/

/* Private dirty bytes, by mapping: the library's; anonymous ones, of which some are the C library's
 * and the dynamic linker's; the data segment that brk makes; other files' and the stack. */
typedef struct touched {
    size_t library, anonymous, brk, others;
} touched_t;

/* What a line of /proc/self/smaps with the name of a mapping belongs to. */
static size_t *touched_place(touched_t *sum, const char *line) {
    const char *name = strpbrk(line, "/[");
    if (name == NULL) {
        return &sum->anonymous;
    }
    if (strstr(name, "libhakmem") != NULL) {
        return &sum->library;
    }
    return strncmp(name, "[heap]", 6) == 0 ? &sum->brk : &sum->others;
}

static touched_t touched_now(void) {
    static char text[256 * KIBIBYTE];
    touched_t sum = {0};
    size_t length = 0, *place = &sum.others;
    int fd = open("/proc/self/smaps", O_RDONLY | O_CLOEXEC);
    EXPECT(fd >= 0);
    for (ssize_t got; (got = read(fd, text + length, sizeof text - 1 - length)) > 0;) {
        length += (size_t)got;
    }
    close(fd);
    EXPECT(length < sizeof text - 1);
    text[length] = '\0';
    for (char *line = text, *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
        *end = '\0';
        if (strncmp(line, "Private_Dirty:", 14) == 0) {
            *place += strtoull(line + 14, NULL, 10) * KIBIBYTE;
        } else if ((line[0] >= '0' && line[0] <= '9') || (line[0] >= 'a' && line[0] <= 'f')) {
            place = touched_place(&sum, line);
        }
    }
    return sum;
}

static void metadata_of_a_program_that_allocates_once_is_little(void) {
    void *block = family.malloc(100);
    EXPECT(block != NULL);
    memset(block, 1, 100);
    touched_t now = touched_now();
    expect_say("  dirty: library %zu KiB, anonymous %zu, brk %zu; others' %zu\n", now.library >> 10,
               now.anonymous >> 10, now.brk >> 10, now.others >> 10);
    EXPECT(now.library + now.anonymous + now.brk <= TRIVIAL_BYTES);
    family.free(block);
}

/* --- 1 GiB -----------------------------------------------------------------------------------*/

/* Metadata of an empty heap, which does not grow with it, most of it never touched: of each piece
 * of the page map, 264 KiB for 4 GiB of addresses, a heap touches what it uses; it may lie in two.
 */
enum { START_BYTES = 640 * KIBIBYTE };

static link_t *live; /* a list through the blocks: a table of them would be memory, too */

static void blocks_make(size_t count) {
    for (; count > 0; --count) {
        unsigned char *block = family.malloc(block_bytes);
        EXPECT(block != NULL);
        for (size_t at = 4096; at < block_bytes; at += 4096) {
            block[at] = 1;
        }
        ((link_t *)block)->next = live;
        live = (link_t *)block;
    }
}

/* Every second block goes. */
static size_t blocks_thin_out(void) {
    size_t count = 0;
    for (link_t *at = live; at != NULL && at->next != NULL; at = at->next) {
        link_t *gone = at->next;
        at->next = gone->next;
        family.free(gone);
        ++count;
    }
    return count;
}

static void metadata_of_small_blocks_is_a_hundredth_at_most(void) {
    size_t before = expect_rss_bytes();
    blocks_make(all_bytes / block_bytes);
    blocks_make(blocks_thin_out()); /* all bits of free blocks were written to */
    size_t meta = figure("meta_bytes"), rss = expect_rss_bytes() - before;
    expect_say("  blocks of %zu bytes: metadata %zu KiB, %zu.%02zu %%; memory beside the blocks "
               "%zu KiB\n",
               block_bytes, meta >> 10, meta * 100 / all_bytes, meta * 10000 / all_bytes % 100,
               rss < all_bytes ? 0 : (rss - all_bytes) >> 10);
    EXPECT(meta <= all_bytes / 100 + START_BYTES);
    while (live != NULL) {
        link_t *next = live->next;
        family.free(live);
        live = next;
    }
}

int main(int argc, char **argv) {
    all_bytes = expect_arg(argc, argv, 1, 1024) * MEBIBYTE;
    block_bytes = expect_arg(argc, argv, 2, 16);
    family_load();
    expect_watchdog();
    RUN(metadata_of_a_program_that_allocates_once_is_little);
    RUN(metadata_of_small_blocks_is_a_hundredth_at_most);
    return expect_status();
}
