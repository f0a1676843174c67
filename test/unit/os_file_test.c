/* SPDX-License-Identifier: MIT
 *
 * Mappings as /proc tells them, and lines of any length. */
#include "unit/os.h"

static const char *content;
static const char *content_path;

static size_t files(const char *path, char *buffer, size_t capacity) {
    if (strcmp(path, content_path) != 0) {
        return HAK_OS_FAULT_REAL;
    }
    size_t length = strlen(content);
    memcpy(buffer, content, length < capacity ? length : capacity);
    return length;
}

static hak_os_mapping_t seen[8];
static unsigned seen_count;

static void see(const hak_os_mapping_t *mapping, void *context) {
    assert_ptr_equal(context, &seen_count);
    assert_true(seen_count < UNIT_COUNT(seen));
    seen[seen_count++] = *mapping;
}

static void look(const char *text) {
    char buffer[4096];
    content = text;
    content_path = "/proc/self/maps";
    seen_count = 0;
    hak_os_fault_files(files);
    assert_true(hak_os_mappings(buffer, sizeof buffer, see, &seen_count));
    hak_os_fault_files(NULL);
}

UNIT_TEST(mappings_have_bounds_and_rights) {
    static const char text[] = "10000-12000 r-xp 00003000 08:01 11    /bin/one two\n"
                               "20000-21000 rw-p 00000000 00:00 0\n"
                               "30000-31000 rw-p 00000000 00:00 0   [heap]\n"
                               "40000-41000 rw-s 00000000 00:01 5   /dev/shm/x\n"
                               "7fffa000-7fffb000 rw-p 00000000 00:00 0   [stack]\n"
                               "7fffc000-7fffd000 r-xp 00000000 00:00 0   [vdso]\n";
    look(text);
    assert_int_equal(seen_count, 6);
    assert_int_equal(seen[0].start, 0x10000);
    assert_int_equal(seen[0].end, 0x12000);
    assert_int_equal(seen[0].offset, 0x3000);
    assert_true(seen[0].is_code && !seen[1].is_code);
}

UNIT_TEST(mappings_of_damaged_files_do_no_harm) {
    static const char *const texts[] = {
        "",     "\n",     "-\n",      "Rss: 5 kB\n",        "1\nRss:\n",
        "a-\n", "1-2 \n", "Rss:\n\n", "1-2 r\nRss: x kB\n", "9-8 s"};
    for (unsigned i = 0; i < UNIT_COUNT(texts); i++) {
        look(texts[i]);
        assert_true(seen_count <= 1);
    }
    hak_os_fault_plan(HAK_OS_CALL_READ, 0, 1);
    assert_false(hak_os_mappings((char[64]){0}, 64, see, &seen_count));
    hak_os_fault_clear();
}

static size_t lines_bytes;

static void take_line(char *line, void *context) {
    unsigned *lines = context;
    ++*lines;
    lines_bytes += strlen(line);
    assert_true(line[0] == 'a' + (int)(*lines % 26));
}

/* The file is real: longer than the buffer, with lines that do not fit. */
UNIT_TEST(lines_that_do_not_fit_are_cut) {
    char path[] = "/tmp/hak_lines_XXXXXX", buffer[16];
    int fd = mkstemp(path);
    size_t expected = 0;
    unsigned lines = 0;
    assert_true(fd >= 0);
    for (unsigned i = 1; i <= 60; i++) {
        char line[64];
        memset(line, 'a' + (int)(i % 26), sizeof line);
        line[i] = '\n';
        assert_int_equal(write(fd, line, i + 1), i + 1);
        expected += i < sizeof buffer ? i : sizeof buffer - 1;
    }
    lines_bytes = 0;
    assert_true(hak_os_read_lines(path, buffer, sizeof buffer, take_line, &lines));
    assert_int_equal(lines, 60);
    assert_int_equal(lines_bytes, expected);
    assert_false(hak_os_read_lines("/nowhere/at/all", buffer, sizeof buffer, take_line, &lines));
    close(fd);
    unlink(path);
}

UNIT_GROUP(os_begin)
