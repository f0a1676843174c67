/* SPDX-License-Identifier: MIT
 *
 * Broken memory images. A core file is read once, to learn which words the observer reads of it;
 * then again and again, each time with some of these words changed. It may report whatever it
 * likes: it must end, in bounded time and memory, and touch nothing of its own that it may not
 * (AddressSanitizer and UBSan look on).
 *
 *   fuzz CORE SEED ROUNDS */
#include "observe.h"

#include "base/bits.h"

#include <stdlib.h>
#include <sys/resource.h>

enum {
    WORDS_MOST = 1 << 16,
    WORDS_FIRST = 1 << 12,
    CHANGES_MOST = 6,
    REPORT_MOST = 64 << 20,
    MEMORY_MOST = 512 << 20
};

typedef struct change {
    uint64_t at, value;
} change_t;

static const obs_source_t *real;
static uint64_t word[WORDS_MOST]; /* that were read in the first round */
static size_t word_count;
static change_t change[CHANGES_MOST];
static size_t change_count;
static bool is_learning;
static uint64_t random_state, report_bytes, reads;

static uint64_t draw(uint64_t bound) {
    return hak_random_next(&random_state) % bound;
}

/* Half of the changes go to what is read first: the description, roots, lists. */
static uint64_t draw_word(void) {
    return word[draw(draw(2) == 0 ? word_count : hak_least(word_count, WORDS_FIRST))];
}

/* Some of the words of a long read. */
static void learn(uint64_t at, size_t bytes) {
    for (uint64_t here = (at + 7) & ~7ull; here + 8 <= at + bytes && word_count < WORDS_MOST;) {
        word[word_count++] = here;
        here += 8 * (1 + (bytes > 256 ? draw(8) : 0));
    }
}

static bool fuzz_copy(obs_reader_t *reader, const obs_mapping_t *mapping, uint64_t at, void *to,
                      size_t bytes) {
    reads++;
    if (is_learning) {
        learn(at, bytes);
    }
    if (!real->copy(reader, mapping, at, to, bytes)) {
        return false;
    }
    for (size_t i = 0; i < change_count; i++) {
        for (unsigned byte = 0; byte < 8; byte++) {
            uint64_t place = change[i].at + byte;
            if (place >= at && place < at + bytes) {
                ((char *)to)[place - at] = (char)(change[i].value >> 8 * byte);
            }
        }
    }
    return true;
}

static bool fuzz_look(obs_reader_t *reader, obs_chunk_t *chunk, uint64_t base) {
    return real->look(reader, chunk, base);
}

static void fuzz_close(obs_reader_t *reader) {
    real->close(reader);
}

static const obs_source_t fuzz_source = {fuzz_copy, fuzz_look, fuzz_close};

/* What a broken word may be: anything, a small number, an address that leads back, a near one. */
static uint64_t draw_value(uint64_t is) {
    switch (draw(7)) {
    case 0:
        return hak_random_next(&random_state);
    case 1:
        return 0;
    case 2:
        return ~0ull;
    case 3:
        return draw_word();
    case 4:
        return is + 1 - 2 * draw(2);
    case 5:
        return is ^ 1ull << draw(64);
    default:
        return draw(1 << 12);
    }
}

static void put_nothing(void *context, const char *data, size_t length) {
    (void)context, (void)data;
    report_bytes += length;
}

static int report_all(const char *path, bool *is_open) {
    static obs_reader_t reader;
    static obs_image_t image;
    const hak_sink_t sink = {.put = put_nothing};
    if (!obs_open_core(&reader, path)) {
        fprintf(stderr, "fuzz: %s\n", reader.error);
        return 1;
    }
    real = reader.source;
    reader.source = &fuzz_source;
    reader.now_ns = 1000000000000;
    *is_open = obs_image_open(&image, &reader);
    for (obs_verb_t verb = OBS_EXPLAIN; *is_open && verb <= OBS_MAP; verb++) {
        report_bytes = 0;
        obs_report(&image, verb, true, &sink);
        obs_report(&image, verb, false, &sink);
        if (report_bytes > REPORT_MOST) {
            fprintf(stderr, "fuzz: a report of %llu bytes\n", (unsigned long long)report_bytes);
            return 1;
        }
    }
    obs_close(&reader);
    return 0;
}

/* The words as they are, for changes of a bit. */
static uint64_t word_value(const char *path, uint64_t at) {
    static obs_reader_t reader;
    static const char *opened;
    uint64_t value = 0;
    if (opened == NULL && obs_open_core(&reader, path)) {
        opened = path;
    }
    (void)obs_read_word(&reader, at, &value);
    return value;
}

int main(int argc, char **argv) {
    bool is_open = false;
    unsigned opened = 0;
    if (argc != 4) {
        fprintf(stderr, "usage: fuzz CORE SEED ROUNDS\n");
        return 1;
    }
    random_state = strtoull(argv[2], NULL, 10);
    unsigned long rounds = strtoul(argv[3], NULL, 10);
    is_learning = true;
    if (report_all(argv[1], &is_open) != 0 || !is_open || word_count < 1000) {
        fprintf(stderr, "fuzz: the image as it is cannot be observed\n");
        return 1;
    }
    is_learning = false;
    uint64_t most = reads * 50;
    for (unsigned long round = 0; round < rounds; round++) {
        change_count = 1 + draw(CHANGES_MOST);
        for (size_t i = 0; i < change_count; i++) {
            uint64_t at = draw_word();
            change[i] = (change_t){at, draw_value(word_value(argv[1], at))};
        }
        reads = 0;
        if (report_all(argv[1], &is_open) != 0 || reads > most) {
            fprintf(stderr, "fuzz: round %lu: %llu reads\n", round, (unsigned long long)reads);
            return 1;
        }
        opened += is_open;
    }
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    printf("%lu broken images of %zu words, %u of them reported, %ld KiB at most\n", rounds,
           word_count, opened, usage.ru_maxrss);
    return usage.ru_maxrss > MEMORY_MOST >> 10;
}
