/* SPDX-License-Identifier: MIT
 *
 * Broken memory images. A core file is read once, to learn which words the observer reads of it;
 * then again and again, each time with some of these words changed. It may report whatever it
 * likes: it must end, in bounded time and memory, and touch nothing of its own that it may not
 * (AddressSanitizer and UBSan look on).
 *
 *   fuzz CORE SEED ROUNDS */
#include "observe.h"
#include "profile.h"

#include "base/bits.h"

#include <stdlib.h>
#include <sys/resource.h>

enum {
    NEAR_BYTES = 2048,
    NEAR_MOST = 1 << 14,
    CYCLE_BYTES = 1280,
    STORE_WORDS = 32,
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
static bool is_learning, is_profile_alone;
static uint64_t random_state, report_bytes, reads;
static const char *core_path;
static uint64_t roots[HAK_DOOR_ROOTS]; /* of the image as it is */
typedef struct words {
    uint64_t at[NEAR_MOST];
    size_t count;
} words_t;
static words_t at_roots, behind_roots;

static uint64_t draw(uint64_t bound) {
    return hak_random_next(&random_state) % bound;
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

/* The words as they are, for changes of a bit. */
static uint64_t word_value(uint64_t at) {
    static obs_reader_t reader;
    uint64_t value = 0;
    if (reader.source == NULL && !obs_open_core(&reader, core_path)) {
        fprintf(stderr, "fuzz: %s\n", reader.error);
        exit(1);
    }
    (void)obs_read_word(&reader, at, &value);
    return value;
}

/* Of the words that were read those near an address. */
static void near_add(words_t *words, uint64_t address) {
    for (size_t i = 0; i < word_count && words->count < NEAR_MOST; i++) {
        if (word[i] >= address && word[i] - address < NEAR_BYTES) {
            words->at[words->count++] = word[i];
        }
    }
}

/* What roots have, and what they lead to: where lists and tables begin. */
static void words_choose(void) {
    for (unsigned i = 0; i < HAK_DOOR_ROOTS; i++) {
        near_add(&at_roots, roots[i]);
    }
    for (size_t i = 0; i < at_roots.count; i++) {
        near_add(&behind_roots, word_value(at_roots.at[i]));
    }
}

static uint64_t draw_word(void) {
    uint64_t which = draw(4);
    const words_t *words = which == 0 && behind_roots.count != 0 ? &behind_roots : &at_roots;
    return which == 1 ? word[draw(word_count)] : words->at[draw(words->count)];
}

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
        return word_value(draw_word()); /* most are addresses */
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

static int report_all(bool *is_open) {
    static obs_reader_t reader;
    static obs_image_t image;
    const hak_sink_t sink = {.put = put_nothing};
    if (!obs_open_core(&reader, core_path)) {
        fprintf(stderr, "fuzz: %s\n", reader.error);
        return 1;
    }
    real = reader.source;
    reader.source = &fuzz_source;
    reader.is_exact = true;
    reader.now_ns = 1000000000000;
    *is_open = obs_image_open(&image, &reader);
    if (is_learning) {
        memcpy(roots, image.root, sizeof roots);
    }
    for (unsigned form = 0; *is_open && form < 4; form++) {
        report_bytes = 0;
        (void)(form == 0 ? obs_write_profile_json(&image, &sink)
                         : obs_write_profile(&image, &sink,
                                             form == 1   ? obs_write_pprof
                                             : form == 2 ? obs_write_heap
                                                         : obs_write_heap_v2));
        if (report_bytes > REPORT_MOST) {
            fprintf(stderr, "fuzz: a profile of %llu bytes\n", (unsigned long long)report_bytes);
            return 1;
        }
    }
    for (obs_verb_t verb = OBS_EXPLAIN; *is_open && !is_profile_alone && verb <= OBS_LEAKS;
         verb++) {
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

/* Lists that come back to an element: each word of its first bytes once leads to itself. */
static bool cycles_end(uint64_t most) {
    static const unsigned lists[] = {HAK_DOOR_ROOT_tcaches, HAK_DOOR_ROOT_owners,
                                     HAK_DOOR_ROOT_regions};
    bool is_open;
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        uint64_t first = word_value(roots[lists[i]]);
        for (uint64_t at = first; at < first + CYCLE_BYTES; at += 8) {
            change[0] = (change_t){at, first};
            change_count = 1;
            reads = 0;
            if (report_all(&is_open) != 0 || !is_open || reads > most) {
                fprintf(stderr, "fuzz: a cycle: %llu reads\n", (unsigned long long)reads);
                return false;
            }
        }
    }
    return true;
}

/* Sizes, counts and offsets of the profile: each word of its head, and the first that were read of
 * its sites, take values that no store has. */
static bool stores_end(uint64_t most) {
    static const uint64_t values[] = {0, ~0ull, 1ull << 31, 1 << 12};
    static words_t words;
    uint64_t head = roots[HAK_DOOR_ROOT_profile];
    uint64_t base = word_value(head + offsetof(hak_profile_store_t, base));
    uint64_t bytes = word_value(head + offsetof(hak_profile_store_t, bytes));
    bool is_open;
    for (uint64_t at = head; at < head + sizeof(hak_profile_store_t); at += 8) {
        words.at[words.count++] = at;
    }
    for (size_t i = 0, end = words.count + STORE_WORDS; i < word_count && words.count < end; i++) {
        if (word[i] >= base && word[i] - base < bytes) {
            words.at[words.count++] = word[i];
        }
    }
    is_profile_alone = true;
    for (size_t i = 0; i < words.count * (sizeof values / sizeof *values); i++) {
        change[0] = (change_t){words.at[i / 4], values[i % 4]};
        change_count = 1;
        reads = 0;
        if (report_all(&is_open) != 0 || !is_open || reads > most) {
            fprintf(stderr, "fuzz: a store: %llu reads\n", (unsigned long long)reads);
            return false;
        }
    }
    is_profile_alone = false;
    return bytes != 0;
}

int main(int argc, char **argv) {
    bool is_open = false;
    unsigned opened = 0;
    if (argc != 4) {
        fprintf(stderr, "usage: fuzz CORE SEED ROUNDS\n");
        return 1;
    }
    core_path = argv[1];
    random_state = strtoull(argv[2], NULL, 10);
    unsigned long rounds = strtoul(argv[3], NULL, 10);
    is_learning = true;
    if (report_all(&is_open) != 0 || !is_open || word_count < 1000) {
        fprintf(stderr, "fuzz: the image as it is cannot be observed\n");
        return 1;
    }
    is_learning = false;
    words_choose();
    uint64_t most = reads * 50;
    if (!cycles_end(most) || !stores_end(most)) {
        return 1;
    }
    for (unsigned long round = 0; round < rounds; round++) {
        change_count = 1 + draw(CHANGES_MOST);
        for (size_t i = 0; i < change_count; i++) {
            uint64_t at = draw_word();
            change[i] = (change_t){at, draw_value(word_value(at))};
        }
        reads = 0;
        if (report_all(&is_open) != 0 || reads > most) {
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
