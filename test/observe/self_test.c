/* SPDX-License-Identifier: MIT
 *
 * A program observes itself, with the library in it: the observer's own memory comes from the heap
 * that it looks at. */
#include "api/expect.h"

#include "image.h"
#include "observe.h"
#include "span/pagemap.h"

enum { BLOCKS = 3000, BLOCK_BYTES = 1000 };

static char *text;
static size_t length;
static uintptr_t pagemap;    /* where the library's is */
static uint32_t *generation; /* of its list of tcaches */
static uint32_t lists;       /* that were in doubt */

static void put(void *context, const char *data, size_t bytes) {
    FILE *file = context;
    fwrite(data, 1, bytes, file);
}

static void report(obs_verb_t verb) {
    static obs_reader_t reader;
    static obs_image_t image;
    FILE *file = open_memstream(&text, &length);
    const hak_sink_t sink = {.put = put, .context = file};
    bool is_open = obs_open_process(&reader, (uint32_t)getpid()) && obs_image_open(&image, &reader);
    if (!is_open) {
        fprintf(stderr, "%s\n", reader.error);
    }
    EXPECT(is_open);
    pagemap = (uintptr_t)obs_root(&image, pagemap) + offsetof(hak_pagemap_t, zero);
    generation = (uint32_t *)obs_root(&image, generation);
    obs_report(&image, verb, true, &sink);
    lists = image.doubt.lists;
    obs_close(&reader);
    fclose(file);
}

static uint64_t number(const char *after) {
    const char *at = strstr(text, after);
    EXPECT(at != NULL);
    return strtoull(at + strlen(after), NULL, 10);
}

static void explains_itself(void) {
    static void *block[BLOCKS];
    for (size_t i = 0; i < BLOCKS; i++) {
        block[i] = malloc(BLOCK_BYTES);
        EXPECT(block[i] != NULL);
        memset(block[i], 1, BLOCK_BYTES);
    }
    report(OBS_EXPLAIN);
    uint64_t rss = number("\"rss_bytes\":"), sum = number("\"sum_bytes\":");
    EXPECT(sum > rss / 100 * 99 && sum < rss / 100 * 101);
    EXPECT(number("\"name\":\"live\",\"bytes\":") >= BLOCKS * BLOCK_BYTES / 10 * 9);
    for (size_t i = 0; i < BLOCKS; i++) {
        free(block[i]);
    }
    free(text);
}

static void counts_and_maps_itself(void) {
    report(OBS_STATS);
    EXPECT(number("\"threads\":") == 1 && number("\"superslabs\":") >= 1);
    free(text);
    report(OBS_MAP);
    EXPECT(strstr(text, "\"kind\":\"slab\"") != NULL);
    free(text);
}

/* Counts of tcaches that leave the list are in it and in the fallback tcache then. */
static void a_list_that_changes_is_in_doubt(void) {
    for (unsigned i = 0; i < 2; i++) {
        report(OBS_STATS);
        EXPECT(lists == i);
        free(text);
        (*generation)++;
    }
}

/* A broken heap, or a moment within a change: the page map has an entry that leads to no class. */
static void entries_of_no_class_are_no_slabs(void) {
    static const uint32_t wrong[] = {0xfc, 0xc0fe, 0xfffe, 0xff00fc, 0xfe, 0x66};
    char *block = malloc(300000);
    EXPECT(block != NULL);
    uint32_t *entry = hak_pagemap_entry(pagemap, hak_pagemap_index(pagemap, block)), was = *entry;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        *entry = wrong[i];
        for (obs_verb_t verb = OBS_EXPLAIN; verb <= OBS_MAP; verb++) {
            report(verb);
            EXPECT(length > 100);
            free(text);
        }
    }
    *entry = was;
    free(block);
}

int main(void) {
    explains_itself();
    counts_and_maps_itself();
    a_list_that_changes_is_in_doubt();
    entries_of_no_class_are_no_slabs();
    return 0;
}
