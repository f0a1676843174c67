/* SPDX-License-Identifier: MIT
 *
 * How reports show sizes, strings and roots; and of which kind mappings are. */
#include "api/expect.h"
#include "observe.h"
#include "put.h"

#include <math.h>
#include <sys/mman.h>

enum { LONG = 2 * HAK_LINE_TEXT };

static char out[6 * LONG + 3];
static hak_text_t text;

static void put_text(void *context, const char *data, size_t length) {
    hak_text_mem(context, data, length);
}

static const char *quoted(const char *s) {
    const hak_sink_t sink = {.put = put_text, .context = &text};
    text = (hak_text_t){.data = out, .capacity = sizeof out - 1};
    obs_put_quoted(&sink, s);
    return hak_text_string(&text);
}

static void strings_are_those_of_json(void) {
    static char longer[LONG];
    EXPECT(strcmp(quoted("a\"b\\c\n\x80"), "\"a\\u0022b\\u005cc\\u000a\\u0080\"") == 0);
    for (char c = 'a'; c != 0; c = c == 'a' ? '\n' : 0) {
        memset(longer, c, sizeof longer - 1);
        EXPECT(strlen(quoted(longer)) == (sizeof longer - 1) * (c == 'a' ? 1 : 6) + 2);
        EXPECT(out[text.length - 1] == '"');
    }
}

static void sizes_have_three_digits(void) {
    static const struct {
        uint64_t bytes;
        const char *expected;
    } cases[] = {{0, "0 B"},
                 {999, "999 B"},
                 {1024, "1.00 KiB"},
                 {1536, "1.50 KiB"},
                 {20480, "20.0 KiB"},
                 {300 << 10, "300 KiB"},
                 {5ull << 30, "5.00 GiB"},
                 {UINT64_MAX, "16777216 TiB"}};
    for (unsigned i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *found = OBS_SIZE(cases[i].bytes);
        if (strcmp(found, cases[i].expected) != 0) {
            fprintf(stderr, "%s, not %s\n", found, cases[i].expected);
        }
        EXPECT(strcmp(found, cases[i].expected) == 0);
    }
}

static void roots_are_square_roots(void) {
    static const double values[] = {0, 1e-20, 0.25, 1, 2, 144, 1e6, 3e38, 1e300};
    for (unsigned i = 0; i < sizeof values / sizeof *values; i++) {
        double root = obs_square_root(values[i]), part = values[i] > 0 ? values[i] : 1;
        EXPECT(fabs(root * root - values[i]) <= 1e-12 * part);
    }
}

static obs_mapping_kind_t kind_of(const obs_reader_t *reader, const void *at) {
    for (size_t i = 0; i < reader->mapping_count; i++) {
        const obs_mapping_t *mapping = &reader->mapping[i];
        if ((uintptr_t)at >= mapping->start && (uintptr_t)at < mapping->end) {
            return mapping->kind;
        }
    }
    return OBS_MAPPING_KINDS;
}

static void mappings_have_kinds(void) {
    static obs_reader_t reader;
    int here = 0, access = PROT_READ | PROT_WRITE;
    void *own = mmap(NULL, 4096, access, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    void *shared = mmap(NULL, 4096, access, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    EXPECT(own != MAP_FAILED && shared != MAP_FAILED);
    EXPECT(obs_open_process(&reader, (uint32_t)getpid()));
    EXPECT(kind_of(&reader, &here) == OBS_MAPPING_STACK);
    EXPECT(kind_of(&reader, own) == OBS_MAPPING_ANONYMOUS);
    EXPECT(kind_of(&reader, shared) == OBS_MAPPING_SHARED);
    EXPECT(kind_of(&reader, (const void *)obs_open_process) == OBS_MAPPING_FILE);
    obs_close(&reader);
}

int main(void) {
    strings_are_those_of_json();
    sizes_have_three_digits();
    roots_are_square_roots();
    mappings_have_kinds();
    return 0;
}
