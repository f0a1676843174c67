/* SPDX-License-Identifier: MIT
 *
 * A program observes itself, with the library in it: the observer's own memory comes from the heap
 * that it looks at. */
#include "api/expect.h"

#include "observe.h"

enum { BLOCKS = 3000, BLOCK_BYTES = 1000 };

static char *text;
static size_t length;

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
    obs_report(&image, verb, true, &sink);
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

int main(void) {
    explains_itself();
    counts_and_maps_itself();
    return 0;
}
