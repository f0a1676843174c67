/* SPDX-License-Identifier: MIT
 *
 * Totals while threads allocate, free each other's blocks, and fork: is each complete, in the
 * child as well, and does nothing of what goes on meanwhile break? Figures are not looked at.
 * Arguments: reports of each kind (default 40), threads that allocate (8), seed (1).
 */
#include "stat/stat.h"
#include "thread/mailbox.h"

enum { THREADS_MAX = 32, HELD = 100, FORK_EVERY_US = 20000 };

static uint64_t seed;
static atomic_bool is_over;

static void *allocate_until_over(void *argument) {
    uint64_t state = seed * 0x9e3779b97f4a7c15u + (uintptr_t)argument + 1;
    block_t *blocks[HELD] = {NULL};
    while (!atomic_load_explicit(&is_over, memory_order_relaxed)) {
        block_t **place = &blocks[expect_random(&state) % HELD];
        block_unmake(mailbox_swap(*place, &state), &state);
        *place = block_make(&state);
        if (expect_random(&state) % 5000 == 0 && family.trim != NULL) {
            family.trim(0);
        }
    }
    blocks_unmake(blocks, HELD, &state);
    return NULL;
}

typedef struct summary {
    size_t bytes;
    char last[2];
} summary_t;

static void put_summary(void *context, const char *data, size_t length) {
    summary_t *summary = context;
    for (size_t i = 0; i < length; ++i) {
        summary->last[0] = summary->last[1];
        summary->last[1] = data[i];
    }
    summary->bytes += length;
}

static void expect_report(void (*write)(const hak_sink_t *sink)) {
    summary_t summary = {0};
    const hak_sink_t sink = {.put = put_summary, .context = &summary};
    write(&sink);
    EXPECT(summary.bytes > 100);
    EXPECT_EQ(summary.last[1], '\n');
}

static void expect_reports(void) {
    expect_report(hak_stat_write_text);
    expect_report(hak_stat_write_xml);
}

static void *fork_until_over(void *unused) {
    while (!atomic_load_explicit(&is_over, memory_order_relaxed)) {
        pid_t child = fork();
        if (child == 0) {
            expect_watchdog();
            expect_reports();
            _exit(0);
        }
        EXPECT_CHILD(child, 0);
        usleep(FORK_EVERY_US);
    }
    return unused;
}

static size_t report_count, allocator_count;

static void reports_under_load_are_complete(void) {
    static pthread_t allocators[THREADS_MAX];
    threads_start(allocators, allocator_count, allocate_until_over, 0);
    pthread_t forker = thread_start(fork_until_over, NULL);
    for (size_t i = 0; i < report_count; ++i) {
        expect_reports();
    }
    atomic_store(&is_over, true);
    EXPECT_EQ(pthread_join(forker, NULL), 0);
    threads_join(allocators, allocator_count);
    uint64_t state = seed + 1;
    mailbox_empty_all(&state);
}

int main(int argc, char **argv) {
    report_count = expect_arg(argc, argv, 1, 40);
    allocator_count = expect_arg(argc, argv, 2, 8);
    seed = expect_arg(argc, argv, 3, 1);
    if (allocator_count > THREADS_MAX) {
        expect_skip("too many threads");
    }
    family_load();
    RUN(reports_under_load_are_complete);
    return expect_status();
}
